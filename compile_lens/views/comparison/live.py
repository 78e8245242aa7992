"""What makes the page of a comparison come alive: the captures' own data, and what differs between them."""

from __future__ import annotations

import json

from compile_lens.measures.comparison.own_lines import own_lines
from compile_lens.record.comparison import Column, ComparisonRecord, Difference
from compile_lens.views.viewer.embed import alive, compact
from compile_lens.views.viewer.items import Items
from compile_lens.views.viewer.parts import encoded, packed
from compile_lens.views.viewer.words import block, line

from . import outline

MANY = 60
"""Differences and modules that the page holds; the rest is only counted in the static layer."""

COUNTS = ("ATen ops", "loops", "groups", "kernels", "launches")
"""Figures that stand in the row, in the order of the compiler."""


def live(comparison: ComparisonRecord) -> str:
    """HTML that makes the page around it interactive: its data and its script. ``""`` without any capture."""
    if not comparison.captures:
        return ""
    parts = {"comparison": packed(json.dumps(compared(comparison)))}
    for number, column in enumerate(comparison.columns):
        if column.capture is not None and not column.failure:
            parts[f"column {number}"] = compact(encoded(column.capture))
    return alive(parts)


def compared(comparison: ComparisonRecord) -> dict[str, object]:
    """The ``Compared`` of the page."""
    captures = [None if column.failure else column.capture for column in comparison.columns]
    items = [None if capture is None else Items(capture) for capture in captures]
    figures = {table.phase: dict(table.rows) for table in outline.tables(comparison)}
    modules = []
    for module in outline.modules(comparison)[:MANY]:
        own = own_lines(captures, module.compilation, module.phase)
        counts = [[title, list(figures[module.phase][title])] for title in COUNTS]
        modules.append(
            {
                "phase": module.phase,
                "compilation": line(module.compilation),
                "bytes": list(figures[module.phase]["bytes, modelled"]),
                "counts": counts,
                "own": [
                    [[known.item(address), line(words)] for address, words in lines.items()]
                    if known is not None
                    else []
                    for known, lines in zip(items, own, strict=True)
                ],
            }
        )
    return {
        "function": line(comparison.function),
        "agreement": line(outline.agreement(comparison)),
        "facts": [line(fact) for fact in outline.made_with(comparison)],
        "columns": [_column(column) for column in comparison.columns],
        "modules": modules,
        "differences": [_difference(one) for one in comparison.differences[:MANY]],
        "mayDiffer": [line(words) for words in outline.may_differ(comparison)[:MANY]],
    }


def _column(column: Column) -> dict[str, object]:
    return {
        "target": line(column.target),
        "failure": block(column.failure),
        "facts": [line(fact) for fact in outline.column(column)],
    }


def _difference(one: Difference) -> dict[str, object]:
    return {
        "where": line(outline.where(one)),
        "sentence": block(one.sentence),
        "facts": [[line(fact.target), block(fact.text)] for fact in one.facts],
    }
