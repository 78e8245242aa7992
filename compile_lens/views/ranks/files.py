"""The programs of several ranks on disk: written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compile_lens.measures.ranks import collectives
from compile_lens.record.ranks import RanksRecord
from compile_lens.views.files import form_of, write_text
from compile_lens.views.paper import DEFAULT_WIDTH
from compile_lens.views.program import html, markdown, text
from compile_lens.views.render.html.markup import text as escaped
from compile_lens.views.render.html.sheet import around
from compile_lens.views.words.characters import short

from . import outline

FORMS = {
    ".html": "one page, for a browser",
    ".md": "Markdown",
    ".txt": "the text page",
    ".json": "what differs, as plain data",
}
"""Endings that ``save`` knows, and what each gives."""


def save(found: RanksRecord, path: str | Path) -> Path:
    """Write what differs; the ending of ``path`` chooses the form (``FORMS``). Raises ``UsageError``."""
    target = Path(path)
    makers: dict[str, Callable[[RanksRecord], str]] = {
        ".html": document,
        ".md": lambda ranks: markdown.told(outline.sheet(ranks)),
        ".txt": lambda ranks: text.told(outline.sheet(ranks), DEFAULT_WIDTH, False),
        ".json": lambda ranks: (
            json.dumps(to_dict(ranks), ensure_ascii=True, allow_nan=False, indent=2) + "\n"
        ),
    }
    return write_text(target, makers[form_of(target, FORMS)](found))


def document(found: RanksRecord) -> str:
    """A page of its own, with a policy that forbids outside requests."""
    sheet = outline.sheet(found)
    return around(html.told(sheet, standalone=True), escaped(short(sheet.heading, 200)), "")


def to_dict(found: RanksRecord) -> dict[str, Any]:
    """As plain JSON data, without the programs themselves."""
    return {
        "ranks": list(found.ranks),
        "verdict": outline.verdict(found),
        "same": not found.differences,
        "differences": [asdict(one) for one in found.differences],
        "collectives": {
            str(rank): [
                {"graph": graph, "compared": compared, **asdict(one)}
                for graph, one, compared in collectives(program)
            ]
            for rank, program in zip(found.ranks, found.programs, strict=True)
        },
        "buckets": {
            str(rank): [{"graph": g.id, **asdict(b)} for g in program.graphs for b in g.buckets]
            for rank, program in zip(found.ranks, found.programs, strict=True)
        },
        "notes": list(found.notes),
    }
