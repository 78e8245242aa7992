"""Runs, on the CPU, of a graph that Dynamo captured for an absent device.

Operators return the CPU's values in the dtypes of the device. An operator that the CPU lacks returns zeros of the right
shape, and a user kernel that Triton's interpreter cannot run writes nothing; the record notes both. On ``meta`` nothing
is computed.
"""

from __future__ import annotations

import contextlib
import copy as copying
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..ground import source_places
from ..ground.storage import address
from ..targets import attention, user_kernels
from ..targets.device_queries import DeviceQueries, is_internal, running_line
from ..targets.replacements import marked
from ..targets.target_inputs import FAKING
from . import fx_values

_AUTOCAST = torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast

_ATTENTION = torch._C._nn.scaled_dot_product_attention

_NAMES_DEVICES = r"\b(?i:cpu|cuda|gpu|mps)\b|_cpu\b|not implemented for '"
"""Pattern of PyTorch's errors for a limit that an operator has on one device type only."""

_HALVES = torch.float16, torch.bfloat16


def runnable(gm: torch.fx.GraphModule, device: torch.device, queries: DeviceQueries) -> Callable[..., Any]:
    """Return a function that runs ``gm``, our copy of a graph captured for ``device``, on the CPU or on meta."""
    graph = graph_on_cpu(gm, device)

    def run(*args: Any) -> Any:
        if any(isinstance(a, torch.Tensor) and a.is_meta for a in args):
            queries.on_meta = True
            return _on_meta(gm, args)
        with marked(user_kernels.IN_GRAPH):
            return _Run(graph, device, queries).run(*args)

    return run


def run_lowered(lowering: Any, device: torch.device) -> Callable[[list[Any]], Any]:
    """Return a function that runs the graph of an Inductor lowering for ``device`` with eager PyTorch on the CPU."""
    graph = getattr(lowering, "orig_gm", None) or lowering.module
    copied = torch.fx.GraphModule(graph, copying.deepcopy(graph.graph))

    def run(args: list[Any]) -> Any:
        result = runnable(copied, device, DeviceQueries())(*args)
        return tuple(result) if isinstance(result, list) else result

    return run


