"""A whole program as it was seen while it ran: what Dynamo was asked about, what became of it, and when.

Words that torch has keep torch's numbers. A *graph* is one that a backend was called with. A *break* is counted in
frames (each time that Dynamo logged one) and in the source (each place once). A *recompile* is one compile that
succeeded where older variants of the code did not fit, however many of their guards failed.
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
"""``ProgramRecord.log`` of a program of which a trace of torch's profiler alone is known."""

Ranges = tuple[tuple[int, int], ...]
"""Lines as ranges: first and last, from 1."""

COMPILED = "compiled"
"""With a graph; if graphs were not observed, perhaps without one."""
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
"""``FrameEvaluation.limit`` where the program told torch to raise rather than to compile: a stance, and a setting."""

RESUMED = "resumed"
REST_RUNS_EAGERLY = "rest runs eagerly"
FUNCTION_RUNS_EAGERLY = "function runs eagerly"
CALL_RAISED = "the call raised"
OUTCOME_NOT_KNOWN = "not known"
"""These are what ``Break.outcome`` can be."""


@dataclass(frozen=True)
class GuardOrigin:
    """A condition under which a compilation may be used again, and the line of the program that caused it.

    Attributes:
        text: what is checked, as torch writes it; its kind where torch has no text of it.
        source: the value that it is about (``L['x']``); ``""``: none.
        kind: torch's name of the check; ``SHAPE_ENV`` of one between sizes.
        line: the line of the program that made it; ``None`` where no line did.
    """

    text: str
    source: str = ""
    kind: str = ""
    line: Frame | None = None


@dataclass(frozen=True)
class Specialization:
    """A size or a number that was a symbol, and became one value while a code was compiled: the variant fits no other.

    Attributes:
        source: what it is (``x.size(0)``, ``n``).
        symbol: of torch's.
        value: what it became.
        line: the line of the program that asked; ``None`` where torch did for itself.
    """

    source: str
    symbol: str
    value: str
    line: Frame | None = None


@dataclass(frozen=True)
class FailedGuard:
    """Guard of one older cache entry of a code that failed.

    Attributes:
        id: compile id of the older variant.
        text: the guard, as torch says that it failed.
        source: what it is about, in the function's words (``x``, ``self.n``, ``type(x)``), or in torch's
            (``grad_mode``); several sizes that are compared with each other are told together. ``""`` where torch
            names none.
        old, new: what it was compiled for (``3``, ``2 to 4``, ``the same object as y``), and what it was called with;
            ``""`` where that is not known, or could not be read without running code of the program.
        line: the line of the program that made the guard; ``None`` where no line did.
        hint: what torch says one can do about it; ``""`` where it says nothing.
    """

    id: str
    text: str
    source: str = ""
    old: str = ""
    new: str = ""
    line: Frame | None = None
    hint: str = ""


UNKNOWN = -1
"""As ``Recompilation.nearest_entry``: a log does not say which variant the call came nearest to, or what failed."""


@dataclass(frozen=True)
class Recompilation:
    """Reason for which Dynamo compiled a code again.

    Attributes:
        failed_guards: the guard that failed, one for each older variant, the newest first.
        cache_entries: how many variants the code had before.
        limit: how many it may have (``torch._dynamo.config.recompile_limit``).
        dynamic: sizes that are symbols in the new variant, and were numbers in the nearest one.
        specializing_line: the line of the program that tells the two apart by what changed, so that no variant is for
            both; ``None``: no such line is known.
        nearest_entry: the place in ``failed_guards`` of the variant that the call came nearest to: in which the fewest
            of the guards fail that failed in any of them, now or earlier, as far as that could be evaluated; of several
            the newest. ``UNKNOWN`` if a log of torch's does not say enough.
    """

    failed_guards: tuple[FailedGuard, ...]
    cache_entries: int
    limit: int
    dynamic: tuple[DynamicDim, ...] = ()
    specializing_line: Frame | None = None
    nearest_entry: int = 0

    @property
    def change(self) -> FailedGuard | None:
        """Guard that kept the call from the cache entry that it came nearest to. Where the nearest entry is not known,
        the guard that kept it from each of them, as the newest has it; None where that is not one guard, or torch
        named none."""
        if 0 <= self.nearest_entry < len(self.failed_guards):
            return self.failed_guards[self.nearest_entry]
        alike = len({one.source or one.text for one in self.failed_guards}) == 1
        return (
            self.failed_guards[0] if self.failed_guards and (self.nearest_entry != UNKNOWN or alike) else None
        )

    @property
    def other_guards(self) -> tuple[FailedGuard, ...]:
        """Guards that kept the call from the other cache entries."""
        return tuple(one for one in self.failed_guards if one is not self.change)


