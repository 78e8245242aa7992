"""A stand-in for a device's driver during compilation, so that no real device is queried."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from ..record.device import DeviceModel

LAUNCHES = "a Triton kernel can be launched only on the device, which is absent"


class ModelDriver:
    """A Triton driver whose queries are answered from a device model. It launches nothing."""

    def __init__(self, model: DeviceModel) -> None:
        self._model = model

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(
            "cuda", 10 * self._number("major") + self._number("minor"), self._number("warp_size")
        )

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        """Raise NotImplementedError: a launch queries this before it compiles."""
        raise NotImplementedError(LAUNCHES)

    def get_benchmarker(self) -> Any:
        """Raise NotImplementedError: a kernel queries this to time its configurations."""
        raise NotImplementedError(LAUNCHES)

    @property
    def launcher_cls(self) -> Any:
        raise NotImplementedError(LAUNCHES)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    @property
    def utils(self) -> Any:
        figures = {
            "max_shared_mem": self._number("shared_memory_per_block_optin"),
            "max_num_regs": self._number("regs_per_multiprocessor"),
            "multiprocessor_count": self._number("multi_processor_count"),
            "warpSize": self._number("warp_size"),
        }
        return types.SimpleNamespace(get_device_properties=lambda device: figures)

    def _number(self, name: str) -> int:
        value = self._model.figure(name)
        if not isinstance(value, int):
            raise LookupError(f"the device model {self._model.name} has no {name}")
        return value


@contextlib.contextmanager
def model_driver(model: DeviceModel) -> Iterator[None]:
    """Make the model's driver Triton's active driver for the duration."""
    from triton.runtime.driver import driver

    before = driver._active
    driver.set_active(ModelDriver(model))
    try:
        yield
    finally:
        driver._active = before
