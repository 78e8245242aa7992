"""Matching of the nodes of two graphs by operator, shapes, arguments and links, never by name.

Nodes with equal ancestors match first, then those with equal descendants; nodes near a change are matched from their
neighbours outwards. Each step visits a node a fixed number of times, so the cost is linear.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from compile_lens.record.graph import Literal, Node, Ref, Tensor, Value

from ..address import Address

_SYMBOL = re.compile(r"\b[su]\d+\b")


@dataclass
class Item:
    """A node with the numbers of the nodes that it reads, and of those that read it.

    ``order`` identifies an input: the argument number of the function, or its position among like inputs of its graph
    (those without origins in an earlier stage are counted separately). ``home`` is the kind of the capture's own
    device: tensors there match tensors on the other capture's device.
    """

    address: Address
    node: Node
    inputs: tuple[int, ...] = ()
    users: list[int] = field(default_factory=list)
    order: tuple[str, int] | None = None
    home: str = ""


@dataclass(frozen=True)
class Match:
    """Matched items of two sequences: pairs of numbers, and the items without a partner."""

    pairs: dict[int, int]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]


def items(
    nodes: Iterable[tuple[Address, str, Node]],
    argument: Callable[[Node], int | None] = lambda node: None,
    home: str = "",
) -> list[Item]:
    """Return the items of nodes given with address and graph path, in topological order.

    A graph's output node is left out: it computes nothing and reads very many. ``argument`` gives the argument number
    of an input, if known; for ``home`` see ``Item``.
    """
    result: list[Item] = []
    place: dict[tuple[str, str], int] = {}
    seen: Counter[Hashable] = Counter()
    for address, path, node in nodes:
        if node.op == "output":
            continue
        inputs = tuple(
            place[address[0], path + name] for name in node.inputs if (address[0], path + name) in place
        )
        for above in inputs:
            result[above].users.append(len(result))
        place[address[0], path + node.name] = len(result)
        order = None
        if node.op == "placeholder":
            known = argument(node)
            new = not node.origins
            # Counted by kind: if a buffer is no longer read, the parameters after it keep their numbers.
            like = (new, node.dtype, len(node.shape or ()))
            order = ("new" if new else "input", seen[like]) if known is None else ("argument", known)
            seen[like] += 1
        result.append(Item(address, node, inputs, order=order, home=home))
    return result


def match(
    a: Sequence[Item], b: Sequence[Item], inputs: Mapping[int, int | None] = MappingProxyType({})
) -> Match:
    """Match items of ``a`` and ``b`` that are equal, or equal up to shape, type or arguments.

    ``inputs`` maps inputs of ``a`` to their known counterparts in ``b``, or to ``None`` if they have none. If it is not
    empty, inputs of ``b`` that have origins and are not named in it have no counterpart in ``a``.
    """
    matcher = _Matcher(a, b)
    strong = [signatures(side) for side in (a, b)]
    weak: list[list[Hashable]] = [[(i.node.op, _target(i.node)) for i in side] for side in (a, b)]
    known = _inputs(b, inputs)
    for keys in (strong, weak):
        for side, marks in zip(keys, known):
            for number, mark in marks.items():
                side[number] = mark
    matcher.equal(_pasts(a, strong[0]), _pasts(b, strong[1]))
    matcher.equal(_futures(a, strong[0]), _futures(b, strong[1]), sure=True)
    for one, two in (strong, weak):
        matcher.spread(one, two)
        matcher.equal(one, two, sure=True)
        matcher.spread(one, two)
        matcher.equal(one, two)
        matcher.spread(one, two)
    pairs = {one: two for one, two in matcher.pairs.items() if matcher.sure(one, two, strong)}
    taken = set(pairs.values())
    return Match(
        dict(sorted(pairs.items())),
        tuple(n for n in range(len(a)) if n not in pairs),
        tuple(n for n in range(len(b)) if n not in taken),
    )


def _inputs(
    b: Sequence[Item], known: Mapping[int, int | None]
) -> tuple[dict[int, Hashable], dict[int, Hashable]]:
    """Return a key for each input with a known counterpart, or known to have none."""
    same = {one: two for one, two in known.items() if two is not None}
    theirs = set(same.values())
    alone = [
        n
        for n, i in enumerate(b)
        if known and i.node.op == "placeholder" and i.node.origins and n not in theirs
    ]
    return (
        {one: ("the same", one) if two is not None else ("of the first", one) for one, two in known.items()},
        {**{two: ("the same", one) for one, two in same.items()}, **{n: ("of the second", n) for n in alone}},
    )


class _Matcher:
    def __init__(self, a: Sequence[Item], b: Sequence[Item]) -> None:
        self.a, self.b = a, b
        self.pairs: dict[int, int] = {}
        self._taken: set[int] = set()

    def equal(self, a: Sequence[Hashable], b: Sequence[Hashable], sure: bool = False) -> None:
        """Pair free items of equal keys in order; with ``sure``, only if both sides have equally many."""
        ones, twos = _by_key(a, self.pairs), _by_key(b, self._taken)
        for key, numbers in ones.items():
            others = twos.get(key, [])
            if len(numbers) == len(others) or not sure:
                for one, two in zip(numbers, others):
                    self._pair(one, two)

    def spread(self, a: Sequence[Hashable], b: Sequence[Hashable]) -> None:
        """Pair neighbours of a pair that are at the same position and have equal keys."""
        queue = list(self.pairs.items())
        while queue:
            one, two = queue.pop()
            pairs = list(self._matching_neighbours(one, two, a, b))
            queue += pairs

    def _matching_neighbours(
        self, one: int, two: int, a: Sequence[Hashable], b: Sequence[Hashable]
    ) -> Iterator[tuple[int, int]]:
        for above, other in zip(self.a[one].inputs, self.b[two].inputs):
            if self._free(above, other) and a[above] == b[other]:
                yield self._pair(above, other)
        below: dict[Hashable, list[int]] = {}
        for number in self.b[two].users:
            if number not in self._taken:
                below.setdefault((b[number], self.b[number].inputs.index(two)), []).append(number)
        for number in self.a[one].users if below else ():
            same = below.get((a[number], self.a[number].inputs.index(one)))
            if same and number not in self.pairs:
                yield self._pair(number, same.pop(0))

    def sure(self, one: int, two: int, keys: Sequence[Sequence[Hashable]]) -> bool:
        """Return True if there is evidence for the match beyond the operator: an equal neighbour at the same place, the
        line, or that neither has a neighbour on one of its sides."""
        x, y = self.a[one], self.b[two]
        if keys[0][one] == keys[1][two] and not (x.inputs and y.inputs and x.users and y.users):
            return True
        if any(self.pairs.get(above) == other for above, other in zip(x.inputs, y.inputs)):
            return True
        below = {(number, self.b[number].inputs.index(two)) for number in y.users}
        if any((self.pairs.get(n, -1), self.a[n].inputs.index(one)) in below for n in x.users):
            return True
        lines = [{frame.text.strip() for frame in item.node.innermost} for item in (x, y)]
        return bool(lines[0] & lines[1] - {""}) or not (x.users or y.users)

    def _free(self, one: int, two: int) -> bool:
        return one not in self.pairs and two not in self._taken

    def _pair(self, one: int, two: int) -> tuple[int, int]:
        self.pairs[one] = two
        self._taken.add(two)
        return one, two


def _by_key(keys: Sequence[Hashable], taken: Mapping[int, int] | set[int]) -> dict[Hashable, list[int]]:
    numbers: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        if number not in taken:
            numbers.setdefault(key, []).append(number)
    return numbers


def signatures(side: Sequence[Item]) -> list[Hashable]:
    """Return a key for each node alone: operator, plain arguments, type and shape of its results."""
    symbols: dict[str, str] = {}

    def plain(text: str) -> str:
        return _SYMBOL.sub(lambda symbol: symbols.setdefault(symbol[0], f"size {len(symbols)}"), text)

    return [
        (
            item.node.op,
            _target(item.node),
            tuple(_tensor(t, plain, item.home) for t in item.node.outputs),
            _arguments(item.node, plain, item.home),
        )
        for item in side
    ]


def device(name: str, home: str) -> str:
    """Return the kind of a device; ``""`` for the capture's own."""
    kind = name.partition(":")[0]
    return "" if kind == home else kind


