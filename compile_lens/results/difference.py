"""The difference of two captures as users hold it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..record.difference import DifferenceRecord


class Difference(DifferenceRecord):
    """What ``compile_lens.diff`` returns: a ``DifferenceRecord``, and what can be asked of it; false if nothing
    differs."""

    @property
    def summary(self) -> str:
        """The cause with its line, what it came to, and what it keeps apart, a line each."""
        from ..views.difference.outline import summary

        return "\n".join(summary(self))

    def to_markdown(self) -> str:
        """The difference as Markdown, for a pull request."""
        from ..views.difference.markdown import page

        return page(self)

    def to_json(self) -> str:
        """The difference as JSON text."""
        from ..views.difference.files import to_json

        return to_json(self)

    def save(self, path: str | Path) -> Path:
        """Write the difference to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.difference.files import save

        return save(self, path)

    def __repr__(self) -> str:
        count = len(self.changes)
        said = f"{count} change{'s' * (count > 1)}" if self else "nothing differs"
        return f"<Difference of {self.a} and {self.b}: {said}>"

    def __str__(self) -> str:
        from ..views.difference.text import page

        return page(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.difference.html import mimebundle

        return mimebundle(self, include, exclude)
