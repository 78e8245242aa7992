"""Stands in for a device that is not in the machine while one capture runs."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx

from ...record.device import DeviceModel
from . import attention, heard, interfaces, overheard, passes, questions, registry
from .replaced import Places, marked
from .retarget import moved, retargeted

_one_at_a_time = threading.RLock()

SETTINGS = {
    "shape_padding": False,  # whether padding pays off is timed on the device
    "max_autotune": False,  # so are templates,
    "max_autotune_gemm": False,
    "max_autotune_pointwise": False,
    "coordinate_descent_tuning": False,
    "triton.autotune_at_compile_time": False,
    "triton.cudagraphs": False,  # recorded by the device's driver
}
"""Inductor's settings that would need the device."""


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
                registry.place(places, self.model.device)
                interfaces.place(places, self.model)
                attention.place(places, self.model)
                passes.place(places, self.device)
                heard.place(places, self.questions)
                overheard.place(places, self.questions)
                with marked(interfaces.MARK):
                    yield

    def in_phase(self) -> contextlib.AbstractContextManager[None]:
        """For the duration Inductor is told that the device is available."""
        return marked(interfaces.PHASE) if self.model.device == "cuda" else contextlib.nullcontext()

    def graph(self, gm: torch.fx.GraphModule, inputs: Sequence[Any] = ()) -> torch.fx.GraphModule:
        """A graph of AOTAutograd's on the device, in the operators that Inductor takes."""
        from torch._inductor.decomposition import select_decomp_table

        return retargeted(gm, self.device, select_decomp_table(), inputs)

    def passes(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Inductor's joint passes, told that inputs are on the CPU: patterns are of no device, and traced there."""

        def run(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
            names = list(inspect.signature(real).parameters)[1 : 1 + len(args)]
            given = {**dict(zip(names, args)), **kwargs, "input_device": passes.CPU}
            with self.in_phase():
                return real(gm, **given)

        return run

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """Fake tensors on the device."""
        return [moved(value, self.device) for value in values]

    def settings(self) -> dict[str, Any]:
        """Inductor's settings that would need the device, as far as the running torch has them."""
        import torch._inductor.config as config

        known = config.get_config_copy() if hasattr(config, "get_config_copy") else {}
        return {name: value for name, value in SETTINGS.items() if not known or name in known}
