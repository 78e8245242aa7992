"""The result of ``divergence``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..record.divergence import DivergenceRecord
from .document_forms import DocumentForms

if TYPE_CHECKING:
    from ..views.document import Document


class Divergence(DocumentForms, DivergenceRecord):
    """Result of ``compile_lens.divergence``: a ``DivergenceRecord`` with its views as methods; true if the values
    agree.

    The page that ``save("x.html")`` writes and that of its code, ``x-code.html`` next to it, link to each other.
    """

    _kind = "divergence"

    def __bool__(self) -> bool:
        return self.agrees is True

    def to_markdown(self) -> str:
        """Return the divergence as Markdown, for an issue."""
        from ..views.render.markdown import page

        return page(self._document())

    def __repr__(self) -> str:
        cause = "" if self.cause is None else f", {self.cause.kind}"
        return f"<Divergence of {self.function}: {self.verification.verdict}{cause}>"

    def _document(self) -> Document:
        from ..views.subjects.divergence import document

        return document(self)

    def _page(self, path: Path) -> str:
        from ..views.exports import divergence_page

        return divergence_page(self, path)
