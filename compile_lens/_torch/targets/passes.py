"""Where torch computes with values while it compiles, on the device: done on the CPU instead."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .interfaces import PHASE
from .replaced import Places


def place(places: Places, device: torch.device) -> None:
    """Have it done on the CPU for ``device``, in what marked threads compile."""
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch.fx.experimental.proxy_tensor as proxy_tensor

    fold = joint_graph.constant_fold_uniform_value

    def folded(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        """Folding makes constants on their device, to see what they are. It leaves all modes of dispatch."""
        with _OnCpu(device):
            return fold(gm, *args, **kwargs)

    places.attribute(joint_graph, "constant_fold_uniform_value", PHASE, folded)
    unset: Any = getattr(proxy_tensor, "unset_fake_temporarily", None)

    @contextlib.contextmanager
    def unset_fake_temporarily() -> Iterator[Any]:
        """Tracing follows the values of small literals of the program, also where they are moved."""
        with unset() as mode, _OnCpu(device):
            yield mode

    places.attribute(proxy_tensor, "unset_fake_temporarily", PHASE, unset_fake_temporarily)


class _OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch is not typed here
    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._type = device.type

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {k: self._place(v) for k, v in (kwargs or {}).items()}
        return func(*(self._place(a) for a in args), **kwargs)

    def _place(self, value: Any) -> Any:
        there = isinstance(value, torch.device) and value.type == self._type
        return torch.device("cpu") if there else value
