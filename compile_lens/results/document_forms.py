"""Files and displays of results, rendered from their Documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..views.document import Document


class DocumentDisplay:
    """A result with a Document, shown as text and in a notebook."""

    def _document(self) -> Document:
        raise NotImplementedError

    def _fragment(self) -> str:
        """Return the HTML for a notebook."""
        from ..views.render.html import fragment

        return fragment(self._document())

    def _plain(self) -> str:
        """Return the text for output other than a terminal."""
        from ..views.render.text import DEFAULT_WIDTH, page

        return page(self._document(), DEFAULT_WIDTH, ascii=False)

    def __str__(self) -> str:
        from ..views.render.text import page

        return page(self._document())

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        from ..views.render.formats import mimebundle

        return mimebundle(self._fragment, self._plain, include, exclude)


class DocumentForms(DocumentDisplay):
    """A display that can also be saved. ``_kind`` is its key in ``formats.FORMS``."""

    _kind = ""

    if TYPE_CHECKING:

        def to_dict(self) -> dict[str, Any]: ...

    def _page(self, path: Path) -> str:
        """Return the HTML page to be saved at ``path``."""
        from ..views.render.html import page

        return page(self._document())

    def to_json(self) -> str:
        """Return the result as JSON text, without captures."""
        from ..record.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the result to ``path`` atomically; the suffix selects the form: .html .md .txt .json.

        Raise ``UsageError`` for another suffix or an unwritable path.
        """
        from ..views.render.formats import FORMS, save

        return save(
            path,
            FORMS[self._kind],
            self._document,
            html=lambda: self._page(Path(path).expanduser()),
            json=self.to_json,
        )
