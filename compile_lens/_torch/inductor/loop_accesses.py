"""Memory accesses of Inductor's scheduler nodes in bytes, by the rule in ``graphs.accesses``.

Inductor's own count has whole buffers for each fused node, even if only a part is read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx

from ..graphs import accesses, fx_values, operator_kinds
from ..graphs.accesses import Moved


def moved(node: Any, lowering: Any) -> Moved:
    """Return the bytes that a scheduler node reads and writes, each None if a size depends on data."""
    deps = getattr(node, "read_writes", None)
    try:
        return (None, None) if deps is None else _moved(node, deps, lowering)
    except _DependsOnData:
        return None, None


def _moved(node: Any, deps: Any, lowering: Any) -> Moved:
    if type(node).__name__ == "ForeachKernelSchedulerNode":
        return _moved_separately(node, lowering)
    parts = list(node.get_nodes())
    names = {dep.name for dep in (*deps.reads, *deps.writes)}
    if any(_buffer(lowering, _data_buffer(name, lowering)).depends_on_data for name in names):
        return None, None
    if len(parts) == 1 and type(node).__name__.startswith("Nop"):
        return 0, 0
    if len(parts) == 1 and type(node).__name__.startswith("Extern"):
        return _moved_by_call(node, lowering)
    own_buffers = {name for part in parts for name in part.get_buffer_names()}
    kept = {name for name in own_buffers if len(parts) == 1 or _is_needed(node, name, parts)}
    reads = _accessed_bytes(
        (d for p in parts for d in _read(p) if d.name not in own_buffers), "LOAD", parts, lowering
    )
    written = list(dict.fromkeys(d for part in parts for d in part.read_writes.writes if d.name in kept))
    adding = [d for d in written if "add" in (getattr(d, "mode", None) or "")]
    reads_of_adds = _accessed_bytes(adding, "STORE", parts, lowering)
    return reads + reads_of_adds, _accessed_bytes(written, "STORE", parts, lowering)


def _moved_separately(node: Any, lowering: Any) -> Moved:
    """Return the bytes of kernels that share a launch (combo, foreach); each reads separately, so they are summed."""
    reads = writes = 0
    for read, written in (moved(part, lowering) for part in node.snodes):
        if read is None or written is None:
            return None, None
        reads, writes = reads + read, writes + written
    return reads, writes


def _read(part: Any) -> Iterator[Any]:
    """Yield the reads of a loop: ranges of buffers, and whole buffers that its body names; others only order it."""
    usage = getattr(getattr(part, "_body", None), "memory_usage", None)
    named = None if usage is None else {entry.buffer_name for entries in usage.values() for entry in entries}
    for dep in part.read_writes.reads:
        kind = type(dep).__name__
        if kind == "MemoryDep" or (kind == "StarDep" and (named is None or dep.name in named)):
            yield dep


def _is_needed(node: Any, name: str, parts: list[Any]) -> bool:
    """Return True if anything outside the node reads a buffer that it computes."""
    return any(user.node not in parts for user in node.scheduler.name_to_buf[name].users)


def _accessed_bytes(deps: Iterable[Any], way: str, parts: list[Any], lowering: Any) -> int:
    """Return the bytes of the elements accessed, for each buffer at most its size."""
    by_buffer: dict[str, dict[Any, None]] = {}
    for dep in deps:
        by_buffer.setdefault(_data_buffer(dep.name, lowering), {})[dep] = None
    total = 0
    for name, buffer_deps in by_buffer.items():
        whole, itemsize = _size_of(lowering, name)
        if not itemsize:
            continue
        direct = [d for d in buffer_deps if not d.is_indirect()]
        touched = _direct_elements(direct, whole, lowering)
        if len(direct) < len(buffer_deps):
            touched += sum(_indirect_elements(name, way, parts, lowering) or [whole])
        total += min(touched, whole) * itemsize
    return total


def _data_buffer(name: str, lowering: Any) -> str:
    """Return the buffer with the data. The scheduler renames a buffer that is written in place; the new one has the
    size of the part written, or none if a library call wrote it."""
    real = getattr(getattr(lowering, "scheduler", None), "mutation_real_name", {})
    return str(real.get(name, name))


def _direct_elements(deps: list[Any], whole: int, lowering: Any) -> int:
    """Return the number of elements accessed at indices that depend on loop variables only."""
    touched = [_distinct_elements(dep, whole, lowering) for dep in deps]
    if len(deps) > 1 and max(touched) < whole:  # a part that is accessed in several loop orders counts once
        alike = {_normalized(dep): number for dep, number in zip(deps, touched)}
        touched = list(alike.values())
    return sum(touched)


def _normalized(dep: Any) -> Any:
    return dep.normalize_with_stride_order() if hasattr(dep, "normalize_with_stride_order") else dep


def _distinct_elements(dep: Any, whole: int, lowering: Any) -> int:
    """Return the number of distinct elements of one access; windows may overlap."""
    sizes = [_number(size, lowering) for size in getattr(dep, "size", ())]
    if type(dep).__name__ == "MemoryDep":  # as ``MemoryDep.get_numel``, without sympy's products
        looped = dep.index.free_symbols
        number = math.prod(size for var, size in zip(dep.var_names, sizes) if var in looped)
    else:
        number = _number(dep.get_numel(), lowering)
    if number >= whole or len(sizes) < 2:
        return number
    steps = lowering.sizevars.stride_hints(dep.index, dep.var_names)
    spans = [(size - 1) * abs(step) for size, step in zip(sizes, steps)]
    # The steps are meaningless unless the index is linear.
    plain = dep.index.is_polynomial(*dep.var_names)
    return min(number, 1 + sum(spans)) if plain else number


def _indirect_elements(name: str, way: str, parts: list[Any], lowering: Any) -> list[int]:
    """Return the number of elements that each access of a buffer at loaded indices can address; empty if unknown."""
    counts: dict[Any, int] = {}
    for part in parts:
        body: Any = getattr(part, "_body", None)
        for expression in _indices(body, name, way, lowering):
            sources = _sources(body, expression)
            if sources is None:
                return []
            variables = {v for e in sources for v in e.free_symbols if v in body.var_ranges}
            # Two loops that compute an index in the same way address the same elements.
            key = frozenset((v, body.var_ranges[v]) for v in variables), _computed(body, expression)
            if key not in counts:
                counts[key] = _number(_product(body.var_ranges[v] for v in variables), lowering)
    return list(counts.values())


def _indices(body: Any, name: str, way: str, lowering: Any) -> list[Any]:
    """Return the distinct indirect indices with which a loop's body accesses a buffer."""
    expressions: dict[Any, None] = {}
    for kind, entries in getattr(body, "memory_usage", {}).items():
        if kind.name.startswith(way):
            for entry in entries:
                expression = body.indexing_exprs[entry.index_name]
                same = _data_buffer(entry.buffer_name, lowering) == name
                if same and set(body.indirect_vars) & expression.free_symbols:
                    expressions[expression] = None
    return list(expressions)