def _tensor(tensor: Tensor, plain: Callable[[str], str], home: str) -> Hashable:
    """Return the dtype, shape and device type of a tensor."""
    shape = tuple(plain(size) if isinstance(size, str) else size for size in tensor.shape)
    return tensor.dtype, shape, device(tensor.device, home)


def _arguments(node: Node, plain: Callable[[str], str], home: str) -> Hashable:
    """Return the arguments of a node, with a placeholder for the values of other nodes."""

    def of(value: Value) -> Hashable:
        if isinstance(value, Ref):
            return Ref
        if isinstance(value, Literal):
            return plain(value.text) if device(value.text, home) else ""
        if isinstance(value, tuple):
            return tuple(of(one) for one in value)
        return type(value).__name__, value

    if node.op in ("placeholder", "get_attr"):
        return ()
    return tuple(of(v) for v in node.args), tuple((k, of(v)) for k, v in node.kwargs)


def _target(node: Node) -> str:
    if node.op in ("placeholder", "get_attr"):
        return ""  # names of the program's
    return node.module_type if node.op == "call_module" else node.target.removesuffix(".default")


def _pasts(side: Sequence[Item], own: Sequence[Hashable]) -> list[Hashable]:
    """Return a key for each node with all its ancestors."""
    keys: list[Hashable] = []
    for item, signature in zip(side, own):
        known = isinstance(signature, tuple) and len(signature) == 2  # an input that is known
        keys.append(hash((signature, None if known else item.order, tuple(keys[n] for n in item.inputs))))
    return keys


def _futures(side: Sequence[Item], own: Sequence[Hashable]) -> list[Hashable]:
    """Return a key for each node with all its descendants."""
    keys: list[Hashable] = [0] * len(side)
    for number in range(len(side) - 1, -1, -1):
        item = side[number]
        below = sorted((hash(keys[n]), side[n].inputs.index(number)) for n in item.users)
        keys[number] = hash((own[number], tuple(below)))
    return keys
