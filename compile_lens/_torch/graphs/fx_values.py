"""Arguments, results and sizes of torch.fx nodes as plain data."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Iterable
from typing import Any, cast

import torch
import torch.fx

from ...record.graph import Literal, Ref, Tensor, Value
from ...record.messages import without_object_addresses
from ..ground import values
from ..ground.quantized import quantized_dtype

_MAX_TEXT = 400


ref = functools.lru_cache(maxsize=8192)(Ref)
"""Return a reference to a node, cached since most nodes are read in several places and stages."""


@functools.lru_cache(maxsize=4096)
def target_text(target: Any) -> str:
    """Return the name of a node's target: ``aten.sin.default``, ``torch.sin``, ``operator.pow``."""
    if isinstance(target, str):
        return target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
        return str(target)
    try:
        name = torch.fx.node._get_qualified_name(target)
    except RuntimeError:  # a callable without a module
        name = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__name__)}"
    name = name.replace("_operator.", "operator.")
    return re.sub(r"^torch\._C\._nn\.", "torch.nn.functional.", name)


def value(arg: Any) -> Value:
    """Return an argument of a node as plain data."""
    kind = type(arg)
    if kind is torch.fx.Node:
        return ref(arg.name)
    if arg is None or kind is int or kind is bool or isinstance(arg, str):
        return cast(Value, arg)
    if kind is float:
        return arg if math.isfinite(arg) else Literal(f"float('{arg}')")
    if isinstance(arg, (tuple, list)):
        return tuple(value(a) for a in arg)
    if isinstance(arg, dict):
        return tuple((str(k), value(v)) for k, v in arg.items())
    if isinstance(arg, slice):
        return (Literal("slice"), value(arg.start), value(arg.stop), value(arg.step))
    if isinstance(arg, torch.Tensor):
        return Literal(f"tensor of {str(arg.dtype).removeprefix('torch.')}{list(arg.shape)}")
    return Literal(_clip(_stable(arg)))


def _stable(arg: Any) -> str:
    if isinstance(arg, torch._ops.OpOverload):
        return target_text(arg)
    if callable(arg) and hasattr(arg, "__name__"):
        return str(arg.__name__)
    return without_object_addresses(str(arg))


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def tensors(node: torch.fx.Node) -> tuple[Tensor, ...]:
    """Return the tensors of a node, from its fake value."""
    collected: list[Tensor] = []
    _collect(made(node), collected)
    dtype = quantized_dtype(node)
    if dtype is not None:
        name = str(dtype).removeprefix("torch.")
        return tuple(
            dataclasses.replace(
                t, dtype=name, nbytes=None if t.nbytes is None else t.nbytes // 4 * dtype.itemsize
            )
            for t in collected
        )
    return tuple(collected)


def made(node: torch.fx.Node) -> Any:
    """Return the fake value of a node.

    Constants without one, and weights packed by oneDNN, whose fake strides are wrong, are returned themselves."""
    meta = node.meta
    if node.op == "get_attr":
        constant = getattr(node.graph.owning_module, str(node.target), None)
        unknown = "val" not in meta and "example_value" not in meta
        if isinstance(constant, torch.Tensor) and (unknown or constant.layout == torch._mkldnn):
            return constant
    return meta["val"] if "val" in meta else meta.get("example_value", meta.get(MADE))


def output(graph: torch.fx.Graph) -> torch.fx.Node | None:
    """Return the node that returns a graph's results, or None."""
    return next((node for node in reversed(graph.nodes) if node.op == "output"), None)


def results(graph: torch.fx.Graph) -> list[Any]:
    """Return the results of a graph in order."""
    end = output(graph)
    value = end.args[0] if end is not None and end.args else ()
    return list(value) if isinstance(value, (tuple, list)) else [value]


MADE = "compile_lens_made"
"""Key in ``node.meta`` of a node's value, if the compiler has not set one yet."""

_RUNS = {"run_and_save_rng_state": 0, "run_with_rng_state": 1, "graphsafe_run_with_rng_state": 0}
"""Higher-order operators that run one operator, the argument at this position, and handle the random generator."""


