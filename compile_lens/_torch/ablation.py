"""Ablations: the graph of a capture is compiled again with fewer optimisations, in the same compile, without a second
call.

Each step compiles the very graph that Dynamo captured. The function does not run again, so no side effect happens twice
and only Inductor's work can differ. Steps are compiled after the capture's own code, with their own guards and tracing
context, so that they do not affect the capture.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx

from ..record import claims
from ..record.capture import ABLATIONS
from ..record.divergence import LOWERING
from . import backend
from .frames import dynamo
from .ground.hook_calls import passing
from .ground.hooks import hook
from .ground.recorder import Draft, Recorder
from .ground.recorder_state import CaptureSpec
from .ground.transformations import of_nodes

NOTHING, INLINED, FUSED = ABLATIONS

ONE_LOOP_EACH = {"max_fusion_size": 1, "combo_kernels": False}
"""Inductor's settings under which the scheduler fuses no two loops (``InductorChoices.can_fuse`` checks the size) and
combines no independent ones into one kernel."""

REALISED = ("each operator", "realised at lowering")
ONE_FUNCTION_EACH = ("C++ functions", "one for each group")
"""Effects for which Inductor has no setting, shown with the settings."""


@dataclasses.dataclass
class Step:
    """One step in progress. ``error`` is the compiler's exception, if it raised; the capture continues without the
    step."""

    name: str
    settings: tuple[tuple[str, str], ...]
    recorder: Recorder
    error: Exception | None = None


class Switch:
    """The step whose code runs when the compiled function is called, for every graph of the program."""

    def __init__(self) -> None:
        self.step = FUSED

    def callable_of(self, codes: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
        """Return a callable that runs the selected step's code of a graph; ``codes`` has the code of all steps."""
        if len(codes) == 1:
            return codes[FUSED]

        def call(*inputs: Any) -> Any:
            return codes[self.step](*inputs)

        return call


def steps(names: tuple[str, ...], recorder: Recorder) -> list[Step]:
    """Return the steps to compile in addition to a capture; the last of ``ABLATIONS`` is the capture itself."""
    beside_steps = []
    for name in names:
        if name == FUSED:
            continue
        wanted = recorder.spec
        beside = Recorder(
            CaptureSpec(wanted.build, wanted.backward, {**wanted.patches, **ONE_LOOP_EACH}, step=name)
        )
        beside.target.isa = recorder.target.isa
        # A frame must have the same number in each step, even if it has no graph in one.
        beside.numbers = recorder.numbers
        beside.frames.root = recorder.frames.root
        settings = (*((key, repr(value)) for key, value in ONE_LOOP_EACH.items()), ONE_FUNCTION_EACH)
        step = Step(name, (*settings, REALISED) if name == NOTHING else settings, beside)
        for key, value in ONE_LOOP_EACH.items():
            if wanted.patches.get(key, value) != value:
                beside.note(f"the option {key}={wanted.patches[key]!r} is not used in this step")
        beside_steps.append(step)
    return beside_steps


def make(recorder: Recorder, beside: list[Step], switch: Switch) -> Callable[..., Any]:
    """Return a Dynamo backend that records into ``recorder``, and each step into the step's own recorder."""
    plain = backend.make(recorder)

    def compile_lens_ablation(gm: torch.fx.GraphModule, example_inputs: list[Any], **options: Any) -> Any:
        wanted = [step for step in beside if step.error is None]
        copies = [_copy(gm) for _ in wanted]  # Inductor modifies its input graph
        codes = {FUSED: plain(gm, example_inputs, **options)}
        for step, copied in zip(wanted, copies, strict=True):
            step.recorder.clock.start()
            try:
                with _own_tracing_context():
                    codes[step.name] = backend.make(step.recorder)(copied, example_inputs)
            except Exception as error:  # the compiler may raise anything; only this step is lost
                step.error = error
        recorder.clock.start()  # the time of the steps does not count as the capture's
        return switch.callable_of(codes)

    setattr(compile_lens_ablation, dynamo.RECORDER_ATTRIBUTE, recorder)
    return compile_lens_ablation


