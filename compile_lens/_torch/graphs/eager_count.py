"""Count of the operators that eager PyTorch would dispatch for a Dynamo graph and its backward, on fake tensors.

Fake tensors have shapes but no data, so no side effect is repeated, no random number drawn, no memory allocated.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import (
    _disable_current_modes,
    _len_torch_dispatch_stack,
    _pop_mode,
    is_traceable_wrapper_subclass,
)
from torch.utils._pytree import tree_map_only

from ...record import syntax
from ...record.compilation import EagerOp
from ...record.graph import Frame
from ..ground import program_hooks, values
from ..ground.gradient_edges import gradient_edges
from ..ground.source_places import frames
from ..ground.undo import Undo
from . import accesses, dynamo_decompositions, eager_bodies, fx_values, operator_kinds

_DEVICE = torch.ops.prim.device.default


class _Counting(FakeTensorMode):  # type: ignore[misc]  # torch is not typed here
    """A fake tensor mode that counts the operators dispatched to it, in one mode so that each is dispatched once.
    Operators that it dispatches itself (decompositions, meta kernels) are not eager PyTorch's."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.phases: dict[str, _Operators] = {}
        self.phase: _Operators | None = None  # None: do not count

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The backend is running, so Dynamo evaluates no frame, and torch need not disable it at every call.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE and isinstance(args[0], FakeTensor):
            return args[0].fake_device  # three of four calls, and no work
        kind = operator_kinds.kind_of(func)
        run = _dispatch_function(func) if kind == "custom" else FakeTensorMode.dispatch
        opened = kind == "custom" and operator_kinds.is_opened(func)
        phase, self.phase = self.phase, self.phase if opened else None
        try:
            out = _with_types(func, args, run(self, func, types, args, kwargs or {}))
        finally:
            self.phase = phase
        works = not opened and (operator_kinds.is_work(kind) or _converts(func, args, out))
        if phase is not None and works and not _only_shapes(out):
            phase.add(func, args, kwargs, out)
        return out

    @contextlib.contextmanager
    def counting(self, phase: str) -> Iterator[None]:
        """Count the operators dispatched in this block for a phase."""
        self.phase = self.phases[phase] = _Operators()
        with self:
            yield
        self.phase = None

    def ops(self, phase: str, named: str = "") -> list[EagerOp]:
        """Return the operators of a phase, recorded under its name or ``named``."""
        return self.phases[phase].ops(named or phase) if phase in self.phases else []


NORMALISATIONS = frozenset("native_layer_norm native_group_norm native_batch_norm".split())


def _with_types(func: Any, args: Any, out: Any) -> Any:
    """Return a normalisation's results in the dtypes of the CPU's kernels, if its parameters are wider than its input:
    mean and deviation have the parameters' dtype, gradients that of their tensors.

    Torch's fake results have other dtypes, with which the bytes would be wrong and a gradient converted.
    """
    name = operator_kinds.base_name(func)
    if name == "native_group_norm_backward" and args[1].device.type == "cpu":
        source, weight = args[1], args[4] if isinstance(args[4], torch.Tensor) else args[1]
        types = (source.dtype, weight.dtype, weight.dtype)
        return tuple(one if one is None else one.to(to) for one, to in zip(out, types, strict=True))
    if name not in NORMALISATIONS or args[0].device.type != "cpu":
        return out
    given = [one.dtype for one in args[1:5] if isinstance(one, torch.Tensor)]
    wide = [dtype for dtype in given if dtype.itemsize > args[0].dtype.itemsize]
    return (out[0], *(one.to(wide[0]) for one in out[1:])) if wide else out


def _converts(func: Any, args: Any, out: Any) -> bool:
    """Return True for a subclass's ``to`` that creates a new tensor, although its schema is a view's."""
    if operator_kinds.base_name(func) != "to" or not isinstance(out, torch.Tensor):
        return False
    return out is not args[0] and out.untyped_storage()._cdata != args[0].untyped_storage()._cdata


def _only_shapes(out: Any) -> bool:
    """Return True if all results are on the meta device, where nothing is computed, as for products with zero
    tangents."""
    results = values.tensors(out)
    return bool(results) and all(one.device.type == "meta" for one in results)


