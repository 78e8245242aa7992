"""The open watches of a thread, and their mutable state by program, frame evaluation and graph.

A watch sees the compiles of the thread that opened it, and of threads started from there. A thread that no watch
started (of an older pool, or one of autograd's) is seen if there is no doubt about its watch: if one watch is open, or
several nested ones.
"""

from __future__ import annotations

import itertools
import threading
import time
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...record.breaks import Ending
from ...record.collectives import Bucket, Collective
from ...record.compilation import DynamicDim
from ...record.compile_events import Event
from ...record.graph import Frame
from ...record.messages import first_names
from ...record.missing import Missing
from ...record.program import Break, FailedGuard, GuardOrigin, Specialization
from ..ground import hooks
from ..ground.undo import Undo
from .issue_log import IssueLog

numbers = itertools.count()
"""Numbers of evaluations and graphs, in the order in which they begin, over all watches."""


class Scope:
    """The state of one watch."""

    def __init__(self, parents: tuple[Scope, ...], whole: bool) -> None:
        self.parents = parents
        self.whole = whole  # it sees every thread of the process
        self.open = True
        self.began = time.perf_counter()
        self.began_at = time.time_ns() / 1000
        self.ended: float | None = None
        self.evaluations: list[Evaluation] = []
        self.by_code: dict[
            types.CodeType, list[Evaluation]
        ] = {}  # the same, by the code that Dynamo evaluated
        # Per code, the guard that failed in one of its variants, by source.
        self.failed_of: dict[types.CodeType, dict[str, FailedGuard]] = {}
        self.events: list[Event] = []
        self.compiles: dict[
            int, tuple[Any, int]
        ] = {}  # by id() of torch's compile id: that id, and the index of the evaluation
        self.elsewhere: Counter[str] = Counter()
        self.breaks_elsewhere: dict[str, list[Break]] = {}
        self.skipped: dict[tuple[types.CodeType, str, Frame | None], Evaluation] = {}
        self.before: dict[types.CodeType, tuple[str, ...]] = {}
        # Resume functions that Dynamo evaluated earlier without compiling a variant.
        self.eager_resumes: tuple[types.CodeType, ...] = ()
        self.eager_before: tuple[types.CodeType, ...] = ()  # the same for whole functions
        self.failed: Counter[tuple[str, str]] = Counter()  # by claim, and the error
        self.lost: dict[str, str] = {}  # claims that rest on what the running torch lacks, with the reason
        self.kept: Callable[[Evaluation], None] | None = None
        self.keeps = False  # graphs are kept, so that they can be lowered again
        self.codes: dict[str, list[str]] = {}  # by compile id, what Inductor generated or found in a cache
        self.spent = 0  # nanoseconds that the observers took
        self.process: tuple[int, int] | None = None  # the rank, and of how many
        self.issued = IssueLog()
        self.doubtful: Counter[str] = Counter()
        # Graphs traced without a call, for torch.export (True) or compiled ahead of time, by the requesting line.
        self.ahead: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self.stance: tuple[str, Frame | None] | None = None  # the current stance, with the line that set it
        self.uncompiled: dict[tuple[Any, ...], Uncompiled] = {}
        self.profiled: set[tuple[str, types.CodeType | None, Frame | None]] = set()  # calls of ``checkpoint``

    def lacking(self) -> set[str]:
        """Return the claims (``record.claims``) that are not known, or only in part."""
        return {*self.lost, *(claim for claim, _ in self.failed)}

    def not_observed(self) -> tuple[Missing, ...]:
        """Return the same with their reasons."""
        lost = [Missing(claim, why) for claim, why in self.lost.items()]
        for (claim, why), times in self.failed.items():
            often = f" ({times} times)" if times > 1 else ""
            lost.append(Missing(claim, f"the observer failed: {why}{often}"))
        return tuple(lost)

    def add(self, evaluation: Evaluation) -> None:
        """Add a finished evaluation. A program may have hundreds, so that nothing scans all of them at each."""
        self.evaluations.append(evaluation)
        self.by_code.setdefault(evaluation.code, []).append(evaluation)
        failed = self.failed_of.setdefault(evaluation.code, {})
        failed.update((one.source, one) for one in evaluation.failed)


