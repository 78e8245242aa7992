"""Late binding: the record hands out measures and views without importing them.

Data flows from the record to measures and views, and so do the imports. The few methods of the record that
hand out a measure or a view name it by its place, and it is loaded when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any


def late(place: str) -> Any:
    """The object at ``"module:name"`` of this package, imported now."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)
