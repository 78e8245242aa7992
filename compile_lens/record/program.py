"""Record of a whole watched program: what Dynamo evaluated, with which outcome, and when.

Torch's terms keep torch's counts. A *graph* is one that a backend was called with. A *break* is counted in frames (each
time that Dynamo logged one) and in the source (each place once). A *recompile* is one successful compile of a code
object whose older variants did not match, however many of their guards failed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from .benchmark import Profile
from .breaks import EagerFrame, Ending
from .capture import SCHEMA_VERSION, Environment
from .collectives import Bucket, Collective, IssuedCollectives
from .compilation import DynamicDim
from .cuda_graphs import ProgramCudaGraphs
from .graph import Frame, Source
from .logged_code import AheadCompilation, GeneratedModule, VllmCompilation
from .missing import Missing, reason_for
from .remedies import ProgramRemedies

PROFILER = "torch.profiler"
"""``ProgramRecord.log`` of a program known only from a trace of torch's profiler."""

Ranges = tuple[tuple[int, int], ...]
"""Lines as ranges: first and last, from 1."""

COMPILED = "compiled"
"""Compiled with a graph; if graphs were not observed, possibly without one."""
NO_GRAPH = "no graph"
SKIPPED = "skipped"
LIMIT = "limit"
NOTHING = "nothing to compile"
RAISED = "raised"
FAILED = "failed"
OUTCOMES = (COMPILED, NO_GRAPH, SKIPPED, LIMIT, NOTHING, RAISED, FAILED)
"""Values of ``FrameEvaluation.outcome``."""

FAIL_ON_RECOMPILE = "fail_on_recompile"
ERROR_ON_RECOMPILE = "error_on_recompile"
"""``FrameEvaluation.limit`` if the program told torch to raise instead of compiling: a stance, and a setting."""

RESUMED = "resumed"
REST_RUNS_EAGERLY = "rest runs eagerly"
FUNCTION_RUNS_EAGERLY = "function runs eagerly"
CALL_RAISED = "the call raised"
OUTCOME_NOT_KNOWN = "not known"
"""Values of ``Break.outcome``."""


@dataclass(frozen=True)
class GuardOrigin:
    """A condition for reusing a compilation, and the line of the program that caused it.

    Attributes:
        text: the check as torch writes it; its kind if torch has no text.
        source: the checked value (``L['x']``); ``""``: none.
        kind: torch's name of the check; ``SHAPE_ENV`` for one on sizes.
        line: the line of the program that caused it; ``None`` if no line did.
    """

    text: str
    source: str = ""
    kind: str = ""
    line: Frame | None = None


@dataclass(frozen=True)
class Specialization:
    """A symbol for a size or a number that became a constant during the compile: the variant only serves that value.

    Attributes:
        source: the size or number (``x.size(0)``, ``n``).
        symbol: torch's symbol.
        value: the constant.
        line: the line of the program that caused it; ``None`` if torch itself did.
    """

    source: str
    symbol: str
    value: str
    line: Frame | None = None


@dataclass(frozen=True)
class FailedGuard:
    """A failed guard of an older cache entry of a code object.

    Attributes:
        id: compile id of the older variant.
        text: torch's text of the failed guard.
        source: the checked value as the function's expression (``x``, ``type(x)``), or torch's name (``grad_mode``);
            sizes that are compared with each other are listed together. ``""`` if torch names none.
        old, new: the value it was compiled for (``2 to 4``, ``the same object as y``), and the call's, if readable.
        line: the line of the program that caused the guard; ``None`` if no line did.
        hint: torch's advice; ``""`` if there is none.
        old_mark, new_mark: the program's mark on the size then and now (``mark_dynamic(x, 0, max=8)``), if observed.
        free_variables: torch's expression of each known free variable in ``source``, with its name in the program.
    """

    id: str
    text: str
    source: str = ""
    old: str = ""
    new: str = ""
    line: Frame | None = None
    hint: str = ""
    old_mark: str = ""
    new_mark: str = ""
    free_variables: tuple[tuple[str, str], ...] = ()


UNKNOWN = -1
"""Value of ``Recompilation.nearest_entry`` if a log does not tell which variant was nearest, or which guards failed."""


