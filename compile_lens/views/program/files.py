"""Programs on disk: written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from compile_lens.record.codec import PROGRAM, to_json
from compile_lens.record.program import ProgramRecord
from compile_lens.views.files import form_of, write_text

FORMS = {
    ".json": "the record itself, for compile_lens.Program.load",
    ".html": "the report, for a browser",
    ".txt": "the text page",
    ".md": "Markdown",
}
"""Endings that ``save`` knows, and what each gives."""


def holds_program(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as the record of a program, or its journal, does; not whether it is one."""
    try:
        with open(path, "rb") as file:
            return json.dumps(PROGRAM).encode() in file.read(100)
    except OSError:
        return False


def save(program: ProgramRecord, path: str | os.PathLike[str]) -> Path:
    """Write a program; the ending of ``path`` chooses the form (``FORMS``). Raises ``UsageError``."""
    target = Path(path)
    form = form_of(target, FORMS)
    makers: dict[str, Callable[[ProgramRecord], str]] = {
        ".json": to_json,
        ".html": _html,
        ".md": _markdown,
        ".txt": _text,
    }
    return write_text(target, makers[form](program))


def _html(program: ProgramRecord) -> str:
    from .html import document

    return document(program)


def _markdown(program: ProgramRecord) -> str:
    from .markdown import page

    return page(program)


def _text(program: ProgramRecord) -> str:
    from compile_lens.views.paper import DEFAULT_WIDTH

    from .text import page

    return page(program, width=DEFAULT_WIDTH, ascii=False)
