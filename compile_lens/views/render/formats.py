"""Writes a Document in the format named by the suffix of a path or by a MIME type."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from compile_lens.errors import UsageError
from compile_lens.record.files import check_place, path_of, write_text

from ..document import Document

_PAGES = {".html": "the report, for a browser", ".md": "Markdown", ".txt": "the text page"}

CAPTURE = {
    ".html": _PAGES[".html"],
    ".json": "the record itself, for compile_lens.load",
    ".svg": "pictures of the graphs",
    ".md": "Markdown",
    ".txt": "the text page",
}
PROGRAM = {**_PAGES, ".json": "the record itself, for compile_lens.Program.load"}
RANKS = {**_PAGES, ".html": "one page, for a browser", ".json": "what differs, as plain data"}
WHAT_IF = {
    **_PAGES,
    ".html": "a page, with the difference of each switch beside it",
    ".json": "plain data",
}
COMPARISON = {**_PAGES, ".html": "one page, for a browser", ".json": "the captures and their differences"}
DIFFERENCE = {
    ".html": "one page, for a browser",
    ".md": "Markdown, for a pull request",
    ".txt": "the text page",
    ".json": "plain data",
}
DIVERGENCE = {**_PAGES, ".json": "plain data"}
MEMORY_CURVE = {**_PAGES, ".html": "one page, for a browser", ".json": "plain data"}
FORMS = {
    "capture": CAPTURE,
    "program": PROGRAM,
    "ranks": RANKS,
    "outcome": WHAT_IF,
    "comparison": COMPARISON,
    "difference": DIFFERENCE,
    "divergence": DIVERGENCE,
    "curve": MEMORY_CURVE,
}
"""Suffixes that ``save`` accepts for each subject, with their meanings."""


def save(
    path: str | os.PathLike[str],
    forms: Mapping[str, str],
    document: Callable[[], Document],
    **others: Callable[[], str],
) -> Path:
    """Write a Document in the one of ``forms`` named by the suffix of ``path``.

    Args:
        others: writers of other suffixes, or replacements for a default writer: ``json=…``.

    Raises:
        UsageError: the suffix is not in ``forms``, or the path is not writable.
    """
    from . import html, markdown, text

    target = path_of(path)
    form = form_of(target, forms)
    check_place(target)
    writers: dict[str, Callable[[], str]] = {
        "html": lambda: html.page(document()),
        "md": lambda: markdown.page(document()),
        "txt": lambda: text.page(document(), text.DEFAULT_WIDTH, ascii=False),
        **others,
    }
    return write_text(target, writers[form[1:]]())


def form_of(target: Path, forms: Mapping[str, str]) -> str:
    """Return the suffix of a path. Raises ``UsageError`` if it is not in ``forms``."""
    form = target.suffix.lower()
    if form not in forms:
        valid = ", ".join(f"{ending} ({what})" for ending, what in forms.items())
        problem = f"ends in {target.suffix!r}" if target.suffix else "has no file extension"
        raise UsageError(f"cannot save as {str(target)!r}: the name {problem}; use one of {valid}")
    return form


def mimebundle(
    fragment: Callable[[], str],
    plain: Callable[[], str],
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
) -> dict[str, str]:
    """Return the HTML and the text of a subject by MIME type, for IPython.

    Args:
        include: MIME types to return; ``None`` for all.
        exclude: MIME types to omit, even if included.
    """
    writers = {"text/plain": plain, "text/html": fragment}
    wanted = (set(writers) if include is None else set(include)) - set(exclude or ())
    return {kind: write() for kind, write in writers.items() if kind in wanted}