@dataclass(frozen=True)
class Recompilation:
    """Reason why Dynamo recompiled a code object.

    Attributes:
        failed_guards: the failed guard of each older variant, newest first.
        cache_entries: number of variants before the recompile.
        limit: most variants allowed (``torch._dynamo.config.recompile_limit``).
        dynamic: sizes that are symbols in the new variant and were numbers in the nearest one.
        specializing_line: the line of the program that distinguishes the old and the new value, so that no variant
            serves both; ``None``: no such line is known.
        nearest_entry: the index in ``failed_guards`` of the variant nearest to the call: the one with the fewest
            failures among all guards that failed in any variant, now or earlier, as far as these could be evaluated;
            of equal ones the newest. ``UNKNOWN`` if a torch log lacks the information.
        constants_only: whether a size or number that changes stays a number, as ``dynamic=False`` asks for.
    """

    failed_guards: tuple[FailedGuard, ...]
    cache_entries: int
    limit: int
    dynamic: tuple[DynamicDim, ...] = ()
    specializing_line: Frame | None = None
    nearest_entry: int = 0
    constants_only: bool = False

    @property
    def change(self) -> FailedGuard | None:
        """The failed guard of the nearest cache entry. If that entry is not known, the guard that failed in all
        entries, from the newest; None if these differ, or torch named none."""
        if 0 <= self.nearest_entry < len(self.failed_guards):
            return self.failed_guards[self.nearest_entry]
        alike = len({one.source or one.text for one in self.failed_guards}) == 1
        return (
            self.failed_guards[0] if self.failed_guards and (self.nearest_entry != UNKNOWN or alike) else None
        )

    @property
    def other_guards(self) -> tuple[FailedGuard, ...]:
        """The failed guards of the other cache entries."""
        return tuple(one for one in self.failed_guards if one is not self.change)


@dataclass(frozen=True)
class Break:
    """A place with code that Dynamo cannot trace.

    Attributes:
        ending: torch's reason with the program's stack, hints and torch's page about it.
        type: torch's name of the reason (``Call to `torch._dynamo.graph_break()```).
        gb_id: torch's id of the reason (``GB0025``), ``""`` if it has none.
        outcome: ``resumed``: the code after it was evaluated as a resume function. ``rest runs eagerly``: Dynamo
            compiled up to an earlier line and skipped the rest. ``function runs eagerly``: it skipped the whole
            function. ``the call raised``: the compile ended in an error.
        consequence: why Dynamo did not resume, in its words; ``""`` if it resumed.
        graph: number of the graph that ended here (``ProgramRecord.graphs``), ``None`` if there is none.
    """

    ending: Ending
    type: str = ""
    gb_id: str = ""
    outcome: str = RESUMED
    consequence: str = ""
    graph: int | None = None


@dataclass(frozen=True)
class TracedFunction:
    """The lines of one function that were traced into a graph.

    Attributes:
        file, function, line: the function and its first line.
        lines: the traced lines.
        code_lines: the lines that have code.
    """

    file: str
    function: str
    line: int
    lines: Ranges
    code_lines: Ranges


@dataclass(frozen=True)
class FrameEvaluation:
    """One evaluation of a code object by Dynamo.

    Attributes:
        outcome: one of ``OUTCOMES``. ``no graph``: it was compiled without tensor operations. ``limit``: it has reached
            the limit of variants, and each call that matches none of them runs eagerly. ``raised``: the compiler or
            the backend raised, and so did the call. ``failed``: they raised, and the code ran eagerly, because of
            ``suppress_errors``; in a log of an older torch the call may have raised.
        id: torch's compile id (``"0/1"``), ``""`` if Dynamo did not start a compile.
        cause: why it was not compiled; ``None`` if it was.
        caller: the line of the program that called it.
        thread: name of the thread.
        backend: name of the backend that the program requested.
        restarts: number of times that Dynamo restarted its analysis.
        graphs: numbers of its graphs in ``ProgramRecord.graphs``.
        breaks: the graph breaks that Dynamo logged for it.
        recompilation: why it was recompiled; ``None`` for the first compile.
        limit: the setting or the stance that prevented a recompile.
        traced_functions: the lines in its graphs, by function.
        eager_lines: its own lines that run eagerly if Python reaches them.
        guards: the conditions for using the compilation.
        guard_count: number of guards, if a log only has the texts of some; ``None``: as many as ``guards``.
        dynamic: sizes that were compiled as symbols.
        specializations: symbols for sizes and numbers that became constants.
        seconds: measured wall time of Dynamo and the backend, including nested compiles. ``None`` if a log lacks it.
        number: its position among the frame evaluations of the program, from 0.
        may_compute: whether the code has an instruction that may compute something; True if not known, as in a log.
        count: number of evaluations with the same outcome, if Dynamo is asked for each call and skips each.
        compiled_function: number of the ``torch.compile`` behind the call, from 1; 0 if not known, or if it has cache
            entries of its own (``isolate_recompiles``).
    """

    outcome: str
    id: str = ""
    cause: Ending | None = None
    caller: Frame | None = None
    thread: str = ""
    backend: str = ""
    restarts: int = 0
    graphs: tuple[int, ...] = ()
    breaks: tuple[Break, ...] = ()
    recompilation: Recompilation | None = None
    limit: str = ""
    traced_functions: tuple[TracedFunction, ...] = ()
    eager_lines: Ranges = ()
    guards: tuple[GuardOrigin, ...] = ()
    guard_count: int | None = None
    dynamic: tuple[DynamicDim, ...] = ()
    specializations: tuple[Specialization, ...] = ()
    seconds: float | None = 0.0
    number: int = 0
    count: int = 1
    may_compute: bool = True
    compiled_function: int = 0


