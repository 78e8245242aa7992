"""Comparisons on disk, and as JSON: the captures themselves, and what was found between them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from compile_lens.errors import RecordError
from compile_lens.record.capture import Record
from compile_lens.record.codec import from_json as record_from_json
from compile_lens.record.codec import to_json as record_json
from compile_lens.record.comparison import Column, ComparisonRecord
from compile_lens.views.render.files import form_of, write_text

_C = TypeVar("_C", bound=ComparisonRecord)

FORMAT = "compile_lens comparison"
VERSION = 1

FORMS = {
    ".html": "one page, for a browser",
    ".md": "Markdown",
    ".txt": "the text page",
    ".json": "the captures and their differences",
}
"""Endings that ``save`` knows, and what each gives."""


def save(comparison: ComparisonRecord, path: str | Path) -> Path:
    """Write a comparison; the ending of ``path`` chooses the form (``FORMS``). Raises ``UsageError``."""
    target = Path(path)
    form = form_of(target, FORMS)
    makers: dict[str, Callable[[ComparisonRecord], str]] = {
        ".html": _html,
        ".md": _markdown,
        ".txt": _text,
        ".json": to_json,
    }
    return write_text(target, makers[form](comparison))


def to_json(comparison: ComparisonRecord) -> str:
    """The JSON text of a comparison. The same comparison gives the same text."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "schema_version": VERSION,
        "function": comparison.function,
        "columns": [
            {
                "target": c.target,
                "failure": c.failure,
                "features": c.features,
                "capture": None if c.capture is None else json.loads(record_json(c.capture)),
            }
            for c in comparison.columns
        ],
        "rows": [dataclasses.asdict(row) for row in comparison.rows],
        "differences": [dataclasses.asdict(found) for found in comparison.differences],
    }
    return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def from_json(text: str, cls: type[_C], captures: type[Record]) -> _C:
    """A comparison from its JSON text: rows and differences are found anew from the captures. Runs no code.

    Raises ``RecordError`` if it is none, or newer.
    """
    from compile_lens.measures.compare.table import across

    try:
        body = json.loads(text)
        if body["format"] != FORMAT:
            raise ValueError(f"its format is {body['format']!r}")
        if body["schema_version"] > VERSION:
            raise ValueError(
                f"it has version {body['schema_version']}; this compile_lens reads up to {VERSION}"
            )
        columns = tuple(_column(one, captures) for one in body["columns"])
        return across(str(body["function"]), columns, cls)
    except RecordError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise RecordError(
            f"this is not a comparison: {said}; save one with comparison.save('x.json')"
        ) from None


def _column(one: dict[str, Any], captures: type[Record]) -> Column:
    made = one["capture"]
    features = one.get("features")
    return Column(
        str(one["target"]),
        None if made is None else record_from_json(json.dumps(made), captures),
        str(one["failure"]),
        None if features is None else tuple(str(f) for f in features),
    )


def _html(comparison: ComparisonRecord) -> str:
    from .html import document

    return document(comparison)


def _markdown(comparison: ComparisonRecord) -> str:
    from .markdown import page

    return page(comparison)


def _text(comparison: ComparisonRecord) -> str:
    from compile_lens.views.render.text import DEFAULT_WIDTH

    from .text import page

    return page(comparison, width=DEFAULT_WIDTH, ascii=False)
