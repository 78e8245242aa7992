"""The parts of a recorder: what each room of the engine writes down while a capture runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

from ...record.breaks import Ending, Skip
from ...record.device import DeviceModel, DeviceQuery
from ...record.graph import Frame as Line
from ...record.graph import Source
from .cache_entries import CompiledCode


@dataclasses.dataclass(frozen=True)
class CaptureSpec:
    """What is asked of a capture; whoever makes the recorder says it, and nobody changes it.

    Attributes:
        build: the generated code is to be built and run.
        backward: backward graphs are to be lowered with their forward.
        patches: Inductor's settings.
        step: of an ablation; ``""`` is none, or the last, which is an ordinary capture.
        interpret: makes a module of a wrapper, to run it here.
    """

    build: bool
    backward: bool
    patches: dict[str, Any]
    step: str = ""
    interpret: Callable[[str, Any], Any] | None = None


class StandIn(Protocol):
    """What answers for a device that is not there (``targets.stand_in``): what the stages do otherwise then."""

    device: torch.device
    questions: Any
    undecided: Any

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]: ...


@dataclasses.dataclass(frozen=True)
class RefusedCall:
    """A library call in the code of one phase that the device raises ``error`` for, with what is said of it: by
    which rule, and from which lines of the program it comes."""

    phase: str
    error: Exception
    why: str
    frames: tuple[Line, ...] = ()


@dataclasses.dataclass
class CodeTarget:
    """The device that code is generated for. Written by ``targets``; ``isa`` and ``device`` by who starts the capture.

    Attributes:
        isa: the vector instructions of the CPU's code.
        device: its kind, where no model says it.
        model: of the device, if that is not in the machine.
        stand_in: what answers for it meanwhile.
        traced: how the program was traced for it.
        may_differ: what may be otherwise on the real one.
        questions: where the program asked for it.
    """

    isa: str = ""
    device: str = "cpu"
    model: DeviceModel | None = None
    stand_in: StandIn | None = None
    traced: str = ""
    may_differ: tuple[str, ...] = ()
    questions: tuple[DeviceQuery, ...] = ()


@dataclasses.dataclass(frozen=True)
class Root:
    """What was captured: its name, where it is written (``file`` is ``""`` for what has no code), and whether torch's
    own layers are what it is."""

    name: str
    file: str = ""
    line: int = 0
    of_torch: bool = False


@dataclasses.dataclass(frozen=True)
class LoggedBreak:
    """A break that Dynamo logged: how the graph ends that it makes of what stands before, and whether it goes on
    after that."""

    ending: Ending
    resumes: bool


@dataclasses.dataclass
class Frame:
    """What was heard of the frame that Dynamo looks at: the break it logged, guards that failed, why it gave up."""

    logged: LoggedBreak | None = None
    failed_guards: list[str] = dataclasses.field(default_factory=list)
    given_up: Skip | None = None


@dataclasses.dataclass
class Call:
    """One of several calls: ids of what was compiled in it and of what it ran, and what was given up."""

    compiled: list[str] = dataclasses.field(default_factory=list)
    ran: list[str] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Frames:
    """The functions that Dynamo looked at. Written by the room ``frames``.

    Attributes:
        current: the one that it looks at.
        sources: text of each, by file, first line and name.
        skips: a line of text for each that was left alone.
        skipped: those of the program among them.
        foreign_count: how many functions outside of the program (``skipped_frames.foreign``) were given up.
        calls: those until now, where the capture is of several.
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
    """What torch is to be rid of when the capture is over. Written by ``counters`` and ``cache_entries``.

    Attributes:
        counters: each puts torch's counters back, while it compiles for us.
        codes: code objects that were compiled.
    """

    counters: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    codes: list[CompiledCode] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Numbers:
    """Frames and their compiles are numbered from 0 in each capture; its steps share them."""

    frames: dict[int, int] = dataclasses.field(default_factory=dict)
    first_attempts: dict[int, int] = dataclasses.field(default_factory=dict)

    def take(self, frame_id: int, attempt: int) -> str:
        """The id in this capture of a compile of Dynamo's, which has a number from now on."""
        self.frames.setdefault(frame_id, len(self.frames))
        self.first_attempts.setdefault(frame_id, attempt)
        return self.own_id(frame_id, attempt)

    def pass_over(self, frame_id: int | None, attempt: int) -> None:
        """Dynamo is through with an attempt at a frame: the number is taken even if nothing was compiled, so that those
        after it have the gaps of a plain process."""
        if frame_id is not None:
            self.take(frame_id, attempt)

    def own_id(self, frame_id: int, attempt: int) -> str:
        """The id that a compile of Dynamo's has in this capture; Dynamo's own where it is not of this capture."""
        number = self.frames.get(frame_id)
        if number is None:
            return f"{frame_id}/{attempt}"
        return f"{number}/{attempt - self.first_attempts[frame_id]}"


class Clock:
    """How long each stage of each compile took, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self.start()

    def start(self) -> None:
        """From now on time is counted."""
        self._mark = time.perf_counter()

    def lap(self, stage: str, compile_id: str = "") -> None:
        """Book the time since the last lap to ``stage`` of a compilation."""
        now = time.perf_counter()
        key = (compile_id, stage)
        self.seconds[key] = self.seconds.get(key, 0.0) + now - self._mark
        self._mark = now
