"""The result of ``capture.memory_curve()`` as users hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..record.memory_curve import MemoryCurveRecord


class MemoryCurve(MemoryCurveRecord):
    """Result of ``capture.memory_curve()``: a ``MemoryCurveRecord`` with its views as methods."""

    def to_json(self) -> str:
        """Return the points as JSON text."""
        from ..record.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the curve to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.render.formats import MEMORY_CURVE, save
        from ..views.subjects.memory_curve import document

        return save(path, MEMORY_CURVE, lambda: document(self), json=self.to_json)

    def __repr__(self) -> str:
        return f"<MemoryCurve of {self.function}: {len(self.points)} budgets>"

    def __str__(self) -> str:
        from ..views.render.text import page
        from ..views.subjects.memory_curve import document

        return page(document(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.render.formats import mimebundle
        from ..views.subjects.memory_curve import document

        return mimebundle(lambda: document(self), include, exclude)