def _dispatch_function(func: Any) -> Callable[..., Any]:
    """Return the function that runs a library's operator on fake tensors: the rule registered for FakeTensorMode (torch
    only looks it up for the exact class), else the usual dispatch."""
    from torch._library.simple_registry import find_torch_dispatch_rule

    rule: Callable[..., Any] | None = find_torch_dispatch_rule(func, FakeTensorMode)
    return rule or FakeTensorMode.dispatch


class _Operators:
    """Counts and bytes moved, by operator."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.nbytes: dict[str, int | None] = {}
        self.copied: Counter[str] = Counter()

    def add(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Count a call."""
        name = str(func)
        self.counts[name] += 1
        if out is NotImplemented:  # a tensor subclass handles it by calling other operators
            self.nbytes.setdefault(name, 0)
            return
        in_place = operator_kinds.base_name(func).endswith("_")
        moved = accesses.moved(func, args, kwargs, out, in_place)
        self.nbytes[name] = accesses.total((self.nbytes.get(name, 0), *moved))
        self.copied[name] += accesses.copied(func, args, kwargs)

    def ops(self, phase: str) -> list[EagerOp]:
        """Return the operators as records."""
        return [
            EagerOp(phase, name, count, self.nbytes[name], self.copied[name])
            for name, count in self.counts.items()
        ]


@program_hooks.without_torch_function
def count(
    gm: torch.fx.GraphModule, example_inputs: list[Any], backward: bool, device: torch.device | None = None
) -> tuple[tuple[EagerOp, ...] | None, str]:
    """Return the eager operators of a graph, forward and backward, with a note (or ``""``); None and the reason if they
    could not be counted.

    Inputs are treated as tensors on ``device``, if given, since autocast only casts tensors on its own device. The
    graph runs under a separate fake mode with static sizes, so that the compile in progress is not affected.
    """
    if why_not := eager_bodies.not_countable(gm):
        return None, why_not
    gives_zeros = eager_bodies.gives_zeros()
    runner: _Faked | None = None
    try:
        # The count must not use the modes and tracing context of the compile in progress.
        with (
            _disable_current_modes(),
            torch._guards.tracing(None),
            torch.random.fork_rng(devices=[]),
            program_hooks.without_saved_tensor_hooks(),
            program_hooks.without_compiled_autograd(),
            Undo() as undo,
            undo,
        ):
            undo.add(_leave_modes)  # modes that an interrupt left active
            fake = _Counting()
            runner = _Faked(gm, fake, device is not None, backward, gives_zeros)
            inputs = _with_sizes(gm, [_fake(fake, x, device) for x in example_inputs], example_inputs)
            return _run(runner, fake, inputs, backward), dynamo_decompositions.other_path(gm.graph)
    except eager_bodies.UnknownOperators as unknown:
        return None, unknown.reason
    except Exception as error:  # any operator may fail on fake tensors; the reason is recorded
        why = f"{type(error).__name__}: {_first_line(error)}"
        absent = next((reason for text, reason in _ABSENT.items() if text in str(error)), "")
        if absent and runner is not None:
            why = f"{fx_values.target_text(runner.at.target)} calls a library of the device, {absent}"
        return None, f"eager operators could not be counted on fake tensors: {why}"


_ABSENT = {
    # One of torch's assertions, which reports a bug.
    "DispatchStub: missing kernel for": "which this build of PyTorch lacks",
    "CUDA driver version is insufficient": "whose driver is not here",
    "no CUDA-capable device": "which is not here",
}
"""Reason why an absent device's library cannot be called, by the text of torch's error."""


def _with_sizes(gm: torch.fx.GraphModule, given: list[Any], example_inputs: list[Any]) -> list[Any]:
    """Return the inputs with sizes that the program hides from the compiler (``mark_unbacked``), from its tensors."""
    if None not in given:
        return given
    seen: dict[str, int] = {}
    nodes = [n for n in gm.graph.nodes if n.op == "placeholder"]
    for node, value in zip(nodes, example_inputs):
        shape = getattr(node.meta.get("example_value"), "shape", ())
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            seen |= {str(size): int(real) for size, real in zip(shape, value.shape)}
    return [seen.get(str(x)) if one is None else one for one, x in zip(given, example_inputs)]


def _leave_modes() -> None:
    while _len_torch_dispatch_stack():
        _pop_mode()


