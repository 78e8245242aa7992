"""Stands in for a device that is not in the machine while one capture runs."""

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
    convolutions,
    fallbacks,
    heard,
    held,
    interfaces,
    questions,
    sight,
)
from .replaced import Places, marked

_one_at_a_time = threading.RLock()

SETTINGS = {
    "shape_padding": False,  # whether padding pays off is timed on the device
    "coordinate_descent_tuning": False,
    "triton.autotune_at_compile_time": False,
    "triton.cudagraphs": False,  # recorded by the device's driver
}
"""Inductor's settings that would need the device. Templates that it would time are kept instead (``contests.py``)."""

TEMPLATES = {"max_autotune": False, "max_autotune_gemm": False}
"""Settings that have templates written, for which Triton must be here."""


class StandIn:
    """A GPU by its model: what the backend does otherwise than for a device that is there."""

    def __init__(self, model: DeviceModel) -> None:
        self.model = model
        self.device = torch.device(model.device, 0)
        self.questions = questions.Questions()

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """For the duration this thread's captures find the device. Those of other threads wait."""
        with _one_at_a_time:
            heard.prepare()
            with Places() as places, places:
                interfaces.forget(places)
                accelerator.place(places, self.model.device, self._major())
                interfaces.place(places, self.model)
                attention.place(places, self.model, self.questions)
                convolutions.place(places, self.model.device, self._major())
                fallbacks.place(places, self.device, self.questions)
                sight.place(places, interfaces.MARK, self.device)
                held.place(places, self.device)
                autocast.place(places, self.model.device, self.questions)
                heard.place(places, self.model.device, self.questions)
                with marked(interfaces.MARK):
                    yield

    def _major(self) -> int:
        major = self.model.figure("major")
        return major if isinstance(major, int) else 0

    def settings(self) -> dict[str, Any]:
        """Inductor's settings that would need the device, as far as the running torch has them."""
        import torch._inductor.config as config

        known = config.get_config_copy() if hasattr(config, "get_config_copy") else {}
        ours = SETTINGS if importlib.util.find_spec("triton") is not None else {**SETTINGS, **TEMPLATES}
        return {name: value for name, value in ours.items() if not known or name in known}