@dataclass(frozen=True)
class ProgramFrame:
    """A code object that Dynamo evaluated: a function, or a resume function after a graph break.

    Attributes:
        function, file, line: the function and its first line; for a resume function, the original function's.
        resume_line: the first line of a resume function; ``None`` for a whole function.
        code_lines: the lines that have code; the first one only if the body begins on it.
        evaluations: Dynamo's evaluations, in order.
        prior_ids: compile ids of the variants from before the watch.
        eager_lines: the lines of code that was skipped before the watch, possibly after it had variants, which no
            longer run; Dynamo does not evaluate it again.
        torch_caller: torch's file with the wrapper function that calls an object with which Dynamo cannot begin (a
            builtin, a partial, a torch module), ``""`` for all others. ``function`` is the program's name for the
            object, ``file`` and ``line`` are its definition, or its first call if it is not the program's. All such
            objects are variants of one code object of torch, so they share its limit.
    """

    function: str
    file: str
    line: int
    resume_line: int | None = None
    code_lines: Ranges = ()
    evaluations: tuple[FrameEvaluation, ...] = ()
    prior_ids: tuple[str, ...] = ()
    torch_caller: str = ""
    eager_lines: Ranges = ()


@dataclass(frozen=True)
class ProgramGraph:
    """A graph that a backend was called with.

    Attributes:
        number: its number in the program, from 0.
        id: compile id.
        operators: number of calls in it; ``None`` if a log lacks it.
        calls: the operators of these calls in order, those of nested graphs in brackets; ``()`` if only their number
            is known.
        inputs: a description of each input (``x: float32[4, s0] cpu``).
        thread: name of the thread.
        seconds: measured wall time of the backend's call; ``None`` if a log lacks it.
        input_bytes: bytes of the input tensors, without those of modules, for the observed sizes. ``None`` if one of
            them is not known.
        output_bytes: bytes of the returned tensors, each counted once.
        collectives: the collectives of its forward, in order, as AOTAutograd traced it, including DTensor's; else as
            Dynamo did. Those of its backward are only in ``ProgramRecord.issued``.
        buckets: DDP's buckets, in the order of the forward; the graph is split there and each piece compiled alone.
    """

    number: int
    id: str
    operators: int | None
    inputs: tuple[str, ...] = ()
    thread: str = ""
    seconds: float | None = 0.0
    input_bytes: int | None = None
    output_bytes: int | None = None
    collectives: tuple[Collective, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompileEvent:
    """A part of a compile, as torch reports it.

    Attributes:
        name: torch's name.
        start: microseconds since the start of the watch.
        duration: microseconds; 0 for an event without duration (a cache hit or miss).
        thread: number of the thread in this program.
        id: compile id, ``""`` if torch gives none.
        phase: ``forward``, ``backward`` or ``inference``, if torch gives it.
        detail: torch's further details, as name and value.
        depth: number of enclosing events.
        evaluation: ``FrameEvaluation.number`` of its compile, -1 if only its id is known.
    """

    name: str
    start: float
    duration: float = 0.0
    thread: int = 0
    id: str = ""
    phase: str = ""
    detail: tuple[tuple[str, str], ...] = ()
    depth: int = 0
    evaluation: int = -1


@dataclass(frozen=True)
class LibrarySkips:
    """Skipped frames outside the program, counted: torch's own, the standard library, and installed packages that do
    not use torch (a notebook's kernel); with the graph breaks that Dynamo logged for them."""

    reason: str
    count: int
    breaks: tuple[Break, ...] = ()


@dataclass(frozen=True, repr=False)
class ProgramRecord:
    """Record of a program that was watched.

    Attributes:
        name: name of the script, or of the place of the watch.
        arguments: arguments of the script.
        ended: how the watch ended; ``""`` while it is open.
        environment: versions and device.
        frames: each code object that Dynamo evaluated, in order of the first evaluation.
        prior_frames: code of the program that was compiled or skipped before the watch, and that Dynamo has not
            evaluated since; its calls are not observed.
        graphs: each graph that a backend was called with, in order.
        events: parts of compiles with their times, as torch reports them.
        library_skips: frames skipped outside the program.
        sources: text of the observed functions of the program.
        missing: stages and claims that could not be observed, and why.
        notes: remarks for the reader.
        seconds: wall time of the watch.
        overhead_seconds: seconds of it that watching took, as far as it measures itself.
        created: start time, in UTC.
        log: the kind of log that it was read from, if it was not watched (``TORCH_TRACE``, ``torch.profiler``); the
            gaps of such a log are in ``missing``.
        rank: rank of the process in ``torch.distributed``; ``None`` if that was not in use.
        world: number of processes; 0 if not known.
        profile: times from torch's profiler, joined from a trace.
        cuda_graphs: CUDA graphs that torch would record, by graph and phase, if requested.
        remedies: runs of the program with each remedy that is a setting, if requested.
        eager_frames: functions that ran eagerly, or may have, without a frame evaluation.
        issued: each collective and message that the process issued, in order; ``None`` if not observed.
        modules: code that Inductor generated, from a log.
        ahead: compiles that no call requested, from a log.
        vllm: models that vLLM compiled, from a log.
        graph_calls: compile ids of graphs in call order, if a log has them.
        schema_version: version of the JSON form.
        unknown_fields: fields of the JSON that this version does not know, as ``path: count`` (on load only).
    """

    name: str
    environment: Environment
    arguments: tuple[str, ...] = ()
    ended: str = ""
    frames: tuple[ProgramFrame, ...] = ()
    prior_frames: tuple[ProgramFrame, ...] = ()
    graphs: tuple[ProgramGraph, ...] = ()
    events: tuple[CompileEvent, ...] = ()
    library_skips: tuple[LibrarySkips, ...] = ()
    sources: tuple[Source, ...] = ()
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    overhead_seconds: float = 0.0
    created: str = ""
    log: str = ""
    rank: int | None = None
    world: int = 0
    profile: Profile | None = None
    cuda_graphs: tuple[ProgramCudaGraphs, ...] = ()
    remedies: ProgramRemedies | None = None
    eager_frames: tuple[EagerFrame, ...] = ()
    issued: IssuedCollectives | None = None
    modules: tuple[GeneratedModule, ...] = ()
    ahead: tuple[AheadCompilation, ...] = ()
    vllm: tuple[VllmCompilation, ...] = ()
    graph_calls: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION
    unknown_fields: tuple[str, ...] = field(default=(), compare=False)

    def lacks(self, *claims: str) -> str:
        """Return why one of these claims (``record.claims``) is not or only partly known; ``""`` if all are known."""
        return next(filter(None, (reason_for(self.missing, claim) for claim in claims)), "")

    @cached_property
    def evaluations(self) -> tuple[FrameEvaluation, ...]:
        """All frame evaluations, in order."""
        return tuple(sorted((v for f in self.frames for v in f.evaluations), key=lambda v: v.number))

    @cached_property
    def breaks(self) -> tuple[Break, ...]:
        """The graph breaks in frames, one for each time that Dynamo logged one."""
        return tuple(b for v in self.evaluations for b in v.breaks)

    @cached_property
    def recompiles(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations that were recompiles."""
        return tuple(
            v for v in self.evaluations if v.recompilation is not None and v.outcome in (COMPILED, NO_GRAPH)
        )

    @cached_property
    def skipped(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations after which the code, or its new variants, run eagerly."""
        return tuple(v for v in self.evaluations if v.outcome in (SKIPPED, LIMIT, RAISED, FAILED))
