"""The state of a recorder: one dataclass for each room that writes to it while a capture runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import torch

from ...record.breaks import Ending, Skip
from ...record.device import DeviceModel, DeviceQuery
from ...record.graph import Frame as Line
from ...record.graph import Source
from ...record.kernel import Code
from .cache_entries import CompiledCode

if TYPE_CHECKING:
    from .limit import Limit


@dataclasses.dataclass(frozen=True)
class CaptureSpec:
    """The options of a capture, set by its maker and changed by nobody.

    Attributes:
        build: build the generated code and run it; else only generate it.
        backward: lower backward graphs with their forward.
        patches: Inductor's settings.
        step: the step of an ablation; ``""`` for none, or for the last one, which is an ordinary capture.
        interpret: makes a module of a wrapper, to run it here.
        limit: how many transformations of a kind are applied; None for all.
        launch_probe: sees each launch of the built code: its time, or its values; None for plain code.
        backend: a backend of torch's own that compiles the graphs in place of Inductor; ``""`` for Inductor.
        traced: takes the recorder, and the draft of a graph of the call, each time that one is about to be lowered,
            backwards left out.
    """

    build: bool = False
    backward: bool = True
    patches: dict[str, Any] = dataclasses.field(default_factory=dict)
    step: str = ""
    interpret: Callable[[str, Any], Any] | None = None
    limit: Limit | None = None
    launch_probe: LaunchProbe | None = None
    backend: str = ""
    traced: Callable[[Any, Any], None] | None = None


class LaunchProbe(Protocol):
    """Observer of the launches of built code (``code.launch_times``, ``inductor.launch_values``).

    It gets the graph before Inductor's passes, gives the text of a module lines of its own, and then gets the module.
    """

    def trace(self, compile_id: str, gm: torch.fx.GraphModule) -> None: ...

    def instrumented(self, text: str, code: Code, draft: Any, lowering: Any) -> str: ...

    def attach(self, module: Any, compile_id: str, phase: str) -> None: ...


class StandIn(Protocol):
    """The stand-in for an absent device (``targets.stand_in``), and what the stages need of it."""

    device: torch.device
    queries: Any
    timing: Any

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]: ...


@dataclasses.dataclass(frozen=True)
class RefusedCall:
    """A library call in the code of one phase for which the device raises ``error``, with the rule and the
    program's lines."""

    phase: str
    error: Exception
    why: str
    frames: tuple[Line, ...] = ()


@dataclasses.dataclass
class CodeTarget:
    """The device for which code is generated. Written by ``targets``; ``isa`` and ``device`` by the caller of
    the capture.

    Attributes:
        isa: the vector instructions of the CPU's code.
        device: its kind, if no model has it.
        model: its device model, if it is absent from the machine.
        stand_in: its stand-in meanwhile.
        traced: how the program was traced for it.
        may_differ: what may be different on the real one.
        queries: the program's device queries.
    """

    isa: str = ""
    device: str = "cpu"
    model: DeviceModel | None = None
    stand_in: StandIn | None = None
    traced: str = ""
    may_differ: tuple[str, ...] = ()
    queries: tuple[DeviceQuery, ...] = ()


@dataclasses.dataclass(frozen=True)
class Root:
    """The captured callable: its name, its place (``file`` is ``""`` if it has no code), and whether it is a
    layer of torch's own."""

    name: str
    file: str = ""
    line: int = 0
    of_torch: bool = False


@dataclasses.dataclass(frozen=True)
class LoggedBreak:
    """A graph break that Dynamo logged: how the graph before it ends, and whether Dynamo resumes after it."""

    ending: Ending
    resumes: bool


@dataclasses.dataclass
class Frame:
    """Observations of the frame that Dynamo evaluates: the break it logged, guards that failed, why it gave up."""

    logged: LoggedBreak | None = None
    failed_guards: list[str] = dataclasses.field(default_factory=list)
    given_up: Skip | None = None


@dataclasses.dataclass
class Call:
    """One of several calls: ids of the compiles in it and of the compiles it ran, and the frames that were skipped."""

    compiled: list[str] = dataclasses.field(default_factory=list)
    ran: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Frames:
    """The functions that Dynamo evaluated. Written by the room ``frames``.

    Attributes:
        current: the frame that it evaluates now.
        sources: their texts, by file, first line and name.
        skips: a line of text for each skipped frame.
        skipped: the program's own among them.
        foreign_count: how many functions outside of the program (``skipped_frames.is_foreign``) were skipped.
        calls: the calls until now, if the capture is of several.
        inlined: compiled functions that the captured one called, by ``id``.
    """

    root: Root | None = None
    current: Frame = dataclasses.field(default_factory=Frame)
    sources: dict[tuple[str, int, str], Source] = dataclasses.field(default_factory=dict)
    skips: list[str] = dataclasses.field(default_factory=list)
    skipped: list[Skip] = dataclasses.field(default_factory=list)
    foreign_count: int = 0
    calls: list[Call] = dataclasses.field(default_factory=list)
    inlined: dict[int, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Leftovers:
    """State to remove from torch when the capture is over. Written by ``counters`` and ``cache_entries``.

    Attributes:
        counters: each restores torch's counters, while it compiles for us.
        codes: code objects that were compiled.
    """

    counters: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    codes: list[CompiledCode] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Numbers:
    """Numbers of frames and compiles, from 0 in each capture; its ablation steps share them."""

    frames: dict[int, int] = dataclasses.field(default_factory=dict)
    first_attempts: dict[int, int] = dataclasses.field(default_factory=dict)

    def take(self, frame_id: int, attempt: int) -> str:
        """Return the id in this capture of a compile of Dynamo's, and reserve it."""
        self.frames.setdefault(frame_id, len(self.frames))
        self.first_attempts.setdefault(frame_id, attempt)
        return self.own_id(frame_id, attempt)

    def pass_over(self, frame_id: int | None, attempt: int) -> None:
        """Reserve the number of an attempt at a frame even if nothing was compiled, so that later ones have
        the gaps of a plain process."""
        if frame_id is not None:
            self.take(frame_id, attempt)

    def own_id(self, frame_id: int, attempt: int) -> str:
        """Return the id that a compile of Dynamo's has in this capture; Dynamo's own if it belongs to another."""
        number = self.frames.get(frame_id)
        if number is None:
            return f"{frame_id}/{attempt}"
        return f"{number}/{attempt - self.first_attempts[frame_id]}"


class Clock:
    """Seconds that each stage of each compile took."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self.start()

    def start(self) -> None:
        """Count time from now on."""
        self._mark = time.perf_counter()

    def lap(self, stage: str, compile_id: str = "") -> None:
        """Book the time since the last lap to ``stage`` of a compilation."""
        now = time.perf_counter()
        key = (compile_id, stage)
        self.seconds[key] = self.seconds.get(key, 0.0) + now - self._mark
        self._mark = now
