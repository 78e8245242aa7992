"""Compiler Explorer for ``torch.compile``: every form that a function takes on its way to machine code.

Importing this is instant and changes nothing: a name loads what it needs when it is first used.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ablate import ablate
    from .assemble import assemble
    from .benchmark import benchmark
    from .capture import backend, capture, device, last, show
    from .compare import compare
    from .errors import (
        BuildError,
        CaptureError,
        LayoutError,
        LensError,
        RecordError,
        StageMissing,
        UsageError,
    )
    from .record import Capture
    from .speed import measure_speed
    from .support import support
    from .views.files import load

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "Capture",
    "CaptureError",
    "LayoutError",
    "LensError",
    "RecordError",
    "StageMissing",
    "UsageError",
    "ablate",
    "assemble",
    "backend",
    "benchmark",
    "capture",
    "compare",
    "device",
    "last",
    "load",
    "measure_speed",
    "show",
    "support",
]

_HOMES = {
    "Capture": "record",
    "ablate": "ablate",
    "assemble": "assemble",
    "benchmark": "benchmark",
    "compare": "compare",
    "load": "views.files",
    "measure_speed": "speed",
    "support": "support",
    **{name: "errors" for name in __all__ if name.endswith("Error") or name == "StageMissing"},
    **{name: "capture" for name in ("backend", "capture", "device", "last", "show")},
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


class _Package(types.ModuleType):
    """Keeps ``compile_lens.capture`` the function that it is documented to be.

    Python binds a submodule as an attribute of its package once it is imported, whoever imports it, so the
    module ``capture`` would take the place of the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, types.ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
