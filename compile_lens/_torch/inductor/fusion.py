"""The pairs of nodes that Inductor's scheduler considers for fusion, and its decisions.

The scheduler's own checks are observed, without extra queries. A refusal has the message that Inductor would log; no
logger is changed.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Iterable
from typing import Any

from ...record import claims
from ...record.decision import Decision
from ...record.divergence import FUSION, Transformation
from ...record.graph import Node
from ..ground import source_places
from ..ground.hook_calls import torch_frame
from ..ground.hooks import current, in_slot, slot_hook
from ..ground.recorder import Draft, Slot
from ..ground.transformations import LIMIT, of_nodes
from . import fusion_reasons

ROUNDS = "torch._inductor.scheduler:Scheduler.fuse_nodes"
ROUND = "torch._inductor.scheduler:Scheduler.fuse_nodes_once"
CAN_FUSE = "torch._inductor.scheduler:Scheduler.can_fuse"
FUSE_TWO = "torch._inductor.scheduler:Scheduler.fuse_two_nodes"
REFUSED, ALLOWED, FUSED = "refused", "allowed", "fused"


@dataclasses.dataclass(slots=True)
class Refusal:
    """The last reason for refusing the current pair, torch's or ours; the last one decides."""

    reason: str = ""
    message: str = ""
    args: tuple[Any, ...] = ()
    shown: str = ""
    code: types.CodeType | None = None
    line: int = 0


@dataclasses.dataclass(slots=True)
class Pair:
    """The state of a pair, updated in each round."""

    round: int
    outcome: str = REFUSED
    reason: str = ""
    message: str = ""
    shown: str = ""
    where: str = ""
    shared: int | None = None
    measured: bool = False
    score: tuple[int, ...] = ()


class FusionWatch:
    """The observed fusion of one phase, during its compile, without references to torch's nodes."""

    def __init__(self) -> None:
        self.round = 0
        self.within = False
        self.deciding = False
        self.refusal: Refusal | None = None
        self.shared: int | None = None
        self.loops: dict[str, tuple[str, ...]] = {}
        self.pairs: dict[tuple[str, str], Pair] = {}

    def pair(self, node1: Any, node2: Any) -> Pair:
        """Return the entry of two nodes, updated to this round."""
        names = (self.name(node1), self.name(node2))
        entry = self.pairs.get(names)
        if entry is None:
            entry = self.pairs[names] = Pair(self.round)
        entry.round = self.round
        return entry

    def name(self, node: Any) -> str:
        """Return the node's name, and record its loops."""
        name: str = node.get_name()
        if name not in self.loops:
            self.loops[name] = tuple(part.get_name() for part in node.get_nodes())
        return name

    def refuse(self, pair: Pair, refusal: Refusal, scheduler: Any, nodes: tuple[Any, Any] | None) -> None:
        """Record that a pair was refused, and why."""
        pair.outcome = REFUSED
        pair.message = fusion_reasons.formatted(refusal.message, refusal.args) if refusal.message else ""
        pair.reason, pair.shown = refusal.reason or fusion_reasons.kind(refusal.message), refusal.shown
        pair.where = (
            source_places.place_in_torch(refusal.code, refusal.line) if refusal.code is not None else ""
        )
        if refusal.message and nodes is not None:
            pair.reason, pair.shown = fusion_reasons.refine(pair.reason, scheduler, *nodes)


WATCH: Slot[FusionWatch] = Slot()


def begin(draft: Draft) -> None:
    """Start observing one phase, if this torch has the hooks."""
    if claims.DECISIONS not in draft.recorder.lacking:
        WATCH.put(draft, FusionWatch())


def end(draft: Draft, phase: str, groups: Iterable[Node] = ()) -> None:
    """Record the decisions of one phase; ``groups`` are the nodes for which code was generated."""
    watch = WATCH.take(draft)
    if watch is not None and watch.round:
        draft.decisions[phase] = finish(watch, phase, groups)


