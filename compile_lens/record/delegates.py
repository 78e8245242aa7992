"""Methods implemented in a higher room: drawing a graph, describing times, checking a capture.

Imports only go from higher rooms to lower ones. If a class of a lower room has a method that a higher room implements,
``compile_lens/__init__.py`` registers the implementation here, and it is imported when the method is called.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACES: dict[str, str] = {}
"""Implementation of ``"Class.method"``, as ``"module:name"`` of this package."""


def delegate(method: str) -> Any:
    """Import and return the implementation of ``"Class.method"``."""
    import importlib

    module, _, name = PLACES[method].partition(":")
    package = __name__.partition(".")[0]
    return getattr(importlib.import_module(f"{package}.{module}"), name)
