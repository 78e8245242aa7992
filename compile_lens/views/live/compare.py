"""Data of the live page of several captures, across targets or before and after a change: the captures, matching items,
and differences."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from compile_lens.measures.address import Address
from compile_lens.measures.diff.modules import Module, OwnLines, Place, counterparts
from compile_lens.record.capture import Record
from compile_lens.record.comparison import Column, ComparisonRecord, TargetDifference, place
from compile_lens.record.difference import LEVELS, Change, DifferenceRecord
from compile_lens.record.graph import Source

from ..document import Document
from ..language import chosen
from ..render import html
from ..subjects import compare as targets
from ..subjects import diff as diffs
from ..summaries.diff_summary import consequences
from ..words.characters import block, line
from ..words.ledger import compared, compared_counts
from ..words.quantities import printed
from . import page as single
from .items import Items
from .page import alive, compact, encoded, packed

Shown = ComparisonRecord | DifferenceRecord

SIDES = ("before", "after")

MAX_ENTRIES = 60
"""Maximum differences and modules on the page; the static layer counts the rest."""


def page(shown: Shown) -> str:
    """Return a complete page: a static layer, and the live one that replaces it."""
    return html.page(_document(shown), live=live(shown))


def fragment(shown: Shown) -> str:
    """Return HTML for a notebook, with the same two layers."""
    return html.fragment(_document(shown), live=live(shown))


def _document(shown: Shown) -> Document:
    return diffs.document(shown) if isinstance(shown, DifferenceRecord) else targets.document(shown)


def live(shown: Shown) -> str:
    """Return the HTML that makes the page interactive: its data and script; ``""`` without captures."""
    if isinstance(shown, DifferenceRecord):
        return beside(diff_page(shown), shown.captures) if len(shown.captures) == 2 else ""
    return beside(compare_page(shown), _captures(shown)) if shown.captures else ""


def plain_parts(comparison: ComparisonRecord) -> dict[str, str]:
    """Return the parts of the page of targets as uncompressed JSON, for a page that is updated while open."""
    parts = {"comparison": json.dumps(compare_page(comparison))}
    for number, capture in enumerate(_captures(comparison)):
        if capture is not None:
            parts[f"column {number}"] = json.dumps(single.plain_parts(capture))
    return parts


def _captures(comparison: ComparisonRecord) -> list[Record | None]:
    return [None if column.failure else column.capture for column in comparison.columns]


def beside(page: dict[str, object], captures: Sequence[Record | None]) -> str:
    """Return HTML for captures side by side: the data of the ``Compared`` page and of each capture."""
    language = chosen()
    parts = {"comparison": packed(json.dumps(page))}
    for number, capture in enumerate(captures):
        if capture is not None:
            parts[f"column {number}"] = compact(encoded(capture, language))
    return alive(parts, "compare", language)


def compare_page(comparison: ComparisonRecord) -> dict[str, object]:
    """Return the ``Compared`` data of the page of targets."""
    captures = _captures(comparison)
    items = [None if capture is None else Items(capture) for capture in captures]
    modules = []
    lines_of = OwnLines(captures)
    for phase, cid, _ in targets.modules(comparison)[:MAX_ENTRIES]:
        own = [
            []
            if known is None
            else [signed(known, address, f"only here: {words}") for address, words in lines.items()]
            for known, lines in zip(items, lines_of.of(cid, phase), strict=True)
        ]
        modules.append(_module(captures, [(cid, phase)] * len(captures), own, []))
    return {
        "function": line(comparison.function),
        "headline": line(targets.headline(comparison)),
        "agreement": line(targets.agreement(comparison)),
        "summary": [],
        "facts": [line(fact) for fact in targets.made_with(comparison)],
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
                "changes": [_reason(one) for one in comparison.differences[:MAX_ENTRIES]],
            }
        ],
        "mayDiffer": [line(words) for words in targets.may_differ(comparison)[:MAX_ENTRIES]],
    }


def signed(items: Items, address: Address, words: str) -> list[object]:
    """Return the mark of a kernel's line: the item of the kernel, the line number and the words."""
    cid, stage, name = address
    kernel, _, number = name.rpartition(":")
    return [items.item((cid, stage, kernel)), int(number), line(words)]


