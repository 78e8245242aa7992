"""Packages that are installed: which of them use torch, as a model's does, and which only happen to run meanwhile, as a
notebook's kernel does."""

from __future__ import annotations

import functools
import re
import sys
import types
from typing import Any

_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")


def without_torch(file: str) -> bool:
    """Whether a file is of an installed package of which no module that is loaded uses torch."""
    found = _PACKAGES.findall(file)
    # What is loaded later may use it.
    return bool(found) and not _uses_torch(found[-1].partition(".")[0], len(sys.modules))


@functools.lru_cache(maxsize=1024)
def _uses_torch(package: str, _loaded: int) -> bool:
    inside = f"{package}."
    names = [name for name in list(sys.modules) if name == package or name.startswith(inside)]
    return any(_imports(name, len(_globals(name))) for name in names)


@functools.cache
def _imports(module: str, _count: int) -> bool:
    return any(_of_torch(value) for value in list(_globals(module).values()))


def _globals(module: str) -> dict[str, Any]:
    found = sys.modules.get(module)
    return vars(found) if isinstance(found, types.ModuleType) else {}


def _of_torch(value: Any) -> bool:
    """Whether a global is a module, a function or a class of torch, or a class that derives from one of its own."""
    if isinstance(value, types.ModuleType):
        return _named(vars(value).get("__name__"))
    if isinstance(value, type):
        return any(_named(vars(base).get("__module__")) for base in type.mro(value))
    return isinstance(value, types.FunctionType) and _named(value.__module__)


def _named(module: object) -> bool:
    return isinstance(module, str) and (module == "torch" or module.startswith("torch."))
