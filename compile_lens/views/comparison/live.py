"""What makes the page of a comparison come alive: the captures' own data, and what differs between them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from compile_lens.measures.address import Address
from compile_lens.measures.diff.modules import OwnLines
from compile_lens.record.capture import Record
from compile_lens.record.comparison import Column, ComparisonRecord, Difference
from compile_lens.views.live.embed import alive, compact
from compile_lens.views.live.items import Items
from compile_lens.views.live.parts import encoded, packed
from compile_lens.views.live.words import block, line

from . import outline

MANY = 60
"""Differences and modules that the page holds; the rest is only counted in the static layer."""

COUNTS = ("ATen ops", "loops", "groups", "kernels", "launches")
"""Figures that stand in the row, in the order of the compiler."""


def live(comparison: ComparisonRecord) -> str:
    """HTML that makes the page around it interactive: its data and its script. ``""`` without any capture."""
    if not comparison.captures:
        return ""
    captures = [None if column.failure else column.capture for column in comparison.columns]
    return beside(compared(comparison), captures)


def beside(compared: dict[str, object], captures: Sequence[Record | None]) -> str:
    """HTML that makes a page of captures side by side interactive: what stands between them, and their own data."""
    parts = {"comparison": packed(json.dumps(compared))}
    for number, capture in enumerate(captures):
        if capture is not None:
            parts[f"column {number}"] = compact(encoded(capture))
    return alive(parts, "comparison")


def compared(comparison: ComparisonRecord) -> dict[str, object]:
    """The ``Compared`` of the page."""
    captures = [None if column.failure else column.capture for column in comparison.columns]
    items = [None if capture is None else Items(capture) for capture in captures]
    figures = {table.phase: dict(table.rows) for table in outline.tables(comparison)}
    modules = []
    lines_of = OwnLines(captures)
    for module in outline.modules(comparison)[:MANY]:
        own = lines_of.of(module.compilation, module.phase)
        modules.append(
            {
                "title": module.phase,
                "compilation": line(module.compilation),
                "places": [[line(module.compilation), module.phase]] * len(captures),
                "counts": [[title, list(figures[module.phase][title])] for title in COUNTS],
                "own": [
                    []
                    if known is None
                    else [signed(known, address, f"only here: {words}") for address, words in lines.items()]
                    for known, lines in zip(items, own, strict=True)
                ],
                "partners": [],
            }
        )
    return {
        "function": line(comparison.function),
        "headline": line(outline.headline(comparison)),
        "agreement": line(outline.agreement(comparison)),
        "summary": [],
        "facts": [line(fact) for fact in outline.made_with(comparison)],
        "columns": [column_of(column) for column in comparison.columns],
        "modules": modules,
        "alike": "another target has them too, or they are of no Python line",
        "same": None,
        "lowered": [],
        "differ": [[] for _ in captures],
        "sources": [],
        "levels": [
            {
                "title": "Why they differ",
                "open": True,
                "changes": [_difference(one) for one in comparison.differences[:MANY]],
            }
        ],
        "mayDiffer": [line(words) for words in outline.may_differ(comparison)[:MANY]],
    }


def signed(items: Items, address: Address, words: str) -> list[object]:
    """A line of a kernel, given by its address, that has a sign: the item of the kernel, the line and the words."""
    cid, stage, name = address
    kernel, _, number = name.rpartition(":")
    return [items.item((cid, stage, kernel)), int(number), line(words)]


def column_of(column: Column) -> dict[str, object]:
    """The head of a column."""
    return {
        "target": line(column.target),
        "failure": block(column.failure),
        "facts": [line(fact) for fact in outline.column(column)],
    }


def _difference(one: Difference) -> dict[str, object]:
    return {
        "mark": "",
        "places": [[line(outline.where(one)), None]],
        "sentence": block(one.sentence),
        "facts": [[line(fact.target), block(fact.text)] for fact in one.facts],
    }
