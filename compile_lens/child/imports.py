"""Import paths of a child process: modules are loaded from the caller's files.

A program file named like a standard module (``random.py``) shadows it only if it did so in the caller, which may have
imported the real one before the file's folder was on ``sys.path``.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, ClassVar

SITES = ("site-packages", "dist-packages")
"""Names of the folders of installed packages, in any environment."""


SCRIPT = ("__main__", "__mp_main__")
"""Module names of the program's script; multiprocessing imports it under the second in a worker that is not forked."""


def loaded() -> dict[str, str]:
    """Return the file of each top-level module that this process has imported, by name."""
    files = {}
    for name, module in list(sys.modules.items()):
        if "." not in name and name not in SCRIPT:
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                files[name] = file
    return files


def begin(path: list[str], files: dict[str, str]) -> None:
    """Import modules from ``files``, others from ``path``: the standard library and installed packages first."""
    kinds = sysconfig.get_paths()
    standard = tuple(os.path.join(kinds[key], "") for key in ("stdlib", "platstdlib"))
    installed = {kinds["purelib"], kinds["platlib"]}

    def order(place: str) -> int:
        if place in installed or os.path.basename(place) in SITES:
            return 1
        return 0 if os.path.join(place, "").startswith(standard) else 2

    sys.path[:] = sorted(path, key=order)
    CallerFinder.files = files
    sys.meta_path.insert(0, CallerFinder)


class CallerFinder:
    """Import finder that loads the caller's files and sets the caller's plain globals in the program's own modules."""

    files: ClassVar[dict[str, str]] = {}
    values: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = cls._caller_spec(name) if path is None and name in cls.files else None
        if name not in cls.values:
            return spec
        spec = spec or PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        real = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            real(module)
            vars(module).update(cls.values.get(name, {}))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    @classmethod
    def _caller_spec(cls, name: str) -> ModuleSpec | None:
        file = cls.files[name]
        folder, base = os.path.split(file)
        place = os.path.dirname(folder) if base.startswith("__init__.") else folder
        spec = PathFinder.find_spec(name, [place])
        return spec if spec is not None and spec.origin == file else None
