"""Runs the definition of a kernel, which is a Python module, and hands out what its decorators made."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

from ..errors import BuildError
from .page import KERNEL_FILE

MODULE = "_compile_lens_kernel"


def run(source: str, name: str) -> Any:
    """The autotuner that Inductor's decorators make of the function ``name``.

    Triton reads the function's text by its file and line; both are given without writing a file, so that its
    lines are those of ``source`` and its file has the same name on every machine.

    Raises:
        BuildError: if the text defines no such kernel. Whatever the text raises is not caught.
    """
    module = types.ModuleType(MODULE)
    module.__file__ = KERNEL_FILE
    shadowed = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    linecache.cache[KERNEL_FILE] = (len(source), None, source.splitlines(keepends=True), KERNEL_FILE)
    try:
        exec(compile(source, KERNEL_FILE, "exec"), vars(module))
        found = vars(module).get(name)
        if not _is_tuner(found):
            tuners = [value for value in vars(module).values() if _is_tuner(value)]
            if len(tuners) != 1:  # the wrapper may call a kernel otherwise than its text does
                raise BuildError(f"its text defines no kernel {name!r}")
            found = tuners[0]
        return found
    finally:
        linecache.cache.pop(KERNEL_FILE, None)
        del sys.modules[MODULE]
        if shadowed is not None:
            sys.modules[MODULE] = shadowed


def _is_tuner(value: Any) -> bool:
    return hasattr(value, "configs") and hasattr(value, "fn")
