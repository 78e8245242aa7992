"""The result of ``capture.memory_curve()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..record.memory_curve import MemoryCurveRecord
from .document_forms import DocumentForms

if TYPE_CHECKING:
    from ..views.document import Document


class MemoryCurve(DocumentForms, MemoryCurveRecord):
    """Result of ``capture.memory_curve()``: a ``MemoryCurveRecord`` with its views as methods."""

    _kind = "curve"

    def __repr__(self) -> str:
        return f"<MemoryCurve of {self.function}: {len(self.points)} budgets>"

    def _document(self) -> Document:
        from ..views.subjects.memory_curve import document

        return document(self)
