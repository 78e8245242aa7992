"""Answers of the course as a notebook shows them: lines as they are, folded at the cell's edge."""

from __future__ import annotations

import html


class Shown:
    """Text that is its ``repr``; a notebook's page folds its long lines instead of cutting them."""

    def _repr_html_(self) -> str:
        look = "white-space:pre-wrap;overflow-wrap:break-word"
        return f'<pre style="{look}">{html.escape(repr(self))}</pre>'
