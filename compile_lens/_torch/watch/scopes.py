"""The open watches of a thread, and their mutable state by program, frame evaluation and graph.

A watch covers compiles on the thread that opened it and on threads started from it. A thread started elsewhere (of an
older pool, or of autograd) is covered if its watch is unambiguous: one open watch, or several nested ones.
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
"""Numbers of evaluations and graphs over all watches, in the order of their beginning."""


class Scope:
    """The state of one watch."""

    def __init__(self, parents: tuple[Scope, ...], whole: bool) -> None:
        self.parents = parents
        self.whole = whole  # covers every thread of the process
        self.open = True
        self.began = time.perf_counter()
        self.began_at = time.time_ns() / 1000
        self.ended: float | None = None
        self.evaluations: list[Evaluation] = []
        self.by_code: dict[types.CodeType, list[Evaluation]] = {}  # evaluations by code object
        # The guards that failed for a code object, by source.
        self.failed_of: dict[types.CodeType, dict[str, FailedGuard]] = {}
        self.events: list[Event] = []
        self.compiles: dict[
            int, tuple[Any, int]
        ] = {}  # the compile id and the number of the evaluation, by id() of torch's compile id
        self.elsewhere: Counter[str] = Counter()
        self.breaks_elsewhere: dict[str, list[Break]] = {}
        self.skipped: dict[tuple[types.CodeType, str, Frame | None], Evaluation] = {}
        self.before: dict[types.CodeType, tuple[str, ...]] = {}
        # Resume functions that Dynamo evaluated earlier without compiling a variant.
        self.eager_resumes: tuple[types.CodeType, ...] = ()
        self.eager_before: tuple[types.CodeType, ...] = ()  # the same for whole functions
        self.failed: Counter[tuple[str, str]] = Counter()  # by claim and error
        self.lost: dict[
            str, str
        ] = {}  # claims that rest on functions which this torch lacks, with the reason
        self.kept: Callable[[Evaluation], None] | None = None
        self.keeps = False  # True if graphs are retained for lowering them again
        self.codes: dict[
            str, list[str]
        ] = {}  # texts that Inductor generated or found in a cache, by compile id
        self.spent = 0  # nanoseconds spent in observers
        self.process: tuple[int, int] | None = None  # rank and world size
        self.issued = IssueLog()
        self.doubtful: Counter[str] = Counter()
        # Graphs traced without a call, for torch.export (True) or compiled ahead of time, by the requesting line.
        self.ahead: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self.stance: tuple[str, Frame | None] | None = None  # the current stance, with the line that set it
        self.uncompiled: dict[tuple[Any, ...], Uncompiled] = {}
        self.profiled: set[tuple[str, types.CodeType | None, Frame | None]] = set()  # calls of ``checkpoint``

    def lacking(self) -> set[str]:
        """Return the claims (``record.claims``) that are unknown in whole or in part."""
        return {*self.lost, *(claim for claim, _ in self.failed)}

    def not_observed(self) -> tuple[Missing, ...]:
        """Return these claims with the reasons."""
        lost = [Missing(claim, why) for claim, why in self.lost.items()]
        for (claim, why), times in self.failed.items():
            often = f" ({times} times)" if times > 1 else ""
            lost.append(Missing(claim, f"the observer failed: {why}{often}"))
        return tuple(lost)

    def add(self, evaluation: Evaluation) -> None:
        """Add a finished evaluation to the list and the indices, which avoid scans of all evaluations."""
        self.evaluations.append(evaluation)
        self.by_code.setdefault(evaluation.code, []).append(evaluation)
        failed = self.failed_of.setdefault(evaluation.code, {})
        failed.update((one.source, one) for one in evaluation.failed)


def notes(scope: Scope) -> tuple[str, ...]:
    """Return notes for the user on compiles that are in no observation."""
    return (
        *_doubt_notes(scope),
        *(_ahead_note(export, seen) for export, seen in scope.ahead.items() if seen),
    )


def _ahead_note(export: bool, lines: Counter[str]) -> str:
    """Return a note on graphs traced without a call, which torch counts too."""
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
    """A graph that a backend received."""

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
        self.kept: Any = None  # the inputs for lowering it again (``retained_graphs.RetainedGraph``)


class Evaluation:
    """A frame evaluation in progress, as plain data that refers to no object of torch or the program but the code."""

    def __init__(
        self, code: types.CodeType, watches: tuple[Scope, ...], backend: str, caller: Frame | None
    ) -> None:
        self.code = code
        self.scopes = watches
        self.backend = backend
        self.number = next(numbers)
        self.thread = threading.current_thread().name
        self.caller = caller
        self.compiled_function = 0  # number of its ``torch.compile``; 0 if entries are isolated
        self.wrapped: Frame | None = None  # the callable, if the code is torch's wrapper
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
        self.lines: dict[types.CodeType, set[int]] = {}  # traced lines by function
        self.dropped: set[types.CodeType] = set()  # functions traced by earlier attempts
        self.without_node: set[int] = set()  # own lines at its beginning or breaks that are in no graph
        self.times = 1
        self.plain = False  # True if no value that it uses can be a tensor
        self.rest: int | None = None
        self.graphs: list[Graph] = []
        self.breaks: list[Break] = []
        self.failed: list[FailedGuard] = []
        self.nearest = 0  # index in ``failed`` of the nearest entry
        self.recompiled: tuple[int, int] | None = None
        self.constants_only = False  # as dynamic=False asks for
        # Ids of the entries that existed when torch computed why none matches.
        self.asked: frozenset[str] = frozenset()
        self.guards: tuple[GuardOrigin, ...] = ()
        # Objects that guards check, where torch does not report them on failure.
        self.held: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.specialized: tuple[Specialization, ...] = ()
        self.buckets: tuple[Bucket, ...] = ()
        self.collectives: tuple[Collective, ...] | None = None  # those in AOTAutograd's forward graph


class _Local(threading.local):
    scopes: tuple[Scope, ...] | None = None
    evaluation: list[Evaluation | None] | None = None


_local = _Local()
_open: list[Scope] = []
_inherited: weakref.WeakKeyDictionary[threading.Thread, tuple[Scope, ...]] = weakref.WeakKeyDictionary()
_owner: dict[int, tuple[Scope, ...]] = {}
"""Watches by frame number, since a frame's backward may be compiled in another thread."""


