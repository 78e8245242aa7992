"""Inductor's passes, recorded as they run by comparing the graph around each pass and each applied pattern.

Each region goes from one recorded stage of a graph to the next. A pass is what torch names: the scope of one of its
observers, or a set of patterns. Other changes are recorded under a separate name.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx

from ...record import claims
from ...record.divergence import PASS, Transformation
from ...record.lowering import UNNAMED, Pass, Rewrite
from ..ground.hooks import in_slot, slot_hook
from ..ground.recorder import Draft, Slot
from ..ground.transformations import LIMIT, of_nodes
from . import patterns
from .fx import Origins
from .node_changes import Changes, Group, Tracked, text
from .provenance import modules

UNOBSERVED = (
    "torch._inductor.compile_fx:view_to_reshape",
    "torch._inductor.fx_passes.joint_graph:canonicalize_aten_ir_passes",
    "torch.fx.graph:Graph.eliminate_dead_code",
)
"""Functions that change a graph without an observer; each is recorded as a pass if it changed something."""

OBSERVER = "torch.fx.passes.graph_transform_observer:GraphTransformObserver"


NEEDED = ("decompose_", "fix_auto_functionalized")
"""Prefixes of passes that lowering requires, which are therefore never skipped."""


class OpenPass:
    """A pass in progress."""

    def __init__(self, name: str, where: str, tracked: Tracked) -> None:
        self.name = name
        self.where = where
        self.tracked = tracked
        self.nodes_before = len(tracked.graph.nodes)
        self.rewrites: list[Rewrite] = []
        self.misses: list[str] = []


class Passes:
    """The passes between two recorded stages.

    ``needed`` is True while a pass in ``NEEDED`` runs, whose patterns are never skipped.
    """

    def __init__(self, draft: Draft, stage: str, gm: torch.fx.GraphModule, origins: Origins) -> None:
        self._draft = draft
        self._stage = stage
        self._origins = origins
        self._tracked: dict[torch.fx.Graph, Tracked] = {}
        self._open: list[OpenPass] = []
        self._observers: list[tuple[Any, bool]] = []
        self._unhook = contextlib.ExitStack()
        self._where = ""
        self.needed = False
        for prefix, module in modules(gm):
            if module.graph not in self._tracked:
                tracked = self._tracked[module.graph] = Tracked(module, prefix.rstrip("/"))
                self._watch(module, tracked)

    def _watch(self, module: torch.fx.GraphModule, tracked: Tracked) -> None:
        def touch(node: torch.fx.Node) -> None:
            tracked.touch(node)

        for kind in ("create_node", "erase_node"):
            getattr(module, f"_register_{kind}_hook")(touch)
            self._unhook.callback(getattr(module, f"_unregister_{kind}_hook"), touch)

    def close(self, gm: torch.fx.GraphModule | None = None) -> None:
        """Close the region when the next stage is reached, with ``gm``, or will not be."""
        self._unhook.close()
        if gm is not None:
            for tracked in self._tracked.values():
                self._between(tracked)
            if gm.graph not in self._tracked:
                self._draft.recorder.note(
                    f"the passes before {self._stage} rebuilt the graph: the record does not have their changes "
                    "node by node"
                )
        for tracked in self._tracked.values():
            tracked.forget()
        self._tracked.clear()
        self._open.clear()
        self._observers.clear()

    @contextlib.contextmanager
    def matching(self, matcher: Any, graph: torch.fx.Graph) -> Iterator[None]:
        """Record applied patterns; inside another pass over the same graph they belong to that pass."""
        tracked = self._tracked.get(graph)
        if tracked is None:  # an auxiliary graph, such as of a pattern or its replacement
            yield
            return
        inside = bool(self._open) and self._open[-1].tracked is tracked
        started = not inside and self._start(patterns.matcher_name(matcher), "", tracked)
        initial_nodes = set(graph.nodes)
        try:
            yield
            self._open[-1].misses += patterns.misses(matcher, graph, initial_nodes)
        finally:
            if started:
                self._finish()

    @contextlib.contextmanager
    def named(self, function: Callable[..., Any], graph: torch.fx.Graph) -> Iterator[None]:
        """Record a function without an observer as a pass, if it changed the graph."""
        tracked = self._tracked.get(graph)
        if tracked is None or not self._start(function.__name__, patterns.place_of(function), tracked):
            yield
            return
        try:
            yield
        finally:
            self._finish(always=False)

    def enter(self, observer: Any) -> None:
        """Begin the pass of one of torch's observers."""
        where, self._where = self._where, ""
        tracked = self._tracked.get(observer.gm.graph)
        started = tracked is not None and self._start(str(observer.passname), where, tracked)
        self._observers.append((observer, started))

    def leave(self, observer: Any) -> None:
        """End the pass of an observer, and any passes still open inside it."""
        while self._observers:
            last, started = self._observers.pop()
            if started:
                self._finish()
            if last is observer:
                break

    def _start(self, name: str, where: str, tracked: Tracked) -> bool:
        """Begin a pass and return True; return False inside another pass over the same graph."""
        if self._open and self._open[-1].tracked is tracked:
            return False
        self._between(tracked)
        self._open.append(OpenPass(name, where, tracked))
        return True

    def _finish(self, always: bool = True) -> None:
        ended = self._open.pop()
        changes, moved = ended.tracked.settle()
        ended.rewrites += self._rewrites(changes, ended.where)
        if always or ended.rewrites or moved:
            misses = tuple(ended.misses)
            self._keep(ended.name, ended.tracked, ended.nodes_before, ended.rewrites, moved, misses)

    def _between(self, tracked: Tracked) -> None:
        before = tracked.count
        changes, moved = tracked.settle()
        rewrites = self._rewrites(changes, "")
        if rewrites or moved:
            self._keep(UNNAMED, tracked, before, rewrites, moved)

    def _keep(
        self,
        name: str,
        tracked: Tracked,
        before: int,
        rewrites: list[Rewrite],
        moved: int,
        misses: tuple[str, ...] = (),
    ) -> None:
        after = len(tracked.graph.nodes)
        finished = Pass(self._stage, name, before, after, tuple(rewrites), misses, moved, tracked.body)
        self._draft.passes.append(finished)

    def _rewrites(self, changes: Changes, where: str) -> list[Rewrite]:
        return [self._rewrite("", group, where) for group in changes.groups()] if changes else []

    def _rewrite(self, pattern: str, group: Group, where: str, origins: tuple[str, ...] = ()) -> Rewrite:
        return Rewrite(
            pattern,
            tuple(name for name, _ in group.before),
            tuple(name for name, _ in group.after),
            text(group.before),
            text(group.after),
            origins or self._came_from(group.nodes),
            where,
        )

    def _came_from(self, nodes: tuple[torch.fx.Node, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for node in nodes for name in self._origins(node)[0]))

    @contextlib.contextmanager
    def applying(self, entry: Any, match: Any, graph: torch.fx.Graph) -> Iterator[None]:
        """Record the application of a matched pattern, if it changes the graph."""
        tracked = self._tracked.get(graph)
        if tracked is None or not self._open:
            yield
            return
        matched = list(dict.fromkeys(match.nodes))
        around = list(dict.fromkeys((*matched, *(user for node in matched for user in node.users))))
        origins = self._came_from(tuple(matched))
        tracked.touched.clear()
        yield
        readers = [user for node in tracked.touched if not node._erased for user in node.users]
        changes, _ = tracked.settle((*around, *readers))
        if changes:
            group = changes.group((*changes.gone, *changes.old, *changes.made), matched)
            applied = self._rewrite(patterns.name(entry), group, patterns.place_of_pattern(entry), origins)
            self._open[-1].rewrites.append(applied)

    def described(self, observer: Any) -> Transformation:
        """Return the description of an observer's pass."""
        return of_nodes(PASS, str(observer.passname), (), self._draft)

    def tell(self, function: Callable[..., Any]) -> None:
        """Record the place of the function that the next pass runs."""
        self._where = patterns.place_of(function)


