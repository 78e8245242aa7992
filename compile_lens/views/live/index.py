"""Page part "index": names, kinds and links of all items."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.address import line_address
from compile_lens.measures.chain import PYTHON, Chain, walk
from compile_lens.measures.ledger import counts
from compile_lens.measures.source_units import Unit, units
from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph

from ..words import labels
from ..words.characters import clean, line
from ..words.derivatives import Derivatives
from ..words.palette import UNITS
from .items import Items, SeenStage
from .texts import Texts


def index(capture: Record, items: Items, texts: Texts) -> dict[str, object]:
    """Return the ``Index`` of the page."""
    kinds: dict[str, int] = {PYTHON: 0}
    kind_of = [0] * len(items.lines)
    names = [line(name) for _, _, name in items.lines]
    stages: list[dict[str, object]] = [
        {
            "compilation": -1,
            "key": PYTHON,
            "title": "Python",
            "start": 0,
            "count": len(items.lines),
            "kernels": 0,
            "uncounted": [],
            "firsts": [],
            "part": "",
        }
    ]
    for seen in items.stages:
        stages.append(
            {
                "compilation": seen.compilation,
                "key": line(seen.stage.key),
                "title": full_title(seen.stage.key),
                "start": seen.start,
                "count": len(seen.names),
                "kernels": seen.kernels,
                "uncounted": _uncounted(seen),
                "firsts": _firsts(seen, texts),
                "part": part_name(seen),
            }
        )
        names += [line(name) for name in seen.names]
        kind_of += [kinds.setdefault(kind, len(kinds)) for kind in _kinds(seen)]
    short = Chain(capture).texts.short
    offsets = [0]
    for above in items.above:
        offsets.append(offsets[-1] + len(above))
    return {
        "stages": stages,
        "names": names,
        "offsets": offsets,
        "above": [up for above in items.above for up in above],
        "within": items.within,
        "noOrigin": [[item, line(why)] for item, why in items.no_origin.items()],
        "derivatives": [
            [item, line(", ".join(words))]
            for address, words in Derivatives(capture).made()
            if (item := items.item(address)) is not None
        ],
        "lineAddresses": [line(short(address)) for address in items.lines],
        "lineTexts": _line_texts(capture, items),
        "kinds": [line(kind) for kind in kinds],
        "kindOf": kind_of,
        **coloured(capture, items),
    }


def _uncounted(seen: SeenStage) -> list[int]:
    """Return the numbers, within a graph, of the items that the stage's count excludes."""
    if not isinstance(seen.stage, Graph):
        return []
    graph = seen.stage
    counted = {path + node.name for path, node in walk(graph) if counts(graph, node, path)}
    return [local for local, name in enumerate(seen.names) if name not in counted]


def _firsts(seen: SeenStage, texts: Texts) -> list[int]:
    """Return the first line of each kernel in its module; 0 if its source is not in it."""
    if isinstance(seen.stage, Graph):
        return []
    places = dict(zip((k.name for k in seen.stage.kernels), texts.modules[seen.number].places, strict=True))
    known = (places.get(name) for name in seen.names[: seen.kernels])
    return [place.first if place else 0 for place in known]


def part_name(seen: SeenStage) -> str:
    """Return the name of the part with a stage's data."""
    return f"g{seen.number}"


def full_title(key: str) -> str:
    """Return the title of a stage with its phase, if any: ``"forward post-grad"``."""
    phase = labels.phase_of(key)
    title = line(labels.title(key))
    return title if key == phase or not phase else f"{phase} {title}"


def _kinds(seen: SeenStage) -> list[str]:
    if isinstance(seen.stage, Graph):
        kinds: dict[str, str] = {}
        for path, node in walk(seen.stage):
            kinds.setdefault(path + node.name, node.kind)
        return list(kinds.values())
    return ["kernel"] * seen.kernels + ["line"] * (len(seen.names) - seen.kernels)


def _line_texts(capture: Record, items: Items) -> list[str]:
    """Return the text of each Python line, from the source or else from a frame."""
    known: dict[str, str] = {}
    for source in capture.sources:
        for number, text in enumerate(source.text.split("\n"), source.first_line):
            known.setdefault(f"{source.file}:{number}", text)
    for seen in items.stages:
        if isinstance(seen.stage, Graph):
            for _, node in walk(seen.stage):
                for frame in node.frames:
                    known.setdefault(f"{frame.file}:{frame.line}", frame.text.strip().partition("\n")[0])
    return [line(known.get(name, "").strip()) for _, _, name in items.lines]


