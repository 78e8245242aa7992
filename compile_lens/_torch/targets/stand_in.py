"""Stands in for an absent device while one capture runs."""

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

_turn = threading.RLock()

SETTINGS = {
    "shape_padding": False,  # whether padding pays off is timed on the device
    "triton.autotune_at_compile_time": False,
    "freezing": False,  # computes with weights on the device
    "triton.cudagraphs": False,  # recorded by the device's driver
    **{setting.name: False for setting in timing_decisions.TIMED},
}
"""Inductor's settings that would need the device. Templates that it would time are recorded instead
(``contests.py``)."""

TEMPLATES = {"max_autotune": False, "max_autotune_gemm": False}
"""Settings that generate templates, for which Triton must be installed."""


class StandIn:
    """A stand-in for a GPU, from its model."""

    def __init__(self, model: DeviceModel) -> None:
        self.model = model
        self.device = torch.device(model.device, 0)
        self.queries = device_queries.DeviceQueries()
        self.timing = timing_decisions.TimingDecisions()
        self._records = False  # whether a present device would record the compiled code as CUDA graphs

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """For the duration this thread's captures find the device. Those of other threads wait."""
        with _turn:
            query_observers.prepare()
            with Replacements() as places, places:
                # What torch itself compiled meanwhile for Python that is not traced (FlexAttention) names the device.
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
                # Dynamo asks for it too: weights that are frozen are the CPU's.
                places.enter(torch._inductor.config.patch(freezing=False))
                if timing_decisions.profiles_memory_budget():
                    places.enter(torch._functorch.config.patch({timing_decisions.MEMORY_BUDGET: "flops"}))
                with marked(device_interfaces.MARK):
                    yield

    def _as_recorded(self, places: Replacements) -> None:
        """Move constructors to the device as with CUDA graphs, with which Inductor does so for more of them; the code
        here is generated without."""
        import torch._inductor.config as config
        from torch._inductor.fx_passes import post_grad

        real = getattr(post_grad, "move_constructors_to_gpu", None)

        def move(graph: Any) -> None:
            with config.patch({"triton.cudagraphs": self._records}):
                real(graph)  # type: ignore[misc]  # placed where torch has it alone

        places.attribute(post_grad, "move_constructors_to_gpu", device_interfaces.PHASE, move)

    def _major(self) -> int:
        major = self.model.figure("major")
        return major if isinstance(major, int) else 0

    def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return Inductor's settings that would need the device, as far as the running torch has them. ``asked`` are
        the caller's."""
        import torch._inductor.config as config

        known = config.get_config_copy() if hasattr(config, "get_config_copy") else {}
        ours = SETTINGS if importlib.util.find_spec("triton") is not None else {**SETTINGS, **TEMPLATES}
        recorded = "triton.cudagraphs"
        self._records = bool(asked.get(recorded, known.get(recorded)))
        pads = {name: asked.get(name, known.get(name)) for name in ("shape_padding", "force_shape_pad")}
        self.timing.may_pad = bool(pads["shape_padding"])
        if all(pads.values()):  # it pads, and times nothing
            ours = {name: value for name, value in ours.items() if name != "shape_padding"}
        return {name: value for name, value in ours.items() if not known or name in known}