def column_of(column: Column) -> dict[str, object]:
    """Return the head of a column."""
    return {
        "target": line(column.target),
        "failure": block(column.failure),
        "facts": [line(fact) for fact in targets.column(column)],
    }


def _reason(one: TargetDifference) -> dict[str, object]:
    return {
        "mark": "",
        "places": [[line(targets.places(one)), None]],
        "sentence": block(one.sentence),
        "facts": [[line(fact.target), block(fact.text)] for fact in one.facts],
    }


def diff_page(diff: DifferenceRecord) -> dict[str, object]:
    """Return the ``Compared`` data of the page of a difference."""
    a, b = diff.captures
    items = Items(a), Items(b)
    pairs = counterparts(a, b)

    def numbered(addresses: Iterable[tuple[Address, Address]]) -> list[tuple[int | None, int | None]]:
        numbers = ((items[0].item(one), items[1].item(two)) for one, two in addresses)
        return [pair for pair in numbers if None not in pair]

    def differing(known: Items, own: dict[Address, str]) -> list[list[object]]:
        numbers = ((known.item(address), words) for address, words in own.items())
        return [[item, line(words)] for item, words in numbers if item is not None]

    columns = [Column(title, capture) for title, capture in zip(_titles(a, b), (a, b), strict=True)]
    # Names and places are not differences: without other ones, nothing is marked.
    return {
        "function": line(" → ".join(dict.fromkeys((a.function, b.function)))),
        "headline": line(consequences(diff, most=1)),
        "agreement": line(diffs.amount(diff)),
        "summary": [line(words) for words in (diffs.summary(diff) if diff else ())],
        "facts": [],
        "columns": [column_of(column) for column in columns],
        "modules": [_pair(module, items, (a, b), bool(diff)) for module in pairs.modules[:MAX_ENTRIES]],
        "alike": "the same on both sides",
        "same": numbered(pairs.nodes),
        "lowered": numbered(pairs.lowered),
        "differ": [differing(*one) if diff else [] for one in zip(items, pairs.differ, strict=True)],
        "sources": (_sources(a, b) or _traced(items, (a, b))) if diff else [],
        "levels": [
            {
                "title": line(f"{level}: {LEVELS[level]}"),
                "open": level not in diffs.FOLDED,
                "changes": [_change(change, items) for change in changes[:MAX_ENTRIES]],
            }
            for level, changes in diffs.levels(diff)
        ],
        "mayDiffer": [line(reason) for reason in diff.unknown[:MAX_ENTRIES]],
    }


def _titles(a: Record, b: Record) -> list[str]:
    """Return the titles of both captures, with the facts in which they differ: ``before · f``."""
    facts = [
        (one.function, f"for {one.options.target or 'here'}", f"torch {one.environment.torch}")
        for one in (a, b)
    ]
    own = [[fact for fact, other in zip(mine, others, strict=True) if fact != other]
           for mine, others in (facts, facts[::-1])]  # fmt: skip
    return [" · ".join((side, *some)) for side, some in zip(SIDES, own, strict=True)]


def _module(
    captures: Sequence[Record | None],
    places: Sequence[Place | None],
    own: list[list[list[object]]],
    partners: list[list[int | None]],
) -> dict[str, object]:
    """Return the ``ComparedModule`` data of the page; ``places`` has its compile id and phase in each capture."""
    there = [place for place in places if place is not None]
    figures = [
        compared(None, "") if at is None else compared(capture, at[1])
        for capture, at in zip(captures, places, strict=True)
    ]
    return {
        "title": " → ".join(dict.fromkeys(phase for _, phase in there)),
        "compilation": line(" → ".join(dict.fromkeys(cid for cid, _ in there))),
        "places": [None if at is None else [line(at[0]), at[1]] for at in places],
        "counts": [[title, [printed(cells[title]) for cells in figures]] for title in compared_counts()],
        "own": own,
        "partners": partners,
    }


