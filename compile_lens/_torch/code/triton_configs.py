"""Inductor's compile of a Triton kernel: its launch configurations, and the input of Triton's compiler for each.

A kernel's text is a Python module whose decorators create Inductor's autotuner. Nothing here launches it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from ..._triton.assembly import Recipe


@contextlib.contextmanager
def without_device() -> Iterator[None]:
    """Let a kernel's text run, for the duration, without selecting a driver or an earlier run's configuration."""
    from torch._inductor.runtime import triton_helpers, triton_heuristics

    with contextlib.ExitStack() as stack:
        # The module selects the GPU's driver in one of its first lines.
        if hasattr(triton_helpers, "set_driver_to_gpu"):
            stack.enter_context(mock.patch.object(triton_helpers, "set_driver_to_gpu", _do_nothing))
        # The best configuration of an earlier run, read from torch's cache, would hide the others.
        cache = getattr(triton_heuristics, "AutotuneCache", None)
        if hasattr(cache, "create"):
            stack.enter_context(mock.patch.object(cache, "create", staticmethod(_do_nothing)))
        yield


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def configurations(tuner: Any) -> tuple[Any, ...]:
    """Return the launch configurations that an autotuner would time, in its order."""
    return tuple(tuner.configs)


def settings(configuration: Any) -> tuple[tuple[str, int], ...]:
    """Return the settings of a launch configuration by name: block sizes first, then warps and stages."""
    named = [(str(k), int(v)) for k, v in configuration.kwargs.items() if isinstance(v, int)]
    named += [("num_warps", int(configuration.num_warps)), ("num_stages", int(configuration.num_stages))]
    if (getattr(configuration, "num_ctas", 1) or 1) > 1:
        named.append(("num_ctas", int(configuration.num_ctas)))
    if getattr(configuration, "maxnreg", None) is not None:
        named.append(("maxnreg", int(configuration.maxnreg)))
    return tuple(named)


def recipe(tuner: Any, configuration: Any) -> Recipe:
    """Return Inductor's input to Triton's compiler for a launch configuration."""
    meta = tuner._create_compile_meta(configuration)
    options = tuner._create_compile_options(configuration, meta)
    properties = tuner.device_props
    return Recipe(
        function=tuner.fn,
        signature=meta["signature"],
        constants=meta["constants"],
        attributes=meta["configs"][0],
        options=options,
        backend=str(meta["device_type"]),
        arch=meta["cc"],
        warp_size=int(getattr(properties, "warp_size", None) or 32),
    )