def notes(scope: Scope) -> tuple[str, ...]:
    """Return what a reader should know of a watch besides its observations."""
    return (
        *_doubt_notes(scope),
        *(_ahead_note(export, seen) for export, seen in scope.ahead.items() if seen),
    )


def _ahead_note(export: bool, lines: Counter[str]) -> str:
    """Return a note on functions that nothing called: torch counts their graphs as well."""
    count = lines.total()
    graphs = "1 graph" if count == 1 else f"{count} graphs"
    what = f"traced {graphs} for torch.export, which compiles nothing"
    if not export:
        what = f"traced {graphs} to compile ahead of any call (aot_compile)"
    them = "it" if count == 1 else "them"
    return f"Dynamo {what}; no frame evaluation has {them}: requested in {first_names(lines, 3)}"


def _doubt_notes(scope: Scope) -> tuple[str, ...]:
    if not scope.doubtful:
        return ()
    ids = first_names(scope.doubtful, 3)
    doubt = f"a thread that none of several open watches started compiled {ids}: it is in none of them"
    return (doubt,)


class Uncompiled:
    """A function that ran eagerly, or may have, without an evaluation."""

    def __init__(
        self, kind: str, why: Ending, name: str, code: types.CodeType | None, caller: Frame | None
    ) -> None:
        self.kind, self.why, self.name, self.code, self.caller = kind, why, name, code, caller
        self.times = 0
        self.certain = True


class Graph:
    """A graph with which a backend was called."""

    def __init__(
        self,
        number: int,
        id: str,
        operators: int,
        inputs: tuple[str, ...],
        takes: int | None,
        gives: int | None,
    ) -> None:
        self.number, self.id, self.operators, self.inputs = number, id, operators, inputs
        self.takes, self.gives = takes, gives
        self.thread = threading.current_thread().name
        self.seconds = 0.0
        self.collectives: tuple[Collective, ...] = ()
        self.calls: tuple[str, ...] = ()
        self.buckets: tuple[Bucket, ...] = ()
        self.kept: Any = None  # what lowering it again takes (``retained_graphs.Kept``)


class Evaluation:
    """A frame evaluation in progress. It is plain data, and holds nothing of torch and the program but the code."""

    def __init__(
        self, code: types.CodeType, mine: tuple[Scope, ...], backend: str, caller: Frame | None
    ) -> None:
        self.code = code
        self.scopes = mine
        self.backend = backend
        self.number = next(numbers)
        self.thread = threading.current_thread().name
        self.caller = caller
        self.compiled_function = 0  # number of the ``torch.compile`` that shares its entries with others
        self.wrapped: Frame | None = None  # what torch calls through a function of its own, which the code is
        self.began = time.perf_counter()
        self.seconds = 0.0
        self.id = ""
        self.guarded = False
        self.raised = False
        self.reason = ""
        self.error: Ending | None = None
        self.consequence = ""
        self.limit = ""
        self.attempt = 0
        self.lines: dict[types.CodeType, set[int]] = {}  # by function, those that were traced
        self.dropped: set[types.CodeType] = set()  # that earlier attempts traced
        self.without_node: set[int] = set()  # of its own lines where it began or broke, that no graph has
        self.times = 1
        self.plain = False  # nothing that it reaches can be a tensor
        self.rest: int | None = None
        self.graphs: list[Graph] = []
        self.breaks: list[Break] = []
        self.failed: list[FailedGuard] = []
        self.nearest = 0  # index of the failure in the variant that the call came nearest to
        self.recompiled: tuple[int, int] | None = None
        # Ids of the variants that existed when torch asked why none fits.
        self.asked: frozenset[str] = frozenset()
        self.guards: tuple[GuardOrigin, ...] = ()
        # What guards were made for, where torch does not say it when they fail.
        self.held: dict[str, str] = {}
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.specialized: tuple[Specialization, ...] = ()
        self.buckets: tuple[Bucket, ...] = ()
        self.collectives: tuple[Collective, ...] | None = (
            None  # of the graph that a backend compiles, by AOTAutograd
        )


