"""Counts what eager PyTorch would dispatch for a Dynamo graph and its backward, on fake tensors.

Fake tensors have shapes but no data, so nothing happens twice: no side effect, no random number, no memory.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _len_torch_dispatch_stack,
    _pop_mode,
)

from ...record.compilation import EagerOp
from ..ground import containers, unseen
from ..ground.undo import Undo
from . import accesses, fx_values, kinds

_DEVICE = torch.ops.prim.device.default


class _Counting(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.nbytes: dict[str, int | None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE and isinstance(args[0], FakeTensor):
            return args[0].fake_device  # three calls of four ask for this, and it is no work
        out = func(*args, **(kwargs or {}))
        if kinds.is_work(kinds.kind_of(func)):
            name = str(func)
            self.counts[name] += 1
            in_place = kinds.base_name(func).endswith("_")
            moved = accesses.moved(func, args, kwargs, out, in_place)
            self.nbytes[name] = accesses.total((self.nbytes.get(name, 0), *moved))
        return out

    def ops(self, phase: str) -> list[EagerOp]:
        return [EagerOp(phase, name, count, self.nbytes[name]) for name, count in self.counts.items()]


@unseen.unseen
def count(
    gm: torch.fx.GraphModule, example_inputs: list[Any], backward: bool, device: torch.device | None = None
) -> tuple[tuple[EagerOp, ...] | None, str]:
    """The eager operators of a graph, forward and backward, or None and why they could not be counted.

    Inputs are taken as tensors of ``device``, if one is given: autocast casts those of its own device alone.
    Runs under a fake mode of its own, with static sizes, so that the compile in progress learns nothing of it.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    bodies = [n.name for n in gm.graph.nodes if isinstance(n.target, torch._ops.HigherOrderOperator)]
    if bodies:
        return None, (
            f"{bodies[0]} is a higher-order operator: what eager PyTorch dispatches for it is decided while it runs"
        )
    try:
        # The compile in progress has modes and a tracing context of its own; the count must not see them.
        with (
            _disable_current_modes(),
            torch._guards.tracing(None),
            torch.random.fork_rng(devices=[]),
            unseen.no_hooks(),
            Undo() as undo,
            undo,
        ):
            undo.add(_leave_modes)  # those that an interrupt kept from being left
            fake = FakeTensorMode(allow_non_fake_inputs=True)
            inputs = [_fake(fake, x, device) for x in example_inputs]
            return _run(gm, fake, inputs, backward), ""
    except Exception as error:  # any operator may refuse fake tensors, in its own way; the reason is recorded
        return (
            None,
            f"eager operators could not be counted on fake tensors: {type(error).__name__}: {_first_line(error)}",
        )


def _leave_modes() -> None:
    while _len_torch_dispatch_stack():
        _pop_mode()


def _run(gm: torch.fx.GraphModule, fake: Any, inputs: list[Any], backward: bool) -> tuple[EagerOp, ...]:
    runner = _Faked(gm, fake)
    leaves = [
        x for x in (*inputs, *runner.tensors.values()) if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    forward = _Counting()
    with fake, forward:
        outputs = runner.run(*inputs)
    roots = [x for x in containers.tensors(outputs) if x.requires_grad]
    if not roots or not leaves:
        return tuple(forward.ops("inference"))
    if not backward:
        return tuple(forward.ops("forward"))
    roots = list({id(r): r for r in roots if r.grad_fn is not None}.values())
    behind = _Counting()
    if roots:
        with fake:
            grads = [torch.ones_like(r) for r in roots]
        with fake, behind:
            torch.autograd.grad(roots, leaves, grads, allow_unused=True)
    return (*forward.ops("forward"), *behind.ops("backward"))


class _Faked(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
    """Runs a graph with stand-ins for the tensors that it holds, so that none of them is changed in place."""

    def __init__(self, gm: torch.fx.GraphModule, mode: Any) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.tensors: dict[str, torch.Tensor] = {}
        for node in gm.graph.nodes:
            if node.op == "get_attr" and node.target not in self.tensors:
                held = self.fetch_attr(node.target)
                if isinstance(held, torch.Tensor):
                    self.tensors[node.target] = _fake(mode, held)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tensors[target] if target in self.tensors else super().get_attr(target, args, kwargs)


def _fake(mode: Any, value: Any, device: torch.device | None = None) -> Any:
    if isinstance(value, torch.Tensor):
        moved = device is not None and value.layout == torch.strided and value.device.type in ("cpu", "meta")
        if isinstance(value, FakeTensor) or moved:
            with mode:
                sizes = [fx_values.hint(s) for s in value.shape]
                strides = [fx_values.hint(s) for s in value.stride()]
                where = device if moved else value.device
                out = torch.empty_strided(sizes, strides, dtype=value.dtype, device=where)
            return out.requires_grad_(value.requires_grad)
        return mode.from_tensor(value, static_shapes=True)
    if isinstance(value, torch.SymInt):
        return fx_values.hint(value)
    return value


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else ""
