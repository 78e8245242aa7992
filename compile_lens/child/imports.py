"""Import paths of a child process: modules come from the files that the caller has them from.

A file of the program's that is called like one of Python's modules (``random.py``) hides that module from an import
only where it did so for the caller, who may have imported the real one before the file's folder was searched.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, ClassVar

SITES = ("site-packages", "dist-packages")
"""Names of folders of installed packages, also those of another environment than the running Python's."""


SCRIPT = ("__main__", "__mp_main__")
"""Names of the module that the program's script is: multiprocessing imports it again under the second, in a worker that
it does not fork."""


def loaded() -> dict[str, str]:
    """The files of the top-level modules that this process has imported, by name."""
    files = {}
    for name, module in list(sys.modules.items()):
        if "." not in name and name not in SCRIPT:
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                files[name] = file
    return files


def begin(path: list[str], files: dict[str, str]) -> None:
    """Import from ``files``, and what is not among them by ``path``, what is installed before all else."""
    kinds = sysconfig.get_paths()
    standard = tuple(os.path.join(kinds[key], "") for key in ("stdlib", "platstdlib"))
    installed = {kinds["purelib"], kinds["platlib"]}

    def order(place: str) -> int:
        if place in installed or os.path.basename(place) in SITES:
            return 1
        return 0 if os.path.join(place, "").startswith(standard) else 2

    sys.path[:] = sorted(path, key=order)
    AsThere.files = files
    sys.meta_path.insert(0, AsThere)


class AsThere:
    """Finds modules where the caller has them, and gives its own ones the plain globals that they have there."""

    files: ClassVar[dict[str, str]] = {}
    values: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = cls._there(name) if path is None and name in cls.files else None
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
    def _there(cls, name: str) -> ModuleSpec | None:
        file = cls.files[name]
        folder, base = os.path.split(file)
        place = os.path.dirname(folder) if base.startswith("__init__.") else folder
        spec = PathFinder.find_spec(name, [place])
        return spec if spec is not None and spec.origin == file else None
