"""Nodes of one stage that only one capture has, or that differ between the two, by Python line."""

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

LONGEST = 60
"""Characters of an argument that a sentence holds."""

COUNTED = 6
"""Operators that one sentence names."""


def nodes(
    level: str, where: str, sides: tuple[Side, Side], key: tuple[str, str], match: Match
) -> list[Change]:
    """Changes of one stage. ``where`` stands before each (``"forward: "``), ``key`` is the stage on each side."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    changes = list(_only(level, REMOVED, where, sides[0], [a[n] for n in match.only_a], a))
    changes += _only(level, ADDED, where, sides[1], [b[n] for n in match.only_b], b)
    changes += _changed(level, where, sides, key, match)
    return changes


def _only(
    level: str, kind: str, where: str, side: Side, some: Iterable[Item], stage: Iterable[Item]
) -> Iterator[Change]:
    """Changes for the nodes that one side alone has, by line: ``1 of 2`` where the other has one too."""
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
    """Return True for an operation of the program: no input, and no mere size or part of a result."""
    return node.op not in HANDED and node.kind != "symbol" and not node.target.endswith("getitem")


def _changed(
    level: str, where: str, sides: tuple[Side, Side], key: tuple[str, str], match: Match
) -> Iterator[Change]:
    """Pairs that differ by themselves, and pairs that read other values."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    words = Words(sides[0], key[0]), Words(sides[1], key[1])
    ones, twos = signatures(a), signatures(b)
    pairs = _Pairs(*words, match)
    sentences: dict[tuple[str, bool], list[Item]] = {}
    read: dict[str, list[Item]] = {}
    for one, two in match.pairs.items():
        x, y = a[one], b[two]
        if x.node.op in HANDED:
            continue  # an input has its shape from elsewhere, where it is reported
        if ones[one] != twos[two]:
            how, results = pairs.arguments(x, y), _results(x, y)
            # The program's arguments come before their results; below Dynamo an argument may be the result's size.
            sentence = (how or results) if level == "lines" else (results or how)
            sentences.setdefault((sentence or OTHERWISE, bool(results)), []).append(y)
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
    """By side, the nodes of a stage that it alone has (``""``), and those that differ by themselves, with the words."""
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
            how = ", ".join(filter(None, (pairs.arguments(x, y), _results(x, y)))) or OTHERWISE
            own[0][x.address] = own[1][y.address] = how
    return own


OTHERWISE = "its results are others"
"""The sentence for a node whose signature differs in nothing that has words."""


class _Pairs:
    """The arguments of pairs of nodes of two matched stages, in words."""

    def __init__(self, a: Words, b: Words, match: Match) -> None:
        self._a, self._b, self._pairs = a, b, match.pairs
        self._gone, self._added = set(match.only_a), set(match.only_b)

    def same_inputs(self, x: Item, y: Item) -> bool:
        """Return True if two nodes read the same; a node that reads something new is explained by that."""
        if self._gone.intersection(x.inputs) or self._added.intersection(y.inputs):
            return True
        return tuple(self._pairs[n] for n in x.inputs) == y.inputs

    def arguments(self, x: Item, y: Item) -> str:
        """Return the arguments that differ and are no node's values: ``dim: 0 → 1``; ``""`` if none does."""
        first = x.node.op != "call_method"  # what a method is called on is no argument to who reads it
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
        return f"{before} became {after}" if before != after else f"{after} reads other values"


class Words:
    """The nodes of one stage of a side, as Python would call them."""

    def __init__(self, side: Side, key: str) -> None:
        self._side, self._stage = side, side.stage(key)

    def call(self, item: Item) -> str:
        """A node with what it is given: ``operator.sub(x, torch.sin)``."""
        args = [self.value(value, item) for value in item.node.args]
        args += [f"{key}={self.value(value, item)}" for key, value in item.node.kwargs]
        on = f"{args.pop(0)}." if item.node.op == "call_method" and args else ""
        return f"{on}{name(item.node)}({', '.join(args[:COUNTED])}{', …' * (len(args) > COUNTED)})"

    def value(self, value: object, item: Item) -> str:
        """An argument; another node's value by what made it."""
        text = self._text(value, item)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

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
        return (handed(self._side, item) or "an input") if item.node.op in HANDED else name(item.node)


HANDED = ("placeholder", "get_attr")


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
    """The name of a node in a sentence: its operator."""
    if node.op in HANDED:
        return "an input" if node.op == "placeholder" else "a constant"
    return node.target.removesuffix(".default")


def counted(names: Iterable[str], of: Mapping[str, int] = MappingProxyType({})) -> str:
    """``"aten.sin"``, ``"2 × aten.sin, aten.add.Tensor and 3 more"``; ``"1 of 2 aten.sin"`` where ``of`` has it."""
    counts = Counter(names)
    some = [
        f"{count} of {of[one]} {one}" if one in of else f"{count} × {one}" if count > 1 else one
        for one, count in list(counts.items())[:COUNTED]
    ]
    more = len(counts) - COUNTED
    return ", ".join(some) + (f" and {more} more" if more > 0 else "")