def graph_on_cpu(gm: torch.fx.GraphModule, device: torch.device) -> torch.fx.GraphModule:
    """Return a copy of a graph and its nested graphs in which every ``device`` is the CPU."""
    graph = torch.fx.Graph()
    nodes: dict[torch.fx.Node, torch.fx.Node] = {}
    bodies: dict[str, torch.fx.GraphModule] = {}
    for node in gm.graph.nodes:
        copy = nodes[node] = graph.node_copy(node, nodes.__getitem__)
        if node.op == "get_attr":
            inner = getattr(gm, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                bodies[str(node.target)] = graph_on_cpu(inner, device)
        if node.op not in ("call_function", "call_method"):
            continue
        if node.target is _AUTOCAST[0]:
            # Regions for the device cast on the CPU here; regions for the CPU would not cast the device's tensors.
            kind, dtype, enabled, *more = copy.args
            copy.args = ("cpu", dtype, enabled and kind == device.type, *more)
            continue
        if node.op == "call_method" and node.target == device.type:  # x.cuda()
            copy.target, copy.args, copy.kwargs = "to", (copy.args[0], "cpu"), {}
        copy.args = torch.fx.node.map_aggregate(copy.args, lambda v: _on_cpu(v, device))
        copy.kwargs = torch.fx.node.map_aggregate(copy.kwargs, lambda v: _on_cpu(v, device))
    graph._codegen = gm.graph._codegen
    copied = torch.fx.GraphModule(gm, graph)
    copied.meta = dict(gm.meta)
    for name, body in bodies.items():
        setattr(copied, name, body)
    return copied


def _on_cpu(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.device) and value.type == device.type:
        return torch.device("cpu")
    if isinstance(value, str) and value.partition(":")[0] == device.type:
        return "cpu"
    return value


class _Run(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
    def __init__(self, gm: torch.fx.GraphModule, device: torch.device, queries: DeviceQueries) -> None:
        super().__init__(gm)
        self._device, self._queries = device, queries
        self._casting = 0

    def run_node(self, node: torch.fx.Node) -> Any:
        if node.op in ("placeholder", "get_attr", "output"):
            return super().run_node(node)
        if node.target in _AUTOCAST:
            self._casting += 1 if node.target is _AUTOCAST[0] else -1
            return super().run_node(node)
        try:
            with attention.all_backends() if node.target is _ATTENTION else contextlib.nullcontext():
                result = (
                    self._in_single_precision(node)
                    if self._casting and self._is_cast_up(node)
                    else super().run_node(node)
                )
        except Exception as error:
            higher = isinstance(node.target, torch._ops.HigherOrderOperator)
            if not (higher or self._casting or _is_of_the_cpu(error)):
                raise  # the program's own error
            self._record_failure(node, error)
            return self._zeros(node)
        return _as_on_device(node, result, [self.env.get(one) for one in node.all_input_nodes])

    def _is_cast_up(self, node: torch.fx.Node) -> bool:
        """Return True if the device's autocast casts the node's inputs to single precision."""
        example = _example(node)
        if not isinstance(example, torch.Tensor) or example.dtype != torch.float32:
            return False
        inputs = [self.env.get(one) for one in node.all_input_nodes]
        return any(isinstance(v, torch.Tensor) and v.dtype in _HALVES for v in inputs)

    def _in_single_precision(self, node: torch.fx.Node) -> Any:
        args, kwargs = torch.utils._pytree.tree_map(_to_single, self.fetch_args_kwargs_from_env(node))
        with torch.autocast("cpu", enabled=False):
            return getattr(self, node.op)(node.target, args, kwargs)

    def _record_failure(self, node: torch.fx.Node, error: Exception) -> None:
        lines = str(error).strip().splitlines()
        why = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        kernel = _kernel(node)
        name = kernel or fx_values.target_text(node.target)
        trace = [*reversed(source_places.frames(node.meta.get("stack_trace")))]
        # In a library's frame (Triton's launch code) Dynamo has no line of the program.
        own = (f for f in trace if not is_internal(f.file))
        frame = next(own, None) or running_line() or next(iter(trace), None)
        if kernel:
            why = why.removeprefix("NotLaunched: ")
        self._queries.put("not run" if kernel else "zeros", name, why[:200], frame)

    def _zeros(self, node: torch.fx.Node) -> Any:
        """Return zeros in the shapes of the node's fake result for its inputs."""
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        mode: Any = FakeTensorMode(allow_non_fake_inputs=True)

        def there(value: Any) -> Any:
            return self._device if value == torch.device("cpu") else _faked(mode, value)

        fakes = torch.utils._pytree.tree_map(there, (args, kwargs))
        with mode, torch.no_grad():
            if node.op == "call_method":
                result = getattr(fakes[0][0], str(node.target))(*fakes[0][1:], **fakes[1])
            else:
                result = node.target(*fakes[0], **fakes[1])
        grad = _example(node)
        needs = isinstance(grad, torch.Tensor) and grad.requires_grad
        return torch.utils._pytree.tree_map(lambda v: _real(v, "cpu", needs), result)


def _kernel(node: torch.fx.Node) -> str:
    """Return the name of the user's Triton kernel that the node launches, ``""`` for other nodes."""
    index = node.kwargs.get("kernel_idx")
    if not isinstance(index, int) or not fx_values.target_text(node.target).startswith(
        "triton_kernel_wrapper"
    ):
        return ""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    return user_kernels.kernel_name(kernel_side_table.get_kernel(index))


def _is_of_the_cpu(error: Exception) -> bool:
    """Return True if an error is about running the operator on the CPU, which the target would not raise."""
    lines = str(error).strip().splitlines()
    names = isinstance(error, RuntimeError) and lines and re.search(_NAMES_DEVICES, lines[0])
    return isinstance(error, NotImplementedError) or bool(names)


def _to_single(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALVES else value


def _example(node: torch.fx.Node) -> Any:
    return node.meta.get("example_value")


def _as_on_device(node: torch.fx.Node, result: Any, inputs: list[Any]) -> Any:
    """Return the result in the device's dtype and memory order, as a copy if it would move between devices."""
    example = _example(node)
    if not isinstance(result, torch.Tensor) or not isinstance(example, torch.Tensor):
        return result
    if result.dtype != example.dtype:
        result = result.to(example.dtype)
    result = _laid_out(result, example, inputs)
    for one in node.all_input_nodes[:1]:
        before = _example(one)
        moved = isinstance(before, torch.Tensor) and before.device.type != example.device.type
        if moved and node.target in ("to", "cpu", "cuda"):
            result = result.clone()
    return result


def _laid_out(result: torch.Tensor, example: torch.Tensor, inputs: list[Any]) -> torch.Tensor:
    """Return the result with its dimensions in the device's memory order, unchanged if it is a view."""
    order = _order(example, result)
    if not order or order == _order(result, result):
        return result
    place = address(result)
    if any(isinstance(v, torch.Tensor) and address(v) == place for v in inputs):
        return result
    back = sorted(range(result.dim()), key=order.__getitem__)
    return result.permute(order).contiguous().permute(back)


def _order(tensor: torch.Tensor, of: torch.Tensor) -> list[int]:
    """Return the dimensions in order of decreasing strides, those of size 1 last; empty if strides are unknown."""
    if tensor.layout != torch.strided or of.layout != torch.strided:
        return []
    steps = [s if isinstance(s, int) else s.node.hint for s in tensor.stride()]
    if None in steps or len(steps) != of.dim():
        return []
    return sorted(range(of.dim()), key=lambda d: (of.shape[d] == 1, of.shape[d] == 1 or -steps[d]))


def _on_meta(gm: torch.fx.GraphModule, args: tuple[Any, ...]) -> Any:
    """Return the results on meta, with the shapes and dtypes that they have on the device."""
    mode: Any = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [_faked(mode, a) for a in args]
    known = {id(fake): arg for fake, arg in zip(fakes, args)}
    with mode, marked(FAKING):
        result = torch.fx.Interpreter(gm).run(*fakes)
    return torch.utils._pytree.tree_map(
        lambda v: known.get(id(v), _real(v, "meta", getattr(v, "requires_grad", False))), result
    )


def _faked(mode: Any, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    with marked(FAKING):
        return mode.from_tensor(value, static_shapes=True)


def _real(value: Any, home: str, grad: bool) -> Any:
    if not isinstance(value, FakeTensor):
        return value
    tensor = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=home)
    if home != "meta":
        tensor.zero_()
    return tensor.requires_grad_(grad and (tensor.is_floating_point() or tensor.is_complex()))
