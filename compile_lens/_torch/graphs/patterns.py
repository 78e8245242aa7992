"""Patterns of Inductor's pattern matcher: their names, and near misses."""

from __future__ import annotations

import functools
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx

from ..ground.source_places import place_in_torch
from . import fx_values, pattern_prefixes
from .node_changes import argument_text, line, state_of

MIN_NODES = 3
"""Minimal number of fitting nodes of a reported miss."""

MIN_SHARE = 1 / 3
"""Minimal share of a pattern's nodes that fit in a reported miss, unless the whole pattern fits without one node; a
matrix product alone is no attention."""

MAX_EXPERIMENTS = 24
"""Limit on the misses of one pass for which the pattern is tried without the obstructing node."""

ANCHORS = "{anchors}"
"""Placeholder in a sentence for the nodes that it is about."""

_sizes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_variables: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


class Miss(NamedTuple):
    """The failure of one pattern: ``expected`` is the part that fails, ``found`` the node or value there."""

    entry: Any
    anchor: torch.fx.Node
    fits: int
    beyond: bool
    expected: Any = None
    found: Any = None
    failure: Any = None


def name(entry: Any) -> str:
    """Return the name of a pattern: the registered one, else that of its search function or handler."""
    registered = getattr(entry, "pattern_name", None)
    if registered:
        return str(registered)
    called = str(getattr(_function(entry), "__name__", ""))
    if not called.isidentifier():
        return text_of(entry.pattern)
    return called if hasattr(entry, "handler") else _serialized(entry.pattern, called) or called


def place_of_pattern(entry: Any) -> str:
    """Return the place in torch of a pattern's search function or handler."""
    return place_of(_function(entry))


def place_of(function: Any) -> str:
    """Return the place of a function, or of the one inside a partial or wrapper; ``""`` if it has no code."""
    while not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            return ""
        function = inner
    return place_in_torch(function.__code__, function.__code__.co_firstlineno)


def text_of(pattern: Any) -> str:
    """Return a pattern as text: ``aten.mul.Tensor(aten.sin.default(x), *)``."""
    if isinstance(pattern, (tuple, list)):
        return f"[{', '.join(map(text_of, pattern))}]"
    outputs = getattr(pattern, "outputs", None)
    if outputs is not None:
        return text_of([o for o in outputs if o is not None])
    for inner in ("inner_pattern", "pattern"):
        if hasattr(pattern, inner):
            return f"{text_of(getattr(pattern, inner))}, …"
    if hasattr(pattern, "fns"):
        given = [text_of(a) for a in getattr(pattern, "args", ())]
        given += [f"{k}={text_of(v)}" for k, v in getattr(pattern, "kwargs", {}).items()]
        return f"{_calls(pattern)}({', '.join(given)})"
    if _is_pattern(pattern):
        return str(getattr(pattern, "name", "*"))
    return argument_text(pattern)


def matcher_name(matcher: Any) -> str:
    """Return the name of a set of patterns: its own, else that of torch's variable for it."""
    named = getattr(matcher, "pass_name", None) or _variables.get(matcher)
    if named is None:
        named = _variables[matcher] = _variable(matcher)
    return str(named)


def _variable(matcher: Any) -> str:
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch._inductor.fx_passes."):
            for variable, value in vars(module).items():
                if value is matcher:
                    return f"{module_name.rpartition('.')[2]}.{variable}"
    return "pattern_matcher"


