"""The reason why a value gets a buffer, from torch's functions on the stack.

Functions are identified by their code, not by name: two classes have a ``realize_into``. Limits come from the settings
at that moment, figures from the expression itself.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
import types
from pathlib import Path
from typing import Any

from ...record import claims
from ..ground import hook_points, source_places

SITES = {
    "torch._inductor.graph:GraphLowering.run_node": "node",
    "torch._inductor.graph:GraphLowering.output": "output",
    "torch._inductor.graph:GraphLowering.mark_buffer_mutated": "overwritten",
    "torch._inductor.ir:StorageBox.mark_reuse": "reuse",
    "torch._inductor.ir:StorageBox.realize_hint": "asks",
    "torch._inductor.ir:MutationLayoutSHOULDREMOVE.realize_into": "mutation",
    "torch._inductor.ir:ConcatKernel.realize_into": "concat",
    "torch._inductor.ir:ExternKernel.require_strides": "strides",
    "torch._inductor.ir:ExternKernel.require_stride_order": "strides",
    "torch._inductor.ir:ExternKernel.require_exact_strides": "strides",
}
"""Reason for each of torch's functions if it is on the stack; the innermost one decides."""
for _path in SITES:
    hook_points.declare(_path, claims.LOWERING)

UNDECIDED = "asked"
"""Preliminary reason: the lowering of some operator needs the value in memory, and that operator's result decides."""

_PASSING_FUNCTIONS = ("realize", "realize_hint", "realize_input", "copy_input")
"""Functions that only pass on their caller's request."""

_OUR_FOLDER = str(Path(__file__).parents[2]) + os.sep
_MAX_OPERATIONS = 100
"""Number of operations beyond which ``GraphLowering.run_node`` realises any value, to limit torch's recursion."""


@dataclasses.dataclass(slots=True)
class Reason:
    """The reason why an operation was registered; ``readers`` are the nodes that need it in memory."""

    reason: str
    shown: str = ""
    where: str = ""
    readers: tuple[str, ...] = ()


@dataclasses.dataclass(slots=True)
class Queries:
    """Expressions that torch last decided to realise, and the number of readers that it counted."""

    reused: Any = None
    users: Any = 0
    by_nodes: bool = True
    exceeded: Any = None


class Sites:
    """The code of the functions that give the reason."""

    def __init__(self) -> None:
        self.reasons: dict[types.CodeType, str] = {}
        for path, reason in SITES.items():
            place = hook_points.find(path)
            if place is not None:
                code = _code(getattr(*place))
                if code is not None:
                    self.reasons[code] = reason
        self.heavy = _operations_named(REUSE)


REUSE = "torch._inductor.ir:StorageBox.should_realize_on_reuse"


def _code(function: Any) -> types.CodeType | None:
    function = inspect.unwrap(getattr(function, "__func__", function))
    return getattr(function, "__code__", None)


def _operations_named(path: str) -> frozenset[str]:
    """Return the identifiers among a function's constants: torch's function names the operations too expensive to
    recompute, which differ between versions."""
    place = hook_points.find(path)
    code = _code(getattr(*place)) if place is not None else None
    names: list[Any] = list(code.co_consts[1:]) if code is not None else []
    for constant in code.co_consts if code is not None else ():
        names += constant if isinstance(constant, tuple) else ()
    return frozenset(n for n in names if isinstance(n, str) and n.isidentifier())


@dataclasses.dataclass(slots=True)
class _Stack:
    """The innermost function that gives the reason, facts about the frames up to the registration, and the place."""

    site: str = ""
    hinted: bool = False
    strided: bool = False
    direct: bool = True
    where: str = ""


def reason_for(sites: Sites, queries: Queries, operation: Any, node: Any, prefix: str) -> Reason:
    """Return why ``operation`` is registered during the lowering of ``node``."""
    if type(operation).__name__ == "ConcatKernel":
        return Reason("concat")
    data = getattr(operation, "data", None)
    if type(operation).__name__ != "ComputedBuffer" or data is None:
        return Reason("extern")
    stack = _read_stack(sites)
    reason, shown, readers = _reason(sites, queries, operation, data, node, prefix, stack)
    return Reason(reason, shown, stack.where, readers)


def _read_stack(sites: Sites) -> _Stack:
    stack = _Stack()
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OUR_FOLDER):
            site = sites.reasons.get(code, "")
            through = code.co_name in _PASSING_FUNCTIONS or code.co_name.startswith("<")
            if not stack.where and not through and site != "strides":
                stack.where = source_places.place_in_torch(code, frame.f_lineno)
            if site == "asks":
                stack.hinted = True
            elif site == "strides":
                stack.strided = True
            elif site:
                stack.site = site
                return stack
            elif not through:
                stack.direct = False
        frame = frame.f_back
    return stack


