"""Nodes of one stage that are in only one capture, or differ between two, by Python line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from types import MappingProxyType

from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change
from compile_lens.record.graph import Literal, Node, Ref

from ..address import Address
from .inputs import handed
from .matching import Item, Match, device, signatures
from .side import Side

MAX_CHARACTERS = 60
"""Longest text of an argument in a sentence."""

MAX_NAMED = 6
"""Most operators in one sentence."""


def nodes(
    level: str, where: str, sides: tuple[Side, Side], key: tuple[str, str], match: Match
) -> list[Change]:
    """Return the changes of one stage. ``where`` prefixes each (``"forward: "``), ``key`` is the stage on each side."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    changes = list(_only(level, REMOVED, where, sides[0], [a[n] for n in match.only_a], a))
    changes += _only(level, ADDED, where, sides[1], [b[n] for n in match.only_b], b)
    changes += _changed(level, where, sides, key, match)
    return changes


def _only(
    level: str, kind: str, where: str, side: Side, some: Iterable[Item], stage: Iterable[Item]
) -> Iterator[Change]:
    """Yield changes for nodes of only one side, by line: ``1 of 2`` if the other has one of two."""
    own = [item for item in some if operation(item.node)]
    every, alone = (Counter(name(item.node) for item in items) for items in (stage, own))
    parts = {one: every[one] for one in alone if alone[one] < every[one]}
    by_line: dict[tuple[str, ...], list[str]] = {}
    for item in own:
        by_line.setdefault(side.lines([item.address]), []).append(name(item.node))
    for lines, names in by_line.items():
        verb = "new" if kind == ADDED else "gone"
        operators = counted(names, parts)
        yield Change(level, kind, f"{where}{operators} {'is' if len(names) == 1 else 'are'} {verb}", lines)


def operation(node: Node) -> bool:
    """Return True for an operation of the program, not an input, a size, or an item of a result."""
    return node.op not in INPUTS and node.kind != "symbol" and not node.target.endswith("getitem")


def _changed(
    level: str, where: str, sides: tuple[Side, Side], key: tuple[str, str], match: Match
) -> Iterator[Change]:
    """Yield pairs of nodes that differ themselves, and pairs that read other values."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    words = Words(sides[0], key[0]), Words(sides[1], key[1])
    ones, twos = signatures(a), signatures(b)
    pairs = _Pairs(*words, match)
    sentences: dict[tuple[str, bool], list[Item]] = {}
    read: dict[str, list[Item]] = {}
    for one, two in match.pairs.items():
        x, y = a[one], b[two]
        if x.node.op in INPUTS:
            continue  # reported where its shape comes from
        if ones[one] != twos[two]:
            how, results = pairs.arguments(x, y), _results(x, y)
            # In Dynamo's graph arguments explain results; below it an argument may just be the size of the result.
            sentence = (how or results) if level == "lines" else (results or how)
            sentences.setdefault((sentence or OTHER_RESULTS, bool(results)), []).append(y)
        elif not pairs.same_inputs(x, y):
            read.setdefault(pairs.operands(x, y), []).append(y)
    for (how, follows), some in sentences.items():
        names = counted([name(item.node) for item in some])
        places = sides[1].lines(i.address for i in some)
        yield Change(level, CHANGED, f"{where}{names}: {how}", places, follows=follows)
    for how, some in read.items():
        times = f"{len(some)} × " if len(some) > 1 else ""
        places = sides[1].lines(i.address for i in some)
        yield Change(level, CHANGED, f"{where}{times}{how}", places, follows=True)


def node_differences(
    sides: tuple[Side, Side], key: tuple[str, str], match: Match
) -> tuple[dict[Address, str], dict[Address, str]]:
    """Return by side the nodes that only it has (``""``), and those that differ themselves, with the difference."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    pairs = _Pairs(Words(sides[0], key[0]), Words(sides[1], key[1]), match)
    ones, twos = signatures(a), signatures(b)
    own: tuple[dict[Address, str], dict[Address, str]] = (
        {a[n].address: "" for n in match.only_a},
        {b[n].address: "" for n in match.only_b},
    )
    for one, two in match.pairs.items():
        x, y = a[one], b[two]
        if ones[one] != twos[two]:
            how = ", ".join(filter(None, (pairs.arguments(x, y), _results(x, y)))) or OTHER_RESULTS
            own[0][x.address] = own[1][y.address] = how
    return own


OTHER_RESULTS = "its results differ"
"""Sentence for a node whose difference has no words."""


