"""The mutable state of a capture. ``finish()`` turns it into the frozen record."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from ...errors import LensError
from ...record import claims
from ...record.autotuning import Autotuning
from ...record.breaks import Ending, Skip
from ...record.capture import Timing
from ...record.compilation import LOWERED_STAGES, PHASES, Compilation, DynamicDim, EagerOp, Guard, Stage
from ...record.cuda_graphs import CudaGraphs
from ...record.decision import Decision
from ...record.graph import Frame, Graph
from ...record.kernel import Code
from ...record.lowering import Lowered, Pass
from ...record.memory import Memory, Partition
from ...record.missing import Missing, NotApplicable
from . import hook_points
from .recorder_state import CaptureSpec, Clock, CodeTarget, Frames, Leftovers, Numbers, RefusedCall

ORDER = (
    "dynamo",
    "pre_grad",
    "joint",
    *(key for phase in PHASES for key in (phase, *(f"{phase}.{stage}" for stage in LOWERED_STAGES))),
)
"""Stage keys in reading order."""


class Draft:
    """One compilation that is being recorded."""

    def __init__(self, recorder: Recorder, compile_id: str, function: str, file: str, line: int) -> None:
        self.recorder = recorder
        self.id = compile_id
        self.function = function
        self.file = file
        self.line = line
        self.stages: dict[str, Stage] = {}
        self.lost: dict[str, str] = {}  # stages that we failed to record, each with the reason
        self.parameters: tuple[tuple[str, str], ...] = ()
        self.guards: tuple[Guard, ...] = ()
        self.ending: Ending | None = None
        self.resume_skip: Skip | None = None
        self.recompile_reasons: list[str] = []
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.eager: tuple[EagerOp, ...] | None = None
        self.aliased = False  # True if each output that needs a gradient is an input or a view of one
        self.eager_note = "the graph did not reach the backend"
        self.decisions: dict[str, tuple[Decision, ...]] = {}
        self.lowered: list[Lowered] = []
        self.passes: list[Pass] = []
        self.memory: list[Memory] = []
        self.partition: Partition | None = None
        self.contests: list[Autotuning] = []
        self.cuda_graphs: list[CudaGraphs] = []
        self.refused: list[RefusedCall] = []
        self.phase = ""
        self.current_stage = "dynamo"
        self.slots: SlotValues = {}  # values of the stages in progress

    def put(self, stage: Stage) -> None:
        """Store a stage; a later one with the same key (an outer graph after an inner one) replaces it."""
        self.stages[stage.key] = stage

    @contextlib.contextmanager
    def recording(self, what: str, *rest_on_it: str) -> Iterator[None]:
        """Suppress an error of ours, so that the compile goes on; stage ``what`` is then missing, and the claims are
        unknown."""
        try:
            yield
        except LensError:
            raise
        except Exception as error:
            reason = f"compile_lens failed to record it ({type(error).__name__}: {error})"
            self.lost[what] = reason
            for claim in rest_on_it:
                self.recorder.lacking.setdefault(claim, reason)
            self.recorder.note(f"{self.id} {what}: {reason}")

    def drop_lowering(self, phase: str) -> None:
        """Drop what an earlier lowering of a phase recorded in addition to its stages."""
        self.lowered = [one for one in self.lowered if one.phase != phase]
        self.memory = [one for one in self.memory if one.phase != phase]
        self.contests = [one for one in self.contests if one.phase != phase]
        self.cuda_graphs = [one for one in self.cuda_graphs if one.phase != phase]
        self.refused = [one for one in self.refused if one.phase != phase]
        self.passes = [one for one in self.passes if one.stage != f"{phase}.post_grad"]

    def lap(self, stage: str) -> None:
        """Add the time since the last lap to a stage."""
        self.recorder.clock.lap(stage, self.id)

    def graph(self, key: str) -> Graph | None:
        """Return a recorded graph, or None if the stage is absent or no graph."""
        stage = self.stages.get(key)
        return stage if isinstance(stage, Graph) else None

    def finish(self) -> Compilation:
        """Return the frozen compilation, with a reason for every absent stage."""
        self.slots.clear()
        return self.frozen()

    def frozen(self, later: str = "") -> Compilation:
        """Return the compilation as recorded so far; ``later`` is the reason for stages that the compiler has yet to
        reach."""
        lacking = self.recorder.lacking
        stages = dict(self.stages)
        for absent in self._absent(later):
            stage = absent.key.rpartition(".")[2]
            lost = (lacking.get(stage) or self.lost.get(absent.key)) if isinstance(absent, Missing) else ""
            stages.setdefault(absent.key, Missing(absent.key, lost) if lost else absent)
        ordered = tuple(stages[key] for key in ORDER if key in stages)
        if claims.CALL_ENDS in lacking:
            ordered = tuple(_without_call_ends(s) if isinstance(s, Graph) else s for s in ordered)
        return Compilation(
            id=self.id,
            function=self.function,
            file=self.file,
            line=self.line,
            parameters=self.parameters,
            stages=ordered,
            guards=self.guards,
            ending=self.ending,
            recompile_reasons=tuple(self.recompile_reasons),
            dynamic=self.dynamic,
            eager=self._eager_ops(),
            eager_note=self.eager_note,
            decisions=() if claims.DECISIONS in lacking else tuple(self.decisions.items()),
            lowered=() if claims.LOWERING in lacking else tuple(self.lowered),
            passes=() if claims.REWRITES in lacking else tuple(self.passes),
            memory=tuple(self.memory),
            partition=self._partition(),
            autotuning=tuple(self.contests),
            cuda_graphs=tuple(self.cuda_graphs),
        )

    def _partition(self) -> Partition | None:
        why = self.recorder.lacking.get(claims.SAVED)
        if self.partition is None or why is None:
            return self.partition
        return dataclasses.replace(self.partition, default=None, note=why)

    def _absent(self, later: str) -> list[Missing | NotApplicable]:
        draft, stage = self.recorder.failed or (None, "")
        failed = stage if draft is self else ""
        if "dynamo" not in self.stages and "dynamo" not in self.lost:
            if failed:
                return [Missing("dynamo", f"failed in stage {failed}")]
            return [NotApplicable("dynamo", "no tensor operation was captured in this frame")]
        if failed:
            later = reason = f"the compiler failed before it, in stage {failed}"
        else:
            reason = "the compiler did not hand it over"
            later = later or reason
        absent: list[Missing | NotApplicable] = [Missing(s, reason) for s in ("dynamo", "pre_grad")]
        seen = {phase for phase in PHASES if phase in self.stages or phase in self.lost}
        absent += [Missing(phase, reason) for phase in PHASES if phase in self.lost]
        if not seen:
            return [*absent, Missing("joint", reason), Missing("forward", reason)]
        if seen == {"inference"}:
            absent.append(NotApplicable("joint", self._why_inference()))
            if any(op.phase == "backward" for op in self.eager or ()):
                absent.append(NotApplicable("backward", self._why_inference()))
        else:
            absent.append(Missing("joint", reason))
            if "backward" not in seen:
                wanted = self.recorder.spec.backward
                absent.append(
                    Missing("backward", later) if wanted else NotApplicable("backward", "backward=False")
                )
        for phase in PHASES:
            if phase in seen:
                absent += [self._not_lowered(phase, stage, later) for stage in LOWERED_STAGES]
        return absent

    def _eager_ops(self) -> tuple[EagerOp, ...] | None:
        """Return the eager operators under the recorded phases: if the outputs only alias an input that needs a
        gradient, the graph runs as one for inference."""
        alone = {phase for phase in PHASES if phase in self.stages} == {"inference"}
        if self.eager is None or not alone:
            return self.eager
        named = {"forward": "inference"}
        return tuple(dataclasses.replace(op, phase=named.get(op.phase, op.phase)) for op in self.eager)

    def _why_inference(self) -> str:
        """Return why a graph has no backward, although one of its eager operators may have a gradient."""
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


def _without_call_ends(graph: Graph) -> Graph:
    """Return a graph whose frames have no end column: torch's would belong to another line."""

    def begins(frame: Frame) -> Frame:
        return dataclasses.replace(frame, end_column=None, call="")

    nodes = (dataclasses.replace(n, frames=tuple(map(begins, n.frames))) for n in graph.nodes)
    bodies = ((name, _without_call_ends(body)) for name, body in graph.subgraphs)
    return dataclasses.replace(graph, nodes=tuple(nodes), subgraphs=tuple(bodies))