def _sources(body: Any, expression: Any) -> list[Any] | None:
    """Return an index and those of all loads that it depends on; None if one is not found."""
    sources: list[Any] = [expression]
    seen: set[Any] = set()
    for each in sources:
        for symbol in each.free_symbols - seen:
            seen.add(symbol)
            if symbol in body.indirect_vars:
                loaded = _loaded(body, f"set_{symbol}")
                if not loaded:
                    return None
                sources += loaded
    return sources


def _computed(body: Any, expression: Any) -> Any:
    """Return an index with each indirect variable renamed after its computation: each body numbers them from 0."""
    attributes = vars(body)
    if _FORMULAS not in attributes:
        attributes[_FORMULAS] = _formulas(body)
    formulas = attributes[_FORMULAS]
    names = {s: type(s)(f"at_{formulas[s.name]}") for s in expression.free_symbols if s.name in formulas}
    return expression.xreplace(names)


_FORMULAS = "compile_lens_formulas"
"""Attribute of a loop's body with a hash of each indirect variable's computation, by name."""


def _formulas(body: Any) -> dict[str, int]:
    formulas: dict[str, int] = {}
    for block in (body.root_block, *body.subblocks.values()):
        hashes: dict[Any, int] = {}
        for node in block.graph.nodes:
            args: Any = torch.fx.map_arg((node.args, node.kwargs), hashes.__getitem__)
            if node.op == "call_module" and node.target == "get_index":
                index = body.indexing_exprs[node.args[0]]
                names = ((s.name, formulas.get(s.name)) for s in index.free_symbols)
                args = str(index), sorted(names, key=str)
            hashes[node] = hash((node.op, str(node.target), str(args)))
            if node.op == "call_module" and str(node.target).startswith("set_"):
                formulas[str(node.target).removeprefix("set_")] = hash(str(args))
    return formulas


