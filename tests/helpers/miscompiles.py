"""Miscompiles: programs with an error planted in torch's own compiler, and one real miscompile.

Each patches torch's functions and none of ours. The line that causes the error ends in ``# here``.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from normalisation import normalised
from torch._functorch import partitioners
from torch._inductor import decomposition, lowering
from torch._inductor.codegen import cpp
from torch._inductor.fx_passes import joint_graph, post_grad

aten, prims = torch.ops.aten, torch.ops.prims
Patch = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Miscompile:
    """One error: the patch that plants it, the call, the kind of cause, a part of the operator's name, the function
    that contains the lines if it is another one, and options of the compile."""

    patch: Patch
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    kind: str
    operator: str
    place: Callable[..., Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def lines(self) -> set[tuple[str, int]]:
        """Return the file names and line numbers that cause the error."""
        code = self.place or self.function
        text, first = inspect.getsourcelines(code)
        file = Path(str(inspect.getsourcefile(code))).name
        return {(file, first + i) for i, line in enumerate(text) if line.rstrip().endswith("# here")}


def wrong(function: Any, inputs: Callable[[], tuple[Any, ...]], **options: Any) -> bool:
    """Return True if plain ``torch.compile`` differs from eager in values, dtypes, writes to inputs, shared memory or
    gradients."""
    torch._dynamo.reset()
    outcomes = []
    with torch._inductor.config.patch(force_disable_caches=True):
        for call in (function, torch.compile(function, **options)):
            given = inputs()
            result = call(*given)
            if result.requires_grad:
                weights = torch.arange(1.0, result.numel() + 1).reshape(result.shape)
                (result * weights).sum().backward()
            shared = [result.data_ptr() == one.data_ptr() for one in given]
            outcomes.append((result, given, [one.grad for one in given], shared))
    torch._dynamo.reset()
    try:
        torch.testing.assert_close(outcomes[1], outcomes[0], equal_nan=True)
    except AssertionError:
        return True
    return False


def _rand(*shape: int, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.rand(*shape, generator=generator).add(0.25).requires_grad_(grad)


def _both(name: str, scalar: Any, vector: Any) -> Patch:
    """Patch the C++ of an operator, for scalars and for vectors."""
    scalar.__name__ = vector.__name__ = name  # the key by which the vector version finds the scalar one

    @contextlib.contextmanager
    def patched() -> Iterator[None]:
        with (
            mock.patch.object(cpp.CppOverrides, name, staticmethod(scalar)),
            mock.patch.object(cpp.CppVecOverrides, name, staticmethod(vector)),
        ):
            yield

    return patched


def _decomposed(operator: Any, function: Callable[..., Any]) -> Patch:
    def patched() -> contextlib.AbstractContextManager[Any]:
        decomposition.fast_random_decomps.cache_clear()
        stack = contextlib.ExitStack()
        stack.callback(decomposition.fast_random_decomps.cache_clear)
        stack.enter_context(mock.patch.dict(decomposition.decompositions, {operator: function}))
        return stack

    return patched


def _lowered(operator: Any, wrap: Callable[[Any], Any]) -> Patch:
    def patched() -> contextlib.AbstractContextManager[Any]:
        return mock.patch.dict(lowering.lowerings, {operator: wrap(lowering.lowerings[operator])})

    return patched


def attend(q: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(q @ q.transpose(-1, -2) / 8, 0)  # here
    return torch.tanh(weights @ q).sum(-1)  # here


def wave(x: torch.Tensor) -> torch.Tensor:
    y = x.exp() + 1
    z = torch.sin(y)  # here
    return z * y + x


def turned(x: torch.Tensor) -> torch.Tensor:
    y = x.cos()
    z = y.flip(0)  # here
    return z + y


def largest(x: torch.Tensor) -> torch.Tensor:
    y = x.relu()
    z = torch.maximum(y, x.cos())  # here
    return z.sum(0)


def gate(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.nn.functional.silu(y)  # here
    return z + x


def scaled(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    z = y * 3  # here
    return z.cos()


def squashed(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.tanh(y)  # here
    return z.sin()


def totals(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    z = y.sum(1)  # here
    return z / y.shape[1]


def slightly_larger_sums() -> contextlib.AbstractContextManager[Any]:
    """Make each sum larger by one part in a thousand."""
    return _lowered(
        aten.sum.dim_IntList, lambda real: lambda *given, **named: lowering.mul(real(*given, **named), 1.001)
    )()


def running(x: torch.Tensor) -> torch.Tensor:
    y = x * 0.5
    z = y.cumsum(0)  # here
    return z.exp()


def _multiplied_less(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.target is aten.mul.Tensor and node.args[1] == 3:
            node.args = (node.args[0], 2)


def _pass(module: Any, name: str) -> Patch:
    """Make one of torch's own passes change a product as well."""
    real = getattr(module, name)

    def changed(graph: Any, *args: Any, **kwargs: Any) -> Any:
        _multiplied_less(getattr(graph, "graph", graph))
        return real(graph, *args, **kwargs)

    return lambda: mock.patch.object(module, name, changed)


