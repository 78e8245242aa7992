"""Words for launches: how many one call makes, or what is known of that."""

from __future__ import annotations

from compile_lens.measures.control_flow import launches
from compile_lens.record.figures import MEASURED, AtLeast, Count, Figure, figure
from compile_lens.record.kernel import Code, Kernel


def counted(value: Figure | AtLeast, one: str, many: str = "") -> str:
    """A figure with its noun: ``1 launch``, ``1 or 3 launches``, ``launches: 3 + 4 per turn``, ``≥ 5 launches (1 of
    2 graphs)``."""
    many = many or f"{one}s"
    if isinstance(value, Figure):
        return f"{value:,} {one if value == 1 else many}"
    partial = value.known < value.graphs
    words = f"{'≥ ' if partial else ''}{value.count.text()}"
    noun = one if value.count == Count(1) else many
    phrase = f"{many}: {words}" if value.count.most is None else f"{words} {noun}"
    return phrase + (f" ({value.known:,} of {value.graphs:,} graphs)" if partial else "")


def launched(code: Code, *kernels: Kernel) -> str:
    """The number of launches of kernels of a module in one call: ``2 launches``, ``1 launch per turn``, ``0 or 1
    launch``."""
    count = launches(code, kernels)
    if count in _OFTEN:
        return _OFTEN[count]
    return counted(figure(count, MEASURED), "launch", "launches")


_OFTEN = {Count(iterations=(Count(1),)): "1 launch per turn"}
for _ways in ((Count(), Count(1)), (Count(1), Count())):
    _OFTEN[Count(branches=(_ways,))] = "0 or 1 launch"
