"""Lines of kernels that compute what no other target computes: other operators reached the code there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compile_lens.measures.chain import Address, Chain
from compile_lens.record.capture import Record

Work = tuple[str, frozenset[tuple[str, int]]]
"""An operator, and the Python lines that it came from."""


def own_lines(captures: Sequence[Record | None], compilation: str, phase: str) -> list[dict[Address, str]]:
    """For each capture the lines of its kernels that the others lack, each with the operators that it computes.

    A line counts if it has origins and none of these stands, for the same Python lines, in a kernel of another
    capture. Captures that are not there have no lines, and neither has the only one that is there.
    """
    found = [_works(capture, compilation, phase) if capture is not None else {} for capture in captures]
    every = [{work for works in lines.values() for work in works} for lines in found]
    own: list[dict[Address, str]] = []
    for number, lines in enumerate(found):
        others = [works for other, works in enumerate(every) if other != number and found[other]]
        rest = set().union(*others) if others else None
        own.append(
            {
                address: ", ".join(sorted({target for target, _ in works}))
                for address, works in lines.items()
                if rest is not None and works and not works & rest
            }
        )
    return own


def _works(capture: Record, compilation: str, phase: str) -> Mapping[Address, set[Work]]:
    chain = Chain(capture)
    lines: dict[Address, set[Work]] = {}
    for one in capture.compilations:
        graph, code = one.graphs.get(f"{phase}.post_grad"), one.code.get(phase)
        if one.id != compilation or graph is None or code is None:
            continue
        works = {
            node.name: (
                node.target,
                frozenset((frame.file, frame.line) for frame in chain.lines((one.id, graph.key, node.name))),
            )
            for node in graph.calls
        }
        for kernel in code.kernels:
            for line in kernel.lines:
                address = (one.id, code.key, f"{kernel.name}:{line.line}")
                lines[address] = {works[name] for name in line.origins if name in works}
    return lines
