"""A Document in the format that the ending of a path or a MIME type names."""

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
"""Endings that ``save`` knows for each subject, and what each gives."""


def save(
    path: str | os.PathLike[str],
    forms: Mapping[str, str],
    document: Callable[[], Document],
    **others: Callable[[], str],
) -> Path:
    """Write a Document; the ending of ``path`` chooses one of ``forms``.

    Args:
        others: the text of further endings, or of one in another way: ``json=…``.

    Raises:
        UsageError: the ending is not in ``forms``, or the place cannot be written.
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
    """The ending of a path, which chooses the form. Raises ``UsageError`` for one that is not in ``forms``."""
    form = target.suffix.lower()
    if form not in forms:
        valid = ", ".join(f"{ending} ({what})" for ending, what in forms.items())
        problem = f"ends in {target.suffix!r}" if target.suffix else "has no ending"
        raise UsageError(f"cannot save as {str(target)!r}: the name {problem}; use one of {valid}")
    return form


def mimebundle(
    fragment: Callable[[], str],
    plain: Callable[[], str],
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
) -> dict[str, str]:
    """The HTML and the text of a subject by MIME type, as IPython asks for it.

    Args:
        include: MIME types to give; ``None`` for all of them.
        exclude: MIME types to leave out, also of those included.
    """
    writers = {"text/plain": plain, "text/html": fragment}
    wanted = (set(writers) if include is None else set(include)) - set(exclude or ())
    return {kind: write() for kind, write in writers.items() if kind in wanted}