@dataclass(frozen=True)
class Break:
    """A place where Dynamo met what it cannot trace.

    Attributes:
        ending: torch's reason with the stack of the program, hints and torch's page about it.
        type: torch's name of the reason (``Call to `torch._dynamo.graph_break()```).
        gb_id: torch's number of it (``GB0025``), ``""`` where it has none.
        outcome: ``resumed``: what follows was looked at as a function of its own. ``rest runs eagerly``: Dynamo
            compiled up to an earlier line and skipped what follows. ``function runs eagerly``: it skipped all. ``the
            call raised``: the compile ended in an error.
        consequence: what Dynamo could not do about it, in its words; ``""`` where it resumed.
        graph: number of the graph that ended here (``ProgramRecord.graphs``), ``None`` where there is none.
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
        file, function, line: the function and where it begins.
        lines: those that were traced.
        code_lines: those that have code.
    """

    file: str
    function: str
    line: int
    lines: Ranges
    code_lines: Ranges


@dataclass(frozen=True)
class FrameEvaluation:
    """One time that Dynamo was asked about a code.

    Attributes:
        outcome: one of ``OUTCOMES``. ``no graph``: it was compiled, and holds no operation of a tensor. ``limit``: it
            has as many variants as it may have, and each call that fits none of them runs eagerly. ``raised``: the
            compiler or the backend raised, and so did the call. ``failed``: they raised, and the code ran eagerly, as
            ``suppress_errors`` asks for; in a log of an older torch the call may have raised.
        id: torch's compile id (``"0/1"``), ``""`` where Dynamo did not begin to compile.
        cause: why it was not compiled; ``None`` where it was.
        caller: the line of the program that called it.
        thread: name of the thread.
        backend: name of the backend that the program asked for.
        restarts: how often Dynamo began again.
        graphs: numbers of its graphs in ``ProgramRecord.graphs``.
        breaks: the graph breaks that Dynamo logged for it.
        recompilation: why it was compiled again; ``None`` for the first time.
        limit: the setting, or the stance, that kept it from being compiled again.
        traced_functions: the lines that are in its graphs, by function.
        eager_lines: the lines of its own that run eagerly, if Python reaches them.
        guards: under which conditions the compilation may be used.
        guard_count: how many guards there are, where a log has the texts of others; ``None``: as many as ``guards``.
        dynamic: sizes that were compiled as symbols.
        specializations: sizes and numbers that were symbols, and became one value.
        seconds: wall time that Dynamo and the backend took, measured; with the compiles inside of it. ``None`` where a
            log does not say.
        number: its place among the frame evaluations of the program, from 0.
        may_compute: whether the code has an instruction that may compute something; of a log it is not known, and said
            to.
        count: how often Dynamo was asked with the same outcome, where it is asked for each call and leaves each alone.
        compiled_function: number of the ``torch.compile`` that the call went through, from 1, each with its own; 0
            where that is not known, or it keeps entries of its own (``isolate_recompiles``).
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
    """A code that Dynamo was asked about: a function, or what follows a graph break in one.

    Attributes:
        function, file, line: the function and where it begins; of a rest, the function that it is of.
        resume_line: the line where a rest begins; ``None`` for a whole function.
        code_lines: the lines that have code; the first one only where the body begins on it.
        evaluations: each time that Dynamo was asked, in order.
        prior_ids: compile ids of the variants that it had before the program was watched.
        eager_lines: the lines of a code that was skipped before the program was watched, be it after it had
            variants, which do not run any more; Dynamo is not asked again.
        torch_caller: torch's file with the function through which it calls what Dynamo cannot begin with (a builtin, a
            partial, a module of torch's), ``""`` of all else. ``function`` is what the program would call it, ``file``
            and ``line`` are where that begins, or where it was called first where it is not the program's. All
            such are variants of one code of torch's, so that they share its limit.
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
        operators: calls in it; ``None`` where a log does not say.
        calls: the operator of each, in order, of one with nested graphs theirs in brackets; ``()`` where only their
            number is known.
        inputs: what each input is (``x: float32[4, s0] cpu``).
        thread: name of the thread.
        seconds: wall time of the backend's call, measured; ``None`` where a log does not say.
        input_bytes: bytes of the tensors that it is given, without what modules hold; for the sizes that were seen.
            ``None`` where one of them is not known.
        output_bytes: bytes of the tensors that it returns, each once.
        collectives: those of its forward, in order, as AOTAutograd traced it, DTensor's among them; as Dynamo did
            where AOTAutograd did not. Those of its backward are in ``ProgramRecord.issued`` alone.
        buckets: into which DDP cuts it, in the order of the forward; each piece is compiled alone.
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
    """A part of compiling, as torch reports it itself.

    Attributes:
        name: torch's name.
        start: microseconds from the beginning of the watch.
        duration: microseconds; 0 of what has none (a cache that was hit or missed).
        thread: number of the thread in this program.
        id: compile id, ``""`` where torch says none.
        phase: ``forward``, ``backward`` or ``inference`` where torch says it.
        detail: what torch says more, as name and value.
        depth: how many others it stands in.
        evaluation: ``FrameEvaluation.number`` of the compile that it is of, -1 where that is not known but by its id.
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
    """Code outside of the program that Dynamo skipped, counted: torch's own, the standard library, and installed
    packages that do not use torch (a notebook's kernel); with the graph breaks that Dynamo logged meanwhile."""

    reason: str
    count: int
    breaks: tuple[Break, ...] = ()


@dataclass(frozen=True, repr=False)
class ProgramRecord:
    """Record of a program that was watched.

    Attributes:
        name: of the script, or of where the watch stands.
        arguments: of the script.
        ended: how the watch ended; ``""`` while it is open.
        environment: where it ran.
        frames: each code that Dynamo was asked about, in the order of the first time.
        prior_frames: codes of the program that were compiled, or skipped, before it was watched, and that Dynamo
            was not asked about since; calls of theirs are not seen.
        graphs: each graph that a backend was called with, in order.
        events: parts of compiling, with their times, as torch reports them.
        library_skips: frames skipped outside of the program.
        sources: text of the functions of the program that were seen.
        missing: what could not be seen, and why.
        notes: things that a reader should know.
        seconds: wall time of the watch.
        overhead_seconds: seconds of it that the watching itself took, as far as it measures itself.
        created: when it began, in UTC.
        log: what it was read from where it was not watched (``TORCH_TRACE``, ``torch.profiler``): what such a log does
            not hold is in ``missing``.
        rank: of the process in ``torch.distributed``; ``None`` where that was not in use.
        world: how many processes there are; 0 where that is not known.
        profile: times that torch's profiler measured, joined from a trace.
        cuda_graphs: what torch would record as CUDA graphs, by graph and phase, where that was asked for.
        remedies: runs of the program with each remedy that is a setting, where they were asked for.
        eager_frames: what ran eagerly, or may have, and is in no frame evaluation.
        issued: each collective and message that the process issued, in order; ``None`` where they were not observed.
        modules: code that Inductor generated, of a log.
        ahead: compiles of a log that no call requested.
        vllm: models that vLLM compiled, of a log.
        graph_calls: compile ids of graphs in the order of their calls, where a log has them.
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
        """Return why one of these claims (``record.claims``) is not known, or only in part; ``""`` if all was seen."""
        return next(filter(None, (reason_for(self.missing, claim) for claim in claims)), "")

    @cached_property
    def evaluations(self) -> tuple[FrameEvaluation, ...]:
        """Each time that Dynamo was asked about a code, in order."""
        return tuple(sorted((v for f in self.frames for v in f.evaluations), key=lambda v: v.number))

    @cached_property
    def breaks(self) -> tuple[Break, ...]:
        """The graph breaks in frames: each time that Dynamo logged one."""
        return tuple(b for v in self.evaluations for b in v.breaks)

    @cached_property
    def recompiles(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations that compiled a code again."""
        return tuple(
            v for v in self.evaluations if v.recompilation is not None and v.outcome in (COMPILED, NO_GRAPH)
        )

    @cached_property
    def skipped(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations after which all of a code, or its new variants, run eagerly."""
        return tuple(v for v in self.evaluations if v.outcome in (SKIPPED, LIMIT, RAISED, FAILED))
