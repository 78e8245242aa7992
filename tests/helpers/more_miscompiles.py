"""More programs with an error planted in torch's own compiler, of kinds that ``miscompiles.py`` does not cover."""

from __future__ import annotations

import contextlib
from typing import Any
from unittest import mock

import torch
from miscompiles import Miscompile, _both, _decomposed, _lowered, _rand
from torch._dynamo.output_graph import OutputGraph
from torch._functorch import partitioners
from torch._inductor import lowering
from torch._inductor.fx_passes import joint_graph, post_grad

aten, prims = torch.ops.aten, torch.ops.prims


def chosen(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    mask = x > 0.7
    z = torch.where(mask, x, y)  # here
    return z.exp()


def product(x: torch.Tensor) -> torch.Tensor:
    y = x + 0.5
    z = y.prod(1)  # here
    return z.sin()


def _one_less(real: Any) -> Any:
    def reduced(x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
        size = x.get_size()[dim]
        return real(lowering.lowerings[aten.slice.Tensor](x, dim, 0, size - 1), dim, *args, **kwargs)

    return reduced


def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a, b = x.sin(), y.cos()
    z = torch.cat([a, b], 1)  # here
    return z * 2


def padded(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    z = torch.nn.functional.pad(y, (1, 1), value=2.5)  # here
    return z.sum(0)


def truncated(x: torch.Tensor) -> torch.Tensor:
    y = x * 10
    z = y.to(torch.int64)  # here
    return z * 3


def _rounded(real: Any) -> Any:
    def converted(x: Any, dtype: torch.dtype, *args: Any, **kwargs: Any) -> Any:
        to_integer = not dtype.is_floating_point and x.get_dtype().is_floating_point
        return real(lowering.lowerings[aten.round.default](x) if to_integer else x, dtype, *args, **kwargs)

    return converted


def filled(x: torch.Tensor) -> torch.Tensor:
    y = x.cos()
    z = y * (torch.full((8,), 1.5) * 2)  # here
    return z.sigmoid()


def magnitude(x: torch.Tensor) -> torch.Tensor:
    y = x - 1
    z = y.abs()  # here
    return z.sqrt()


def _noop() -> contextlib.AbstractContextManager[Any]:
    """Make the pass that removes operators without an effect treat an absolute value as one."""
    return mock.patch.dict(post_grad.noop_registry, {aten.abs.default: (lambda *args: True, 0)})


def down(x: torch.Tensor) -> torch.Tensor:
    y = x * 4
    z = torch.floor(y)  # here
    return z + x


def softened(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = torch.log_softmax(y, 0)  # here
    return z * y


def _other_dim(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    shifted = x - x.amax(1 - dim, keepdim=True)
    return shifted - shifted.exp().sum(1 - dim, keepdim=True).log()


def interpolated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = x.exp()
    z = torch.lerp(a, y, 0.25)  # here
    return z.cos()


def _swapped(start: torch.Tensor, end: torch.Tensor, weight: float) -> torch.Tensor:
    return start * weight + end * (1 - weight)


def place_of_largest(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y.argmax(1)  # here
    return z + 1


def picked(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    z = y.gather(1, at)  # here
    return z.sum(1)


def _next_place(real: Any) -> Any:
    def gathered(x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
        return real(
            x, dim, lowering.lowerings[aten.minimum.default](lowering.add(index, 1), 7), *args, **kwargs
        )

    return gathered


def assigned(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[2:4] = v  # here
    return y.sin()


def _one_row_on(real: Any) -> Any:
    def scattered(x: Any, src: Any, dim: int = 0, start: Any = 0, end: Any = 0, step: int = 1) -> Any:
        return real(x, src, dim, start + 1, end + 1, step)

    return scattered


def tripled(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y * 3  # here
    return z.cos()


def _captured() -> contextlib.AbstractContextManager[Any]:
    """Make Dynamo pass on a different product."""
    import operator

    real = OutputGraph.call_user_compiler

    def called(self: Any, gm: torch.fx.GraphModule, example_inputs: Any) -> Any:
        for node in gm.graph.nodes:
            if node.target is operator.mul and node.args[1] == 3:
                node.args = (node.args[0], 2)
        gm.recompile()
        return real(self, gm, example_inputs)

    return mock.patch.object(OutputGraph, "call_user_compiler", called)


def _merged_too_much() -> contextlib.AbstractContextManager[Any]:
    """Make the split merge a square root into an exponential of the same value."""
    real = partitioners.fx_graph_cse

    def merged(graph: torch.fx.Graph) -> torch.fx.Graph:
        result = real(graph)
        for node in list(result.nodes):
            if node.target is aten.sqrt.default:
                (other,) = (n for n in result.nodes if n.target is aten.exp.default)
                node.replace_all_uses_with(other)
                result.erase_node(node)
        return result

    return mock.patch.object(partitioners, "fx_graph_cse", merged)


def both_of_one(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    a = torch.exp(y)  # here
    b = torch.sqrt(y)  # here
    return a * 2 + b * 5


def _folded() -> contextlib.AbstractContextManager[Any]:
    """Make the constant folding pass increase each constant by one."""
    folder = joint_graph.UniformValueConstantFolder
    real = folder.add_node_replacement

    def kept(self: Any, node: torch.fx.Node, tensor: torch.Tensor) -> None:
        real(self, node, tensor + 1 if tensor.is_floating_point() else tensor)

    return mock.patch.object(folder, "add_node_replacement", kept)


MORE: dict[str, Miscompile] = {
    "branches of a choice": Miscompile(
        _lowered(aten.where.self, lambda real: lambda mask, x, y: real(mask, y, x)), chosen,
        lambda: (_rand(16, 8), _rand(16, 8) * 3), "lowering", "aten.where",
    ),
    "range of a reduction": Miscompile(
        _lowered(aten.prod.dim_int, _one_less), product, lambda: (_rand(16, 8),), "lowering", "aten.prod",
    ),
    "order of what is joined": Miscompile(
        _lowered(aten.cat.default, lambda real: lambda inputs, dim=0: real(inputs[::-1], dim)), joined,
        lambda: (_rand(16, 8), _rand(16, 8)), "lowering", "aten.cat",
    ),
    "value of a padding": Miscompile(
        _lowered(aten.constant_pad_nd.default, lambda real: lambda x, padding, fill_value=0: real(x, padding, 0)),
        padded, lambda: (_rand(16, 8),), "lowering", "aten.constant_pad_nd",
    ),
    "conversion to integers": Miscompile(
        _lowered(prims.convert_element_type.default, _rounded), truncated, lambda: (_rand(16, 8),), "lowering",
        "prims.convert_element_type",
    ),
    "constant that is folded": Miscompile(_folded, filled, lambda: (_rand(16, 8),), "pass", ""),
    "operator that is taken for a copy": Miscompile(_noop, magnitude, lambda: (_rand(16, 8),), "pass", ""),
    "rounding of one operator": Miscompile(
        _both("floor", lambda x: f"std::ceil({x})", lambda x: f"{x}.ceil()"), down, lambda: (_rand(64),),
        "lowering", "aten.floor",
    ),
    "dimension of a decomposition": Miscompile(
        _decomposed(aten._log_softmax.default, _other_dim), softened, lambda: (_rand(16, 8),), "decomposition",
        "aten._log_softmax",
    ),
    "ends of a decomposition": Miscompile(
        _decomposed(aten.lerp.Scalar, _swapped), interpolated, lambda: (_rand(16, 8), _rand(16, 8)),
        "decomposition", "aten.lerp",
    ),
    "largest that is the smallest": Miscompile(
        _lowered(aten.argmax.default, lambda real: lowering.lowerings[aten.argmin.default]), place_of_largest,
        lambda: (_rand(16, 8),), "lowering", "aten.argmax",
    ),
    "index of what is picked": Miscompile(
        _lowered(aten.gather.default, _next_place), picked,
        lambda: (_rand(16, 8), torch.arange(48).reshape(16, 3) % 7), "lowering", "aten.gather",
    ),
    "rows that are assigned": Miscompile(
        _lowered(aten.slice_scatter.default, _one_row_on), assigned, lambda: (_rand(8, 8), _rand(2, 8)),
        "lowering", "aten.slice_scatter",
    ),
    "values that the split takes for equal": Miscompile(
        _merged_too_much, both_of_one, lambda: (_rand(8, 8, grad=True), _rand(8, 8)), "pass", "aten.",
    ),
    "graph that Dynamo captured": Miscompile(
        _captured, tripled, lambda: (_rand(64),), "capture by Dynamo", "",
    ),
}  # fmt: skip
