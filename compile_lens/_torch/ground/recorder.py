"""The mutable side of a capture: what has been seen so far. ``finish()`` turns it into the frozen record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch.fx

from ...record.absent import Missing, NotApplicable
from ...record.breaks import Ending, Skip
from ...record.capture import Timing
from ...record.compilation import LOWERED_STAGES, PHASES, Compilation, DynamicDim, EagerOp, Guard, Stage
from ...record.decision import Decision
from ...record.device import DeviceModel, Question
from ...record.graph import Graph, Source
from ...record.kernel import Code
from ...record.lowering import Lowered
from ...record.memory import Memory, Partition
from ...record.rewrite import Pass
from . import hook_points
from .code_entries import Visited
from .slots import Kept

ORDER = (
    "dynamo",
    "pre_grad",
    "joint",
    *(key for phase in PHASES for key in (phase, *(f"{phase}.{stage}" for stage in LOWERED_STAGES))),
)
"""Stage keys in the order in which a reader meets them."""


class StandIn(Protocol):
    """What answers for a device that is not there (``targets.stand_in``): what the stages do otherwise then."""

    def in_phase(self) -> AbstractContextManager[None]: ...
    def graph(self, gm: torch.fx.GraphModule, inputs: Sequence[Any] = ()) -> torch.fx.GraphModule: ...
    def passes(self, real: Callable[..., Any]) -> Callable[..., Any]: ...
    def inputs(self, values: Sequence[Any]) -> list[Any]: ...
    def settings(self) -> dict[str, Any]: ...


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
        self.rest: Skip | None = None
        self.recompile_reasons: list[str] = []
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.eager: tuple[EagerOp, ...] | None = None
        self.aliased = False  # each output that needs a gradient is a view of an input, or the input
        self.eager_note = "the graph did not reach the backend"
        self.decisions: dict[str, tuple[Decision, ...]] = {}
        self.lowered: list[Lowered] = []
        self.passes: list[Pass] = []
        self.memory: list[Memory] = []
        self.partition: Partition | None = None
        self.phase = ""
        self.doing = "dynamo"
        self.kept: Kept = {}  # of the stages in progress, each in a slot of its own

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
        """The frozen form, with a reason for every stage that is not there."""
        self.kept.clear()
        stages = dict(self.stages)
        for absent in self._absent():
            lost = hook_points.lost(absent.key.rpartition(".")[2])
            stages.setdefault(absent.key, Missing(absent.key, lost) if lost else absent)
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
            eager=self._eager_ops(),
            eager_note="" if self.eager is not None else self.eager_note,
            decisions=tuple(self.decisions.items()),
            lowered=tuple(self.lowered),
            passes=tuple(self.passes),
            memory=tuple(self.memory),
            partition=self.partition,
        )

    def _absent(self) -> list[Missing | NotApplicable]:
        failed = self.recorder.failed_stage if self.recorder.failed_draft is self else ""
        if "dynamo" not in self.stages:
            if failed:
                return [Missing("dynamo", f"failed in stage {failed}")]
            return [NotApplicable("dynamo", "no tensor operation was captured in this frame")]
        if failed:
            reason = f"the compiler failed before it, in stage {failed}"
        else:
            reason = self.recorder.why_missing or "the compiler did not hand it over"
        absent: list[Missing | NotApplicable] = [Missing("pre_grad", reason)]
        seen = {phase for phase in PHASES if phase in self.stages}
        if not seen:
            return [*absent, Missing("joint", reason), Missing("forward", reason)]
        if seen == {"inference"}:
            absent.append(NotApplicable("joint", self._why_inference()))
            if any(op.phase == "backward" for op in self.eager or ()):
                absent.append(NotApplicable("backward", self._why_inference()))
        else:
            absent.append(Missing("joint", reason))
            if "backward" not in seen:
                declined = self.recorder.why_no_backward
                absent.append(
                    NotApplicable("backward", declined) if declined else Missing("backward", reason)
                )
        for phase in PHASES:
            if phase in seen:
                absent += [self._not_lowered(phase, stage, reason) for stage in LOWERED_STAGES]
        return absent

    def _eager_ops(self) -> tuple[EagerOp, ...] | None:
        """The eager operators under the phases that there are: a graph whose outputs only alias an input that needs a
        gradient runs as one for inference."""
        alone = {phase for phase in PHASES if phase in self.stages} == {"inference"}
        if self.eager is None or not alone:
            return self.eager
        named = {"forward": "inference"}
        return tuple(dataclasses.replace(op, phase=named.get(op.phase, op.phase)) for op in self.eager)

    def _why_inference(self) -> str:
        """Why a graph has no backward, although an operator of eager PyTorch's may have one."""
        if self.aliased:
            return (
                "the outputs that need a gradient alias an input: PyTorch makes those views, and their backward, "
                "outside of the graph"
            )
        return "nothing in this graph needs a gradient: there is no backward to join"

    def _not_lowered(self, phase: str, stage: str, reason: str) -> Missing | NotApplicable:
        graph = self.graph(phase)
        if graph is not None and not graph.calls:
            return NotApplicable(f"{phase}.{stage}", "the graph has no operation: there is nothing to lower")
        return Missing(f"{phase}.{stage}", reason)


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
        self.inputs: list[str] = []  # of the first graph, where nobody else knows the arguments
        self.notes: list[str] = []
        self.skips: list[str] = []
        self.skipped: list[Skip] = []
        self.elsewhere = 0  # functions of torch and of the standard library that were given up
        # Of the frame that Dynamo looks at: the break it logged, guards that failed, why it gave up.
        self.logged: Any = None
        self.failed_guards: list[str] = []
        self.given_up: Skip | None = None
        self.root: tuple[str, str, int] | None = None
        self.root_is_torchs = False
        self.visited: list[Visited] = []
        self.owed: list[Callable[[], None]] = []  # puts torch's counters back, while it compiles for us
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
        self.questions: tuple[Question, ...] = ()  # where the program asked for that device
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

    def own_id(self, frame_id: int, attempt: int) -> str:
        """The id that a compile of Dynamo's has in this capture."""
        number = self.frame_numbers.get(frame_id)
        return (
            f"{frame_id}/{attempt}"
            if number is None
            else f"{number}/{attempt - self.first_attempts[frame_id]}"
        )

    def begin_again(self, draft: Draft) -> None:
        """Dynamo traces this frame anew, knowing more: what was seen of the first attempt is of no graph."""
        self.drafts = {key: known for key, known in self.drafts.items() if known is not draft}

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

    def left_to_python(self) -> tuple[Skip, ...]:
        """What was not compiled: the rests of functions whose graph was made, then what was given up."""
        rests = (d.rest for d in self.drafts.values())
        return (*(r for r in rests if r is not None), *self.skipped)

    def stamp(self, phase: str, text: str) -> None:
        """Say of every generated module of a phase what became of it."""
        for draft in self.drafts.values():
            found = draft.stages.get(f"{phase}.code")
            if isinstance(found, Code):
                draft.put(dataclasses.replace(found, stamp=text))
