"""Miscompiles: programs with an error planted in torch's own compiler, and one that torch has by itself.

Each patches torch's functions and none of ours. The line that the error is of ends in ``# here``.
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
from torch._inductor import decomposition, lowering
from torch._inductor.codegen import cpp
from torch._inductor.fx_passes import joint_graph, post_grad

aten, prims = torch.ops.aten, torch.ops.prims
Patch = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Miscompile:
    """One error: the patch that plants it, the call, the kind of cause, a part of the operator's name, the function
    that has the lines where that is another one, and options of the compile."""

    patch: Patch
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    kind: str
    operator: str
    place: Callable[..., Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def lines(self) -> set[tuple[str, int]]:
        """The names of the files and the numbers of the lines that the error is of."""
        code = self.place or self.function
        text, first = inspect.getsourcelines(code)
        file = Path(str(inspect.getsourcefile(code))).name
        return {(file, first + i) for i, line in enumerate(text) if line.rstrip().endswith("# here")}


def wrong(function: Any, inputs: Callable[[], tuple[Any, ...]], **options: Any) -> bool:
    """Return True if plain ``torch.compile`` does something else than eager: values, dtypes, writes to inputs, shared
    memory or gradients."""
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
    """Patch the C++ of an operator, for single numbers and for vectors."""

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


def running(x: torch.Tensor) -> torch.Tensor:
    y = x * 0.5
    z = y.cumsum(0)  # here
    return z.exp()


def _multiplied_less(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.target is aten.mul.Tensor and node.args[1] == 3:
            node.args = (node.args[0], 2)


def _pass(module: Any, name: str) -> Patch:
    """Let a pass of torch's own change a product as well."""
    real = getattr(module, name)

    def changed(graph: Any, *args: Any, **kwargs: Any) -> Any:
        _multiplied_less(getattr(graph, "graph", graph))
        return real(graph, *args, **kwargs)

    return lambda: mock.patch.object(module, name, changed)


def _fused(name: str) -> Patch:
    """Let two loops that are fused compute another operator."""
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


def reduced(x: torch.Tensor) -> torch.Tensor:
    y = x.sum(1, keepdim=True)  # here
    return torch.cos(y / 3)  # here


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
    "sum over another dimension's size": Miscompile(
        _lowered(aten.sum.dim_IntList, lambda real: lambda *given, **by_name: lowering.mul(real(*given, **by_name), 2)),
        totals, lambda: (_rand(16, 8),), "lowering", "aten.sum",
    ),
    "scan": Miscompile(
        _lowered(aten.cumsum.default, lambda real: lambda x, *more, **given: real(lowering.mul(x, 2), *more, **given)),
        running, lambda: (_rand(16, 8),), "lowering", "aten.cumsum",
    ),
    "fused loops": Miscompile(_fused("cos"), reduced, lambda: (_rand(64, 8),), "fusion", "aten.cos"),
}  # fmt: skip
