"""Result of what-if trials, with the methods that users call."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..record.what_if import WhatIfRecord
from .capture import Capture
from .difference import Difference


class WhatIf(WhatIfRecord):
    """Result of ``compile_lens.what_if``: a ``WhatIfRecord`` with methods."""

    def diff(self, name: str) -> Difference:
        """Return the difference that a switch makes at every level. Raises ``UsageError`` for one that was not
        captured."""
        from ..measures.diff.levels import difference

        captures = {trial.name: trial.capture for trial in self.trials if trial.capture is not None}
        if name not in captures:
            raise UsageError(f"{name!r} was not captured; captured were {', '.join(captures) or 'none'}")
        return difference(self.base, cast(Capture, captures[name]), Difference)

    def to_json(self) -> str:
        """The outcome as JSON text, without the captures."""
        from ..views.render.files import plain_json

        return plain_json(self.to_dict())

    def save(self, path: str | Path) -> Path:
        """Write the outcome to ``path``; the ending chooses the form: .html .md .txt .json.

        On the page of ``x.html`` each switch that changes a figure opens its difference, and leads to its living page,
        ``x-split_reductions.html`` beside it. Each file appears whole or not at all. Raises ``UsageError`` for another
        ending or an unwritable place.
        """
        from ..views.exports import differences, save_pages
        from ..views.render.files import WHAT_IF, save
        from ..views.render.html import page
        from ..views.subjects.what_if import document

        def html() -> str:
            return page(document(self), differences(self, save_pages(self, Path(path).expanduser())))

        return save(path, WHAT_IF, lambda: document(self), html=html, json=self.to_json)

    def __repr__(self) -> str:
        best = self.helpful[0].name if self.helpful else "none of them helps"
        return f"<WhatIf of {self.function}: {len(self.trials)} trials, {best}>"

    def __str__(self) -> str:
        from ..views.render.text import page
        from ..views.subjects.what_if import document

        return page(document(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ..views.exports import differences
        from ..views.render.files import mimebundle
        from ..views.subjects.what_if import document

        return mimebundle(lambda: document(self), include, exclude, lambda: differences(self))
