"""Runs the definition of a kernel, which is a Python module, and hands out what its decorators made."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

from .page import KERNEL_FILE

MODULE = "_compile_lens_kernel"


def run(source: str, name: str) -> Any:
    """The autotuner that Inductor's decorators make of the function ``name``.

    Triton reads the function's text by its file and line; both are given without writing a file, so that its
    lines are those of ``source`` and its file has the same name on every machine.

    Raises:
        LookupError: if the text defines no such kernel, and whatever the text raises.
    """
    module = types.ModuleType(MODULE)
    module.__file__ = KERNEL_FILE
    shadowed = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    linecache.cache[KERNEL_FILE] = (len(source), None, source.splitlines(keepends=True), KERNEL_FILE)
    try:
        exec(compile(source, KERNEL_FILE, "exec"), vars(module))
        found = vars(module).get(name) or _only(module)
        if found is None:
            raise LookupError(f"its text defines no kernel {name!r}")
        return found
    finally:
        linecache.cache.pop(KERNEL_FILE, None)
        del sys.modules[MODULE]
        if shadowed is not None:
            sys.modules[MODULE] = shadowed


def _only(module: types.ModuleType) -> Any:
    """The one autotuner of the module: the wrapper may call a kernel otherwise than its text does."""
    tuners = [v for v in vars(module).values() if hasattr(v, "configs") and hasattr(v, "fn")]
    return tuners[0] if len(tuners) == 1 else None
