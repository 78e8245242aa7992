"""Reasons for a refused fusion, from Inductor's message, or proven from the nodes if there is none.

Messages are matched by their beginnings, as in torch's source before sizes are inserted. Without a message, torch's own
conditions are tested on the two nodes; if none proves the refusal, it stays unexplained.
"""

from __future__ import annotations

import functools
import math
from typing import Any

TORCH_REASONS: tuple[tuple[str, str], ...] = (
    ("node1 is extern", "extern"),
    ("node2 is extern", "extern"),
    ("node1 is nop", "nop"),
    ("node1's triton kernel", "extern"),
    ("node1 and node2 uses different buf layouts", "extern"),
    ("epilogue", "extern"),
    ("grouped node", "config"),
    ("node1 must go before node2", "order"),
    ("prologue fusion turned off", "config"),
    ("fusion for buffer explicit disabled", "config"),
    ("prologue fusion", "template"),
    ("template fusion does not preserve strict", "numerics"),
    ("reduction fusion does not preserve strict", "numerics"),
    ("template", "template"),
    ("multi-output template", "template"),
    ("numel/rnumel mismatch prologue", "template"),
    ("device mismatch", "different devices"),
    ("no shared data", "no shared data"),
    ("score_fusion_memory_threshold", "little shared data"),
    ("exceeds max fusion", "too large"),
    ("fusion_prevent_too_many_reads_and_writes", "too large"),
    ("Fusion will increase peak memory", "peak memory"),
    ("Nodes are too far away", "peak memory"),
    ("memory deps did not match", "different indices"),
    ("intermediate nodes", "between"),
    ("a consumer depends on another producer", "between"),
    ("will create cycle", "cycle"),
    ("numel/rnumel mismatch (reduce)", "reduction sizes"),
    ("numel/rnumel mismatch (non-reduce)", "different sizes"),
    ("nodes numel", "reduction sizes"),
    ("incompatible reduction contracts", "reduction sizes"),
    ("tiling mismatch", "tiling"),
    ("invalid tiling", "tiling"),
    ("invalid loop order and tiling", "tiling"),
    ("Split scan", "scan"),
    ("foreach", "foreach"),
    ("candidate consumer", "foreach"),
    ("candidate producer", "foreach"),
    ("register spilling", "slower"),
    ("staged", "combined reductions"),
    ("nested reduction", "combined reductions"),
    ("sub-parent", "combined reductions"),
    ("invalid sub-parent", "combined reductions"),
    ("consumer is not wholly in the sub-parent", "combined reductions"),
)
"""Beginnings of Inductor's messages, and our reason for each."""

SUBGRAPH_CALLS = ("Conditional", "Switch", "WhileLoop", "InvokeSubgraph")
"""Inductor's classes that run subgraphs, which the scheduler treats as library calls."""

HOST_NUMBERS = ("DynamicScalar", "DynamicSelectStorageOffset", "DynamicSliceSize", "AssertScalar")
"""Inductor's classes that read or check a number in the wrapper, which the scheduler treats as library calls."""

SIZE_REASONS = ("different sizes", "different loops", "reduction sizes", "reduction barrier", "outer loop")
"""Reasons that depend on the loop sizes of the two nodes."""


@functools.lru_cache(maxsize=1024)
def kind(message: str) -> str:
    """Return the reason for Inductor's message; ``"other"`` if the message is unknown."""
    return next((reason for begin, reason in TORCH_REASONS if message.startswith(begin)), "other")


def formatted(reason: str, args: tuple[Any, ...]) -> str:
    """Return Inductor's message with the sizes inserted."""
    try:
        return reason % args if args else reason
    except (TypeError, ValueError):
        return reason


def refine(reason: str, scheduler: Any, node1: Any, node2: Any) -> tuple[str, str]:
    """Return a more exact reason if the two nodes prove one, and its evidence."""
    kinds = {type(getattr(n, "node", None)).__name__ for n in (node1, node2)}
    idle = any(type(n).__name__.startswith("Nop") for n in (node1, node2)) or not kinds.isdisjoint(
        HOST_NUMBERS
    )
    if reason == "extern" and idle:
        reason = "nop"
    elif reason == "extern" and not kinds.isdisjoint(SUBGRAPH_CALLS):
        reason = "steering"
    common = common_buffers(scheduler, node1, node2)
    if reason in ("different indices", "no shared data") and common:
        if _overwrites(scheduler, node1, node2):
            reason = "mutation"
        elif _waits_for_reduction(scheduler, node1, node2):
            reason = "reduction barrier"
        elif reason == "no shared data":
            # Both use the buffer but never the same elements in the same step, or data would be shared.
            one, two = (_length(n) for n in (node1, node2))
            reduces = node1.is_reduction() or node2.is_reduction()
            differ = one is not None and two is not None and one != two and not reduces
            reason = "different sizes" if differ else "different indices"
    elif reason in ("reduction sizes", "different sizes") and _reads_reduction(node1, node2):
        reason = "reduction barrier"
    shown = []
    if reason in ("no shared data", "different indices", "mutation", "little shared data") and common:
        shown.append(f"both touch {', '.join(common)}")
    if reason in SIZE_REASONS:
        shown.append(_both_extents(node1, node2))
    if reason == "different devices":
        shown.append(f"{node1.get_device()} against {node2.get_device()}")
    return reason, "; ".join(shown)


