"""What goes into a program and what comes out of it: which argument an input is, and which values are the results."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.record.difference import CHANGED, Change
from compile_lens.record.graph import Graph

from .inputs import STAGE
from .matching import Match
from .side import Side, matched

Source = tuple[str, str]
"""An argument of the function (its place, or the name that a closure or module has for it) and what of it is read."""


def ends(sides: tuple[Side, Side]) -> Iterator[Change]:
    """Inputs that are others' in the second capture, and results that are others or in another order."""
    found = matched(sides, (STAGE, STAGE))
    yield from _inputs(sides, found)
    yield from _results(sides, found)


def _inputs(sides: tuple[Side, Side], found: Match) -> Iterator[Change]:
    """Names of what is read of an argument are the program's to choose; that one of them stands for another that is
    still there is no renaming, and neither is another argument."""
    a, b = (dict(_sources(side)) for side in sides)
    known = set(a.values())
    said: dict[str, list[int]] = {}
    for one, two in found.pairs.items():
        if one not in a or two not in b or a[one] == b[two]:
            continue
        moved = a[one][0] != b[two][0] and a[one][0] and b[two][0]
        if moved or b[two] in known:
            said.setdefault(f"reads {_told(b[two])} in place of {_told(a[one])}", []).append(two)
    items = sides[1].stage(STAGE)
    for how, some in said.items():
        readers = dict.fromkeys(user for number in some for user in items[number].users)
        yield Change("lines", CHANGED, how, sides[1].lines(items[n].address for n in readers))


def _sources(side: Side) -> Iterator[tuple[int, Source]]:
    places = {name.partition(":")[0]: str(n) for n, name in enumerate(side.capture.inputs, 1)}
    for number, item in enumerate(side.stage(STAGE)):
        if item.node.op == "placeholder" and item.node.target.startswith("L_"):
            told = item.node.target.removeprefix("L_")
            name = max((n for n in places if told.startswith(f"{n}_")), key=len, default="")
            yield number, (places[name], told[len(name) + 1 :]) if name else ("", told)


def _told(source: Source) -> str:
    place, part = source
    told = part.strip("_")
    if not place:
        return told
    return f"argument {place}" + (f" ({told})" if told else "")


def _results(sides: tuple[Side, Side], found: Match) -> Iterator[Change]:
    ones, twos = (_returned(side) for side in sides)
    alone = set(found.only_a), set(found.only_b)
    if not ones or not twos or alone[0].intersection(ones) or alone[1].intersection(twos):
        return  # what is new or gone is told as that
    expected = [found.pairs[n] for n in ones]
    if expected == twos:
        return
    if sorted(expected) == sorted(twos):
        how = "results: the same, in another order"
    elif len(ones) != len(twos):
        how = f"results: {len(ones)} of the graph became {len(twos)}"
    else:
        how = "results: other values are returned"
    items = sides[1].stage(STAGE)
    yield Change("lines", CHANGED, how, sides[1].lines(items[n].address for n in twos))


def _returned(side: Side) -> list[int]:
    """The nodes whose values the compilations return that end with it."""
    numbers = side.numbers(STAGE)
    found: list[int] = []
    for compilation in side.capture.compilations:
        graph = compilation.graphs.get(STAGE)
        if not isinstance(graph, Graph) or compilation.ending is None or compilation.ending.kind != "return":
            continue
        for name in (name for node in graph.nodes if node.op == "output" for name in node.inputs):
            if (compilation.id, name) in numbers:
                found.append(numbers[compilation.id, name])
    return found