def finish(watch: FusionWatch, phase: str, groups: Iterable[Node] = ()) -> tuple[Decision, ...]:
    """Return the decisions in the order in which the pairs were first considered."""
    together = _FusedSets()
    for group in groups:
        if group.members:
            together.join(group.members)
    for loops in watch.loops.values():
        together.join(loops)
    for (name1, name2), pair in watch.pairs.items():
        if pair.outcome == FUSED:
            together.join((*watch.loops[name1], *watch.loops[name2]))
    fused_nodes = {n for names, pair in watch.pairs.items() if pair.outcome == FUSED for n in names}
    decisions = []
    for (name1, name2), pair in watch.pairs.items():
        a, b = watch.loops[name1], watch.loops[name2]
        if pair.reason == "order" and (name2, name1) in watch.pairs:
            continue  # the pair in the other order has its own entry
        fused = together.same((*a, *b))
        through_others = fused and pair.outcome != FUSED
        if pair.outcome == ALLOWED and not fused:
            pair.reason = (
                "overtaken" if fused_nodes & {name1, name2} else "slower" if pair.measured else "unsaid"
            )
        decisions.append(
            Decision(
                phase,
                a,
                b,
                fused,
                pair.round,
                reason=pair.reason,
                torch_message=pair.message,
                evidence=pair.shown,
                where=pair.where,
                shared_bytes=pair.shared,
                score=pair.score,
                through_others=through_others,
            )
        )
    return tuple(decisions)


class _FusedSets:
    """The sets of loops that were fused."""

    def __init__(self) -> None:
        self._of: dict[str, set[str]] = {}

    def join(self, loops: tuple[str, ...]) -> None:
        whole = set(loops).union(*(self._of.get(loop, ()) for loop in loops))
        for loop in whole:
            self._of[loop] = whole

    def same(self, loops: tuple[str, ...]) -> bool:
        return set(loops) <= self._of[loops[0]]


