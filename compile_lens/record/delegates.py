"""Methods whose work a room above does: a graph drawn, times in words, a capture checked.

Data come up through the rooms, and so imports go down. Where something that users hold from a lower room can be
asked for what a higher one makes, the package's face says which place makes it, and it is loaded when it is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACES: dict[str, str] = {}
"""For ``"Class.method"`` the place that makes it, as ``"module:name"`` of this package."""


def delegate(method: str) -> Any:
    """The function at the place of ``"Class.method"``, imported now."""
    import importlib

    module, _, name = PLACES[method].partition(":")
    package = __name__.partition(".")[0]
    return getattr(importlib.import_module(f"{package}.{module}"), name)