def _loaded(body: Any, setter: str) -> list[Any]:
    """Return the indices of the loads from which the value of an indirect variable is computed."""
    loads: dict[Any, None] = {}
    for block in (body.root_block, *body.subblocks.values()):
        pending = [n for n in block.graph.nodes if n.op == "call_module" and n.target == setter]
        seen = set(pending)
        for node in pending:
            for above in node.all_input_nodes:
                if above.op == "call_module" and above.target == "get_index":
                    loads[body.indexing_exprs[above.args[0]]] = None
                elif above not in seen:
                    seen.add(above)
                    pending.append(above)
    return list(loads)


def _moved_by_call(node: Any, lowering: Any) -> Moved:
    """Return the bytes of a library call: the operator's accesses, or the call's inputs and results."""
    ir_node = node.node
    if ir_node is None or type(ir_node).__name__ == "MultiOutput":
        return 0, 0  # its call has the bytes
    origin = _origin(ir_node)
    called = getattr(ir_node, "op_overload", None)
    if type(ir_node).__name__ == "UserDefinedTritonKernel" or (
        called is not None and operator_kinds.is_own(called)
    ):
        return None, None
    if called is not None and operator_kinds.kind_of(called) in ("view", "allocation"):
        return 0, 0
    if getattr(called, "namespace", "") in ("mkl", "mkldnn"):
        return _moved_by_library(ir_node, called, lowering)
    if origin is not None and accesses.in_part(origin.target):
        # Inductor may add a convolution's bias in another kernel.
        bias = operator_kinds.base_name(origin.target) != "convolution" or len(list(_inputs(ir_node))) > 2
        return accesses.Accesses().moved(origin, bool(ir_node.get_mutation_names()), bias)
    changed = list(ir_node.get_mutation_names())
    layout = type(getattr(ir_node, "layout", None)).__name__
    ignored = changed if type(ir_node).__name__ == "InplaceCopyFallback" else []
    reads = _bytes_read((i for i in _inputs(ir_node) if i.get_name() not in ignored), lowering)
    if layout == "MultiOutputLayout":
        return reads, _bytes_written(node, origin)
    if layout == "NoneLayout":
        sizes = [_size_of(lowering, name) for name in dict.fromkeys(changed)]
        return reads, sum(size * itemsize for size, itemsize in sizes)
    return reads, _number(_product(ir_node.get_size()), lowering) * ir_node.get_dtype().itemsize


def _moved_by_library(ir_node: Any, called: Any, lowering: Any) -> Moved:
    """Return the bytes of a oneDNN or MKL call, whose arguments are its inputs, then its constants."""
    args = [_tensor(item, lowering) for item in _inputs(ir_node)]
    in_place = called._schema.is_mutable
    result = ir_node.outputs[0] if type(ir_node.layout).__name__ == "MultiOutputLayout" else ir_node
    out = args[0] if in_place else _tensor(result, lowering)
    return accesses.moved(called, (*args, *ir_node.constant_args), {}, out, in_place)


def _tensor(ir_node: Any, lowering: Any) -> torch.Tensor:
    """Return a meta tensor of this size, or the constant itself, since the strides of a packed one are meaningless."""
    constant: torch.Tensor | None = lowering.constants.get(ir_node.get_name())
    if constant is not None:
        return constant
    sizes, strides = ([_number(n, lowering) for n in ns] for ns in (ir_node.get_size(), ir_node.get_stride()))
    return torch.empty_strided(sizes, strides, dtype=ir_node.get_dtype(), device="meta")


def own_node(ir_node: Any) -> torch.fx.Node | None:
    """Return the ``origin_node`` of an IR node if the IR node was created for it. An in-place operator such as
    ``all_reduce_`` returns the buffer of its input, whose ``origin_node`` Inductor then replaces. A result of a call
    with several has its ``getitem`` node, and the origins of the call."""
    own: torch.fx.Node | None = getattr(ir_node, "origin_node", None)
    origins = ir_node.get_origins() if hasattr(ir_node, "get_origins") else ir_node.origins
    made_for = not origins or own in origins or (own is not None and own.target is operator.getitem)
    return own if made_for else None