@slot_hook(ROUNDS, WATCH, claims.DECISIONS)
def fuse_nodes(watch: FusionWatch, real: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    """Reset the rounds when a scheduler starts to fuse; a nested body's scheduler has its own rounds."""
    watch.round = 0
    return real(scheduler, *args, **kwargs)


@slot_hook(ROUND, WATCH, claims.DECISIONS)
def fuse_nodes_once(watch: FusionWatch, real: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    """Count one round of proposing and fusing."""
    watch.round += 1
    watch.within = True
    try:
        return real(scheduler, *args, **kwargs)
    finally:
        watch.within = False


@slot_hook(CAN_FUSE, WATCH, claims.DECISIONS)
def consider(
    watch: FusionWatch, real: Any, scheduler: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record whether two nodes can be fused; nested checks of their members belong to the same decision."""
    if not watch.within or watch.deciding or node1 is node2:
        return real(scheduler, node1, node2, *args, **kwargs)
    watch.deciding, watch.refusal, watch.shared = True, None, None
    try:
        allowed = real(scheduler, node1, node2, *args, **kwargs)
    finally:
        watch.deciding = False
    pair = watch.pair(node1, node2)
    refusal, watch.refusal = watch.refusal, None
    pair.shared = watch.shared if watch.shared is not None else pair.shared
    if allowed:
        pair.outcome, pair.reason, pair.message, pair.shown, pair.where = ALLOWED, "", "", "", ""
    else:
        if refusal is None:
            refusal = Refusal(*silent_refusal(real, scheduler, node1, node2))
        watch.refuse(pair, refusal, scheduler, (node1, node2))
    return allowed


def silent_refusal(real: Any, scheduler: Any, node1: Any, node2: Any) -> tuple[Any, ...]:
    """Return the arguments of a ``Refusal`` for a pair that the scheduler refused without a reason."""
    code = getattr(inspect.unwrap(real), "__code__", None)
    reason, shown = fusion_reasons.scheduler_reason(scheduler, node1, node2)
    return reason, "", (), shown, code, code.co_firstlineno if code is not None else 0


@slot_hook("torch._inductor.scheduler:WhyNoFuse.__call__", WATCH, claims.DECISIONS)
def why_no_fuse(watch: FusionWatch, real: Any, why: Any, reason: str, *args: Any) -> Any:
    """Record the reason that Inductor would log."""
    if watch.within:
        caller = torch_frame()
        code, line = (None, 0) if caller is None else (caller.f_code, caller.f_lineno)
        refusal = Refusal("", reason, args, "", code, line)
        if watch.deciding:
            watch.refusal = refusal
        else:  # refused after it was allowed, for a cycle or too many registers
            pair = watch.pairs.get((why.name1, why.name2))
            if pair is not None:
                watch.refuse(pair, refusal, None, None)
    return real(why, reason, *args)


@slot_hook("torch._inductor.choices:InductorChoices.can_fuse", WATCH, claims.SHARED)
def keep_shared_data(
    watch: FusionWatch,
    real: Any,
    scheduler: Any,
    node1: Any,
    node2: Any,
    shared: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Record the bytes that the two nodes share, by Inductor's count."""
    if watch.deciding:
        try:
            watch.shared = int(shared)
        except (TypeError, ValueError):  # it depends on data
            watch.shared = None
    return real(scheduler, node1, node2, shared, *args, **kwargs)


@slot_hook("torch._inductor.choices:InductorChoices.score_fusion", WATCH, claims.SCORES)
def score(watch: FusionWatch, real: Any, scheduler: Any, node1: Any, node2: Any) -> Any:
    """Record Inductor's score of a pair that it allows."""
    score = real(scheduler, node1, node2)
    # vars() has a dataclass's fields in order and is faster than dataclasses.fields() for every pair.
    if watch.within and dataclasses.is_dataclass(score) and hasattr(score, "__dict__"):
        parts = tuple(vars(score).values())
        if all(isinstance(part, int) for part in parts):
            watch.pair(node1, node2).score = tuple(map(int, parts))
    return score


@slot_hook("torch._inductor.scheduler:Scheduler.speedup_by_fusion", WATCH, claims.DECISIONS)
def keep_timing(watch: FusionWatch, real: Any, scheduler: Any, node1: Any, node2: Any, *args: Any) -> Any:
    """Record the result for pairs that Inductor builds and times before fusing."""
    limit = in_slot(LIMIT)
    if limit is not None and not limit.allows(FUSION, lambda: _described(node1, node2)):
        from torch._inductor.scheduler import FusionResult

        return FusionResult(should_fuse=False)
    result = real(scheduler, node1, node2, *args)
    if watch.within:
        pair = watch.pair(node1, node2)
        if getattr(result, "callable_fn", None) is not None:
            pair.measured = True
        elif not getattr(result, "should_fuse", True) and pair.outcome == ALLOWED:
            code = inspect.unwrap(real).__code__
            watch.refuse(pair, Refusal("slower", code=code, line=code.co_firstlineno), scheduler, None)
    return result


def _described(node1: Any, node2: Any) -> Transformation:
    """Return the description of the fusion of two scheduler nodes."""
    origins = [
        node
        for one in (node1, node2)
        for part in one.get_nodes()
        for node in sorted(getattr(part.node, "origins", ()) or (), key=lambda n: str(n.name))
    ]
    name = " + ".join(str(one.get_name()) for one in (node1, node2))
    return of_nodes(FUSION, name, origins, current())


@slot_hook(FUSE_TWO, WATCH, claims.DECISIONS)
def fuse(
    watch: FusionWatch, real: Any, scheduler: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record that two nodes become one."""
    pair = watch.pair(node1, node2) if watch.within else None
    fused = real(scheduler, node1, node2, *args, **kwargs)
    if pair is not None:
        pair.outcome, pair.reason, pair.message, pair.shown, pair.where = FUSED, "", "", "", ""
    return fused


def _cpp_decision(watch: FusionWatch, real: Any, backend: Any, node1: Any, node2: Any) -> Any:
    """Record the reason for the C++ backend's refusal, derived from the nodes since the backend gives none."""
    allowed = real(backend, node1, node2)
    if watch.deciding and not allowed:
        code = inspect.unwrap(real).__code__
        reason, shown = fusion_reasons.cpp_reason(node1, node2, vertical=code.co_name == "can_fuse_vertical")
        watch.refusal = Refusal(reason, shown=shown, code=code, line=code.co_firstlineno)
    return allowed


for _way in ("can_fuse_vertical", "can_fuse_horizontal"):
    slot_hook(f"torch._inductor.codegen.cpp:CppScheduling.{_way}", WATCH, claims.DECISIONS)(_cpp_decision)