class Recorder:
    """The state of one capture: the parts written by each folder, and the drafts."""

    def __init__(self, spec: CaptureSpec) -> None:
        self.spec = spec
        self.target = CodeTarget()
        self.frames = Frames()
        self.leftovers = Leftovers()
        self.numbers = Numbers()
        self.clock = Clock()
        self.drafts: dict[str, Draft] = {}
        self.failed: tuple[Draft, str] | None = None  # the draft and the stage in which the compiler failed
        self.lacking = hook_points.lost_claims()
        """Claims (``record.claims``) that are unknown, in whole or in part, each with the reason."""
        self.notes: list[str] = []

    def lose(self, path: str, reason: str) -> None:
        """Record that the claims which rest on a hook are unknown, in whole or in part."""
        for claim in hook_points.RESTS.get(path, ()):
            self.lacking.setdefault(claim, reason)
        self.note(hook_points.note(path, reason))

    def not_observed(self) -> tuple[Missing, ...]:
        """Return the claims that are unknown in whole or in part, except stages, which are ``Missing`` themselves."""
        return tuple(Missing(claim, why) for claim, why in self.lacking.items() if claim not in claims.STAGES)

    def note(self, text: str) -> None:
        """Add a note for the user unless it is already there."""
        if text and text not in self.notes:
            self.notes.append(text)

    def draft(self, frame_id: int, attempt: int, code: Any, part: int = 0) -> Draft:
        """Return the draft of a Dynamo compile; frames are numbered from 0 in each capture."""
        compile_id = self.numbers.take(frame_id, attempt) + (f".{part}" if part else "")
        if compile_id not in self.drafts:
            place = (
                getattr(code, "co_name", "<unknown>"),
                getattr(code, "co_filename", ""),
                getattr(code, "co_firstlineno", 0),
            )
            root = self.frames.root
            if root is not None and place[1].endswith("/torch/_dynamo/external_utils.py"):
                place = (
                    root.name,
                    root.file,
                    root.line,
                )  # torch's wrapper around a callable without a frame of its own
            self.drafts[compile_id] = Draft(self, compile_id, *place)
            for call in self.frames.calls[-1:]:
                call.compiled.append(compile_id)
        return self.drafts[compile_id]

    def restart(self, draft: Draft) -> None:
        """Drop a draft, since Dynamo traces its frame again with what it learned."""
        self.drafts = {key: known for key, known in self.drafts.items() if known is not draft}
        if self.failed is not None and self.failed[0] is draft:
            self.failed = None
        for call in self.frames.calls[-1:]:
            call.compiled.remove(draft.id)

    def note_run(self, draft: Draft) -> None:
        """Note that the current call runs the graph of a compile."""
        for call in self.frames.calls[-1:]:
            call.ran.append(draft.id)

    def fail(self, draft: Draft | None) -> None:
        """Record the stage in which the compiler failed; the innermost report wins."""
        if self.failed is None and draft is not None:
            self.failed = draft, draft.current_stage

    @property
    def failed_stage(self) -> str:
        """The stage in which the compiler failed; ``""`` if it did not."""
        return self.failed[1] if self.failed is not None else ""

    def finish(self) -> tuple[tuple[Compilation, ...], tuple[Timing, ...]]:
        """Return the frozen compilations, in the order of their frames, and the seconds of each stage."""
        compilations = tuple(d.finish() for d in self.drafts.values())
        alone = len(compilations) == 1
        timings = tuple(
            Timing(stage if alone or not compile_id else f"{compile_id} {stage}", seconds)
            for (compile_id, stage), seconds in self.clock.seconds.items()
        )
        return compilations, timings

    def frozen(self, lowering: Draft, later: str) -> tuple[Compilation, ...]:
        """Return the compilations as recorded so far, while ``lowering`` is still being compiled; ``later`` is the
        reason for the stages that it has yet to reach."""
        return tuple(d.frozen(later if d is lowering else "") for d in self.drafts.values())

    def eager_frames(self) -> tuple[Skip, ...]:
        """Return what runs eagerly: functions whose rest is not compiled after their graph, then skipped frames."""
        resumed = (d.resume_skip for d in self.drafts.values())
        return (*(r for r in resumed if r is not None), *self.frames.skipped)

    def stamp(self, phase: str, text: str) -> None:
        """Stamp every generated module of a phase with what was done with it, such as ``ran``."""
        for draft in self.drafts.values():
            code = draft.stages.get(f"{phase}.code")
            if isinstance(code, Code):
                draft.put(dataclasses.replace(code, stamp=text))


T = TypeVar("T")


class Slot(Generic[T]):
    """A key for a value of one type in every draft.

    A stage defines its slot and alone fills and empties it; readers import it from that module. The value usually
    refers to nodes of torch's graphs, so the slot is emptied at the stage's end.
    """

    __slots__ = ()

    def of(self, draft: SlotOwner) -> T | None:
        """Return the value for this draft, or None."""
        value: T | None = draft.slots.get(self)
        return value

    def put(self, draft: SlotOwner, value: T) -> T:
        """Store ``value``, replacing the old one."""
        draft.slots[self] = value
        return value

    def take(self, draft: SlotOwner) -> T | None:
        """Return the value, or None, and empty the slot."""
        value: T | None = draft.slots.pop(self, None)
        return value


SlotValues = dict[Slot[Any], Any]
"""Values in the slots of one draft; only slots read and write them."""


class SlotOwner(Protocol):
    """An object with slots, such as a draft."""

    slots: SlotValues
