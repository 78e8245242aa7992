"""The state of a recorder: one dataclass for each folder that writes to it during a capture."""

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
    """The options of a capture, which do not change.

    Attributes:
        build: build the generated code and run it, rather than only generate it.
        backward: lower backward graphs with their forward.
        patches: Inductor's settings.
        step: the step of an ablation; ``""`` for none and for the last step, which is an ordinary capture.
        interpret: returns a module for a wrapper's text, to run it on this machine.
        limit: the range of transformations of one kind to apply; None for all.
        launch_probe: observes each launch of the built code, for its time or its values; None for plain code.
        backend: a backend of torch's own that compiles the graphs in place of Inductor; ``""`` for Inductor.
        traced: called with the recorder and the draft each time that a graph other than a backward is about to be
            lowered.
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

    It receives the graph before Inductor's passes, adds lines to the text of a module, and then receives the module.
    """

    def trace(self, compile_id: str, gm: torch.fx.GraphModule) -> None: ...

    def instrumented(self, text: str, code: Code, draft: Any, lowering: Any) -> str: ...

    def attach(self, module: Any, compile_id: str, phase: str) -> None: ...


class StandIn(Protocol):
    """The stand-in for an absent device (``targets.stand_in``), as the stages use it."""

    device: torch.device
    queries: Any
    timing: Any

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]: ...


@dataclasses.dataclass(frozen=True)
class RefusedCall:
    """A library call in the code of one phase for which the device raises ``error``; ``why`` is the rule, ``frames``
    the program's lines."""

    phase: str
    error: Exception
    why: str
    frames: tuple[Line, ...] = ()


@dataclasses.dataclass
class CodeTarget:
    """The device for which code is generated. ``targets`` writes it; the capture's caller writes ``isa`` and
    ``device``.

    Attributes:
        isa: the vector ISA of code for the CPU.
        device: torch's device type, if there is no model.
        model: the device model, if the device is absent from the machine.
        stand_in: the stand-in for the absent device.
        traced: how the program was traced for the absent device.
        may_differ: what may differ on the real device.
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
    """The captured callable: its name, its place (``file`` is ``""`` if it has no code), and whether it is one of
    torch's own layers."""

    name: str
    file: str = ""
    line: int = 0
    of_torch: bool = False


@dataclasses.dataclass(frozen=True)
class LoggedBreak:
    """A graph break that Dynamo logged: the end of the graph before it, and whether Dynamo resumes after it."""

    ending: Ending
    resumes: bool


@dataclasses.dataclass
class Frame:
    """Observations of the frame that Dynamo evaluates: the logged break, failed guards, the reason for giving up, and
    the function that asks whether it is compiled (``other_path``)."""

    logged: LoggedBreak | None = None
    other_path: str = ""
    failed_guards: list[str] = dataclasses.field(default_factory=list)
    given_up: Skip | None = None


@dataclasses.dataclass
class Call:
    """One of several calls: ids of the compiles during it and of those whose code it ran, and its skipped frames."""

    compiled: list[str] = dataclasses.field(default_factory=list)
    ran: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Frames:
    """The functions that Dynamo evaluated; written by the folder ``frames``.

    Attributes:
        root: the captured callable.
        current: the frame that Dynamo is evaluating.
        sources: source texts by file, first line and name.
        skips: a text for each skipped frame.
        skipped: the skipped frames of the program's own functions.
        foreign_count: number of skipped functions outside of the program (``skipped_frames.is_foreign``).
        calls: the calls so far, if the capture has several.
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
    """State to remove from torch at the end of the capture; written by ``counters`` and ``cache_entries``.

    Attributes:
        counters: functions that restore torch's counters after a compile in progress.
        codes: code objects that were compiled.
    """

    counters: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    codes: list[CompiledCode] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Numbers:
    """Numbers of frames and compiles, from 0 in each capture; shared by its ablation steps."""

    frames: dict[int, int] = dataclasses.field(default_factory=dict)
    first_attempts: dict[int, int] = dataclasses.field(default_factory=dict)

    def take(self, frame_id: int, attempt: int) -> str:
        """Reserve and return this capture's id for one of Dynamo's compiles."""
        self.frames.setdefault(frame_id, len(self.frames))
        self.first_attempts.setdefault(frame_id, attempt)
        return self.own_id(frame_id, attempt)

    def pass_over(self, frame_id: int | None, attempt: int) -> None:
        """Reserve the number of an attempt that compiled nothing, so that later numbers have the same gaps as in a
        plain process."""
        if frame_id is not None:
            self.take(frame_id, attempt)

    def own_id(self, frame_id: int, attempt: int) -> str:
        """Return this capture's id for one of Dynamo's compiles; Dynamo's own id if it belongs to another capture."""
        number = self.frames.get(frame_id)
        if number is None:
            return f"{frame_id}/{attempt}"
        return f"{number}/{attempt - self.first_attempts[frame_id]}"


class Clock:
    """Seconds by compile id and stage."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self.start()

    def start(self) -> None:
        """Start a lap now."""
        self._mark = time.perf_counter()

    def lap(self, stage: str, compile_id: str = "") -> None:
        """Add the time since the last lap to ``stage`` of a compilation."""
        now = time.perf_counter()
        key = (compile_id, stage)
        self.seconds[key] = self.seconds.get(key, 0.0) + now - self._mark
        self._mark = now
