"""Nodes of one stage that only one capture has, or that are otherwise in the other, told by Python line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change
from compile_lens.record.graph import Literal, Node, Ref

from .matching import Item, Match, device, signatures
from .side import Side

LONGEST = 60
"""Characters of an argument that a sentence holds."""

COUNTED = 6
"""Operators that one sentence names."""


def nodes(
    level: str, where: str, sides: tuple[Side, Side], key: tuple[str, str], found: Match
) -> list[Change]:
    """Changes of one stage. ``where`` stands before each (``"forward: "``), ``key`` is the stage on each side."""
    a, b = (side.stage(k) for side, k in zip(sides, key))
    changes = list(_only(level, REMOVED, where, sides[0], [a[n] for n in found.only_a]))
    changes += _only(level, ADDED, where, sides[1], [b[n] for n in found.only_b])
    changes += _changed(level, where, sides[1], a, b, found)
    return changes


def _only(level: str, kind: str, where: str, side: Side, some: Iterable[Item]) -> Iterator[Change]:
    """What one side alone has, by line."""
    by_line: dict[tuple[str, ...], list[str]] = {}
    for item in some:
        if item.node.op in ("placeholder", "get_attr") or _idle(item.node):
            continue
        by_line.setdefault(side.lines([item.address]), []).append(name(item.node))
    for lines, names in by_line.items():
        verb = "new" if kind == ADDED else "gone"
        yield Change(
            level, kind, f"{where}{counted(names)} {'is' if len(names) == 1 else 'are'} {verb}", lines
        )


def _idle(node: Node) -> bool:
    """What is no operation of the program's: sizes, and results picked out of several."""
    return node.kind == "symbol" or node.target.endswith("getitem")


def _changed(
    level: str, where: str, side: Side, a: Sequence[Item], b: Sequence[Item], found: Match
) -> Iterator[Change]:
    """Pairs that differ by themselves, and pairs that read other values."""
    ones, twos = signatures(a), signatures(b)
    said: dict[str, list[Item]] = {}
    added, gone = set(found.only_b), set(found.only_a)
    for one, two in found.pairs.items():
        x, y = a[one], b[two]
        if x.node.op in ("placeholder", "get_attr"):
            continue  # what is handed in has its shape from elsewhere, which is told there
        if ones[one] != twos[two]:
            said.setdefault(_how(x, y), []).append(y)
        elif not _same_inputs(x, y, found, gone, added):
            said.setdefault("reads other values", []).append(y)
    for how, some in said.items():
        names = counted([name(item.node) for item in some])
        yield Change(level, CHANGED, f"{where}{names}: {how}", side.lines(i.address for i in some))


def _same_inputs(x: Item, y: Item, found: Match, gone: set[int], added: set[int]) -> bool:
    """Whether two nodes read the same; what reads something new in place of something else is told by that."""
    if gone.intersection(x.inputs) or added.intersection(y.inputs):
        return True
    return tuple(found.pairs[n] for n in x.inputs) == y.inputs


def _how(a: Item, b: Item) -> str:
    """What differs between two nodes that are the same operator."""
    x, y = a.node, b.node
    if x.dtype != y.dtype:
        return f"{x.dtype} became {y.dtype}"
    if x.shape != y.shape:
        return f"shape {_shape(x)} became {_shape(y)}"
    if device(x.device or "", a.home) != device(y.device or "", b.home):
        return f"device {x.device} became {y.device}"
    ones, twos = ((*node.args, *node.kwargs) for node in (x, y))
    for one, two in zip(ones, twos):
        there = _at_home(one, a) and _at_home(two, b)
        if one != two and not there and not isinstance(one, Ref) and not isinstance(two, Ref):
            return f"argument {_value(one)} became {_value(two)}"
    return "other arguments"


def _at_home(value: object, item: Item) -> bool:
    """Whether an argument names the device that the capture is for."""
    told = value[1] if isinstance(value, tuple) and len(value) == 2 else value
    return isinstance(told, Literal) and not device(told.text, item.home)


def _value(value: object) -> str:
    text = value.text if isinstance(value, Literal) else repr(value)
    return text if len(text) <= LONGEST else "…"


def _shape(node: Node) -> str:
    return f"[{', '.join(map(str, node.shape))}]" if node.shape is not None else "unknown"


def name(node: Node) -> str:
    """What a node is called in a sentence: its operator."""
    if node.op in ("placeholder", "get_attr"):
        return "an input" if node.op == "placeholder" else "a constant"
    return node.target.removesuffix(".default")


def counted(names: Iterable[str]) -> str:
    """``"aten.sin"``, ``"2 × aten.sin, aten.add.Tensor and 3 more"``."""
    found = Counter(names)
    some = [f"{count} × {one}" if count > 1 else one for one, count in list(found.items())[:COUNTED]]
    more = len(found) - COUNTED
    return ", ".join(some) + (f" and {more} more" if more > 0 else "")
