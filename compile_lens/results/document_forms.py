"""The files and displays of what users hold, each made of its Document."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..views.document import Document


class DocumentDisplay:
    """A subject with a Document: as text, and in a notebook."""

    def _document(self) -> Document:
        raise NotImplementedError

    def _fragment(self) -> str:
        """Return the HTML for a notebook."""
        from ..views.render.html import fragment

        return fragment(self._document())

    def _plain(self) -> str:
        """Return the text for what is no terminal."""
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
    """A display that is a file as well. ``_kind`` is its key in ``formats.FORMS``."""

    _kind = ""

    if TYPE_CHECKING:

        def to_dict(self) -> dict[str, Any]: ...

    def _page(self, path: Path) -> str:
        """Return the page for a browser, which will stand at ``path``."""
        from ..views.render.html import page

        return page(self._document())

    def to_json(self) -> str:
        """Return it as JSON text, without captures."""
        from ..record.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write it to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.render.formats import FORMS, save

        return save(
            path,
            FORMS[self._kind],
            self._document,
            html=lambda: self._page(Path(path).expanduser()),
            json=self.to_json,
        )
