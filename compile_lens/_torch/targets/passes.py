"""Passes of Inductor that compute on the device, or trace autograd there: done on the CPU instead."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from .interfaces import MARK
from .replaced import Places
from .retarget import moved, retargeted

CPU = torch.device("cpu")


def place(places: Places, device: torch.device) -> None:
    """Have them done on the CPU on marked threads."""
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch._inductor.pattern_matcher as pattern_matcher

    fold = joint_graph.constant_fold_uniform_value
    places.attribute(joint_graph, "constant_fold_uniform_value", MARK, _on_cpu(fold, device))
    trace = pattern_matcher.aot_function
    places.attribute(pattern_matcher, "aot_function", MARK, _traced_on_cpu(trace, device))


def _on_cpu(fold: Any, device: torch.device) -> Any:
    """Folding makes constants on their device, to see what they are."""

    def folded(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        with _OnCpu(device):
            return fold(gm, *args, **kwargs)

    return folded


class _OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch is not typed here
    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._type = device.type

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {k: self._place(v) for k, v in (kwargs or {}).items()}
        return func(*(self._place(a) for a in args), **kwargs)

    def _place(self, value: Any) -> Any:
        return CPU if isinstance(value, torch.device) and value.type == self._type else value


def _traced_on_cpu(trace: Any, device: torch.device) -> Any:
    """Patterns of training are traced with autograd, on the device of the match."""

    def aot_function(fn: Any, compiler: Any, *, partition_fn: Any, decompositions: Any, **kwargs: Any) -> Any:
        def call(*args: Any) -> Any:
            there = any(isinstance(a, FakeTensor) and a.fake_device.type == device.type for a in args)
            if not there:
                real = trace(fn, compiler, partition_fn=partition_fn, decompositions=decompositions, **kwargs)
                return real(*args)

            def partition(joint: torch.fx.GraphModule, inputs: Any, **more: Any) -> Any:
                from functorch.compile import default_partition

                flat = torch.utils._pytree.tree_leaves(inputs)
                on_device = retargeted(joint, device, decompositions, flat)
                partition_fn(on_device, [moved(t, device) for t in flat], **more)
                return default_partition(joint, inputs, **more)

            ours = trace(fn, compiler, partition_fn=partition, decompositions={}, **kwargs)
            return ours(*(moved(a, CPU) for a in args))

        return call

    return aot_function
