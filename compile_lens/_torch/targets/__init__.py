"""Stand-ins for absent devices, so that Inductor generates code for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UsageError

if TYPE_CHECKING:
    from ...record.device import DeviceModel
    from ...record.kernel import Kernel
    from ..ground.recorder import Draft, Recorder


AS_THERE = "as on the device"
"""Value of ``CodeTarget.traced`` for a device with a stand-in."""


@contextlib.contextmanager
def stand_in_for(recorder: Recorder, model: DeviceModel | None) -> Iterator[None]:
    """Make captures of ``recorder``, for the duration, be for the device of ``model``; None changes nothing."""
    if model is None or (model.device == "cpu" and not model.arch):
        yield
    elif model.device == "cpu":
        from . import vector_isa

        with vector_isa.stand_in_for(model.arch):
            recorder.target.model = model
            recorder.target.may_differ = vector_isa.isa_caveats(model.arch)
            yield
    else:
        from . import caveats
        from .stand_in import StandIn

        _refuse_settings(recorder.spec.patches, model)
        target = recorder.target
        target.model = model
        target.stand_in = stand_in = StandIn(model)
        target.may_differ = caveats.capture_caveats(model, recorder.spec.patches)
        try:
            with stand_in.placed():
                yield
        finally:
            target.queries = stand_in.queries.recorded()
            target.traced = AS_THERE
            if recorder.frames.skipped or any(
                draft.ending is not None and draft.ending.kind != "return"
                for draft in recorder.drafts.values()
            ):
                target.may_differ += (caveats.UNTRACED,)
            if stand_in.queries.on_meta:
                target.may_differ += (caveats.NOTHING_COMPUTED,)
            target.stand_in = None


def _refuse_settings(patches: dict[str, Any], model: DeviceModel) -> None:
    """Raise ``UsageError`` for a setting under which torch cannot generate code without the device."""
    import torch._inductor.config as config

    if patches.get("fx_wrapper", getattr(config, "fx_wrapper", False)):
        raise UsageError(
            "fx_wrapper=True of torch._inductor.config: torch then loads the kernels into a graph as it "
            f"generates them, which needs the device. Set it to False for target={model.name!r}, or capture on "
            "a machine with "
            f"that device and without target="
        )


def check_devices(draft: Draft, gm: Any) -> None:
    """Record a refused call if a captured graph needs a second device, which the target lacks."""
    stand_in = draft.recorder.target.stand_in
    if stand_in is None:
        return
    from ..ground import source_places
    from ..ground.recorder_state import RefusedCall
    from . import device_refusals

    refusal = device_refusals.second_device_refusal(gm, stand_in.device)
    if refusal is not None:
        error, why, node = refusal
        draft.refused.append(
            RefusedCall("dynamo", error, why, source_places.frames(node.meta.get("stack_trace")))
        )


def check_library_call(draft: Draft, node: Any, nested: str) -> None:
    """Record a generated library call, Inductor's ``node``, if the device will refuse it. ``nested`` is the path of the
    containing body of a higher-order operator, which may not run."""
    target = draft.recorder.target
    if target.model is None or target.stand_in is None:
        return
    from ..ground import source_places
    from ..ground.recorder_state import RefusedCall
    from . import device_refusals

    target.stand_in.timing.product(node)
    called = getattr(node, "python_kernel_name", None) or getattr(node, "op_overload", None)
    refusal = device_refusals.refusal(target.model, str(called or ""), getattr(node, "inputs", ()))
    if refusal is None:
        return
    error, why = refusal
    origins = sorted(getattr(node, "origins", ()), key=str)
    frames = next(filter(None, (source_places.frames(one.meta.get("stack_trace")) for one in origins)), ())
    if nested or draft.phase == "backward":  # not run on this machine
        words = f"which the device refuses when it runs: {error} ({why})"
        target.stand_in.queries.put("called", str(called), words, frames[-1] if frames else None, once=True)
    else:
        draft.refused.append(RefusedCall(draft.phase, error, why, frames))


def model_and_caveats(draft: Draft, kernels: Sequence[Kernel]) -> tuple[str, tuple[str, ...]]:
    """Return the name of the model for which code was generated, and possible differences on the real device."""
    recorder = draft.recorder
    model = recorder.target.model
    if model is None:
        return "", ()
    if model.device == "cpu":
        return model.name, recorder.target.may_differ
    from ...record.graph import Graph
    from . import caveats

    captured = draft.stages.get("dynamo")
    stand_in = recorder.target.stand_in
    pads, splits = (True, True) if stand_in is None else stand_in.timing.take()
    graph = captured if isinstance(captured, Graph) else None
    return model.name, caveats.code_caveats(model, kernels, graph, pads=pads, splits=splits)
