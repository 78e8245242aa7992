"""A program's graph, retained as its backend received it, so that it can be lowered again later."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.fx

from ...record.kernel import SAME_CODE, Code
from .. import backend, isolation, session
from ..frames import dynamo
from ..graphs import fx_values
from ..ground import hooks
from ..ground.recorder import Recorder
from ..ground.recorder_state import CaptureSpec, Numbers
from ..ground.undo import Undo

VERIFIED = f"{SAME_CODE}: its text is that of the code which the program compiled"
DIFFERS = "lowered again: its text is not that of the code which the program compiled"
NOT_OBSERVED = "lowered from the retained graph: no code of Inductor's was seen for it in the program"
"""Stamps for code of a later capture."""


@dataclasses.dataclass(frozen=True)
class RetainedGraph:
    """The inputs of lowering: the graph, its inputs as fake tensors, and the settings at that time.

    Attributes:
        code: code of the graph's frame.
        patches: Inductor's settings from the backend's arguments (``mode``, ``options``).
        settings: settings of Inductor and AOTAutograd, if imported.
        autocast: for each device type, whether autocast was on and its dtype.
    """

    code: types.CodeType
    gm: torch.fx.GraphModule
    inputs: tuple[Any, ...]
    mode: Any
    grad: bool
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    patches: dict[str, Any]
    settings: dict[str, dict[str, Any]]


_SETTINGS = ("torch._inductor.config", "torch._functorch.config")


def retain(code: types.CodeType, gm: torch.fx.GraphModule, output: Any) -> RetainedGraph:
    """Return a copy of a graph about to be compiled, and of the state on which its compile depends; ``output`` is
    Dynamo's ``OutputGraph``."""
    context = torch._guards.TracingContext.try_get()
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    devices = {
        v.device.type for n in placeholders if isinstance(v := n.meta.get("example_value"), torch.Tensor)
    }
    return RetainedGraph(
        code,
        _copy(gm, output),
        tuple(n.meta.get("example_value") for n in placeholders),
        getattr(context, "fake_mode", None),
        torch.is_grad_enabled(),
        tuple(
            (d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in sorted(devices | {"cpu"})
        ),
        _patches(getattr(output, "compiler_fn", None)),
        {name: sys.modules[name].get_config_copy() for name in _SETTINGS if name in sys.modules},
    )


def _copy(gm: torch.fx.GraphModule, output: Any = None) -> torch.fx.GraphModule:
    """Return a copy of the graph with Dynamo's attributes, from which AOTAutograd tells parameters, whose addresses are
    fixed, from other inputs."""
    copied = backend.copy_graph(gm)
    sources = getattr(gm, "_param_name_to_source", getattr(output, "param_name_to_source", None))
    if sources is not None:
        copied._param_name_to_source = sources
    inputs = [[n for n in graph.nodes if n.op == "placeholder"] for graph in (gm.graph, copied.graph)]
    for node, own in zip(*inputs, strict=True):
        argument = node.meta.get("grapharg")
        source = getattr(node, "_dynamo_source", getattr(argument, "source", None))
        if source is not None:
            own._dynamo_source = source
    return copied


def _patches(compiler: Any) -> dict[str, Any]:
    """Return Inductor's settings from the backend, ``{}`` for another backend."""
    for _ in range(8):
        config = getattr(compiler, "config", None)
        if isinstance(config, dict):
            return dict(config)
        inner = getattr(compiler, "_torchdynamo_orig_backend", None) or getattr(
            compiler, "_compiler_fn", None
        )
        if inner is None or inner is compiler:
            break
        compiler = inner
    return {}


@dataclasses.dataclass(frozen=True)
class GraphCall:
    """A retained graph as a separate function: a module with its code, arguments of the observed sizes, and the size of
    each symbol."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    fixed: tuple[tuple[str, int], ...]


def as_call(kept: RetainedGraph, device: str, target: str) -> GraphCall | None:
    """Return a retained graph for the device type ``target``, with arguments on ``meta`` or ``cpu`` (then zeros); None
    if a size is unknown."""
    fixed: dict[str, int] = {}

    def known(number: Any) -> Any:
        if not isinstance(number, torch.SymInt):
            return number
        seen = fx_values.hint(number)
        if seen is None:
            raise _UnknownSize
        fixed[str(fx_values.size(number))] = seen
        return seen

    def argument(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return known(value)
        sizes, strides = [known(n) for n in value.shape], [known(n) for n in value.stride()]
        tensor = torch.empty_strided(sizes, strides, dtype=value.dtype, device=device)
        if device != "meta":
            tensor.zero_()
        return tensor.requires_grad_(value.requires_grad and kept.grad)

    stays = [_static_kind(node) for node in kept.gm.graph.nodes if node.op == "placeholder"]
    try:
        args = tuple(argument(value) for value in kept.inputs)
    except _UnknownSize:
        return None
    for arg, kind in zip(args, stays, strict=True):
        if kind is not None and isinstance(arg, torch.Tensor):
            # Parameters have this attribute, but are plain inputs of the graph.
            setattr(arg, _STATIC, kind)
    gm = backend.copy_graph(kept.gm)
    _create_on(gm, target, {value.device for value in kept.inputs if isinstance(value, torch.Tensor)})
    return GraphCall(_code_module(gm), args, tuple(sorted(fixed.items())))


def _create_on(gm: torch.fx.GraphModule, target: str, devices: set[torch.device]) -> None:
    """Make operators that create a tensor on the inputs' device create it on ``target``, since the program took the
    device from an input, or the tensor is used together with inputs."""
    for node in gm.graph.nodes:
        device = node.kwargs.get("device")
        if isinstance(device, torch.device) and device in devices and not node.all_input_nodes:
            node.kwargs = {**node.kwargs, "device": torch.device(target)}
    gm.recompile()
    for inner in gm.children():
        if isinstance(inner, torch.fx.GraphModule):
            _create_on(inner, target, devices)


def _code_module(gm: torch.fx.GraphModule) -> torch.nn.Module:
    """Return a module with the code and attributes of a graph and of its nested bodies.

    Torch pickles a graph as its code and unpickles it by tracing with proxies, which do not support assignment (``t[i]
    = v``). The code alone is an ordinary function.
    """
    _, (body, imports) = gm.__reduce__()
    body = {name: value for name, value in body.items() if name not in ("meta", "_graph")}
    inner = {
        name: _code_module(one) if isinstance(one, torch.fx.GraphModule) else one
        for name, one in gm._modules.items()
    }
    return _module_of(body | {"_modules": inner}, imports)


def _module_of(body: dict[str, Any], imports: str) -> torch.nn.Module:
    forward = torch.fx.graph_module._forward_from_src(imports + body["_code"], {})
    members = {"forward": forward, "__reduce__": lambda self: (_module_of, (body, imports))}
    module: torch.nn.Module = type("GraphModule", (torch.nn.Module,), members)()
    module.__dict__.update(body)
    return module


_STATIC = "_dynamo_static_input_type"
"""Torch's attribute on tensors with a fixed address: parameters, buffers, and tensors marked by the program."""


def _static_kind(node: torch.fx.Node) -> Any:
    return node.meta.get("tensor_dict", {}).get(_STATIC)


class _UnknownSize(Exception):
    """Raised for a size that is known only when the graph runs."""


@contextlib.contextmanager
def settings_of(kept: RetainedGraph) -> Iterator[None]:
    """Use, for the duration, the settings with which a graph was compiled."""
    with contextlib.ExitStack() as stack:
        for name, settings in kept.settings.items():
            stack.enter_context(sys.modules[name].patch(_differing(sys.modules[name], settings)))
        yield


class _FixedId(Numbers):
    """Numbers for a single compile, with its id from the program."""

    def __init__(self, id: str) -> None:
        super().__init__()
        self._id = id

    def own_id(self, frame_id: int, attempt: int) -> str:
        """Return the compile's id from the program."""
        return self._id


def lower(kept: RetainedGraph, codes: Sequence[str], id: str) -> tuple[Recorder, Exception | None]:
    """Lower a retained graph under the settings of its compile, without a build, and record every stage.

    ``id`` is the compile id in the program; ``codes`` are the texts generated by its own compile, with which the new
    code is compared for its stamp. Returns the recorder, and the error that ended the compile or None.
    """
    recorder = Recorder(CaptureSpec(build=False, backward=True, patches=kept.patches))
    recorder.numbers = _FixedId(id)
    raised: list[Exception] = []

    def call() -> None:
        with Undo() as undo, undo:
            hooks.place(undo, recorder)
            hooks.compile_for(undo, None)
            isolation.isolate(undo, recorder)
            undo.enter(settings_of(kept))
            recorder.target.isa = session.instruction_set(False)
            recorder.target.device = next((d for d, _, _ in kept.autocast if d != "cpu"), "")
            number = torch._guards.CompileId(frame_id=0, frame_compile_id=0)
            for manager in (
                torch._guards.tracing(torch._guards.TracingContext(kept.mode)),
                torch._guards.compile_context(torch._guards.CompileContext(number)),
                torch.set_grad_enabled(kept.grad),
                *(torch.autocast(d, dtype=t, enabled=True) for d, on, t in kept.autocast if on),
            ):
                undo.enter(manager)
            recorder.clock.start()
            recorder.draft(0, 0, kept.code)
            dynamo.keep_source(recorder, kept.code)
            try:
                backend.make(recorder)(_copy(kept.gm), list(kept.inputs))
            except Exception as error:
                raised.append(error)

    with isolation.capture_lock():
        isolation.in_own_context(call)
    _stamp(recorder, codes)
    return recorder, raised[0] if raised else None


def _differing(config: Any, settings: dict[str, Any]) -> dict[str, Any]:
    now = config.get_config_copy()
    return {k: v for k, v in settings.items() if k in now and not (now[k] is v or now[k] == v)}


def _stamp(recorder: Recorder, codes: Iterable[str]) -> None:
    known = {normalized(text) for text in codes}
    for draft in recorder.drafts.values():
        for stage in list(draft.stages.values()):
            if isinstance(stage, Code):
                stamp = (
                    NOT_OBSERVED if not known else VERIFIED if normalized(stage.text) in known else DIFFERS
                )
                draft.put(dataclasses.replace(stage, stamp=stamp))


def normalized(text: str) -> str:
    """Return a module's text without details that differ between processes."""
    text = re.sub(r"^# AOT ID:.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"# kernel path:.*", "", text)
    # With enable_kernel_profile each kernel's label has a graph counter of the process.
    text = re.sub(r"graph_\d+_(?=cpp_)", "", text)
    return re.sub(r"\S*torchinductor_\w+/\S+", "", text)