PASSES: Slot[Passes] = Slot()
"""The region in progress."""


def begin(draft: Draft, stage: str, gm: torch.fx.GraphModule, origins: Origins) -> None:
    """Start recording the passes from the present graph to ``stage``."""
    end(draft)
    PASSES.put(draft, Passes(draft, stage, gm, origins))


def end(draft: Draft, gm: torch.fx.GraphModule | None = None) -> None:
    """Stop recording when the stage is reached, with ``gm``, or will not be."""
    passes = PASSES.take(draft)
    if passes is not None:
        passes.close(gm)


@contextlib.contextmanager
def record(
    draft: Draft, stage: str, gm: torch.fx.GraphModule, origins: Origins
) -> Iterator[Callable[[Any], Any]]:
    """Record the passes that run in this block; the yielded function takes and returns the resulting graph module."""
    begin(draft, stage, gm, origins)

    def left(result: Any) -> Any:
        end(draft, result)
        return result

    try:
        yield left
    finally:
        end(draft)


@slot_hook(f"{OBSERVER}.__enter__", PASSES, claims.REWRITES)
def enter(passes: Passes, real: Any, observer: Any) -> Any:
    """Record that a named pass begins."""
    passes.enter(observer)
    return real(observer)


@slot_hook(f"{OBSERVER}.__exit__", PASSES, claims.REWRITES)
def leave(passes: Passes, real: Any, observer: Any, *error: Any) -> Any:
    """Record that a named pass ends."""
    passes.leave(observer)
    return real(observer, *error)


def _apply_pass(passes: Passes, real: Any, observer: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    limit = in_slot(LIMIT)
    needed = str(observer.passname).startswith(NEEDED)
    if limit is not None and not needed and not limit.allows(PASS, lambda: passes.described(observer)):
        return None
    passes.tell(function)
    passes.needed = needed
    try:
        return real(observer, function, *args, **kwargs)
    finally:
        passes.needed = False


for _kind in ("apply_graph_pass", "apply_gm_pass"):
    slot_hook(f"{OBSERVER}.{_kind}", PASSES, claims.REWRITES)(_apply_pass)


@slot_hook("torch._inductor.pattern_matcher:PatternMatcherPass.apply", PASSES, claims.REWRITES)
def match(passes: Passes, real: Any, matcher: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the application of a set of patterns."""
    graph = gm.graph if isinstance(gm, torch.fx.GraphModule) else gm
    if not isinstance(graph, torch.fx.Graph) or not matcher.patterns:
        return real(matcher, gm, *args, **kwargs)
    with passes.matching(matcher, graph):
        return real(matcher, gm, *args, **kwargs)


def _named(passes: Passes, real: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
    """Record one of torch's functions without an observer as a pass with the function's name."""
    graph = given.graph if isinstance(given, torch.fx.GraphModule) else given
    if not isinstance(graph, torch.fx.Graph):
        return real(given, *args, **kwargs)
    with passes.named(inspect.unwrap(real), graph):
        return real(given, *args, **kwargs)


for _path in UNOBSERVED:
    slot_hook(_path, PASSES, claims.REWRITES)(_named)
