"""The mutable side of a capture: what has been seen so far. ``finish()`` turns it into the frozen record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..decision import Decision
from ..device_model import DeviceModel
from ..graph import Graph, Source
from ..lowered import Lowered
from ..memory import Memory, Partition
from ..record import (
    LOWERED_STAGES,
    PHASES,
    Code,
    Compilation,
    DynamicDim,
    EagerOp,
    Ending,
    Guard,
    Missing,
    Stage,
    Timing,
)
from ..rewrite import Pass
from . import versions

if TYPE_CHECKING:
    from .targets.stand_in import StandIn

ORDER = (
    "dynamo",
    "pre_grad",
    "joint",
    *(key for phase in PHASES for key in (phase, *(f"{phase}.{stage}" for stage in LOWERED_STAGES))),
)
"""Stage keys in the order in which a reader meets them."""


class Draft:
    """One compilation in the making."""

    def __init__(self, recorder: Recorder, compile_id: str, function: str, file: str, line: int) -> None:
        self.recorder = recorder
        self.id = compile_id
        self.function = function
        self.file = file
        self.line = line
        self.stages: dict[str, Stage] = {}
        self.guards: tuple[Guard, ...] = ()
        self.ending: Ending | None = None
        self.recompile_reasons: list[str] = []
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.eager: tuple[EagerOp, ...] | None = None
        self.eager_note = "the graph did not reach the backend"
        self.decisions: dict[str, tuple[Decision, ...]] = {}
        self.lowered: list[Lowered] = []
        self.passes: list[Pass] = []
        self.memory: list[Memory] = []
        self.partition: Partition | None = None
        self.phase = ""
        self.doing = "dynamo"
        # Scratch of the stages in progress; it holds nodes of torch's graphs, so it goes when they are done.
        self.scratch: dict[str, Any] = {}

    def put(self, stage: Stage) -> None:
        """Keep a stage; a later version of the same stage (an outer graph after an inner) replaces it."""
        self.stages[stage.key] = stage

    def lap(self, stage: str) -> None:
        """Book the time since the last lap to a stage, and remember that this stage was reached."""
        self.recorder.lap(stage, self.id)

    def graph(self, key: str) -> Graph | None:
        """A graph seen so far."""
        found = self.stages.get(key)
        return found if isinstance(found, Graph) else None

    def finish(self) -> Compilation:
        """The frozen form, with a reason for every stage that was not seen."""
        self.scratch.clear()
        stages = dict(self.stages)
        for key, reason in self._absent():
            stages.setdefault(key, Missing(key, versions.lost(key.rpartition(".")[2]) or reason))
        ordered = tuple(stages[key] for key in ORDER if key in stages)
        return Compilation(
            id=self.id,
            function=self.function,
            file=self.file,
            line=self.line,
            stages=ordered,
            guards=self.guards,
            ending=self.ending,
            recompile_reasons=tuple(self.recompile_reasons),
            dynamic=self.dynamic,
            eager=self.eager,
            eager_note="" if self.eager is not None else self.eager_note,
            decisions=tuple(self.decisions.items()),
            lowered=tuple(self.lowered),
            passes=tuple(self.passes),
            memory=tuple(self.memory),
            partition=self.partition,
        )

    def _absent(self) -> list[tuple[str, str]]:
        failed = self.recorder.failed_stage if self.recorder.failed_draft is self else ""
        if "dynamo" not in self.stages:
            return [
                (
                    "dynamo",
                    (failed and f"failed in stage {failed}")
                    or "no tensor operation was captured in this frame",
                )
            ]
        if failed:
            reason = f"the compiler failed before it, in stage {failed}"
        else:
            reason = self.recorder.why_missing or "the compiler did not hand it over"
        absent = [("pre_grad", reason)]
        seen = {phase for phase in PHASES if phase in self.stages}
        if not seen:
            return [*absent, ("joint", reason), ("forward", reason)]
        if seen == {"inference"}:
            absent.append(("joint", "nothing in this graph needs a gradient: there is no backward to join"))
        else:
            absent.append(("joint", reason))
            if "backward" not in seen:
                absent.append(("backward", self.recorder.why_no_backward or reason))
        for phase in PHASES:
            if phase in seen:
                absent += [
                    (f"{phase}.{stage}", self.scratch_reason(phase, reason)) for stage in LOWERED_STAGES
                ]
        return absent

    def scratch_reason(self, phase: str, otherwise: str) -> str:
        """Why the lowered stages of a phase are not there."""
        graph = self.graph(phase)
        if graph is not None and not graph.calls:
            return "the graph has no operation: there is nothing to lower"
        return otherwise


class Recorder:
    """Everything that one capture has seen so far.

    ``build`` says whether the generated code is to be built and run, ``backward`` whether backward graphs
    are to be lowered with their forward.
    """

    def __init__(self, *, build: bool, backward: bool, patches: dict[str, Any]) -> None:
        self.build = build
        self.backward = backward
        self.patches = patches
        self.drafts: dict[str, Draft] = {}
        self.timings: dict[tuple[str, str], float] = {}
        self.sources: dict[tuple[str, int, str], Source] = {}
        self.notes: list[str] = []
        self.skips: list[str] = []
        self.root: tuple[str, str, int] | None = None
        self.root_is_torchs = False
        self.codes: dict[int, Any] = {}
        self.frame_numbers: dict[int, int] = {}
        self.first_attempts: dict[int, int] = {}
        self.failed_draft: Draft | None = None
        self.failed_stage = ""
        self.why_missing = ""
        self.why_no_backward = "" if backward else "backward=False"
        self.isa = ""
        self.target = "cpu"
        self.stand_in: StandIn | None = None  # what answers for a device that is not there
        self.interpret: Callable[[str, Any], Any] | None = None  # makes a module of a wrapper, to run it here
        self.model: DeviceModel | None = (
            None  # of the device that code is generated for, if that is not there
        )
        self.may_differ: tuple[str, ...] = ()
        self.step = ""  # of an ablation; "" is none, or the last, which is an ordinary capture
        self._mark = time.perf_counter()

    def start(self) -> None:
        """Start the clock."""
        self._mark = time.perf_counter()

    def lap(self, stage: str, compile_id: str = "") -> None:
        """Book the time since the last lap to ``stage`` of a compilation."""
        now = time.perf_counter()
        key = (compile_id, stage)
        self.timings[key] = self.timings.get(key, 0.0) + now - self._mark
        self._mark = now

    def note(self, text: str) -> None:
        """Keep something a reader should know, once."""
        if text and text not in self.notes:
            self.notes.append(text)

    def draft(self, frame_id: int, attempt: int, code: Any, part: int = 0) -> Draft:
        """The draft of a Dynamo compile; frames are numbered from 0 in each capture."""
        number = self.frame_numbers.setdefault(frame_id, len(self.frame_numbers))
        base = self.first_attempts.setdefault(frame_id, attempt)
        compile_id = f"{number}/{attempt - base}" + (f".{part}" if part else "")
        if compile_id not in self.drafts:
            place = (
                getattr(code, "co_name", "<unknown>"),
                getattr(code, "co_filename", ""),
                getattr(code, "co_firstlineno", 0),
            )
            if self.root is not None and place[1].endswith("/torch/_dynamo/external_utils.py"):
                place = self.root  # torch's wrapper around a callable that has no frame of its own
            self.drafts[compile_id] = Draft(self, compile_id, *place)
        return self.drafts[compile_id]

    def fail(self, draft: Draft | None) -> None:
        """Remember where the compiler failed; the innermost report wins."""
        if self.failed_draft is None and draft is not None:
            self.failed_draft = draft
            self.failed_stage = draft.doing

    def finish(self) -> tuple[tuple[Compilation, ...], tuple[Timing, ...]]:
        """The frozen compilations, in the order of their frames, and the time of each part."""
        compilations = tuple(d.finish() for d in self.drafts.values())
        alone = len(compilations) == 1
        timings = tuple(
            Timing(stage if alone or not compile_id else f"{compile_id} {stage}", seconds)
            for (compile_id, stage), seconds in self.timings.items()
        )
        return compilations, timings

    def stamp(self, phase: str, text: str) -> None:
        """Say of every generated module of a phase what became of it."""
        for draft in self.drafts.values():
            found = draft.stages.get(f"{phase}.code")
            if isinstance(found, Code):
                draft.put(dataclasses.replace(found, stamp=text))
