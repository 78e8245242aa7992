"""The part "index": names, kinds and links of all items."""

from __future__ import annotations

from compile_lens.measures.chain import PYTHON, Chain, walk
from compile_lens.measures.ledger import counts
from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph

from ..words import outline
from ..words.derivatives import Derivatives
from .items import Items, SeenStage
from .texts import Texts
from .units import coloured
from .words import line


def index(capture: Record, items: Items, texts: Texts) -> dict[str, object]:
    """The ``Index`` of the page."""
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
    """The items of a graph, by number in it, that the count of the stage does not have in it."""
    if not isinstance(seen.stage, Graph):
        return []
    graph = seen.stage
    counted = {path + node.name for path, node in walk(graph) if counts(graph, node, path)}
    return [local for local, name in enumerate(seen.names) if name not in counted]


def _firsts(seen: SeenStage, texts: Texts) -> list[int]:
    """Of each kernel the line of the module that is its first; 0 where its source does not stand there."""
    if isinstance(seen.stage, Graph):
        return []
    places = dict(zip((k.name for k in seen.stage.kernels), texts.modules[seen.number].places, strict=True))
    found = (places.get(name) for name in seen.names[: seen.kernels])
    return [place.first if place else 0 for place in found]


def part_name(seen: SeenStage) -> str:
    """The part that holds a stage's data."""
    return f"g{seen.number}"


def full_title(key: str) -> str:
    """The title of a stage with its phase where it has one: ``"forward post-grad"``."""
    phase = outline.phase_of(key)
    title = line(outline.title(key))
    return title if key == phase or not phase else f"{phase} {title}"


def _kinds(seen: SeenStage) -> list[str]:
    if isinstance(seen.stage, Graph):
        found: dict[str, str] = {}
        for path, node in walk(seen.stage):
            found.setdefault(path + node.name, node.kind)
        return list(found.values())
    return ["kernel"] * seen.kernels + ["line"] * (len(seen.names) - seen.kernels)


def _line_texts(capture: Record, items: Items) -> list[str]:
    """The text of each Python line: as the source has it, else as a frame quotes it."""
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
