"""The stand-in for an absent device during one capture."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from collections.abc import Iterator
from typing import Any

import torch

from ...record.device import DeviceModel
from . import (
    accelerator,
    attention,
    autocast,
    cpu_backed_tensors,
    cudnn,
    device_interfaces,
    device_queries,
    fallbacks,
    query_observers,
    target_inputs,
    timing_decisions,
)
from .replacements import Replacements, marked

_STAND_IN_LOCK = threading.RLock()

SETTINGS = {
    "shape_padding": False,  # decided by timing on the device
    "triton.autotune_at_compile_time": False,
    "freezing": False,  # computes with weights on the device
    "triton.cudagraphs": False,  # recorded by the device's driver
    **{setting.name: False for setting in timing_decisions.TIMED},
}
"""Inductor's settings that would need the device, turned off. Templates that it would time are recorded instead
(``contests.py``)."""

TEMPLATES = {"max_autotune": False, "max_autotune_gemm": False}
"""Settings that need Triton to generate templates."""


class StandIn:
    """A stand-in for a GPU, from its model."""

    def __init__(self, model: DeviceModel) -> None:
        self.model = model
        self.device = torch.device(model.device, 0)
        self.queries = device_queries.DeviceQueries()
        self.timing = timing_decisions.TimingDecisions()
        self._records = False  # True if the real device would record CUDA graphs

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Install the stand-in for captures on this thread; other threads' captures wait."""
        with _STAND_IN_LOCK:
            query_observers.prepare()
            with Replacements() as places, places:
                # Code that torch itself compiles for untraced Python (FlexAttention) refers to the device.
                places.add(torch._dynamo.reset)
                device_interfaces.clear_caches(places)
                accelerator.place(places, self.model.device, self._major())
                device_interfaces.place(places, self.model, self.queries)
                attention.place(places, self.model, self.queries)
                cudnn.place(places, self.model.device)
                fallbacks.place(places, self.device, self.queries)
                target_inputs.place(places, device_interfaces.MARK, self.device)
                cpu_backed_tensors.place(places, self.device)
                device_interfaces.place_generator(places, self.device)
                autocast.place(places, self.model.device, self.queries)
                query_observers.place(places, self.model.device, self.queries)
                self.timing.place(places)
                self._as_recorded(places)
                # Dynamo reads it too, and frozen weights would be on the CPU.
                places.enter(torch._inductor.config.patch(freezing=False))
                if timing_decisions.profiles_memory_budget():
                    places.enter(torch._functorch.config.patch({timing_decisions.MEMORY_BUDGET: "flops"}))
                with marked(device_interfaces.MARK):
                    yield

    def _as_recorded(self, places: Replacements) -> None:
        """Move constructors to the device as the real device would: with CUDA graphs, which are off here, Inductor
        moves more."""
        import torch._inductor.config as config
        from torch._inductor.fx_passes import post_grad

        real = getattr(post_grad, "move_constructors_to_gpu", None)

        def move(graph: Any) -> None:
            with config.patch({"triton.cudagraphs": self._records}):
                real(graph)  # type: ignore[misc]  # called only if torch has it

        places.attribute(post_grad, "move_constructors_to_gpu", device_interfaces.PHASE, move)

    def _major(self) -> int:
        major = self.model.figure("major")
        return major if isinstance(major, int) else 0

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return overrides for Inductor's settings that would need the device, where this torch has them; ``asked`` are
        the caller's settings."""
        import torch._inductor.config as config

        known = config.get_config_copy() if hasattr(config, "get_config_copy") else {}
        ours = SETTINGS if importlib.util.find_spec("triton") is not None else {**SETTINGS, **TEMPLATES}
        recorded = "triton.cudagraphs"
        self._records = bool(asked.get(recorded, known.get(recorded)))
        pads = {name: asked.get(name, known.get(name)) for name in ("shape_padding", "force_shape_pad")}
        self.timing.may_pad = bool(pads["shape_padding"])
        if all(pads.values()):  # padding is forced, without timing
            ours = {name: value for name, value in ours.items() if name != "shape_padding"}
        return {name: value for name, value in ours.items() if not known or name in known}