def _reason(
    sites: Sites, queries: Queries, operation: Any, data: Any, node: Any, prefix: str, stack: _Stack
) -> tuple[str, str, tuple[str, ...]]:
    kind = type(data)
    if any(base.__name__ in ("Reduction", "Scan", "Sort") for base in kind.__mro__):
        return "reduction", "", ()
    if stack.site == "mutation" or operation.get_mutation_names():
        return "mutation", "", ()
    if stack.site == "overwritten":
        return "mutation", f"{node.name} overwrites what it reads" if node is not None else "", ()
    if stack.site == "concat":
        return "concat", "", ()
    if stack.site == "reuse":
        return (*_reuse_reason(sites, queries, data, node), ())
    if stack.site == "output":
        return "output", "", ()
    if stack.site != "node":
        return "other", "", ()
    if not stack.direct:
        return UNDECIDED, "", ()
    result = any(user.op == "output" for user in node.users)
    wanting = _readers_needing_memory(node, prefix)
    if stack.strided:
        return ("output" if result else UNDECIDED if wanting else "layout"), "", () if result else wanting
    if stack.hinted:
        if queries.exceeded is data:
            return (*_excess_reason(data), ())
        return UNDECIDED, "", wanting
    if node.meta.get("inductor_realize_to_strides", False):
        return "layout", "", ()
    if result:
        return "output", "", ()
    if data.has_large_inner_fn(threshold=_MAX_OPERATIONS):
        count = data.inner_fn_opcount().num_ops
        limit, name = _limit("opcount", data)
        named = name if limit >= _MAX_OPERATIONS else f"GraphLowering.run_node; {name} can only raise it"
        return "many operations", f"{count} operations, limit {max(limit, _MAX_OPERATIONS)} ({named})", ()
    return "other", "", ()


def _readers_needing_memory(node: Any, prefix: str) -> tuple[str, ...]:
    """Return the readers that need their inputs in memory, by torch's own table."""
    from torch._inductor.lowering import needs_realized_inputs

    return tuple(prefix + user.name for user in node.users if user.target in needs_realized_inputs)


def _reuse_reason(sites: Sites, queries: Queries, data: Any, node: Any) -> tuple[str, str]:
    """Return why a value that is read more than once is realised: the conditions of torch's that are met."""
    if queries.reused is not data:
        return "other", ""
    counted = data.inner_fn_opcount()
    users = f"{queries.users} operations read it"
    if node is not None and queries.users != len(node.users):
        users = f"{node.name} reads each element {queries.users} times"
    heavy = sorted(sites.heavy & set(counted.used_ops)) if _on_cpu(data) else []
    large = []
    reads, ops = len(counted.read_buffers), counted.num_ops
    limit, name = _limit("opcount", data)
    if ops > limit:
        large.append(f"{ops} operations, limit {limit} ({name})")
    several = getattr(_config(), "realize_opusers_threshold", None)
    if not large and several is not None and queries.by_nodes and _on_cpu(data) and queries.users > several:
        if ops > max(0, limit - 2):
            large.append(
                f"{ops} operations, limit {max(0, limit - 2)} for more than {several} readers "
                f"({name}, realize_opusers_threshold)"
            )
    most = _config().realize_reads_threshold
    if queries.by_nodes and reads > most:
        large.append(f"its expression reads {reads} buffers, limit {most} (realize_reads_threshold)")
    reason = "heavy" if heavy else "many readers" if large else "other"
    shown = [users, *([f"its expression has {', '.join(heavy)}"] if heavy else []), *large]
    return reason, "; ".join(shown)


def _excess_reason(data: Any) -> tuple[str, str]:
    """Return why a large expression is realised: the conditions of torch's that are met."""
    counted = data.inner_fn_opcount()
    reads, most = len(counted.read_buffers), _limit("acc_reads", data)
    ops, limit = counted.num_ops, _limit("opcount", data)
    shown = []
    if reads > most[0]:
        shown.append(f"its expression reads {reads} buffers, limit {most[0]} ({most[1]})")
    if ops > limit[0]:
        shown.append(f"{ops} operations, limit {limit[0]} ({limit[1]})")
    if not shown:
        size = _config().realize_acc_reads_size_threshold
        return "many reads", f"bytes read, limit {size:,} (realize_acc_reads_size_threshold)"
    return ("many reads" if reads > most[0] else "many operations"), "; ".join(shown)


def _limit(what: str, data: Any) -> tuple[int, str]:
    """Return the limit in force and the name of its setting, the user's or the device's default."""
    config = _config()
    name = f"realize_{what}_threshold"
    value = getattr(config, name)
    if value is None:
        if not _on_cpu(data):
            return getattr(config, f"_realize_{what}_threshold_default"), name
        name = f"realize_cpu_{what}_threshold"
        value = getattr(config, name)
    return value, name


def _on_cpu(data: Any) -> bool:
    device = data.get_device()
    return device is not None and device.type == "cpu"


def _config() -> Any:
    from torch._inductor import config

    return config