def _copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    copied = backend.copy_graph(gm)
    for old, new in zip(gm.graph.nodes, copied.graph.nodes, strict=True):
        if hasattr(old, "_dynamo_source"):  # AOTAutograd recognises parameters by it
            new._dynamo_source = old._dynamo_source
    return copied


@contextlib.contextmanager
def _own_tracing_context() -> Iterator[None]:
    """Use a fresh tracing context: AOTAutograd's state of one compile must not reach the next, and guards on sizes that
    a step adds are no condition of the capture's code."""
    context = torch._guards.TracingContext.try_get()
    if context is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        fresh = torch._guards.TracingContext(context.fake_mode)
        patch = {name: getattr(fresh, name) for name in _PER_COMPILE_FIELDS if hasattr(context, name)}
        stack.enter_context(torch._guards.TracingContext.patch(**patch))
        shapes = getattr(context.fake_mode, "shape_env", None)
        if shapes is not None:
            stack.enter_context(shapes.suppress_guards())
        yield


_PER_COMPILE_FIELDS = (
    "guards_context",
    "fw_metadata",
    "aot_graph_name",
    "params_flat",
    "params_flat_unwrap_subclasses",
    "params_unwrapped_to_flat_index",
    "output_strides",
    "hop_dispatch_set_cache",
)


@hook("torch._inductor.graph:GraphLowering.call_function", claims.ABLATIONS)
def call_function(draft: Draft, real: Any, lowering: Any, *args: Any, **kwargs: Any) -> Any:
    """Lower an operator. In the step that inlines nothing, realise its result at once as a loop of its own; past the
    limit on lowerings, call the operator itself instead of generating code."""
    limit = draft.recorder.spec.limit
    if limit is not None and _is_operator(args[0]):
        with passing():
            node = lowering.current_node
            if not limit.allows(LOWERING, lambda: of_nodes(LOWERING, str(args[0]), [node], draft)):
                return _as_operator(*args)
    result = real(lowering, *args, **kwargs)
    if draft.recorder.spec.step == NOTHING:
        with passing():
            _realise(result, lowering)
    return result


@hook("torch._inductor.codegen.cpp:CppScheduling.ready_to_flush", claims.ABLATIONS)
def ready_to_flush(draft: Draft, real: Any, scheduling: Any, *args: Any, **kwargs: Any) -> Any:
    """Return True in a step, so that each loop becomes a function, and a launch, of its own; the C++ backend would
    collect unfused loops in one function."""
    return True if draft.recorder.spec.step else real(scheduling, *args, **kwargs)


def _is_operator(target: Any) -> bool:
    """Return True for an operator of torch's own, which can be called instead of generating code for it."""
    return isinstance(target, torch._ops.OpOverload) and torch._library.utils.is_builtin(target)


def _as_operator(target: Any, args: Any, kwargs: Any) -> Any:
    """Lower an operator to a call of the operator."""
    from torch._inductor.lowering import fallback_handler

    return fallback_handler(target, add_to_fallback_set=False)(*args, **kwargs)


def _realise(result: Any, lowering: Any) -> None:
    from torch._inductor.ir import BaseView, MutableBox, StorageBox

    if isinstance(result, (list, tuple)):
        for part in result:
            _realise(part, lowering)
        return
    data = result
    while isinstance(data, (BaseView, MutableBox)) and not isinstance(data, StorageBox):
        data = data.data
    if isinstance(data, StorageBox) and not _is_constant_for_others(data, lowering):
        data.realize()


def _is_constant_for_others(data: Any, lowering: Any) -> bool:
    """Return True for a CPU scalar in a graph for another device: realised as a loop, it would become a copy between
    devices."""
    device = data.get_device()
    others = set(getattr(lowering, "device_types", ())) - {"cpu", "meta"}
    return bool(others) and device is not None and device.type == "cpu" and not data.get_size()