def cpp_reason(node1: Any, node2: Any, *, vertical: bool) -> tuple[str, str]:
    """Return the C++ backend's reason, which it never reports: its own condition that the nodes fail.

    With ``vertical``, the second node reads what the first writes.
    """
    from torch._inductor import config

    if node1.is_template() or node2.is_template():
        return "template", ""
    count = len(node1.get_nodes()) + len(node2.get_nodes())
    limit = config.cpp.max_horizontal_fusion_size
    if not vertical and count > limit:
        return "too large", f"{count} loops, and cpp.max_horizontal_fusion_size is {limit}"
    names = [type(n).__name__ for n in (node1, node2)]
    if any(n.startswith("Extern") for n in names):
        return "extern", ""
    groups = [getattr(n, "group", None) for n in (node1, node2)]
    if None in groups or any(not isinstance(g[1], tuple) or len(g[1]) != 2 for g in groups):  # type: ignore[index]
        return "backend", ""
    (vars1, reduce1), (vars2, reduce2) = groups[0][1], groups[1][1]  # type: ignore[index]
    shown = _both_extents(node1, node2)
    if vertical and node1.is_reduction():
        own = set(node1.get_buffer_names())
        waits = not any(dep.name in own for dep in _accesses(node2))
        return ("mutation" if waits else "reduction barrier"), shown
    depth = min(len(vars1), len(vars2))
    if any(n.startswith("OuterLoop") for n in names) and (not vertical or vars1[:depth] == vars2[:depth]):
        return "outer loop", shown
    if (vars1, reduce1) == (vars2, reduce2):
        return "backend", ""
    if _length(node1) == _length(node2):
        return "different loops", shown
    return ("reduction sizes" if reduce1 or reduce2 else "different sizes"), shown


def scheduler_reason(scheduler: Any, node1: Any, node2: Any) -> tuple[str, str]:
    """Return why the scheduler itself refused without a message, if that can be proven."""
    streams = getattr(scheduler, "node_to_stream", None) or {}
    one, two = streams.get(node1), streams.get(node2)
    if one is not None and two is not None and one != two:
        return "stream", f"streams {one} and {two}"
    pools = getattr(scheduler, "node_to_mempool", None) or {}
    if pools.get(node1) != pools.get(node2):
        return "stream", "different memory pools"
    if any(type(n).__name__ in ("FusedMixOrderReductions", "FusedNestedReductions") for n in (node1, node2)):
        return "combined reductions", ""
    if type(node1).__name__.startswith("Extern"):
        return "extern", ""
    return "unsaid", ""


def _both_extents(node1: Any, node2: Any) -> str:
    return f"{extent(node1)} against {extent(node2)}"


def extent(node: Any) -> str:
    """Return the loop sizes of a node as text: ``512 × 512``, or ``512 reductions over 64``."""
    loops = _loops(node)
    if loops is None:
        return "no loop"
    outer, inner = (_sizes(part) for part in loops)
    if not node.is_reduction() or inner == "1":
        return outer
    return f"one reduction over {inner}" if outer == "1" else f"{outer} reductions over {inner}"


def _loops(node: Any) -> tuple[Any, Any] | None:
    """Return the outer and the reduced sizes: tuples for C++, products for other backends; None without a loop."""
    try:
        outer, inner = node.group[1]
    except (AttributeError, TypeError, ValueError):
        return None
    return outer, inner


def _length(node: Any) -> Any:
    """Return the number of elements that a node iterates over, None if it has no loop."""
    loops = _loops(node)
    if loops is None:
        return None
    return math.prod(math.prod(part) if isinstance(part, (tuple, list)) else part for part in loops)


def _sizes(sizes: Any) -> str:
    if isinstance(sizes, (tuple, list)):
        return " × ".join(str(s) for s in sizes) or "1"
    return str(sizes)


def common_buffers(scheduler: Any, node1: Any, node2: Any) -> list[str]:
    """Return the buffers that both nodes access: inputs by their names, others by the loops that compute them."""
    names = {d.name for d in _accesses(node1)}
    producers: dict[str, None] = {}
    for dep in _accesses(node2):
        if dep.name in names:
            buffer = scheduler.name_to_buf.get(dep.name)
            producer = getattr(buffer, "defining_op_name", None)
            producers[producer() if producer is not None else dep.name] = None
    return sorted(producers)


def _accesses(node: Any) -> list[Any]:
    """Return a node's reads and writes, without weak dependencies, which only order it after another's reads."""
    return [d for d in node.read_writes.reads_and_writes() if type(d).__name__ != "WeakDep"]


def _reads_reduction(node1: Any, node2: Any) -> bool:
    """Return True if the second node reads the result of a reduction in the first."""
    reduced = {b for part in node1.get_nodes() if part.is_reduction() for b in part.get_buffer_names()}
    return any(d.name in reduced for d in _accesses(node2))


def _waits_for_reduction(scheduler: Any, node1: Any, node2: Any) -> bool:
    """Return True if a mismatched access is of a reduction's result, by torch's own condition on that buffer."""
    for part in node1.get_nodes():
        for write in part.read_writes.writes if part.is_reduction() else ():
            for read in node2.unmet_dependencies:
                if read.name == write.name and type(write).__name__ == "MemoryDep":
                    if not scheduler.fusable_read_and_write(read, write):
                        return True
    return False


def _overwrites(scheduler: Any, node1: Any, node2: Any) -> bool:
    """Return True if one node overwrites, or accumulates into, a buffer that the other accesses."""
    needed = {d.name for d in node2.unmet_dependencies}
    if any(w.name in needed and getattr(w, "mode", None) is not None for w in node1.read_writes.writes):
        return True
    touched = {d.name for d in node1.read_writes.reads_and_writes()}
    return any(scheduler.mutation_real_name.get(w.name) in touched for w in node2.read_writes.writes)
