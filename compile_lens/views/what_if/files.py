"""What switches would change, on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from compile_lens.record.what_if import WhatIfRecord
from compile_lens.views.files import form_of, write_text

FORMS = {
    ".html": "a page, with the difference of each switch beside it",
    ".md": "Markdown",
    ".txt": "the text page",
    ".json": "plain data",
}
"""Endings that ``save`` knows, and what each gives."""

PAGES = 12
"""Living pages of differences that stand beside one page; each holds both captures."""


def save(found: WhatIfRecord, path: str | Path) -> Path:
    """Write the outcome; the ending of ``path`` chooses the form (``FORMS``). Raises ``UsageError``.

    Beside ``x.html`` stand the living pages of its differences, ``x-split_reductions.html``, of the first ``PAGES``.
    """
    target = Path(path)
    makers: dict[str, Callable[[], str]] = {
        ".html": lambda: _html(found, target),
        ".md": lambda: _markdown(found),
        ".txt": lambda: _text(found),
        ".json": lambda: to_json(found),
    }
    return write_text(target, makers[form_of(target, FORMS)]())


def to_json(found: WhatIfRecord) -> str:
    """The JSON text of the outcome, without the captures."""
    return json.dumps(found.to_dict(), ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def _html(found: WhatIfRecord, target: Path) -> str:
    from compile_lens.views.difference.html import document as page_of

    from .html import document, of
    from .outline import rows

    pages: dict[str, str] = {}
    for trial in rows(found)[:PAGES]:
        name = re.sub(r"[^\w.]+", "-", trial.name)
        beside = target.with_name(f"{target.stem}-{name}{target.suffix}")
        write_text(beside, page_of(of(found, trial)))
        pages[trial.name] = beside.name
    return document(found, pages)


def _markdown(found: WhatIfRecord) -> str:
    from .markdown import page

    return page(found)


def _text(found: WhatIfRecord) -> str:
    from compile_lens.views.paper import DEFAULT_WIDTH

    from .text import page

    return page(found, width=DEFAULT_WIDTH, ascii=False)