def misses(matcher: Any, graph: torch.fx.Graph, there: set[torch.fx.Node]) -> tuple[str, ...]:
    """Return the near misses in a graph after a pass, at each node the pattern that fits best.

    Torch's own matcher is used. ``there`` are the nodes at the start of the pass, which looks at no others.
    """
    nearest: dict[torch.fx.Node, list[Miss]] = {}
    # How far each prefix fits at each node; many patterns have the same prefix.
    walks: dict[Any, dict[torch.fx.Node, tuple[int, Any] | None]] = {}
    fitting: dict[tuple[Any, Any], bool] = {}
    for (op, target), entries in matcher.patterns.items():
        anchors = [a for a in graph.find_nodes(op=op, target=target, sort=False) if a in there]
        multi = [e for e in entries if size(e.pattern) >= MIN_NODES] if anchors else []
        for entry in multi:
            pattern = entry.pattern
            spine, alike = pattern_prefixes.prefix_of(pattern)
            walked = walks.setdefault(alike, {})
            for anchor in anchors:
                if anchor not in walked:
                    walked[anchor] = pattern_prefixes.walk(spine, alike, anchor, fitting)
                stopped = walked[anchor]
                if stopped is not None and (stopped[0] < MIN_NODES or _is_hopeless(pattern, spine, *stopped)):
                    continue
                miss = _attempt(entry, anchor)
                if not _is_worth_reporting(miss):
                    continue
                best = nearest.setdefault(anchor, [miss])
                if _nearness(miss) > _nearness(best[0]):
                    best[:] = [miss]
                elif miss is not best[0] and _nearness(miss) == _nearness(best[0]):
                    best.append(miss)
    copied = _Copy(graph)
    sentences: dict[str, list[str]] = {}
    for anchor, best in sorted(nearest.items()):
        sentences.setdefault(_report(best, copied), []).append(f"%{anchor.name}")
    return tuple(
        sentence.replace(ANCHORS, ", ".join(anchors)) for sentence, anchors in sentences.items() if sentence
    )


def _is_hopeless(pattern: Any, spine: pattern_prefixes.Prefix, fits: int, node: Any) -> bool:
    """Return True if the prefix already shows that nothing would be reported, as it nearly always does.

    The first ``fits`` parts fit, and the next does not fit at ``node``.
    """
    return not (_is_beyond(spine[fits][0], node) or _share(pattern, fits) >= MIN_SHARE)


def _is_worth_reporting(miss: Miss) -> bool:
    if miss.fits < MIN_NODES or (_of_onednn(miss.entry.pattern) and not _on_cpu(miss.anchor)):
        return False
    return miss.beyond or _share(miss.entry.pattern, miss.fits) >= MIN_SHARE


def _of_onednn(pattern: Any) -> bool:
    """Return True if a pattern has calls of oneDNN, which runs on the CPU only."""
    functions = (fn for part in _targets(pattern) for fn in getattr(part, "fns", ()))
    return any(getattr(fn, "namespace", "") == "mkldnn" for fn in functions)


def _on_cpu(node: torch.fx.Node) -> bool:
    outputs = fx_values.tensors(node)
    return not outputs or outputs[0].device == "cpu"


def size(pattern: Any) -> int:
    """Return the number of nodes that a pattern describes."""
    known = _sizes.get(pattern)
    if known is None:
        known = _sizes[pattern] = len(set(_targets(pattern)))
    return known


def _nearness(miss: Miss) -> tuple[bool, int]:
    return miss.expected is None, miss.fits


def _share(pattern: Any, fits: int) -> float:
    """Return the share of a pattern that fits; for a pattern with several results, of the part for the first."""
    return fits / size((getattr(pattern, "outputs", None) or [pattern])[0])


def _report(best: list[Miss], copied: _Copy) -> str:
    miss = best[0]
    if miss.expected is None:
        condition = _condition(miss.entry)
        return (
            f"{name(miss.entry)}: all {size(miss.entry.pattern)} nodes fit at {ANCHORS}, but it was not applied: "
            f"forbidden by its own condition{condition and f' {condition}'} (on types, sizes, devices, settings), "
            "or by a write or another stream between the nodes"
        )
    for candidate in best:
        if candidate.beyond and copied.fits_without(candidate):
            return (
                f"{name(candidate.entry)} at {ANCHORS}: {_expectation(candidate)}; without "
                f"%{candidate.found.name} all {size(candidate.entry.pattern)} nodes would fit"
            )
    miss = max(best, key=lambda m: (_share(m.entry.pattern, m.fits), m.beyond))
    if _share(miss.entry.pattern, miss.fits) < MIN_SHARE:
        return ""
    return (
        f"{name(miss.entry)} at {ANCHORS}: {miss.fits} of {size(miss.entry.pattern)} nodes fit until "
        f"{_expectation(miss)}"
    )