def ran(node: torch.fx.Node) -> Any:
    """Return the operator that such a node runs; None for other nodes."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    place = _RUNS.get(target_text(node.target))
    return node.args[place] if place is not None and len(node.args) > place else None


def _collect(val: Any, collected: list[Tensor]) -> None:
    if isinstance(val, torch.Tensor):
        collected.append(tensor(val))
    elif isinstance(val, (tuple, list)):
        for item in val:
            _collect(item, collected)


def tensor(val: torch.Tensor) -> Tensor:
    """Return a tensor's record, reading sizes without installing guards on symbols."""
    strided = val.layout == torch.strided and not isinstance(val, torch.nn.parameter.UninitializedTensorMixin)
    shape = tuple(val.shape)
    stride = val.stride() if strided else None
    facts = val.dtype, val.device, bool(val.requires_grad)
    make = _fixed if _PLAIN.issuperset(map(type, (*shape, *(stride or ())))) else _tensor
    record = make(shape, stride, *facts)
    return record if val.layout in values.DENSE_LAYOUTS else dataclasses.replace(record, nbytes=None)


def _tensor(
    shape: tuple[Any, ...],
    stride: tuple[Any, ...] | None,
    dtype: torch.dtype,
    device: torch.device,
    requires_grad: bool,
) -> Tensor:
    return Tensor(
        dtype=str(dtype).removeprefix("torch."),
        shape=tuple(size(s) for s in shape),
        stride=tuple(size(s) for s in stride) if stride is not None else None,
        device=str(device),
        nbytes=nbytes(shape, stride, dtype.itemsize),
        requires_grad=requires_grad,
    )


_PLAIN = frozenset((int,))


_fixed = functools.lru_cache(maxsize=4096)(_tensor)
"""``_tensor``, cached since most tensors of a graph are alike, and each is in every stage."""


def size(number: Any) -> int | str:
    """Return a size as an int, or as the text of its symbolic expression."""
    if isinstance(number, torch.SymInt):
        known = number.node.maybe_as_int()
        return int(known) if known is not None else str(number.node.expr)
    return int(number)


def hint(number: Any) -> int | None:
    """Return the example value of a size without installing a guard; None if it has none."""
    if not isinstance(number, torch.SymInt):
        return int(number)
    known = number.node.maybe_as_int()
    if known is not None:
        return int(known)
    seen_size = getattr(number.node, "_hint", None)
    if isinstance(seen_size, int):
        return seen_size
    return None


def bytes_of(val: torch.Tensor) -> int | None:
    """Return the bytes of a tensor's distinct elements; None if a size is unknown, as that of a sparse tensor is."""
    if val.layout not in values.DENSE_LAYOUTS:
        return None
    return nbytes(val.shape, val.stride() if val.layout == torch.strided else None, val.dtype.itemsize)


def nbytes(shape: Iterable[Any], stride: Iterable[Any] | None, itemsize: int) -> int | None:
    """Return the bytes of the distinct elements of a tensor; None if a size is unknown."""
    count = 1
    dimensions: list[tuple[int, int]] | None = []
    for length, step in zip(shape, stride if stride is not None else shape):
        known = length if type(length) is int else hint(length)
        if known is None:
            return None
        if stride is None:
            count *= known
            continue
        far = step if type(step) is int else hint(step)
        if known > 0 and far == 0:
            continue  # the elements of an expanded dimension are stored once
        count *= known
        if far is None:
            dimensions = None
        elif dimensions is not None and known > 1:
            dimensions.append((far, known))
    if dimensions and count:
        dimensions.sort()
        count = _distinct(dimensions, count)
    return count * itemsize


_MAX_OFFSETS = 1 << 24


def _distinct(dimensions: list[tuple[int, int]], total: int) -> int:
    """Return the number of distinct element offsets, given strides and lengths in order of strides; windows may
    overlap."""
    reach = 0
    for step, length in dimensions:
        if step <= reach:
            break
        reach += step * (length - 1)
    else:
        return total
    unit = math.gcd(*(step for step, _ in dimensions))
    reach = sum(step // unit * (length - 1) for step, length in dimensions)
    if reach > _MAX_OFFSETS:
        return min(total, reach + 1)
    places = 1
    for step, length in dimensions:
        covered = 1
        while covered < length:
            more = min(covered, length - covered)
            places |= places << step // unit * more
            covered += more
    return places.bit_count()