def _run(runner: _Faked, fake: _Counting, inputs: list[Any], backward: bool) -> tuple[EagerOp, ...]:
    leaves = [
        x for x in (*inputs, *runner.tensors.values()) if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    with fake.counting("forward"):
        outputs = runner.run(*inputs)
    roots = [x for x in values.tensors(outputs) if x.requires_grad]
    if not roots or not leaves:
        return tuple(fake.ops("forward", "inference"))
    if not backward:
        return tuple(fake.ops("forward"))
    roots = list({id(r): r for r in roots if r.grad_fn is not None}.values())
    if roots:
        with fake:
            grads = [torch.ones_like(r) for r in roots]
        edges = [edge for leaf, edge in gradient_edges(roots) if any(leaf is one for one in leaves)]
        with fake.counting("backward"):
            torch.autograd.grad(roots, edges or leaves, grads, allow_unused=True)
    return (*fake.ops("forward"), *fake.ops("backward"))


class _Faked(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
    """An interpreter that uses fake tensors for the graph's own tensors, so that none is changed in place. With
    ``elsewhere``, they are on the device that Dynamo recorded."""

    def __init__(
        self, gm: torch.fx.GraphModule, mode: Any, elsewhere: bool, backward: bool, gives_zeros: bool | None
    ) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self._as_it = mode, elsewhere, backward, gives_zeros
        self._bodies = eager_bodies.Bodies(self._body, backward, gives_zeros)
        self.at: torch.fx.Node = next(iter(gm.graph.nodes))
        self.tensors: dict[str, torch.Tensor] = {}
        self.rows = Rows(gm.graph)
        self.calls = dynamo_decompositions.calls(gm.graph)
        self.views = _RebasedViews()
        for node in gm.graph.nodes:
            if node.op == "get_attr" and node.target not in self.tensors:
                held = self.fetch_attr(node.target)
                if isinstance(held, torch.Tensor):
                    seen = node.meta.get("example_value") if elsewhere else None
                    self.tensors[node.target] = _fake(mode, held, getattr(seen, "device", None))

    def run_node(self, node: torch.fx.Node) -> Any:
        self.at = node
        if node in self.calls:
            return self._call(self.calls[node])
        row = self.rows.of(node, self.env.get(node.args[0])) if node in self.rows else None
        value = super().run_node(node) if row is None else row
        self.views.add(value)
        return value

    def _call(self, call: dynamo_decompositions.Call | None) -> Any:
        """Run a call as the program wrote it, instead of its last node."""
        if call is None:
            return None
        args, kwargs = torch.fx.map_arg((call.args, call.kwargs), lambda node: self.env[node])
        value = call.function(*self.views.current(args), **self.views.current(kwargs))
        self.views.add(value)
        return value

    def fetch_args_kwargs_from_env(self, node: torch.fx.Node) -> tuple[Any, Any]:
        args, kwargs = super().fetch_args_kwargs_from_env(node)
        return self.views.current(args), self.views.current(kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is getattr(torch.autograd.grad_mode, "_enter_inference_mode", None):
            # In inference mode, composite operators reach a mode undecomposed. Without gradients the same kernels run.
            return torch.set_grad_enabled(not args[0])
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._bodies.call(target, args, kwargs)
        if target is torch.nn.functional.one_hot:
            return _one_hot(*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def _body(self, body: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        inside = _Faked(body, *self._as_it)
        try:
            return inside.run(*inputs)
        except Exception:
            self.at = inside.at
            raise

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.tensors[target] if target in self.tensors else super().get_attr(target, args, kwargs)


def _one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """Run ``one_hot`` as its C++ does for tensors with data; for tensors without, it would compare instead."""
    if num_classes == -1 or tensor.numel() == 0:
        return torch.nn.functional.one_hot(tensor, num_classes)
    if tensor.device.type not in ("cuda", "xpu", "mps"):
        torch.aminmax(tensor)  # there, bounds are checked before the scatter
    zeros = torch.zeros((*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device)
    return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)


class _RebasedViews:
    """The views of a graph, each with the version of its memory.

    If the memory is written later, autograd regenerates the view from its base by one ``as_strided``, whose derivative
    fills zeros and copies. For a tensor with Python dispatch, such as a fake tensor, autograd replays the view
    functions instead. So here the view is regenerated by ``as_strided`` where eager PyTorch would do so.
    """

    def __init__(self) -> None:
        # By id: the view, its version, the regenerated view.
        self._views: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}

    def add(self, value: Any) -> None:
        """Record the views that a node returned."""
        for tensor in values.tensors(value):
            if tensor._is_view() and tensor._base is not None and tensor._base.dtype == tensor.dtype:
                # The result of an in-place write is already recorded, with an older version.
                self._views.setdefault(id(tensor), (tensor, tensor._version, tensor))

    def current(self, value: Any) -> Any:
        """Return a node's arguments with each view regenerated after the writes so far."""
        return tree_map_only(torch.Tensor, self._rebased, value) if self._views else value

    def _rebased(self, tensor: torch.Tensor) -> torch.Tensor:
        view, version, current = self._views.get(id(tensor), (tensor, tensor._version, tensor))
        if view._version == version or not view._base.requires_grad:  # a view shares its base's version
            return current
        current = view._base.as_strided(view.size(), view.stride(), view.storage_offset())
        self._views[id(current)] = self._views[id(tensor)] = current, current._version, current
        return current


def _fake(mode: Any, value: Any, device: torch.device | None = None) -> Any:
    if device is not None and is_traceable_wrapper_subclass(value):
        names, context = value.__tensor_flatten__()
        inner = {name: _fake(mode, getattr(value, name), device) for name in names}
        out = type(value).__tensor_unflatten__(inner, context, value.size(), value.stride())
        return out.requires_grad_(value.requires_grad)
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


def unpacked_rows(graph: torch.fx.Graph) -> dict[torch.fx.Node, torch.fx.Node]:
    """Return the nodes that are rows of an unpacked tensor (``q, k, v = t``, ``for row in t``), each with the first row
    of the same unpacking; unused rows are not in the graph.

    Dynamo records an index per row, each with its own derivative. Eager PyTorch calls one ``unbind``, whose derivative
    is one ``stack``. The unpacking is recognised in the source, only where it is unambiguous.
    """
    if sys.version_info < (3, 11):
        return {}  # its traces do not distinguish expressions of a line
    rows: dict[torch.fx.Node, torch.fx.Node] = {}
    last: dict[tuple[torch.fx.Node, Frame], torch.fx.Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or node.target is not operator.getitem:
            continue
        source, index = node.args
        at = frames(node.meta.get("stack_trace"))
        if type(index) is not int or not isinstance(source, torch.fx.Node) or not at or not _unpacks(at[-1]):
            continue
        before = last.get((source, at[-1]))
        again = before is None or before.args[1] >= index
        rows[node] = node if again else rows[before]
        last[source, at[-1]] = node
    return rows


def _unpacks(frame: Frame) -> bool:
    """Return True if the code at a frame's place is an unpacking rather than an index."""
    return _is_unpacking(frame.text.strip() if frame.column is None else frame.call, frame.column is None)


@functools.lru_cache(maxsize=1024)
def _is_unpacking(text: str, whole_line: bool) -> bool:
    header = text.partition("#")[0].rstrip()
    try:
        (statement,) = syntax.parse(f"{header} pass" if header.endswith(":") else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    value = statement.value if isinstance(statement, ast.Expr) else statement
    if isinstance(value, (ast.Tuple, ast.List)) and not whole_line:
        return True  # unpacking targets
    parts = ast.walk(statement) if whole_line else ()  # without columns, any index on the line counts
    if any(isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) for part in parts):
        return False
    if isinstance(value, ast.Assign):
        return any(isinstance(target, (ast.Tuple, ast.List)) for target in value.targets)
    return isinstance(value, (ast.For, ast.GeneratorExp, ast.ListComp, ast.SetComp)) or (
        isinstance(value, ast.Call) and any(isinstance(one, ast.Starred) for one in value.args)
    )


class Rows:
    """The rows of a graph's unpacked tensors, each tensor unbound once."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._known = unpacked_rows(graph)
        self._rows: dict[torch.fx.Node, tuple[torch.Tensor, ...]] = {}

    def __contains__(self, node: torch.fx.Node) -> bool:
        return node in self._known

    def of(self, node: torch.fx.Node, source: Any) -> torch.Tensor | None:
        """Return the row that a node selects from an unpacked tensor; None if it does not."""
        first, index = self._known.get(node), node.args[1]
        if first is None or not isinstance(source, torch.Tensor) or source.dim() == 0:
            return None
        if first is node:
            self._rows[node] = source.unbind(0)
        rows = self._rows.get(first, ())
        return rows[index] if type(index) is int and 0 <= index < len(rows) else None