def _expectation(miss: Miss) -> str:
    """Return a text on what the pattern expects and what the graph has instead."""
    expected, actual = miss.expected, miss.found
    if not isinstance(actual, torch.fx.Node):
        return f"it wants {_short(expected)} and finds {argument_text(actual)}"
    there = line(state_of(actual))
    if hasattr(expected, "fns"):
        if not expected._match_fns(actual):
            if miss.beyond:
                inside = actual.args[0]
                return f"it wants {_short(expected)} and finds {there}, whose input %{inside} is one"
            return f"it wants {_short(expected)} and finds {there}"
        if hasattr(expected, "args") and len(expected.args) != len(actual.args):
            return f"{there} has {len(actual.args)} positional arguments, in the pattern {len(expected.args)}"
        if isinstance(expected.users, int) and len(actual.users) != expected.users:
            return (
                f"%{actual.name} is read by {_count(len(actual.users))}, in the pattern by "
                f"{_count(expected.users)}"
            )
    return f"{there} does not fit {text_of(expected)}: {_reason(miss.failure)}"


def _count(nodes: int) -> str:
    return f"{nodes} node" + ("s" if nodes != 1 else "")


def _reason(failure: Any) -> str:
    """Return a text for the mismatch that torch's matcher reports."""
    template = str(getattr(failure, "format_string", ""))
    kinds = {
        "constant_args": "another constant",
        "args_structure": "another nesting of arguments",
        "kwarg mismatch": "two inputs that must be one are two",
        "repeated pattern differs": "two inputs that must be one are two",
        "exclusive arg": "two inputs that must differ are one",
        "multiple_users": "another number of readers",
    }
    return next(
        (words for start, words in kinds.items() if template.startswith(start)), template or "unknown"
    )


def _short(pattern: Any) -> str:
    return _calls(pattern) if hasattr(pattern, "fns") else text_of(pattern)


def _calls(pattern: Any) -> str:
    """Return the possible targets of a pattern's node as text; an operator without overload stands for all its
    overloads."""
    fns = list(pattern.fns) if isinstance(pattern.fns, (list, tuple)) else [pattern.fns]
    packets = [f for f in fns if isinstance(f, torch._ops.OpOverloadPacket)]
    kept = [f for f in fns if not (isinstance(f, torch._ops.OpOverload) and f.overloadpacket in packets)]
    names = [str(f) if f in packets else fx_values.target_text(f) for f in kept]
    return " or ".join(names[:3]) + (f" or {len(names) - 3} others" if len(names) > 3 else "")


def _attempt(entry: Any, anchor: torch.fx.Node) -> Miss:
    """Let torch match a pattern, and return the miss with the largest number of fitting nodes."""
    pattern = entry.pattern
    outputs = getattr(pattern, "outputs", None) or [pattern]
    watch = _watch()(outputs, graph=anchor.graph)
    from torch._inductor.pattern_matcher import FailedMatch

    try:
        matched = bool(watch.match(pattern, anchor))
    except FailedMatch:
        matched = False
    if matched:
        return Miss(entry, anchor, size(pattern), False)
    return Miss(entry, anchor, *watch.nearest)


