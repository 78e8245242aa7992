"""The random generator of an absent device, of which torch passes copies through its graphs.

A checkpoint draws the same numbers again: for CUDA the partitioner gives the forward and the backward a generator
each, ``fwd_rng_state_0`` and ``bwd_rng_state_0``, both copies of the device's own. There, and in Inductor, torch reads
a generator's device and copies it, and draws nothing from it.
"""

from __future__ import annotations

from typing import Any

import torch

from .device_interfaces import PHASE
from .replacements import Replacements, is_marked

_STATE = 16
"""Bytes of the state of a CUDA generator: a seed and an offset (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp)."""


def place(places: Replacements, device: torch.device) -> None:
    """Give ``torch.cuda.default_generators`` one for ``device`` while torch compiles, unless it is there."""
    if device.type != "cuda" or torch.cuda.default_generators:
        return
    places.add(setattr, torch.cuda, "default_generators", torch.cuda.default_generators)
    torch.cuda.default_generators = _Generators(_Generator())
    # Where Inductor of torch 2.15 asks.
    places.attribute(torch._C, "_accelerator_getDefaultGenerator", PHASE, lambda index: _Generator())


class _Generators(tuple):  # type: ignore[type-arg]
    """The generators of the process: none, except while torch compiles."""

    _there: torch.Generator

    def __new__(cls, there: torch.Generator) -> _Generators:
        generators = super().__new__(cls)
        generators._there = there
        return generators

    def __getitem__(self, index: Any) -> Any:
        return (self._there,)[index] if is_marked(PHASE) else super().__getitem__(index)

    def __len__(self) -> int:
        return 1 if is_marked(PHASE) else 0

    def __iter__(self) -> Any:
        return iter((self._there,) if is_marked(PHASE) else ())


class _Generator(torch.Generator):  # type: ignore[misc]  # torch is not typed here
    """A generator of the device. Nothing is drawn from it: code that would is not run."""

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
