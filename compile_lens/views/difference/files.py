"""Differences on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from compile_lens.record.difference import DifferenceRecord
from compile_lens.views.render.files import form_of, write_text

FORMS = {
    ".html": "one page, for a browser",
    ".md": "Markdown, for a pull request",
    ".txt": "the text page",
    ".json": "plain data",
}
"""Endings that ``save`` knows, and what each gives."""


def save(found: DifferenceRecord, path: str | Path) -> Path:
    """Write a difference; the ending of ``path`` chooses the form (``FORMS``). Raises ``UsageError``."""
    target = Path(path)
    makers: dict[str, Callable[[DifferenceRecord], str]] = {
        ".html": _html,
        ".md": _markdown,
        ".txt": _text,
        ".json": to_json,
    }
    return write_text(target, makers[form_of(target, FORMS)](found))


def to_json(found: DifferenceRecord) -> str:
    """The JSON text of a difference. The same difference gives the same text."""
    return json.dumps(found.to_dict(), ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _html(found: DifferenceRecord) -> str:
    from .html import document

    return document(found)


def _markdown(found: DifferenceRecord) -> str:
    from .markdown import page

    return page(found)


def _text(found: DifferenceRecord) -> str:
    from compile_lens.views.render.text import DEFAULT_WIDTH

    from .text import page

    return page(found, width=DEFAULT_WIDTH, ascii=False)