def _pair(
    module: Module, items: tuple[Items, Items], captures: tuple[Record, Record], differs: bool
) -> dict[str, object]:
    own = []
    for known, at, lines in zip(items, module.places, module.own, strict=True):
        cid, phase = at or ("", "")
        texts = lines.items() if differs else ()
        own.append(
            [signed(known, (cid, f"{phase}.code", f"{name}:{n}"), _sign(other)) for (name, n), other in texts]
        )
    partners = [
        [
            None if name is None or at is None else known.item((at[0], f"{at[1]}.code", name))
            for known, at, name in zip(items, module.places, names, strict=True)
        ]
        for names in module.kernels
    ]
    return _module(captures, module.places, own, partners)


def _sign(other: str) -> str:
    """Return the words for a line that the other side lacks; ``other`` is the line in its place there."""
    return f"the other has: {other}" if other else "only here"


def _sources(a: Record, b: Record) -> list[list[list[object]]]:
    """Return, for each side, ``[source, line, words, at]`` of the source lines that only it has; ``at`` is the first
    differing character. Empty if the sources are equal."""
    if [source.text for source in a.sources] == [source.text for source in b.sources]:
        return []
    own: list[list[list[object]]] = [[], []]
    for one, two in _pairs(a.sources, b.sources):
        lines = [
            [] if number is None else side[number].lines
            for side, number in ((a.sources, one), (b.sources, two))
        ]
        for step, *ranges in difflib.SequenceMatcher(None, lines[0], lines[1], autojunk=False).get_opcodes():
            spans = range(*ranges[:2]), range(*ranges[2:])
            for side, number in enumerate((one, two)) if step != "equal" else ():
                for n, at in enumerate(spans[side]):
                    other = spans[1 - side]
                    text = lines[1 - side][other[n]] if n < len(other) else ""
                    words, start = line(_sign(text.strip())), _unlike(line(lines[side][at]), line(text))
                    own[side].append([number, at + 1, words, start])
    return own


def _unlike(own: str, other: str) -> int:
    """Return the index of the first character that differs from the other line, apart from indents."""
    blanks = len(own) - len(own.lstrip())
    pairs = enumerate(zip(own.strip(), other.strip(), strict=False))
    least = min(len(own.strip()), len(other.strip()))
    return blanks + next((at for at, (one, two) in pairs if one != two), least)


def _traced(items: tuple[Items, Items], captures: tuple[Record, Record]) -> list[list[list[object]]]:
    """Return the same for equal sources of which some lines were recorded on one side only."""
    known = [{(file, int(number)) for _, _, place in one.lines for file, _, number in (place.rpartition(":"),)}
             for one in items]  # fmt: skip
    if known[0] == known[1]:
        return []
    return [
        [
            [
                number,
                at - source.first_line + 1,
                "only here: the other ran no tensor operation of this line",
                0,
            ]
            for number, source in enumerate(capture.sources)
            for file, at in sorted(known[side] - known[1 - side])
            if file == source.file and at in source.numbers
        ]
        for side, capture in enumerate(captures)
    ]


def _pairs(a: tuple[Source, ...], b: tuple[Source, ...]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of sources with the same name, then the others in order."""
    left: list[int] = []
    rest = {number: source.name for number, source in enumerate(b)}
    for number, source in enumerate(a):
        same = next((n for n, name in rest.items() if name == source.name), None)
        if same is None:
            left.append(number)
        else:
            del rest[same]
            yield number, same
    yield from zip_longest(left, rest)


def _change(change: Change, items: tuple[Items, Items]) -> dict[str, object]:
    side = 0 if change.kind == "removed" else 1
    # Lines of code are marked in the columns.
    facts = [] if change.level == "code" else [["", block(fact)] for fact in change.facts[: diffs.FACTS]]
    return {
        "mark": diffs.mark(change),
        "sentence": block(diffs.figure(change)),
        "places": [[line(where), _item(where, side, items)] for where in change.lines[: diffs.LINES]],
        "facts": facts,
    }


def _item(where: str, side: int, items: tuple[Items, Items]) -> list[int] | None:
    """Return the column and the item of the Python line of a change, if exactly one line has that name."""
    name = ":".join(where.split(":", 2)[:2])
    known = [
        number
        for number, (_, _, address) in enumerate(items[side].lines)
        if place(address.rpartition(":")[0], int(address.rpartition(":")[2])) == name
    ]
    return [side, known[0]] if len(known) == 1 else None
