"""Lines of kernels that compute what no other target computes: other operators reached the code there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compile_lens.measures.compare.target import of_one_program
from compile_lens.measures.diff.side import Named, Side
from compile_lens.record.capture import Record

from ..address import Address


class OwnLines:
    """Lines of kernels that the other captures of one program lack; ``None`` is a capture that is not there."""

    def __init__(self, captures: Sequence[Record | None]) -> None:
        self._sides = [None if capture is None else Side(capture) for capture in captures]
        self._same: dict[tuple[int, int, str], dict[Named, Named]] = {}

    def of(self, compilation: str, phase: str) -> list[dict[Address, str]]:
        """For each capture the lines of its own in a module, each with the operators that it computes.

        A line counts if it has origins and none of these stands, as the same operator of the same Python line, in a
        kernel of another capture. The only one that is there has none.
        """
        key = f"{phase}.post_grad"
        found = [{} if side is None else _nodes(side, compilation, phase) for side in self._sides]
        every = [{node for nodes in lines.values() for node in nodes} for lines in found]
        own: list[dict[Address, str]] = []
        for number, lines in enumerate(found):
            others = [other for other, there in enumerate(found) if other != number and there]
            shared = {
                one
                for other in others
                if lines
                for one, two in self._matched(number, other, key).items()
                if two in every[other]
            }
            own.append(
                {
                    a: _words(nodes)
                    for a, nodes in lines.items()
                    if others and nodes and not shared & nodes.keys()
                }
            )
        return own

    def _matched(self, one: int, two: int, key: str) -> dict[Named, Named]:
        """The nodes of one capture that are those of another; made once for all modules of a phase."""
        a, b = self._sides[one], self._sides[two]
        if (one, two, key) not in self._same:
            self._same[one, two, key] = of_one_program(a, b, key) if a is not None and b is not None else {}
        return self._same[one, two, key]


def _nodes(side: Side, compilation: str, phase: str) -> Mapping[Address, dict[Named, str]]:
    """The nodes that each line of a module's kernels computes, with their operators."""
    key = f"{phase}.post_grad"
    stage, numbers = side.stage(key), side.numbers(key)
    return {
        (c.id, code.key, f"{kernel.name}:{line.line}"): {
            (c.id, name): stage[numbers[c.id, name]].node.target
            for name in line.origins
            if (c.id, name) in numbers
        }
        for c, code, kernel in side.kernels(phase)
        if c.id == compilation
        for line in kernel.lines
    }


def _words(nodes: Mapping[Named, str]) -> str:
    return ", ".join(sorted(set(nodes.values())))
