"""Moves a graph that was traced on the CPU to another device.

Tracing on fake tensors of a device that torch was not built for fails in autograd. The graph that AOTAutograd made
holds no autograd any more: it is run once more on fake tensors of the target, with Inductor's decompositions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.fx
import torch.fx.traceback
from torch._subclasses.fake_tensor import FakeTensor


def moved(value: Any, device: torch.device) -> Any:
    """A fake tensor of the CPU as one on ``device`` with the same shape, strides and offset; else ``value``."""
    if not isinstance(value, FakeTensor) or value.fake_device == device:
        return value
    with value.fake_mode, torch.no_grad():
        if value.storage_offset():
            size = value.untyped_storage().nbytes() // value.element_size()
            whole = torch.empty(size, dtype=value.dtype, device=device)
            made = torch.as_strided(whole, value.shape, value.stride(), value.storage_offset())
        else:
            made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
    if value.requires_grad:
        made.requires_grad_()
    return made


def retargeted(
    gm: torch.fx.GraphModule,
    device: torch.device,
    decompositions: dict[Any, Any],
    inputs: Sequence[Any] = (),
) -> torch.fx.GraphModule:
    """The graph on ``device``, decomposed; nodes keep what torch noted of where they came from."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    values = [n.meta["val"] if "val" in n.meta else inputs[i] for i, n in enumerate(placeholders)]
    mode = detect_fake_mode(values)
    with contextlib.ExitStack() as stack:
        if mode is not None:
            stack.enter_context(mode)
        stack.enter_context(torch.no_grad())
        stack.enter_context(enable_python_dispatcher())
        stack.enter_context(torch.fx.traceback.preserve_node_meta())
        made = make_fx(
            lambda *args: _OnDevice(gm, device).run(*args, enable_io_processing=False),
            decomposition_table=decompositions,
            tracing_mode="real",
            _allow_non_fake_inputs=True,
        )(*(moved(v, device) for v in values))
    _take_over(gm, made, placeholders)
    made.graph.eliminate_dead_code()  # decompositions leave casts that no one uses, and that hide patterns
    made.recompile()
    return made


OWN = ("val", "tensor_meta", "unbacked_bindings")
"""Notes of a node that are of its device, or of this run."""


class _OnDevice(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
    def __init__(self, gm: torch.fx.GraphModule, device: torch.device) -> None:
        super().__init__(gm)
        self._device = device

    def run_node(self, node: torch.fx.Node) -> Any:
        from torch.fx.experimental.proxy_tensor import get_proxy_mode

        graph = get_proxy_mode().tracer.graph
        last = graph._root._prev
        with _noted(node):
            result = super().run_node(node)
        made = last._next
        while made is not graph._root:
            # Tracing copies some of the notes, and numbers what it traces by the autograd of this run: there is none.
            for key, value in node.meta.items():
                if key not in OWN and (key == "seq_nr" or key not in made.meta):
                    made.meta[key] = value
            made = made._next
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        args = torch.utils._pytree.tree_map(self._place, args)
        kwargs = torch.utils._pytree.tree_map(self._place, kwargs)
        aten = torch.ops.aten
        if target in (aten.lift_fresh_copy.default, aten.lift_fresh.default):
            # A literal of the program (torch.tensor([1, 2])): made on the CPU, used on the device.
            literal = super().call_function(target, args, kwargs)
            return aten._to_copy.default(literal, device=self._device) if args[0].dim() else literal
        if isinstance(target, torch._ops.OpOverload) and "device" not in kwargs:
            leaves = torch.utils._pytree.tree_leaves((args, kwargs))
            makes_one = any(a.name == "device" for a in target._schema.arguments)
            if makes_one and not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
                kwargs = {**kwargs, "device": self._device}
        return super().call_function(target, args, kwargs)

    def _place(self, value: Any) -> Any:
        on_cpu = isinstance(value, torch.device) and value.type in ("cpu", self._device.type)
        return self._device if on_cpu else value


@contextlib.contextmanager
def _noted(node: torch.fx.Node) -> Iterator[None]:
    """What is traced meanwhile takes over what torch noted for ``node``, as if it had been traced in its place."""
    before = torch.fx.traceback.current_meta
    torch.fx.traceback.current_meta = dict(node.meta)
    try:
        yield
    finally:
        torch.fx.traceback.current_meta = before


def _take_over(
    gm: torch.fx.GraphModule, made: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node]
) -> None:
    """Names and notes of inputs and output, which later stages go by."""
    for new, old in zip([n for n in made.graph.nodes if n.op == "placeholder"], placeholders):
        new.target = old.target
        new._rename(old.name)
        new.meta = {**old.meta, **{k: new.meta[k] for k in OWN if k in new.meta}}
    output = next(iter(reversed(gm.graph.nodes)))
    ours = next(iter(reversed(made.graph.nodes)))
    for key, value in output.meta.items():
        if key not in OWN:
            ours.meta.setdefault(key, value)
    made.meta.update(gm.meta)
