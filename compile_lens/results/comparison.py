"""Results over several captures: targets side by side, the difference of two, and what-if trials."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import RecordError, UsageError
from ..record.codec import to_json
from ..record.comparison import Column, ComparisonRecord
from ..record.difference import DifferenceRecord
from ..record.what_if import WhatIfRecord
from .capture import Capture
from .document_forms import DocumentForms
from .text_forms import TextForms

if TYPE_CHECKING:
    from ..views.document import Document
    from ..views.live.compare import Shown
    from ..views.summaries.summary import Summary

FORMAT, VERSION = "compile_lens comparison", 1
"""Format name and schema version of a saved comparison."""


class _SideBySide(TextForms):
    """A result over several captures, whose page shows them side by side."""

    def _page(self, path: Path) -> str:
        from ..views.live.compare import page

        return page(cast("Shown", self))

    def _fragment(self) -> str:
        from ..views.live.compare import fragment

        return fragment(cast("Shown", self))


class Comparison(_SideBySide, ComparisonRecord):
    """Result of ``compile_lens.compare``: a ``ComparisonRecord`` with its views as methods."""

    _kind = "comparison"

    @property
    def captures(self) -> dict[str, Capture]:
        """Captures by target, for the targets that did not fail."""
        return cast("dict[str, Capture]", super().captures)

    @classmethod
    def of(cls, *captures: Capture) -> Comparison:
        """Return the comparison of existing captures, such as loaded records.

        A column is named by the capture's target, else by its device; equal names are numbered.
        """
        from ..measures.compare.table import side_by_side

        return side_by_side(cls, *captures)

    def to_json(self) -> str:
        """Return the comparison with its captures as JSON text, deterministically; see ``from_json``."""
        columns = [
            {
                "target": c.target,
                "failure": c.failure,
                "features": c.features,
                "capture": None if c.capture is None else json.loads(to_json(c.capture)),
            }
            for c in self.columns
        ]
        body = {
            "format": FORMAT,
            "schema_version": VERSION,
            "function": self.function,
            "columns": columns,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "differences": [dataclasses.asdict(one) for one in self.differences],
        }
        return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Return the comparison in a JSON text, without running code. Rows and differences are recomputed from the
        captures.

        Raise ``RecordError`` if it is no comparison, or a newer one.
        """
        from ..measures.compare.table import across

        try:
            body = json.loads(text)
            if body["format"] != FORMAT:
                raise ValueError(f"its format is {body['format']!r}")
            if body["schema_version"] > VERSION:
                newer = f"it has version {body['schema_version']}"
                raise ValueError(f"{newer}; this compile_lens reads up to {VERSION}")
            return across(str(body["function"]), tuple(map(_column, body["columns"])), cls)
        except RecordError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise RecordError(
                f"this is not a comparison: {why}; save one with comparison.save('x.json')"
            ) from None

    def __repr__(self) -> str:
        targets = ", ".join(f"{c.target} (failed)" if c.failure else c.target for c in self.columns)
        return f"<Comparison of {self.function} for {targets}>"

    def _summary(self) -> Summary:
        from ..views.summaries.comparison_summary import summary

        return summary(self)

    def _document(self) -> Document:
        from ..views.subjects.compare import document

        return document(self)


def _column(one: dict[str, Any]) -> Column:
    capture, features = one["capture"], one.get("features")
    return Column(
        str(one["target"]),
        None if capture is None else Capture.from_json(json.dumps(capture)),
        str(one["failure"]),
        None if features is None else tuple(str(f) for f in features),
    )


class Difference(_SideBySide, DifferenceRecord):
    """Result of ``compile_lens.diff``: a ``DifferenceRecord`` with its views as methods; false if nothing differs."""

    _kind = "difference"

    @property
    def summary(self) -> str:
        """The causes with their lines, the changed figures and the changed fusions, one line each."""
        from ..views.subjects.diff import summary

        return "\n".join(summary(self))

    def to_markdown(self) -> str:
        """Return the difference as Markdown, for a pull request."""
        from ..views.render.markdown import page

        return page(self._document())

    def __repr__(self) -> str:
        count = len(self.changes)
        changes = f"{count} change{'s' * (count > 1)}" if self else "nothing differs"
        return f"<Difference of {self.a} and {self.b}: {changes}>"

    def _summary(self) -> Summary:
        from ..views.summaries.diff_summary import summary

        return summary(self)

    def _document(self) -> Document:
        from ..views.subjects.diff import document

        return document(self)


class WhatIf(DocumentForms, WhatIfRecord):
    """Result of ``compile_lens.what_if``: a ``WhatIfRecord`` with methods.

    On the page that ``save("x.html")`` writes, each switch that changes a figure opens its difference and links to its
    live page, ``x-split_reductions.html`` in the same folder.
    """

    _kind = "outcome"

    def diff(self, name: str) -> Difference:
        """Return the difference that a switch makes at every level; raise ``UsageError`` if it was not captured."""
        from ..measures.diff.levels import difference

        captures = {trial.name: trial.capture for trial in self.trials if trial.capture is not None}
        if name not in captures:
            raise UsageError(f"{name!r} was not captured; captured were {', '.join(captures) or 'none'}")
        return difference(self.base, cast(Capture, captures[name]), Difference)

    def __repr__(self) -> str:
        best = self.helpful[0].name if self.helpful else "none of them helps"
        return f"<WhatIf of {self.function}: {len(self.trials)} trials, {best}>"

    def _document(self) -> Document:
        from ..views.subjects.what_if import document

        return document(self)

    def _page(self, path: Path) -> str:
        from ..views.exports import differences, save_pages
        from ..views.render.html import page

        return page(self._document(), differences(self, save_pages(self, path)))

    def _fragment(self) -> str:
        from ..views.exports import differences
        from ..views.render.html import fragment

        return fragment(self._document(), differences(self))
