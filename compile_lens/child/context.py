"""Context sent with every request: the caller's working directory, sys.path, argv, the plain globals of the program's
own modules, and source lines that exist only in memory."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import sysconfig
import types
import weakref
from typing import Any

import torch

from .imports import SCRIPT, SITES


def current() -> dict[str, Any]:
    """Return the context of this process; the child applies it before it loads the request."""
    return {
        "path": list(sys.path),
        "arguments": list(sys.argv),
        "folder": _folder(),
        "modules": _plain_globals(),
        "lines": {
            name: entry
            for name, entry in list(linecache.cache.items())
            if len(entry) == 4 and not os.path.exists(name) and not name.startswith("<eval_with_key>")
        },
    }


def versions_of_modules() -> dict[str, int]:
    """Return the modification time (ns) of each file of the program's own modules; a child that imported older ones is
    stale."""
    times = {}
    for name, module in own_modules().items():
        with contextlib.suppress(OSError, TypeError):  # a removed file cannot be imported again either
            times[name] = os.stat(str(module.__file__)).st_mtime_ns
    return times


def own_modules(script: bool = False) -> dict[str, Any]:
    """Return the program's own modules by name: neither standard library nor installed; with ``script`` its script
    too."""
    modules = {}
    there = sys.modules.copy()
    for name, module in there.items():
        known = _installed.get(name)
        if known is not None and known() is module:  # the common case, cached: a request looks several times
            continue
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            if file.startswith(INSTALLED):
                if isinstance(module, types.ModuleType):
                    _installed[name] = weakref.ref(module)
            elif script or name not in SCRIPT:
                modules[name] = module
    if len(_installed) > len(there):
        for name in _installed.copy().keys() - there.keys():
            _installed.pop(name, None)
    return modules


_installed: dict[str, weakref.ref[Any]] = {}
"""Weak references to known modules of Python and of installed packages, by name. Strong ones would keep the modules
alive past interpreter shutdown, which then warns of their unclosed files."""


INSTALLED = tuple(
    {
        *(
            os.path.join(sysconfig.get_paths()[key], "")
            for key in ("stdlib", "platstdlib", "purelib", "platlib")
        ),
        *(os.path.join(place, "") for place in sys.path if os.path.basename(place) in SITES),
        os.path.join(os.path.dirname(torch.__file__), ""),
        os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""),
    }
)


def _plain_globals() -> dict[str, dict[str, Any]]:
    values = {}
    for name, module in own_modules().items():
        held = {k: v for k, v in list(vars(module).items()) if not k.startswith("__") and plain(v)}
        if held:
            values[name] = held
    return values


_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype)


def plain(value: Any, depth: int = 3) -> bool:
    """Return True for a number, a string, None or a dtype, and for a small container of only such values."""
    if type(value) in (tuple, list, set, frozenset):
        return depth > 0 and len(value) <= 1000 and all(plain(v, depth - 1) for v in value)
    if type(value) is dict:
        return (
            depth > 0 and len(value) <= 1000 and all(plain(v, depth - 1) for kv in value.items() for v in kv)
        )
    return type(value) in _PLAIN


def process_group() -> tuple[int, int] | None:
    """Return the rank of this process and the number of processes, if the program has a default process group."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed meanwhile
        return ""