def _fused(name: str) -> Patch:
    """Make two fused loops compute another operator."""
    from torch._inductor.scheduler import Scheduler

    fuse, fuse_all = Scheduler.fuse_two_nodes, Scheduler.fuse_nodes
    real = (cpp.CppOverrides.__dict__[name].__func__, cpp.CppVecOverrides.__dict__[name].__func__)

    @contextlib.contextmanager
    def patched() -> Iterator[None]:
        together: list[Any] = []

        def noted(scheduler: Any, *nodes: Any, **kwargs: Any) -> Any:
            together.append(nodes)
            return fuse(scheduler, *nodes, **kwargs)

        def begun(scheduler: Any, *nodes: Any, **kwargs: Any) -> Any:
            together.clear()
            return fuse_all(scheduler, *nodes, **kwargs)

        def wrong(which: int) -> Any:
            return lambda x: f"{real[which](x)} * {real[which](x)}" if together else real[which](x)

        fusions = mock.patch.multiple(Scheduler, fuse_two_nodes=noted, fuse_nodes=begun)
        with fusions, _both(name, wrong(0), wrong(1))():
            yield

    return patched


def trained(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x @ w).sin()
    z = y * 3  # here
    return z.exp()


def _split() -> contextlib.AbstractContextManager[Any]:
    """Make the partitioner change a product where it merges equal expressions."""
    real = partitioners.fx_graph_cse

    def changed(graph: torch.fx.Graph) -> torch.fx.Graph:
        merged = real(graph)
        _multiplied_less(merged)
        return merged

    return mock.patch.object(partitioners, "fx_graph_cse", changed)


def reduced(x: torch.Tensor) -> torch.Tensor:
    y = x.sum(1, keepdim=True)  # here
    return torch.cos(y / 3)  # here


def greatest(x: torch.Tensor) -> torch.Tensor:
    y = x - 2
    z = y.amax(1)  # here
    return z.exp()


def _init(reduction: str, value: str) -> Patch:
    """Make a reduction begin with another number."""
    real = cpp.reduction_init

    def changed(kind: str, dtype: torch.dtype) -> Any:
        return value if kind == reduction else real(kind, dtype)

    return lambda: mock.patch.object(cpp, "reduction_init", changed)


