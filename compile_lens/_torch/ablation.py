"""Ablations: the graph of a capture compiled again with fewer optimisations, in the same compile, without a second
call.

Each step takes the very graph that Dynamo captured. The function does not run again for it, so no side effect happens
twice and nothing can differ but Inductor's work. Steps are compiled after the capture's own code, with guards and
tracing facts of their own, so that they do not affect the capture.
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
"""Inductor's settings with which the scheduler fuses no two loops (``InductorChoices.can_fuse`` counts them) and puts
no two independent ones into one kernel."""

REALISED = ("each operator", "realised at lowering")
ONE_FUNCTION_EACH = ("C++ functions", "one for each group")
"""Beside the settings: effects for which Inductor has no setting."""


@dataclasses.dataclass
class Step:
    """One step in the making. ``error`` is what the compiler raised in it; the capture goes on without it."""

    name: str
    settings: tuple[tuple[str, str], ...]
    recorder: Recorder
    error: Exception | None = None


class Switch:
    """Selects the step whose code runs when the compiled function is called. It serves every graph of the program."""

    def __init__(self) -> None:
        self.step = FUSED

    def over(self, codes: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
        """Return one callable for the code of all steps of a graph."""
        if len(codes) == 1:
            return codes[FUSED]

        def call(*inputs: Any) -> Any:
            return codes[self.step](*inputs)

        return call


def steps(names: tuple[str, ...], recorder: Recorder) -> list[Step]:
    """Return the steps to compile beside a capture; the last of ``ABLATIONS`` is the capture itself."""
    beside_steps = []
    for name in names:
        if name == FUSED:
            continue
        wanted = recorder.spec
        beside = Recorder(
            CaptureSpec(wanted.build, wanted.backward, {**wanted.patches, **ONE_LOOP_EACH}, step=name)
        )
        beside.target.isa = recorder.target.isa
        # The same frames must have the same numbers, also where one of them has no graph.
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
    """Return a Dynamo backend that records into ``recorder``, and each step into its own."""
    plain = backend.make(recorder)

    def compile_lens_ablation(gm: torch.fx.GraphModule, example_inputs: list[Any], **given: Any) -> Any:
        wanted = [step for step in beside if step.error is None]
        copies = [_copy(gm) for _ in wanted]  # Inductor takes over what it is given
        codes = {FUSED: plain(gm, example_inputs, **given)}
        for step, copied in zip(wanted, copies, strict=True):
            step.recorder.clock.start()
            try:
                with _own_tracing_context():
                    codes[step.name] = backend.make(step.recorder)(copied, example_inputs)
            except Exception as error:  # whatever the compiler raises: this step is lost, not the capture
                step.error = error
        recorder.clock.start()  # the time of the steps is not the capture's
        return switch.over(codes)

    setattr(compile_lens_ablation, dynamo.RECORDER_ATTRIBUTE, recorder)
    return compile_lens_ablation


def _copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    copied = backend.copy_graph(gm)
    for old, new in zip(gm.graph.nodes, copied.graph.nodes, strict=True):
        if hasattr(old, "_dynamo_source"):  # by which AOTAutograd knows parameters
            new._dynamo_source = old._dynamo_source
    return copied


@contextlib.contextmanager
def _own_tracing_context() -> Iterator[None]:
    """Use tracing facts of this compile alone: AOTAutograd's notes of one compile must not reach the next, and what a
    step learns about sizes is no condition of the capture's code."""
    context = torch._guards.TracingContext.try_get()
    if context is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        fresh = torch._guards.TracingContext(context.fake_mode)
        patch = {name: getattr(fresh, name) for name in _OF_ONE_COMPILE if hasattr(context, name)}
        stack.enter_context(torch._guards.TracingContext.patch(**patch))
        shapes = getattr(context.fake_mode, "shape_env", None)
        if shapes is not None:
            stack.enter_context(shapes.suppress_guards())
        yield


_OF_ONE_COMPILE = (
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
    """Realise the result of a lowered operator at once as a loop of its own, in the step that inlines nothing; call
    the operator itself, in place of code, where lowerings are limited."""
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
    """Write each loop as soon as it is there, if nothing is fused: the C++ backend would collect loops that were not
    fused in one function, and each is to be a function, and a launch, of its own."""
    return True if draft.recorder.spec.step else real(scheduling, *args, **kwargs)


def _is_operator(target: Any) -> bool:
    """Return True for an operator of torch's own, which can be called in place of code for it."""
    return isinstance(target, torch._ops.OpOverload) and torch._library.utils.is_builtin(target)


def _as_operator(target: Any, args: Any, kwargs: Any) -> Any:
    """Lower an operator to a call of itself."""
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
    """Return True for a number on the CPU in a graph for another device: as a loop it would be a copy between
    devices."""
    device = data.get_device()
    others = set(getattr(lowering, "device_types", ())) - {"cpu", "meta"}
    return bool(others) and device is not None and device.type == "cpu" and not data.get_size()
