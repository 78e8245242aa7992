"""The live page of a comparison: the data of the captures, and what differs between them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from compile_lens.measures.address import Address
from compile_lens.measures.diff.modules import OwnLines
from compile_lens.record.capture import Record
from compile_lens.record.comparison import Column, ComparisonRecord, TargetDifference

from ..render import html
from ..subjects import compare as subject
from ..words.characters import block, line
from ..words.ledger import compared_counts
from ..words.quantities import printed
from .items import Items
from .page import alive, compact
from .parts import encoded, packed

MANY = 60
"""Differences and modules that the page holds; the static layer counts the rest."""


def page(comparison: ComparisonRecord) -> str:
    """The comparison as a page of its own: a static layer, and the live one that takes its place."""
    return html.page(subject.document(comparison), live=live(comparison))


def fragment(comparison: ComparisonRecord) -> str:
    """The comparison as HTML for a notebook, with the same two layers."""
    return html.fragment(subject.document(comparison), live=live(comparison))


def live(comparison: ComparisonRecord) -> str:
    """HTML that makes the page around it interactive: its data and its script. ``""`` without any capture."""
    if not comparison.captures:
        return ""
    captures = [None if column.failure else column.capture for column in comparison.columns]
    return beside(compare_page(comparison), captures)


def beside(page: dict[str, object], captures: Sequence[Record | None]) -> str:
    """HTML for captures side by side: the data of the ``Compared`` page, and those of each capture."""
    parts = {"comparison": packed(json.dumps(page))}
    for number, capture in enumerate(captures):
        if capture is not None:
            parts[f"column {number}"] = compact(encoded(capture))
    return alive(parts, compare=True)


def compare_page(comparison: ComparisonRecord) -> dict[str, object]:
    """The ``Compared`` of the page."""
    captures = [None if column.failure else column.capture for column in comparison.columns]
    items = [None if capture is None else Items(capture) for capture in captures]
    figures = subject.tables(comparison)
    modules = []
    lines_of = OwnLines(captures)
    for phase, cid, _ in subject.modules(comparison)[:MANY]:
        own = lines_of.of(cid, phase)
        modules.append(
            {
                "title": phase,
                "compilation": line(cid),
                "places": [[line(cid), phase]] * len(captures),
                "counts": [[title, list(map(printed, figures[phase][title]))] for title in compared_counts()],
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
        "headline": line(subject.headline(comparison)),
        "agreement": line(subject.agreement(comparison)),
        "summary": [],
        "facts": [line(fact) for fact in subject.made_with(comparison)],
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
                "changes": [_reason(one) for one in comparison.differences[:MANY]],
            }
        ],
        "mayDiffer": [line(words) for words in subject.may_differ(comparison)[:MANY]],
    }


def signed(items: Items, address: Address, words: str) -> list[object]:
    """A line of a kernel that has a sign, by its address: the item of the kernel, the line and the words."""
    cid, stage, name = address
    kernel, _, number = name.rpartition(":")
    return [items.item((cid, stage, kernel)), int(number), line(words)]


def column_of(column: Column) -> dict[str, object]:
    """The head of a column."""
    return {
        "target": line(column.target),
        "failure": block(column.failure),
        "facts": [line(fact) for fact in subject.column(column)],
    }


def _reason(one: TargetDifference) -> dict[str, object]:
    return {
        "mark": "",
        "places": [[line(subject.places(one)), None]],
        "sentence": block(one.sentence),
        "facts": [[line(fact.target), block(fact.text)] for fact in one.facts],
    }