def coloured(capture: Record, items: Items) -> dict[str, object]:
    """Return ``units``, ``unitSets`` and ``unitsOf`` of the ``Index``."""
    every = units(capture)
    units_data: list[dict[str, object]] = []
    sets: dict[tuple[int, ...], int] = {(): 0}
    of = [0] * len(items.above)
    texts = _Texts(capture)
    short = Chain(capture).texts.short
    for number, compilation in enumerate(items.compilations):
        own_units = every[compilation.id]
        start = len(units_data)
        units_data += [
            _unit(number, i, unit, items, texts, short(line_address(unit.file, unit.line)))
            for i, unit in enumerate(own_units.all)
        ]
        for address, own in own_units.of.items():
            item = items.item(address)
            if item is not None:
                of[item] = sets.setdefault(tuple(start + i for i in own), len(sets))
    return {"units": units_data, "unitSets": [list(one) for one in sets], "unitsOf": of}


def _unit(
    compilation: int, number: int, unit: Unit, items: Items, texts: _Texts, place: str
) -> dict[str, object]:
    column, end = texts.span(unit)
    nodes = [items.item(address) for address in unit.nodes]
    at = items.item(line_address(unit.file, unit.line))
    # A call that fills its line is identified by the line.
    columns = "" if unit.end_column is None else f":{unit.column}-{unit.end_column}"
    return {
        "compilation": compilation,
        "tag": line(unit.tag),
        "colour": number % (2 * len(UNITS)),
        "address": line(place + columns),
        "line": -1 if at is None else at,
        "column": column,
        "end": end,
        "items": [item for item in nodes if item is not None],
    }


class _Texts:
    """Lines of the sources, for columns within them."""

    def __init__(self, capture: Record) -> None:
        self._sources = capture.sources

    def span(self, unit: Unit) -> tuple[int, int]:
        """Return the first and last column of a call in its line as shown on the page; -1, -1 for a whole line or if
        unknown."""
        text = self._line(unit)
        if unit.column is None or not text.strip():
            return -1, -1
        rest = len(text.rstrip())
        end = rest if unit.end_column is None else min(unit.end_column, rest)
        start = max(unit.column, len(text) - len(text.lstrip()))
        return (_shown_length(text[:start]), _shown_length(text[:end])) if start < end else (-1, -1)

    def _line(self, unit: Unit) -> str:
        for source in self._sources:
            lines = source.text.split("\n")
            if source.file == unit.file and 0 <= unit.line - source.first_line < len(lines):
                return lines[unit.line - source.first_line]
        return ""


def _shown_length(text: str) -> int:
    """Return the length in UTF-16 units of a text as shown on the page, where invisible characters are written out."""
    shown = clean(text)
    return len(shown) + sum(character > "\uffff" for character in shown)


Path = tuple[str, str]
"""A module's path, and its class if known."""

NOWHERE: Path = ("", "")


def modules(items: Items) -> list[Path]:
    """Return the module of each item: its own, or else the common path of the nearest items above it.

    A loop with work of ``blocks.0.norm`` and ``blocks.0.up`` belongs to ``blocks.0``. Items from outside modules are
    ignored.
    """
    paths: list[Path | None] = [None] * len(items.above)
    classes: dict[str, str] = {}
    for seen in items.stages:
        if isinstance(seen.stage, Graph):
            for path, node in walk(seen.stage):
                if node.module:
                    item = seen.item(path + node.name)
                    paths[item] = paths[item] or (node.module, node.module_type)
                    if node.module_type:
                        classes.setdefault(node.module, node.module_type)
    for start in range(len(paths)):
        if paths[start] is not None:
            continue
        # Depth first without recursion, items above first. A cycle in a malformed record ends, since items on the way
        # count as known.
        way = [start]
        paths[start] = NOWHERE
        pending = [iter(items.above[start])]
        while way:
            above = next(pending[-1], None)
            if above is None:
                pending.pop()
                item = way.pop()
                paths[item] = _shared([paths[up] or NOWHERE for up in items.above[item]], classes)
            elif paths[above] is None:
                paths[above] = NOWHERE
                way.append(above)
                pending.append(iter(items.above[above]))
    return [path or NOWHERE for path in paths]


def _shared(paths: Sequence[Path], classes: dict[str, str]) -> Path:
    own = dict.fromkeys(path for path in paths if path[0])
    if len(own) == 1:
        return next(iter(own))
    if not own:
        return NOWHERE
    parts = [path.split(".") for path, _ in own]
    same = 0
    while all(len(p) > same and p[same] == parts[0][same] for p in parts):
        same += 1
    shared = ".".join(parts[0][:same])
    return shared, classes.get(shared, "")
