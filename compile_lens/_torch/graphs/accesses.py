"""Memory accesses of an operator that runs by itself, the bytes before fusion, by the same rule as the bytes after.

The rule, for operators here and for Inductor's loops in ``loop_accesses``: count the elements of each buffer that can
be accessed, each once, and at most the buffer's size (``operand_reads`` has what each operator reads). The rows that an
index selects depend on data, so an indexed read counts the elements that it gathers, an indexed write those that it
places, and an accumulating write reads them too. Accesses of the program's own operators are unknown. A scatter into a
new tensor first copies the old one, as in eager PyTorch and Inductor. Copies that exist only because functional graphs
change nothing in place count as eager PyTorch runs them: in place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.fx

from ..ground import values
from . import fx_values, operand_reads, operator_kinds, windows
from .operand_reads import elements, product

Moved = tuple["int | None", "int | None"]
"""Bytes read and bytes written; ``None`` if a size is unknown."""

SCATTERS = {
    **dict.fromkeys("scatter scatter_add scatter_reduce put".split(), "index"),
    **dict.fromkeys("index_add index_copy index_reduce".split(), "source"),
    **dict.fromkeys("index_put _unsafe_index_put _index_put_impl index_fill".split(), "indices"),
    "_unsafe_masked_index_put_accumulate": "values",
    "embedding_dense_backward": "grad_output",
}
"""Operators that write at indices, and the argument with as many elements as they write (for ``indices`` the number is
computed)."""

ACCUMULATES = frozenset(
    "scatter_add scatter_reduce index_add index_reduce _unsafe_masked_index_put_accumulate "
    "embedding_dense_backward".split()
)
"""Scatters that always read the elements that they write."""

PART_WRITES = frozenset("slice_scatter select_scatter diagonal_scatter as_strided_scatter".split())
"""Functional variants of a write to part of a tensor: ``self`` with that part replaced by ``src``."""

_Tensors = dict[int, tuple[torch.Tensor, "int | None", int]]
"""Tensors by ``id``, each with its bytes and its buffer."""


class Accesses:
    """The accesses of the operators of one graph."""

    def __init__(self) -> None:
        self._order: dict[torch.fx.Node, int] = {}
        self._held: dict[torch.fx.Node, _Tensors] = {}

    def of(self, node: torch.fx.Node) -> Moved:
        """Return the bytes that ``node`` reads and writes by itself; unknown for indexing that is not by ATen
        operators."""
        name = operator_kinds.base_name(node.target)
        if operator_kinds.is_own(node.target):
            return None, None
        if windows.overload(node.target, name) is not None:
            return self.moved(node, in_place=False)
        if not isinstance(node.target, torch._ops.OpOverload):
            return (None, None) if in_part(node.target) or name in PART_WRITES else self._plain(node)
        if name == "copy_" and self._written_already(node):
            return 0, 0
        if name in PART_WRITES:
            if not self._in_place(node):
                return self._plain(node)
            if self._written_already(node):
                return 0, 0
            (part,) = values.tensors(_value(node.args[1]))
            return fx_values.bytes_of(part), product(elements(part.shape), part.dtype.itemsize)
        if name in SCATTERS:
            return self.moved(node, in_place=self._in_place(node))
        if in_part(node.target):
            return self.moved(node, in_place=name.endswith("_"))
        return self._plain(node)

    def moved(self, node: torch.fx.Node, in_place: bool, bias: bool = True) -> Moved:
        """Return the bytes of an operator, given whether it writes into its input and whether it reads its bias."""
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), _value)
        target = windows.overload(node.target, operator_kinds.base_name(node.target)) or node.target
        ignored = {} if bias else {"bias": None}
        return moved(target, args, {**kwargs, **ignored}, _value(node), in_place)

    def _plain(self, node: torch.fx.Node) -> Moved:
        """Return the bytes of each distinct input once, for views of one buffer at most the buffer's, and of each
        output once."""
        reads: int | None = 0
        taken: _Tensors = {}
        for source in node._input_nodes:
            taken |= self._of(source)
        if len({buffer for _, _, buffer in taken.values()}) < len(taken):
            tensors = [tensor for tensor, _, _ in taken.values()]
            reads = _capped(tensors, {key: size for key, (_, size, _) in taken.items()})
        else:
            for _, size, _ in taken.values():
                reads = None if reads is None or size is None else reads + size
        return reads, total([size for _, size, _ in self._of(node).values()])

    def _of(self, node: torch.fx.Node) -> _Tensors:
        """Return the tensors of a node, cached since most nodes have several readers."""
        if node not in self._held:
            tensors = values.tensors(_value(node))
            self._held[node] = {id(t): (t, fx_values.bytes_of(t), _buffer(t)) for t in tensors}
        return self._held[node]

    def _written_already(self, node: torch.fx.Node) -> bool:
        """Return True if an in-place variant of the operator that computes a value could write it to the copy's
        destination: it reads the destination, or no tensor at all, and the value is no output of the graph."""
        root = _root(node.args[1])
        if root is None or root.op != "call_function":
            return False
        name = operator_kinds.base_name(root.target)
        if name in SCATTERS or name in PART_WRITES:
            return _memory(root) is _memory(node.args[0])
        if operator_kinds.is_own(root.target):
            return True  # a functional variant of a write into its argument
        if operator_kinds.kind_of(root.target) not in ("pointwise", "random", "mutation"):
            return False
        seen = any(user.op == "output" for alias in _aliases(root) for user in alias.users)
        operands = _operands(root)
        return not seen and (not operands or any(_is_place(operand, node) for operand in operands))

    def _in_place(self, node: torch.fx.Node) -> bool:
        """Return True if eager PyTorch needs no copy: the result is written back to an input, or the old value is not
        used again."""
        root = _root(node.args[0])
        if root is None or operator_kinds.base_name(node.target) == "embedding_dense_backward":
            return False
        if root.op != "call_function":
            return _goes_back(node, root)
        order = self._ordered(node.graph)
        return all(
            order[user] <= order[node]
            or user in aliases
            or (user in node.users and _name(user) in PART_WRITES)
            for aliases in [_aliases(root)]
            for alias in aliases
            for user in alias.users
        )

    def _ordered(self, graph: torch.fx.Graph) -> dict[torch.fx.Node, int]:
        if not self._order:
            self._order = {node: i for i, node in enumerate(graph.nodes)}
        return self._order


def in_part(target: Any) -> bool:
    """Return True if an operator reads or writes part of an argument, by an index or a computed position."""
    name = operator_kinds.base_name(target)
    return name.removesuffix("_") in SCATTERS or operand_reads.in_part(name, target)


def moved(target: Any, args: Any, kwargs: Any, out: Any, in_place: bool = False) -> Moved:
    """Return the bytes that a call of an ATen operator, with real or fake tensors, reads and writes."""
    if operator_kinds.is_own(target):
        return None, None
    name = operator_kinds.base_name(target)
    bare = name if name in SCATTERS else name.removesuffix("_")
    named = _named(target, args, kwargs)
    if name == "copy_" and _same_view(named["self"], named["src"]):
        return 0, 0  # torch skips it: ``x[0] += 1`` copies the changed row onto itself
    results = _distinct(values.tensors(_computed_results(name, named, out)))
    limits = operand_reads.of_call(name, target, named, results)
    places = _places(bare, named) if bare in SCATTERS else None
    if places is not None:
        limits |= {"src": places, **({"self": 0} if in_place else {})}
    given, taken = _taken(named, limits)
    if places is None:
        part = operand_reads.written(name, named)
        results += _changed(target, named, results)
        writes = total(fx_values.bytes_of(t) for t in results)
        if part is not None and writes is not None:
            writes = min(writes, part * results[0].dtype.itemsize)
        return _capped(given, taken), writes
    base = named["self"] if "self" in named else results[0]
    whole = fx_values.bytes_of(base)
    placed = None if whole is None else min(places * base.dtype.itemsize, whole)
    adds = bare in ACCUMULATES or named.get("accumulate") is True or named.get("reduce") is not None
    again = placed if adds else 0
    kept = 0 if in_place else total(fx_values.bytes_of(t) for t in results)
    return total((_capped(given, taken), again)), total((kept, placed))


def _computed_results(name: str, named: dict[str, Any], out: Any) -> Any:
    """Return the results that a call computes. Torch's meta function of a batch norm's backward returns an input
    gradient even if it is not requested."""
    if name not in ("native_batch_norm_backward", "batch_norm_backward") or named["output_mask"][0]:
        return out
    return out[1:]


def copied(target: Any, args: Any, kwargs: Any) -> int:
    """Return the bytes that a scatter into a new tensor moves to copy the old one; 0 for other operators."""
    name = operator_kinds.base_name(target)
    base = _named(target, args, kwargs).get("self") if name in SCATTERS else None
    whole = fx_values.bytes_of(base) if isinstance(base, torch.Tensor) and name != "_index_put_impl_" else 0
    return 2 * (whole or 0)


def _taken(
    named: dict[str, Any], limits: dict[str, int | None]
) -> tuple[list[torch.Tensor], dict[int, int | None]]:
    """Return the tensors of a call, and the bytes read of each by ``id``, since one may be several arguments."""
    given: list[torch.Tensor] = []
    taken: dict[int, int | None] = {}
    for argument, value in named.items():
        for tensor in values.tensors(value):
            size = fx_values.bytes_of(tensor)
            if argument in limits and size is not None:
                limit = limits[argument]
                size = None if limit is None else min(size, limit * tensor.dtype.itemsize)
            other = taken.get(id(tensor), 0)
            taken[id(tensor)] = None if size is None or other is None else max(size, other)
            given.append(tensor)
    return given, taken


def _changed(target: Any, named: dict[str, Any], results: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors that a call writes but does not return: lists (``_foreach_mul_``), running statistics."""
    schema = getattr(target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    tensors = _distinct(t for name in written for t in values.tensors(named.get(name)))
    returned = {_buffer(t) for t in results}
    return [t for t in tensors if _buffer(t) not in returned]


def _places(name: str, named: dict[str, Any]) -> int | None:
    """Return the number of elements that a scatter writes; for a mask all, unless the number of values tells."""
    what = SCATTERS[name]
    if what != "indices":
        given = named.get(what)
        return elements(given.shape) if isinstance(given, torch.Tensor) else None
    base = named["self"]
    if name == "index_fill":
        rows = base.shape[named["dim"]] if base.dim() else 1
        return _ratio(elements(named["index"].shape), elements(base.shape), fx_values.hint(rows))
    indices = list(named["indices"])
    given = [i for i in indices if isinstance(i, torch.Tensor)]
    if any(i.dtype in (torch.bool, torch.uint8) for i in given):
        return _masked(base, given, named["values"])
    picked = elements(_broadcast([i.shape for i in given]))
    kept = [n for i, n in enumerate(base.shape) if i >= len(indices) or indices[i] is None]
    return product(picked, elements(kept))


def _masked(base: torch.Tensor, masks: list[torch.Tensor], placed: torch.Tensor) -> int | None:
    whole = elements(base.shape)
    rest = base.dim() - sum(i.dim() if i.dtype in (torch.bool, torch.uint8) else 1 for i in masks)
    if len(masks) == 1 and placed.dim() == 1 + rest and fx_values.hint(placed.shape[0]) != 1:
        return _ratio(elements(placed.shape[:1]), whole, elements(masks[0].shape))
    return whole


def _broadcast(shapes: list[Any]) -> list[Any]:
    sizes: list[Any] = [1] * max((len(s) for s in shapes), default=0)
    for shape in shapes:
        for i, size in enumerate(reversed(shape), 1):
            sizes[-i] = size if fx_values.hint(sizes[-i]) == 1 else sizes[-i]
    return sizes


def _named(target: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    schema = getattr(target, "_schema", None)
    names = [a.name for a in schema.arguments] if schema is not None else []
    named = {**dict(zip(names, args)), **(kwargs or {})}
    if "input" in named and "self" in names:
        named["self"] = named.pop("input")  # the name in torch's functions
    return named


def _capped(tensors: list[torch.Tensor], taken: dict[int, int | None]) -> int | None:
    """Return the sum of the bytes read of each tensor, for views of one buffer at most the buffer's."""
    distinct = _distinct(tensors)
    if len(distinct) < 2:
        return total([taken[id(t)] for t in distinct])
    buffers: dict[int, list[torch.Tensor]] = {}
    for tensor in distinct:
        buffers.setdefault(_buffer(tensor), []).append(tensor)
    read_bytes: int | None = 0
    for group in buffers.values():
        part = total([taken[id(t)] for t in group])
        if part is not None and len(group) > 1:
            capacity = fx_values.hint(group[0].untyped_storage().nbytes())
            part = part if capacity is None else min(part, capacity)
        read_bytes = total((read_bytes, part))
    return read_bytes


def _buffer(tensor: torch.Tensor) -> int:
    """Return a number that identifies a tensor's buffer; for a tensor without storage, its ``id``."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def _value(node: torch.fx.Node) -> Any:
    return fx_values.made(node)


def _name(node: torch.fx.Node) -> str:
    return operator_kinds.base_name(node.target) if node.op == "call_function" else ""


def _is_view(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and operator_kinds.kind_of(node.target) == "view"


def _root(value: Any) -> torch.fx.Node | None:
    """Return the base of a node that is a view, another node itself; None for other values."""
    if not isinstance(value, torch.fx.Node):
        return None
    while _is_view(value) and value.args and isinstance(value.args[0], torch.fx.Node):
        value = value.args[0]
    return value


def _memory(value: Any) -> torch.fx.Node | None:
    """Return the node whose memory a tensor has, if every write to part of a tensor is in place."""
    root = _root(value)
    while root is not None and _name(root) in (*SCATTERS, *PART_WRITES) and root.args:
        inner = _root(root.args[0])
        if inner is None or _name(root) == "embedding_dense_backward":
            break
        root = inner
    return root


def _operands(root: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the tensors that an operator reads to compute a value. Nodes of one decomposition count as one operator;
    copies, fills and random operators count as reading none."""
    first = root.meta.get("original_aten")
    if first is not None and operator_kinds.base_name(first).removesuffix("_") in ("copy", "fill", "zero"):
        return []
    operands: list[torch.fx.Node] = []
    pending = [root]
    for node in pending:
        for operand in node._input_nodes:
            source = _root(operand)
            assert source is not None
            inside = first is not None and source.meta.get("original_aten") is first
            same = inside and source.meta.get("stack_trace") == root.meta.get("stack_trace")
            if same and source.op == "call_function":
                pending += [source] * (source not in pending)
            elif source.op != "call_function" or operator_kinds.kind_of(source.target) != "random":
                operands.append(operand)
    return operands


def _is_place(operand: torch.fx.Node, write: torch.fx.Node) -> bool:
    """Return True if an operand is the tensor, or the part of one, that a write replaces."""
    target = write.args[0]
    if _memory(operand) is not _memory(target) or not isinstance(target, torch.fx.Node):
        return False
    if _name(write) != "copy_":
        view = _name(write).removesuffix("_scatter")
        return _name(operand) == view and operand.args[1:] == write.args[2:]
    places = [values.tensors(_value(node)) for node in (operand, target)]
    shapes = [[_place(t) for t in place] for place in places]
    return shapes[0] == shapes[1]


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return True if both are the same elements in the same order with the same dtype."""
    return (
        _buffer(one) == _buffer(other)
        and one.layout == other.layout == torch.strided
        and _place(one) == _place(other)
        and (one.dtype, one.is_conj(), one.is_neg()) == (other.dtype, other.is_conj(), other.is_neg())
    )


def _aliases(root: torch.fx.Node) -> dict[torch.fx.Node, None]:
    """Return a node and all its views, direct or not."""
    aliases = {root: None}
    pending = [root]
    for alias in pending:
        for user in alias.users:
            if user not in aliases and _is_view(user):
                aliases[user] = None
                pending.append(user)
    return aliases


def _goes_back(node: torch.fx.Node, home: torch.fx.Node) -> bool:
    """Return True if a value, possibly after further writes to parts of it, is finally copied into ``home``."""
    seen = {node}
    pending = [node]
    for value in pending:
        for user in value.users:
            name = _name(user)
            if name == "copy_" and user.args[0] is home and user.args[1] is value:
                return True
            if (name in PART_WRITES or name in SCATTERS or _is_view(user)) and user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _distinct(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return list({id(t): t for t in tensors}.values())


def total(parts: Iterable[int | None]) -> int | None:
    """Return the sum of ``parts``; None if one is unknown."""
    known_total = 0
    for part in parts:
        if part is None:
            return None
        known_total += part
    return known_total


def _ratio(a: int | None, b: int | None, c: int | None) -> int | None:
    numerator = product(a, b)
    return None if numerator is None or not c else numerator // c