class _Pairs:
    """Arguments of matched nodes of two stages, in words."""

    def __init__(self, a: Words, b: Words, match: Match) -> None:
        self._a, self._b, self._pairs = a, b, match.pairs
        self._gone, self._added = set(match.only_a), set(match.only_b)

    def same_inputs(self, x: Item, y: Item) -> bool:
        """Return True if two nodes read the same values, or one reads a new or removed node, which explains it."""
        if self._gone.intersection(x.inputs) or self._added.intersection(y.inputs):
            return True
        return tuple(self._pairs[n] for n in x.inputs) == y.inputs

    def arguments(self, x: Item, y: Item) -> str:
        """Return the differing arguments that are not values of nodes: ``dim: 0 → 1``; ``""`` if there are none."""
        first = x.node.op != "call_method"  # the object of a method call does not count as an argument
        rows = [
            (f"argument {n + first}", one, two)
            for n, (one, two) in enumerate(zip_longest(x.node.args, y.node.args, fillvalue=_ABSENT))
        ]
        named = dict(x.node.kwargs), dict(y.node.kwargs)
        for key in dict.fromkeys((*named[0], *named[1])):
            rows.append((key, named[0].get(key, _ABSENT), named[1].get(key, _ABSENT)))
        texts = (
            (title, self._a.value(one, x), self._b.value(two, y))
            for title, one, two in rows
            if one != two and not _both(one, two, Ref) and not (_at_home(one, x) and _at_home(two, y))
        )
        return ", ".join(f"{title}: {one} → {two}" for title, one, two in texts if one != two)

    def operands(self, x: Item, y: Item) -> str:
        """Return the sentence for two nodes that read other values: ``sub(x, y) became sub(y, x)``."""
        before, after = self._a.call(x), self._b.call(y)
        return f"{before} became {after}" if before != after else f"{after} reads different values"


class Words:
    """Texts of a stage's nodes as Python calls."""

    def __init__(self, side: Side, key: str) -> None:
        self._side, self._stage = side, side.stage(key)

    def call(self, item: Item) -> str:
        """Return a node as a call: ``operator.sub(x, torch.sin)``."""
        args = [self.value(value, item) for value in item.node.args]
        args += [f"{key}={self.value(value, item)}" for key, value in item.node.kwargs]
        on = f"{args.pop(0)}." if item.node.op == "call_method" and args else ""
        return f"{on}{name(item.node)}({', '.join(args[:MAX_NAMED])}{', …' * (len(args) > MAX_NAMED)})"

    def value(self, value: object, item: Item) -> str:
        """Return an argument as text; another node's value by its operator."""
        text = self._text(value, item)
        return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"

    def _text(self, value: object, item: Item) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(self._text(one, item) for one in value)}]"
        if isinstance(value, Literal):
            return value.text
        if not isinstance(value, Ref):
            return "not given" if value is _ABSENT else repr(value)
        number = dict(zip(item.node.inputs, item.inputs)).get(value.name)
        return "…" if number is None else self._made_by(self._stage[number])

    def _made_by(self, item: Item) -> str:
        return (handed(self._side, item) or "an input") if item.node.op in INPUTS else name(item.node)


INPUTS = ("placeholder", "get_attr")


def _both(one: object, two: object, kind: type) -> bool:
    return isinstance(one, kind) and isinstance(two, kind)


_ABSENT = object()


def _results(a: Item, b: Item) -> str:
    """Return the difference between the results of two nodes of one operator; ``""`` if there is none."""
    x, y = a.node, b.node
    if x.dtype != y.dtype:
        return f"{x.dtype} became {y.dtype}"
    if x.shape != y.shape:
        return f"shape {_shape(x)} became {_shape(y)}"
    if device(x.device or "", a.home) != device(y.device or "", b.home):
        return f"device {x.device} became {y.device}"
    return ""


def _at_home(value: object, item: Item) -> bool:
    """Return True if an argument names the device that the capture is for."""
    name = value[1] if isinstance(value, tuple) and len(value) == 2 else value
    return isinstance(name, Literal) and not device(name.text, item.home)


def _shape(node: Node) -> str:
    return f"[{', '.join(map(str, node.shape))}]" if node.shape is not None else "unknown"


def name(node: Node) -> str:
    """Return the name of a node in a sentence: its operator."""
    if node.op in INPUTS:
        return "an input" if node.op == "placeholder" else "a constant"
    return node.target.removesuffix(".default")


def counted(names: Iterable[str], of: Mapping[str, int] = MappingProxyType({})) -> str:
    """Count names: ``"2 × aten.sin, aten.add.Tensor and 3 more"``; ``"1 of 2 aten.sin"`` if ``of`` has it."""
    counts = Counter(names)
    some = [
        f"{count} of {of[one]} {one}" if one in of else f"{count} × {one}" if count > 1 else one
        for one, count in list(counts.items())[:MAX_NAMED]
    ]
    more = len(counts) - MAX_NAMED
    return ", ".join(some) + (f" and {more} more" if more > 0 else "")
