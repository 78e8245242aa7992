"""A comparison of targets as users hold it: rows and differences, with the captures and the views at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ..record.comparison import ComparisonRecord
from .capture import Capture


class Comparison(ComparisonRecord):
    """What ``compile_lens.compare`` returns: a ``ComparisonRecord``, and what can be asked of it."""

    @property
    def captures(self) -> dict[str, Capture]:
        """The captures by target, of the targets that did not fail."""
        return cast("dict[str, Capture]", super().captures)

    @classmethod
    def of(cls, *captures: Capture) -> Comparison:
        """The comparison of captures that are there already, such as records that were loaded.

        A column is named by the capture's target, else by its device; equal names are numbered.
        """
        from ..measures.compare.table import side_by_side

        return side_by_side(cls, *captures)

    def to_json(self) -> str:
        """The comparison with its captures as JSON text; ``from_json`` gives an equal one back."""
        from ..views.comparison.files import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """A comparison from its JSON text. Runs no code. Raises ``RecordError`` if it is not one."""
        from ..views.comparison.files import from_json

        return from_json(text, cls, Capture)

    def save(self, path: str | Path) -> Path:
        """Write the comparison to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.comparison.files import save

        return save(self, path)

    def __repr__(self) -> str:
        said = ", ".join(f"{c.target} (failed)" if c.failure else c.target for c in self.columns)
        return f"<Comparison of {self.function} for {said}>"

    def __str__(self) -> str:
        from ..views.comparison.text import page

        return page(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.comparison.html import mimebundle

        return mimebundle(self, include, exclude)