def odd_size(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    z = y.exp()  # here
    return z @ w


def _short_tail() -> contextlib.AbstractContextManager[Any]:
    """Make the masked tail of a vector loop store one element less."""
    real = cpp.CppVecKernel._get_store_line

    def changed(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        size = kernel.tail_size
        if size is None:
            return real(kernel, *args, **kwargs)
        with mock.patch.object(kernel, "num_elems", size - 1):
            return real(kernel, *args, **kwargs)

    return mock.patch.object(cpp.CppVecKernel, "_get_store_line", changed)


def added_up(x: torch.Tensor) -> torch.Tensor:
    y = x * 100
    z = y.sum(0)  # here
    return z / 7


def _of_integers(real: Any) -> Any:
    def summed(x: Any, *args: Any, **kwargs: Any) -> Any:
        return real(lowering.lowerings[aten.trunc.default](x), *args, **kwargs)

    return summed


def nan_beside(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x.sin()
    w = torch.maximum(y, z)  # here
    return w + 1


def window(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    z = y[2:10]  # here
    return z @ z.t()


def _one_later(real: Any) -> Any:
    def sliced(x: Any, dim: int = 0, start: Any = 0, end: Any = 2**63 - 1, *args: Any, **kwargs: Any) -> Any:
        return real(x, dim, start - 1, end - 1, *args, **kwargs) if start else real(x, dim, start, end)

    return sliced


def of_any_length(x: torch.Tensor) -> torch.Tensor:
    y = x.cos()
    z = y.mean(0)  # here
    return z + 1


def _if_symbolic(real: Any) -> Any:
    def averaged(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = real(x, *args, **kwargs)
        symbolic = any(not isinstance(size, int) and not size.is_number for size in x.get_size())
        return lowering.mul(result, 2) if symbolic else result

    return averaged


def on_one_line(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(x).abs().log1p() * 3  # here


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(normalised(x)))
        return x + self.second(y)


BLOCK = Block().requires_grad_(False)


def rectified(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.relu(y)  # here
    return z.sin()


def taken_twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = x @ w
    second = x @ (w + 1)  # here
    return first - second


def _reused_while_live() -> contextlib.AbstractContextManager[Any]:
    """Make every allocation offer its buffer to the next one of its size."""
    from torch._inductor.codegen import wrapper

    real = wrapper.AllocateLine.plan

    def planned(line: Any, state: Any) -> Any:
        outcome = real(line, state)
        if outcome is line:
            key = wrapper.buffer_reuse_key(line.node)
            free = wrapper.FreeIfNotReusedLine(line.wrapper, line.node)
            free.scheduler_node_index = line.scheduler_node_index
            state.push(key, free)
        return outcome

    code = wrapper.PythonWrapperCodegen
    reuse = code.make_buffer_reuse
    stack = contextlib.ExitStack()
    stack.enter_context(
        mock.patch.multiple(wrapper.AllocateLine, plan=planned, should_reuse_buffer=lambda *given: True)
    )
    stack.enter_context(
        mock.patch.object(
            code, "make_buffer_reuse", lambda self, old, new, delete_old: reuse(self, old, new, False)
        )
    )
    return stack


MISCOMPILES: dict[str, Miscompile] = {
    "attention pattern that ignores dim": Miscompile(
        contextlib.nullcontext, attend, lambda: (_rand(2, 4, 16, 64) * 4,), "pass", "aten.bmm"
    ),
    "code of one operator": Miscompile(
        _both("sin", lambda x: f"std::cos({x})", lambda x: f"{x}.cos()"), wave, lambda: (_rand(64),),
        "lowering", "aten.sin",
    ),
    "index of a flip": Miscompile(
        _lowered(prims.rev.default, lambda real: lambda x, dims: real(x, [])), turned, lambda: (_rand(16, 8),),
        "lowering", "prims.rev",
    ),
    "maximum that is a minimum": Miscompile(
        _lowered(aten.maximum.default, lambda real: lowering.lowerings[aten.minimum.default]), largest,
        lambda: (_rand(16, 8),), "lowering", "aten.maximum",
    ),
    "decomposition": Miscompile(
        _decomposed(aten.silu.default, lambda x: x * torch.sigmoid(x * 1.5)), gate, lambda: (_rand(64),),
        "decomposition", "aten.silu",
    ),
    "decomposition of a derivative": Miscompile(
        _decomposed(aten.tanh_backward.default, lambda g, y: g * (1 - y)), squashed, lambda: (_rand(64, grad=True),),
        "decomposition", "aten.tanh_backward",
    ),
    "pass over the joint graph": Miscompile(
        _pass(joint_graph, "constant_fold_uniform_value"), scaled, lambda: (_rand(64),), "pass", "",
    ),
    "pass after the split": Miscompile(
        _pass(post_grad, "remove_assert_ops"), scaled, lambda: (_rand(64),), "pass", "",
    ),
    "expressions that the split merges": Miscompile(
        _split, trained, lambda: (_rand(8, 8, grad=True), _rand(8, 8)), "pass", "aten.mul",
    ),
    "sum over another dimension's size": Miscompile(
        _lowered(aten.sum.dim_IntList, lambda real: lambda *given, **by_name: lowering.mul(real(*given, **by_name), 2)),
        totals, lambda: (_rand(16, 8),), "lowering", "aten.sum",
    ),
    "scan": Miscompile(
        _lowered(aten.cumsum.default, lambda real: lambda x, *more, **given: real(lowering.mul(x, 2), *more, **given)),
        running, lambda: (_rand(16, 8),), "lowering", "aten.cumsum",
    ),
    "number that a reduction begins with": Miscompile(
        _init("max", "0"), greatest, lambda: (_rand(16, 8),), "lowering", "aten.amax",
    ),
    "tail of a vector loop": Miscompile(
        _short_tail, odd_size, lambda: (_rand(5, 5), _rand(5, 5)), "lowering", "aten.exp",
    ),
    "dtype of an accumulator": Miscompile(
        _lowered(aten.sum.dim_IntList, _of_integers), added_up, lambda: (_rand(64, 8),), "lowering", "aten.sum",
    ),
    "NaN of a maximum": Miscompile(
        _lowered(aten.maximum.default, lambda real: lambda x, y: lowering.where(lowering.gt(x, y), x, y)), nan_beside,
        lambda: (_rand(16), torch.full((16,), float("nan"))), "lowering", "aten.maximum",
    ),
    "first index of a slice": Miscompile(
        _lowered(aten.slice.Tensor, _one_later), window, lambda: (_rand(16, 8),), "lowering", "aten.slice",
    ),
    "symbolic size": Miscompile(
        _lowered(aten.mean.dim, _if_symbolic), of_any_length, lambda: (_rand(16, 8),), "lowering", "aten.mean",
        options={"dynamic": True},
    ),
    "one of several operators on a line": Miscompile(
        _both("log1p", lambda x: f"std::log({x})", lambda x: f"{x}.log()"), on_one_line, lambda: (_rand(64),),
        "lowering", "aten.log1p",
    ),
    "module that calls another file": Miscompile(
        _both("rsqrt", lambda x: f"1 / {x}", lambda x: f"{x}.reciprocal()"), BLOCK, lambda: (_rand(4, 8) * 3,),
        "lowering", "aten.rsqrt", place=normalised,
    ),
    "derivative where an input is zero": Miscompile(
        _lowered(aten.le.Scalar, lambda real: lowering.lowerings[aten.lt.Scalar]), rectified,
        lambda: (torch.tensor([-1.0, 0.0, 2.0, 0.0]).requires_grad_(),), "lowering", "aten.le",
    ),
    "buffer that is reused too early": Miscompile(
        _reused_while_live, taken_twice, lambda: (_rand(4, 4), _rand(4, 4)), "memory reuse", "aten.add",
    ),
    "fused loops": Miscompile(_fused("cos"), reduced, lambda: (_rand(64, 8),), "fusion", "aten.cos"),
}  # fmt: skip