class _Local(threading.local):
    scopes: tuple[Scope, ...] | None = None
    evaluation: list[Evaluation | None] | None = None


_local = _Local()
_open: list[Scope] = []
_inherited: weakref.WeakKeyDictionary[threading.Thread, tuple[Scope, ...]] = weakref.WeakKeyDictionary()
_owner: dict[int, tuple[Scope, ...]] = {}
"""Watches by frame number: a frame's backward may be compiled in another thread."""


def enter(undo: Undo, whole: bool = False) -> Scope:
    """Open a watch on this thread, inside of those open there, or one of the ``whole`` process; until ``undo``."""
    scope = Scope(() if whole else _scopes_here(), whole)
    undo.add(leave, scope)
    if not whole:
        _local.scopes = (*scope.parents, scope)
    _open.append(scope)
    return scope


def leave(scope: Scope) -> None:
    """Close a watch; it may be repeated."""
    scope.open = False
    if scope.ended is None:
        scope.ended = time.perf_counter()
    if scope in _open:
        _open.remove(scope)
    if not _open:
        _owner.clear()
    _local.scopes = tuple(s for s in _scopes_here() if s.open)


def owners(who: str = "") -> tuple[Scope, ...]:
    """Return the open watches that see this thread now; none while a capture works on it.

    ``who`` is what is being compiled: if its watch is in doubt, each of them notes it.
    """
    if not _open or hooks.is_capturing():
        return ()
    whole = tuple(s for s in _open if s.whole)
    own = tuple(s for s in _scopes_here() if s.open)
    if own:
        return (*whole, *own)
    others = [s for s in _open if not s.whole]
    inner = max(others, key=lambda s: len(s.parents), default=None)
    if all(s is inner or (inner is not None and s in inner.parents) for s in others):
        return (*whole, *others)
    if who:
        for scope in others:
            scope.doubtful[who] += 1
    return whole


def assign_frame(frame_id: int, scopes: tuple[Scope, ...]) -> None:
    """Remember the watches of a frame."""
    _owner[frame_id] = scopes


def owners_of(frame_id: int | None) -> tuple[Scope, ...]:
    """Return the open watches that saw Dynamo compile a frame; those of this thread if none did."""
    own = tuple(s for s in _owner.get(-1 if frame_id is None else frame_id, ()) if s.open)
    return own or owners()


def _scopes_here() -> tuple[Scope, ...]:
    """Return the watches that were opened on this thread, or on the one that started it."""
    scopes = _local.scopes
    if scopes is None:
        mine = threading.get_ident()
        # Not ``current_thread``, which would make an object for a thread that is not Python's.
        thread = next((t for t in threading.enumerate() if t.ident == mine), None)
        scopes = _local.scopes = _inherited.get(thread, ()) if thread is not None else ()
    return scopes


def inherit(thread: threading.Thread) -> None:
    """Let a thread that this one starts be seen by the same watches."""
    scopes = tuple(s for s in _scopes_here() if s.open)
    if scopes:
        _inherited[thread] = scopes


def current() -> Evaluation | None:
    """Return the evaluation in progress on this thread, if a watch sees it."""
    stack = _local.evaluation
    return stack[-1] if stack else None


def is_evaluating() -> bool:
    """Return True if Dynamo evaluates a frame on this thread, seen by a watch or not."""
    return bool(_local.evaluation)


def push(evaluation: Evaluation | None) -> None:
    """Begin an evaluation; None: one that no watch sees."""
    if _local.evaluation is None:
        _local.evaluation = []
    _local.evaluation.append(evaluation)


def pop() -> None:
    """End the last evaluation."""
    if _local.evaluation:
        _local.evaluation.pop()
