"""The difference of two captures as users hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..record.difference import DifferenceRecord


class Difference(DifferenceRecord):
    """Result of ``compile_lens.diff``: a ``DifferenceRecord`` with its views as methods; false if nothing differs."""

    @property
    def summary(self) -> str:
        """The causes with their lines, the figures that follow, and the fusion that changed, a line each."""
        from ..views.subjects.diff import summary

        return "\n".join(summary(self))

    def to_markdown(self) -> str:
        """The difference as Markdown, for a pull request."""
        from ..views.render.markdown import page
        from ..views.subjects.diff import document

        return page(document(self))

    def to_json(self) -> str:
        """The difference as JSON text, without the captures."""
        from ..views.render.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the difference to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.live.diff import page
        from ..views.render.files import DIFFERENCE, save
        from ..views.subjects.diff import document

        return save(path, DIFFERENCE, lambda: document(self), html=lambda: page(self), json=self.to_json)

    def __repr__(self) -> str:
        count = len(self.changes)
        changes = f"{count} change{'s' * (count > 1)}" if self else "nothing differs"
        return f"<Difference of {self.a} and {self.b}: {changes}>"

    def __str__(self) -> str:
        from ..views.render.text import page
        from ..views.subjects.diff import document

        return page(document(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.live.diff import live
        from ..views.render.files import mimebundle
        from ..views.subjects.diff import document

        return mimebundle(lambda: document(self), include, exclude, live=lambda: live(self))
