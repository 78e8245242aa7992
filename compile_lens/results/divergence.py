"""The result of ``divergence`` as users hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..record.divergence import DivergenceRecord


class Divergence(DivergenceRecord):
    """Result of ``compile_lens.divergence``: a ``DivergenceRecord`` with its views as methods; true if the values
    agree."""

    def __bool__(self) -> bool:
        return self.agrees is True

    def to_markdown(self) -> str:
        """Return the divergence as Markdown, for an issue."""
        from ..views.render.markdown import page
        from ..views.subjects.divergence import document

        return page(document(self))

    def to_json(self) -> str:
        """Return the divergence as JSON text, without the capture."""
        from ..record.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the divergence to ``path``; the ending chooses the form: .html .md .txt .json.

        The page of ``x.html`` leads to that of its code, ``x-code.html`` beside it, and back. Each file appears whole
        or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.exports import divergence_page
        from ..views.render.formats import DIVERGENCE, save
        from ..views.subjects.divergence import document

        def html() -> str:
            return divergence_page(self, Path(path).expanduser())

        return save(path, DIVERGENCE, lambda: document(self), html=html, json=self.to_json)

    def __repr__(self) -> str:
        cause = "" if self.cause is None else f", {self.cause.kind}"
        return f"<Divergence of {self.function}: {self.verification.verdict}{cause}>"

    def __str__(self) -> str:
        from ..views.render.text import page
        from ..views.subjects.divergence import document

        return page(document(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.render.formats import mimebundle
        from ..views.subjects.divergence import document

        return mimebundle(lambda: document(self), include, exclude)
