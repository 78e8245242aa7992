"""The generator of random numbers of a device that is not there, of which torch hands copies through its graphs.

What a checkpoint computes again draws the same numbers: for CUDA the partitioner gives the forward and the backward a
generator each, ``fwd_rng_state_0`` and ``bwd_rng_state_0``, both copies of the device's own. Of a generator torch asks
there, and in Inductor, its device and a copy, and draws nothing from it.
"""

from __future__ import annotations

from typing import Any

import torch

from .device_interfaces import PHASE
from .replacements import Places, on

_STATE = 16
"""Bytes of the state of a generator of CUDA: a seed and an offset (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp)."""


def place(places: Places, device: torch.device) -> None:
    """Let ``torch.cuda.default_generators`` have the one of ``device`` while torch compiles, unless it is there."""
    if device.type != "cuda" or torch.cuda.default_generators:
        return
    places.add(setattr, torch.cuda, "default_generators", torch.cuda.default_generators)
    torch.cuda.default_generators = _Generators(_Generator())
    # Where Inductor of torch 2.15 asks.
    places.attribute(torch._C, "_accelerator_getDefaultGenerator", PHASE, lambda index: _Generator())


class _Generators(tuple):  # type: ignore[type-arg]
    """Those of the process, which are none, except where torch compiles."""

    _there: torch.Generator

    def __new__(cls, there: torch.Generator) -> _Generators:
        made = super().__new__(cls)
        made._there = there
        return made

    def __getitem__(self, index: Any) -> Any:
        return (self._there,)[index] if on(PHASE) else super().__getitem__(index)

    def __len__(self) -> int:
        return 1 if on(PHASE) else 0

    def __iter__(self) -> Any:
        return iter((self._there,) if on(PHASE) else ())


class _Generator(torch.Generator):  # type: ignore[misc]  # torch is not typed here
    """Says that it is the device's. Nothing is drawn from it: what would is not run."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)

    def clone_state(self) -> _Generator:
        return _Generator()

    def graphsafe_get_state(self) -> _Generator:
        return _Generator()

    def get_state(self) -> torch.Tensor:
        return torch.zeros(_STATE, dtype=torch.uint8, device="cpu")

    def __reduce__(self) -> Any:  # a copy is the device's too
        return _Generator, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Generator:
        return _Generator()
