"""Counts of a watched program as torch counts them, and the state of each line of its source."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from compile_lens.record import claims, syntax
from compile_lens.record.breaks import Ending
from compile_lens.record.graph import Frame
from compile_lens.record.program import (
    COMPILED,
    FAILED,
    LIMIT,
    NO_GRAPH,
    NOTHING,
    RAISED,
    REST_RUNS_EAGERLY,
    SKIPPED,
    Break,
    FrameEvaluation,
    ProgramFrame,
    ProgramRecord,
    Ranges,
)

BROKE, EAGER, TRACED, NEVER = "broke", "eager", "compiled", "never"
STATES = (BROKE, EAGER, TRACED, NEVER)
"""States of a line, the worst first: a graph broke on it; it runs eagerly; it is in a graph; Dynamo evaluated its
function, and neither traced the line nor left it to Python. A line of which that was not seen has none."""


@dataclass(frozen=True)
class Counts:
    """Counts of a program in torch's own sense (see ``compile_lens.record.program``).

    Attributes:
        graphs: calls of a backend (torch's ``unique_graphs``).
        compilations: compiles of Dynamo that succeeded, those without a graph among them.
        without_graph: those that hold no operation of a tensor.
        breaks: graph breaks in frames, those in torch's own skipped code included: as many as
            ``TORCH_LOGS=graph_breaks`` logs. Torch's
            ``counters["graph_break"]`` is another number, mostly less: it has no breaks after which Dynamo gives up
            the rest or all of a function, and no branches on a tensor's value.
        break_sites: graph breaks in the source: distinct lines, columns and reasons. A log has no columns, so that they
            are at least so many (``sites_are_lower_bound``).
        recompiles: compiles of a code that had older variants.
        skipped: functions, or resume functions, that run eagerly as a whole.
        partly_compiled: those that were compiled up to a line, and run eagerly from there.
        at_limit: functions that reached their limit of recompiles.
        raised: frame evaluations that ended in an error of the compiler or the backend, whether or not the call raised
            it.
        permanently_eager: functions in which Dynamo met nothing to compile in a call, so that each later one runs
            eagerly.
        eager_frames: functions that ran eagerly, or may have, and are in no frame evaluation.
        ahead: compiles of a log that no call requested (AOTInductor, ``torch.export``).
        modules: modules that Inductor generated, of a log; a watch does not count them.
    """

    graphs: int
    compilations: int
    without_graph: int
    breaks: int
    break_sites: int
    recompiles: int
    skipped: int
    partly_compiled: int
    at_limit: int
    raised: int
    eager_frames: int = 0
    permanently_eager: int = 0
    ahead: int = 0
    modules: int = 0


def counts(program: ProgramRecord) -> Counts:
    """The counts of a program."""
    evaluations = program.evaluations
    outcomes = [v.outcome for v in evaluations]

    def frames(outcome: str) -> int:
        return sum(any(v.outcome == outcome for v in f.evaluations) for f in program.frames)

    return Counts(
        graphs=len(program.graphs),
        compilations=outcomes.count(COMPILED) + outcomes.count(NO_GRAPH),
        without_graph=outcomes.count(NO_GRAPH),
        breaks=len(program.breaks) + len(library_breaks(program)),
        break_sites=len(break_sites((*program.breaks, *library_breaks(program)))),
        recompiles=len(program.recompiles),
        skipped=frames(SKIPPED),
        partly_compiled=sum(any(is_partly_compiled(v) for v in f.evaluations) for f in program.frames),
        at_limit=frames(LIMIT),
        raised=outcomes.count(RAISED) + outcomes.count(FAILED),
        eager_frames=len({(u.file, u.line, u.function) for u in program.eager_frames}),
        permanently_eager=sum(any(is_permanently_eager(v) for v in f.evaluations) for f in program.frames),
        ahead=len(program.ahead),
        modules=len(program.modules),
    )


def library_breaks(program: ProgramRecord) -> tuple[Break, ...]:
    """Return the graph breaks that Dynamo logged in code outside of the program that it skipped."""
    return tuple(b for skip in program.library_skips for b in skip.breaks)


def is_permanently_eager(evaluation: FrameEvaluation) -> bool:
    """Return True if Dynamo had nothing to compile and never looks at the code again, though another call may compute:
    torch then runs no cache entry that it compiled before, either."""
    return evaluation.outcome == NOTHING and evaluation.may_compute


def is_partly_compiled(evaluation: FrameEvaluation) -> bool:
    """Return True if a code was compiled up to a line, and runs eagerly from there."""
    return evaluation.outcome == COMPILED and any(
        one.outcome == REST_RUNS_EAGERLY for one in evaluation.breaks
    )


def break_site(graph_break: Break) -> tuple[str, int, int | None, int | None, str]:
    """Return the place of a break in the source, and its reason: breaks for which this is equal are one place."""
    at = break_line(graph_break)
    where = ("", 0, None, None) if at is None else (at.file, at.line, at.column, at.end_column)
    return (*where, graph_break.gb_id or graph_break.type)


def break_line(graph_break: Break) -> Frame | None:
    """The line of a break: the last of its stack."""
    return graph_break.ending.frames[-1] if graph_break.ending.frames else None


def calling_line(ending: Ending, caller: Frame | None) -> Frame | None:
    """The last line of the program's own before a library's; ``None`` where the line itself is the program's."""
    if not ending.frames or not is_library(ending.frames[-1]):
        return None
    return program_line((caller, *ending.frames))


def program_line(frames: Iterable[Frame | None]) -> Frame | None:
    """The innermost line of the program's own in a stack; ``None`` where there is none."""
    own = [frame for frame in frames if frame is not None and not is_library(frame)]
    return own[-1] if own else None


_LIBRARY = re.compile(r"(?:[/\\]lib\d*[/\\]python3\.\d+t?|^[A-Za-z]:.*\\Lib)[/\\](\w+)", re.IGNORECASE)
"""Path of Python's own library, on any machine: the record may come from another one."""


def is_library(frame: Frame) -> bool:
    """Return True for a line of torch, of an installed package or of Python's own library."""
    if frame.of_torch or "-packages" in frame.file or frame.file.startswith("<frozen "):
        return True
    standing = _LIBRARY.search(frame.file)
    return standing is not None and standing[1] in sys.stdlib_module_names


def statement(program: ProgramRecord, file: str, line: int) -> tuple[str, int]:
    """Return the file and the first line of the statement of a line; the line itself where the source is not known, or
    where other statements begin inside of the one that it is in."""
    for source in program.sources:
        if source.file == file and 0 <= line - source.first_line < source.text.count("\n") + 1:
            first = _first_lines(source.text).get(line - source.first_line + 1)
            if first is not None:
                return file, first + source.first_line - 1
    return file, line


@lru_cache(maxsize=4096)
def _first_lines(text: str) -> dict[int, int]:
    """By each line of a statement of several lines, or of the head of a compound one, the first line of it."""
    try:
        tree = syntax.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    first_lines = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, _SCOPES):
            body = [part.lineno for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
            last = min(body) - 1 if body else node.end_lineno or node.lineno
            first_lines.update(dict.fromkeys(range(node.lineno, last + 1), node.lineno))
    return first_lines


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def break_sites(breaks: Iterable[Break]) -> dict[tuple[str, int, int | None, int | None, str], list[Break]]:
    """Breaks by their place in the source, in order."""
    by_place: dict[tuple[str, int, int | None, int | None, str], list[Break]] = {}
    for one in breaks:
        by_place.setdefault(break_site(one), []).append(one)
    return by_place


def sites_are_lower_bound(program: ProgramRecord) -> bool:
    """Return True if there may be more places in the source than can be told apart: in a log, which has no columns, and
    where breaks of one line have none."""
    unclear = (
        len(breaks_at_site) > 1 and (at := break_line(breaks_at_site[0])) is not None and at.column is None
        for breaks_at_site in break_sites(program.breaks).values()
    )
    return bool(program.breaks) and (bool(program.log) or any(unclear))


def resume_graphs(program: ProgramRecord) -> dict[int, tuple[int, ...] | None]:
    """By the number of a frame evaluation, the numbers of the graphs in which what follows a break of it was compiled,
    first of all times; for those with breaks. ``None``: it had variants by then, and none says which ran."""
    rests: dict[tuple[str, int, str, int], list[ProgramFrame]] = {}
    for frame in (*program.frames, *program.prior_frames):
        if frame.resume_line is not None:
            rests.setdefault((frame.file, frame.line, frame.function, frame.resume_line), []).append(frame)
    graphs_after: dict[int, tuple[int, ...] | None] = {}
    for frame in program.frames:
        for evaluation in (v for v in frame.evaluations if v.breaks):
            lines = {at.line for b in evaluation.breaks for at in b.ending.frames if at.file == frame.file}
            of = [
                rest
                for line in lines
                for rest in rests.get((frame.file, frame.line, frame.function, line), ())
            ]
            later = [v for rest in of for v in rest.evaluations if v.number > evaluation.number]
            known = any(rest.prior_ids or any(v.graphs for v in rest.evaluations) for rest in of)
            none = None if known else ()
            graphs_after[evaluation.number] = min(later, key=lambda v: v.number).graphs if later else none
    return graphs_after


def compile_seconds(program: ProgramRecord) -> float:
    """Wall time in which something was compiled, measured: what runs inside of another part, or in another thread at
    the same time (the builds of kernels), counts once."""
    total = until = 0.0
    for start, end in sorted((e.start, e.start + e.duration) for e in program.events):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total / 1e6


@dataclass(frozen=True)
class Line:
    """A line of the source: its states, the worst first, and the frame evaluations that say so."""

    line: int
    states: tuple[str, ...]

    @property
    def state(self) -> str:
        """The worst of its states."""
        return self.states[0]


def lines(program: ProgramRecord) -> dict[str, tuple[Line, ...]]:
    """The lines that have code of every function that Dynamo was asked about, or traced, by file."""
    states: dict[tuple[str, int], set[str]] = {}
    met: dict[tuple[str, int, Ranges], set[int]] = {}

    def code_of(file: str, first: int, code: Ranges, rest: bool = False) -> set[int]:
        """The lines of a function that have code. A function is met once for each of its rests, in which Dynamo's own
        instructions may stand on its first line."""
        numbers = met.get((file, first, code))
        if numbers is None:
            numbers = set(_in(code))
            numbers -= {first} if rest and len(numbers) > 1 else set()
            met[file, first, code] = numbers
            for line in numbers:
                states.setdefault((file, line), set())
        return numbers

    def mark(file: str, numbers: Ranges, state: str, known: set[int]) -> None:
        for line in _in(numbers):
            if line in known:
                states.setdefault((file, line), set()).add(state)

    alone = {(f.file, f.line, f.function) for f in program.frames}  # these may have variants of their own
    for frame in program.frames:
        code = code_of(frame.file, frame.line, frame.code_lines, frame.resume_line is not None)
        mark(frame.file, frame.eager_lines, EAGER, code)
        for evaluation in frame.evaluations:
            mark(frame.file, evaluation.eager_lines, EAGER, code)
            for traced in evaluation.traced_functions:
                same = (traced.file, traced.function) == (frame.file, frame.function)
                begins = (
                    frame.line if same and frame.resume_line else traced.line
                )  # a rest begins in the middle
                own = code_of(traced.file, begins, traced.code_lines, same and frame.resume_line is not None)
                mark(traced.file, traced.lines, TRACED, own)
            for numbers in evaluation.breaks:
                for at in (break_line(numbers), calling_line(numbers.ending, None)):
                    if at is not None:
                        states.setdefault((at.file, at.line), set()).add(BROKE)
        if any(evaluation.outcome == LIMIT for evaluation in frame.evaluations):
            # What was inlined in its variants runs in Python as well, where a call fits none of them.
            for traced in (
                traced for evaluation in frame.evaluations for traced in evaluation.traced_functions
            ):
                if (traced.file, traced.line, traced.function) not in alone:
                    mark(
                        traced.file, traced.lines, EAGER, code_of(traced.file, traced.line, traced.code_lines)
                    )
    for one in program.eager_frames:
        if one.file and one.eager_lines:
            mark(one.file, one.eager_lines, EAGER, code_of(one.file, one.line, one.code_lines))
    by_file: dict[str, list[Line]] = {}
    never = () if program.lacks(claims.TRACED_LINES) else (NEVER,)
    for (file, line), marked in sorted(states.items()):
        line_states = tuple(s for s in STATES if s in marked) or never
        if line_states:
            by_file.setdefault(file, []).append(Line(line, line_states))
    return {file: tuple(numbers) for file, numbers in by_file.items()}


def _in(ranges: Ranges) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)
