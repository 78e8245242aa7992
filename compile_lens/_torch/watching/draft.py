"""The mutable side of a watch: what was seen so far, by program, by visit and by graph."""

from __future__ import annotations

import itertools
import threading
import time
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...record.breaks import Ending
from ...record.collectives import Bucket, Collective
from ...record.compilation import DynamicDim
from ...record.compile_events import Event
from ...record.graph import Frame
from ...record.program import Break, FailedGuard, GuardOrigin, Specialization

numbers = itertools.count()
"""Of visits and graphs, in the order in which they begin, over all watches."""


class Scope:
    """What one watch has seen so far."""

    def __init__(self, parents: tuple[Scope, ...], whole: bool) -> None:
        self.parents = parents
        self.whole = whole  # it sees every thread of the process
        self.open = True
        self.began = time.perf_counter()
        self.began_at = time.time_ns() / 1000
        self.ended: float | None = None
        self.visits: list[Visiting] = []
        self.by_code: dict[types.CodeType, list[Visiting]] = {}  # the same, by what Dynamo was asked about
        # By source, what failed in forms of a code.
        self.failed_of: dict[types.CodeType, dict[str, FailedGuard]] = {}
        self.events: list[Event] = []
        self.compiles: dict[
            int, tuple[Any, int]
        ] = {}  # by the identity of torch's id of it, that and which visit
        self.elsewhere: Counter[str] = Counter()
        self.left_alone: dict[tuple[types.CodeType, str, Frame | None], Visiting] = {}
        self.before: dict[types.CodeType, tuple[str, ...]] = {}
        # Rests of functions that Dynamo was asked about before, and has no form of.
        self.left_before: tuple[types.CodeType, ...] = ()
        self.left_whole: tuple[types.CodeType, ...] = ()  # the same of whole functions
        self.failed: Counter[tuple[str, str]] = Counter()
        self.kept: Callable[[Visiting], None] | None = None
        self.keeps = False  # graphs are kept, so that they can be lowered again
        self.codes: dict[str, list[str]] = {}  # by compile id, what Inductor generated or found in a cache
        self.spent = 0  # nanoseconds that the observers took
        self.process: tuple[int, int] | None = None  # the rank, and of how many
        self.doubtful: Counter[str] = Counter()
        # Graphs of what nothing called, for torch.export (True) or compiled ahead of time, by the line that asked.
        self.ahead: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
        self.stance: tuple[str, Frame | None] | None = None  # that is set, with the line that set it
        self.unvisited: dict[tuple[Any, ...], Uncompiled] = {}
        self.listened: set[tuple[str, types.CodeType | None, Frame | None]] = set()  # calls of ``checkpoint``

    def add(self, visiting: Visiting) -> None:
        """A visit that is over. A program may have hundreds, so that nothing looks through all of them at each."""
        self.visits.append(visiting)
        self.by_code.setdefault(visiting.code, []).append(visiting)
        failed = self.failed_of.setdefault(visiting.code, {})
        failed.update((one.source, one) for one in visiting.failed)


class Uncompiled:
    """A function that ran eagerly, or may have, without a visit."""

    def __init__(
        self, kind: str, why: Ending, name: str, code: types.CodeType | None, caller: Frame | None
    ) -> None:
        self.kind, self.why, self.name, self.code, self.caller = kind, why, name, code, caller
        self.times = 0
        self.certain = True


class Graph:
    """A graph that a backend was called with."""

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
        self.buckets: tuple[Bucket, ...] = ()
        self.kept: Any = None  # what lowering it again takes (``kept.Kept``)


class Visiting:
    """A visit in the making. It holds what is plain, and of torch and the program nothing but the code."""

    def __init__(
        self, code: types.CodeType, mine: tuple[Scope, ...], backend: str, caller: Frame | None
    ) -> None:
        self.code = code
        self.scopes = mine
        self.backend = backend
        self.number = next(numbers)
        self.thread = threading.current_thread().name
        self.caller = caller
        self.behind: Frame | None = None  # what torch calls through a function of its own, which the code is
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
        self.nearest = 0  # which of them is of the form that the call came nearest to
        self.recompiled: tuple[int, int] | None = None
        # Ids of the forms that there were when torch asked why none fits.
        self.asked: frozenset[str] = frozenset()
        self.guards: tuple[GuardOrigin, ...] = ()
        # What guards were made for, where torch does not say it when they fail.
        self.held: dict[str, str] = {}
        self.dynamic: tuple[DynamicDim, ...] = ()
        self.specialized: tuple[Specialization, ...] = ()
        self.buckets: tuple[Bucket, ...] = ()