@functools.cache
def _watch() -> Callable[..., Any]:
    from torch._inductor.pattern_matcher import FailedMatch, MatchContext

    class Watch(MatchContext):  # type: ignore[misc]
        """A match in progress that records the failure with the most fitting nodes."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.path: list[Any] = []
            self.nearest: tuple[int, bool, Any, Any, Any] = (0, False, None, None, None)

        def match(self, pattern: Any, node: Any) -> Any:
            self.path.append(pattern)
            try:
                result = super().match(pattern, node)
            except FailedMatch as failure:
                self.failed(pattern, node, failure)
                raise
            finally:
                self.path.pop()
            if not result:
                self.failed(pattern, node, result)
            return result

        def failed(self, pattern: Any, node: Any, failure: Any) -> None:
            # The targets of nodes above the failing one have matched before their inputs are tried.
            fitting = {p for p in self.path if p is not pattern and hasattr(p, "_match_fns")}
            fitting |= {
                p for p, n in self.pattern_to_node.items() if n is not None and hasattr(p, "_match_fns")
            }
            if self.nearest[4] is None or len(fitting) > self.nearest[0]:
                self.nearest = (len(fitting), _is_beyond(pattern, node), pattern, node, failure)

    return Watch


def _is_beyond(part: Any, node: Any) -> bool:
    """Return True if a node that does not fit has one input, which does."""
    if not hasattr(part, "_match_fns") or not isinstance(node, torch.fx.Node) or part._match_fns(node):
        return False
    inputs = node.all_input_nodes
    return len(inputs) == 1 and bool(node.args) and node.args[0] is inputs[0] and part._match_fns(inputs[0])


class _Copy:
    """A copy of the graph, for trying patterns without a node; the graph itself is not changed."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._graph = graph
        self._left = MAX_EXPERIMENTS
        self._gone: set[torch.fx.Node] = set()
        self._copied: dict[torch.fx.Node, torch.fx.Node] = {}

    def fits_without(self, miss: Miss) -> bool:
        """Return True if torch's matcher accepts the pattern after ``miss.found`` is removed."""
        if miss.found not in self._gone:
            if self._left == 0:
                return False
            self._left -= 1
            if not self._copied:
                torch.fx.Graph().graph_copy(self._graph, self._copied, return_output_node=True)
            intruder = self._copied[miss.found]
            intruder.replace_all_uses_with(self._copied[miss.found.args[0]])
            intruder.graph.erase_node(intruder)
            self._gone.add(miss.found)
        return bool(miss.entry.pattern.match(self._copied[miss.anchor]))


def _targets(pattern: Any) -> Iterator[Any]:
    """Yield every part of a pattern that describes a node."""
    stack, seen = [pattern], set()
    while stack:
        part = stack.pop()
        if isinstance(part, (tuple, list)):
            stack.extend(part)
        elif _is_pattern(part) and id(part) not in seen:
            seen.add(id(part))
            if hasattr(part, "_match_fns"):
                yield part
            for inner in ("outputs", "pattern", "inner_pattern"):
                stack.append(getattr(part, inner, None))
            stack.extend(getattr(part, "flat_args_kwargs", ((),))[0])


def _is_pattern(part: Any) -> bool:
    from torch._inductor.pattern_matcher import PatternExpr

    return isinstance(part, PatternExpr)


def _function(entry: Any) -> Any:
    """Return a pattern's handler or search function."""
    return getattr(entry, "handler", None) or _closed_over(entry.extra_check).get("search_fn")


def _condition(entry: Any) -> str:
    """Return the name of a pattern's extra check, ``""`` if it has none."""
    check = _closed_over(entry.extra_check).get("extra_check", entry.extra_check)
    called = str(getattr(check, "__name__", ""))
    return called if called.isidentifier() and not called.startswith("_return") else ""


def _closed_over(function: Any) -> dict[str, Any]:
    """Return the closure variables of a function by name."""
    code = getattr(function, "__code__", None)
    cells = zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or ())
    return {variable: cell.cell_contents for variable, cell in cells}


def _serialized(pattern: Any, called: str) -> str:
    """Return the name of a precompiled pattern in torch's ``serialized_patterns``; ``""`` for others."""
    try:
        module = importlib.import_module(f"torch._inductor.fx_passes.serialized_patterns.{called}")
    except ImportError:
        return ""
    return next((variable for variable, value in vars(module).items() if value is pattern), "")