def enter(undo: Undo, whole: bool = False) -> Scope:
    """Open a watch on this thread, nested in those open there, or one of the ``whole`` process, until ``undo``."""
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
    """Return the open watches that cover this thread; none while a capture runs on it.

    ``who`` names the code being compiled, which all candidates record if the watch is ambiguous.
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
    """Record the watches of a frame."""
    _owner[frame_id] = scopes


def owners_of(frame_id: int | None) -> tuple[Scope, ...]:
    """Return the open watches that observed the compile of a frame; those of this thread if none did."""
    own = tuple(s for s in _owner.get(-1 if frame_id is None else frame_id, ()) if s.open)
    return own or owners()


def _scopes_here() -> tuple[Scope, ...]:
    """Return the watches opened on this thread, or inherited from the one that started it."""
    scopes = _local.scopes
    if scopes is None:
        watches = threading.get_ident()
        # Not ``current_thread``, which would create an object for a thread not started by Python.
        thread = next((t for t in threading.enumerate() if t.ident == watches), None)
        scopes = _local.scopes = _inherited.get(thread, ()) if thread is not None else ()
    return scopes


def inherit(thread: threading.Thread) -> None:
    """Extend this thread's watches to a thread that it starts."""
    scopes = tuple(s for s in _scopes_here() if s.open)
    if scopes:
        _inherited[thread] = scopes


def current() -> Evaluation | None:
    """Return the evaluation in progress on this thread if a watch covers it, else None."""
    stack = _local.evaluation
    return stack[-1] if stack else None


def is_evaluating() -> bool:
    """Return True if Dynamo is evaluating a frame on this thread, watched or not."""
    return bool(_local.evaluation)


def push(evaluation: Evaluation | None) -> None:
    """Begin an evaluation; None stands for one that no watch covers."""
    if _local.evaluation is None:
        _local.evaluation = []
    _local.evaluation.append(evaluation)


def pop() -> None:
    """End the last evaluation."""
    if _local.evaluation:
        _local.evaluation.pop()