def _origin(ir_node: Any) -> torch.fx.Node | None:
    """Return the node of the graph that a library call runs."""
    own = own_node(ir_node)
    if own is not None:
        return own if own.op == "call_function" else None
    called = getattr(ir_node, "op_overload", None)
    names = {n: operator_kinds.base_name(n.target) for n in ir_node.get_origins() if n.op == "call_function"}
    if type(ir_node).__name__ in ("ScatterFallback", "IndexPutFallback"):
        same = [n for n, name in names.items() if name.removesuffix("_") in accesses.SCATTERS]
    else:
        same = [
            n for n, name in names.items() if called is not None and name == operator_kinds.base_name(called)
        ]
    return same[0] if len(same) == 1 else None


def _inputs(ir_node: Any) -> Iterator[Any]:
    pending = list(ir_node.inputs)
    for item in pending:
        if isinstance(item, (list, tuple)):
            pending += item
        elif hasattr(item, "get_size") and hasattr(item, "get_name"):
            yield item


def _bytes_read(inputs: Iterable[Any], lowering: Any) -> int:
    """Return the bytes of the distinct elements that a library call reads, for each buffer at most its size."""
    by_buffer: dict[str, dict[Any, int]] = {}
    for item in inputs:
        try:
            size, stride = tuple(item.get_size()), tuple(item.get_stride())
            key = (size, stride, getattr(item.get_layout(), "offset", 0))
        except (NotImplementedError, AttributeError):  # several results, or none: it has no size of its own
            continue
        number = math.prod(
            _number(n, lowering) for n, step in zip(size, stride) if _number(step, lowering) or n == 0
        )
        by_buffer.setdefault(item.get_name(), {})[key] = number * item.get_dtype().itemsize
    total = 0
    for name, views in by_buffer.items():
        whole, itemsize = _size_of(lowering, name)
        total += min(sum(views.values()), whole * itemsize) if itemsize else sum(views.values())
    return total


def _bytes_written(node: Any, origin: torch.fx.Node | None) -> int | None:
    """Return the bytes of all results of a library call, including unused ones if the operator is known."""
    if origin is not None:
        return accesses.total(t.nbytes for t in fx_values.tensors(origin))
    used = node.get_read_write_buffer_accesses(include_reads=False, include_writes=True)
    return int(sum(used.values()))


class _Buffer(NamedTuple):
    """A buffer's number of elements, their size in bytes (0 if it is no tensor), and whether a size depends on data.
    ``buffer`` tells it from another one of the same name."""

    buffer: Any
    elements: int
    itemsize: int
    depends_on_data: bool


_BUFFERS = "compile_lens_buffers"
"""Attribute of a lowering with the facts of its buffers, so that reference cycles are freed with it."""


def _buffer(lowering: Any, name: str) -> _Buffer:
    buffers = lowering.name_to_buffer if name in lowering.name_to_buffer else lowering.graph_inputs
    buffer: Any = buffers[name] if name in buffers else None
    attributes = vars(lowering)
    known: dict[str, _Buffer] = (
        attributes[_BUFFERS] if _BUFFERS in attributes else attributes.setdefault(_BUFFERS, {})
    )
    facts = known[name] if name in known else None
    if facts is None or facts.buffer is not buffer:
        try:
            sizes = list(buffer.get_size())
            elements, itemsize = _number(_product(sizes), lowering), buffer.get_dtype().itemsize
            facts = _Buffer(buffer, elements, itemsize, False)
        except _DependsOnData:
            facts = _Buffer(buffer, 0, 0, True)
        except (AttributeError, NotImplementedError):  # several results, or none: it has no size of its own
            facts = _Buffer(buffer, 0, 0, False)
        known[name] = facts
    return facts


def _size_of(lowering: Any, name: str) -> tuple[int, int]:
    """Return a buffer's number of elements and their size in bytes; zeros if it is no tensor."""
    facts = _buffer(lowering, name)
    return facts.elements, facts.itemsize


class _DependsOnData(Exception):
    """Raised for a size that is not known before the call."""


def _product(sizes: Iterable[Any]) -> Any:
    """Return the product of sizes, of plain numbers where possible, which is many times faster than sympy's."""
    return math.prod(int(s) if getattr(s, "is_Integer", False) else s for s in sizes)


def _number(expression: Any, lowering: Any) -> int:
    """Return a size as a number, with the example values of symbols."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    try:
        return int(expression)
    except TypeError:
        if free_unbacked_symbols(expression):
            raise _DependsOnData from None
        return int(lowering.sizevars.optimization_hint(expression, fallback=0))
