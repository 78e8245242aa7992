"""Settings of torch's that each compiled form is made for, beside what the function is called with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from ...record.failed_guards import STATE

_READ: dict[str, Callable[[], Any]] = {
    "grad_mode": torch.is_grad_enabled,
    "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "deterministic_algorithms_warn_only": torch.is_deterministic_algorithms_warn_only_enabled,
    "autocast_cache_enabled": torch.is_autocast_cache_enabled,
    "allow_tf32": lambda: torch._C._get_cublas_allow_tf32(),
    "num_threads": torch.get_num_threads,
    "default_dtype": torch.get_default_dtype,
}
"""By the name that torch's guard has for each."""
_AUTOCAST = re.compile(r"autocast\((?P<device>\w+)\)_(?P<what>enabled|dtype)$")


def now(name: str) -> str:
    """What a setting is, by the name that torch has for it; ``""`` where that is not known."""
    autocast = _AUTOCAST.match(name)
    read = _READ.get(name)
    try:
        if autocast:
            device = autocast["device"].lower()
            dtype = autocast["what"] == "dtype"
            return str(torch.get_autocast_dtype(device) if dtype else torch.is_autocast_enabled(device))
        return "" if read is None else str(read())
    except RuntimeError:  # a device that this torch does not know, or settings that it cannot tell as one
        return ""


_KEPT = ("num_threads", "default_dtype", "autocast(cpu)_dtype", "autocast(cuda)_dtype")
"""Those that have more than two values: what one was is not known by what it is."""


def held() -> dict[str, str]:
    """What they are, as ``failed_guards.with_old`` takes it."""
    return {STATE + name: now(name) for name in _KEPT}
