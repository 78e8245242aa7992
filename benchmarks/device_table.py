"""Results of ``real_device.py``, as tables in Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Row:
    """One program. ``None`` is a figure that was not measured: ``notes`` explain why.

    ``apart`` lists the differences, ``said`` the sentences of the capture that predict them;
    launches are of generated kernels in one call, its backward included, peaks in bytes.
    """

    group: str
    name: str
    apart: tuple[str, ...] | None = None
    said: tuple[str, ...] = ()
    launches: int | None = None
    profiled: int | None = None
    predicted: int | None = None
    allocated: int | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Speed:
    """A kernel's bytes by the model, and the median seconds of a call. ``copied`` is a copy's bytes per second."""

    name: str
    nbytes: int
    seconds: float
    copied: float


def table(rows: Sequence[Row]) -> str:
    """Return by group: programs, how many are completely equal; generated kernels; peaks."""
    head = [
        "programs",
        "of them",
        "the same in all",
        "differ",
        "kernels as profiled",
        "peak within 2 %",
    ]
    lines = [head, ["---", *["---:"] * 5]]
    for group in dict.fromkeys(row.group for row in rows):
        mine = [row for row in rows if row.group == group]
        compared = [row for row in mine if row.apart is not None]
        other = [row for row in compared if row.apart]
        ran = [row for row in mine if row.profiled is not None]
        peaks = [near for row in mine if (near := _is_near(row)) is not None]
        counts: list[object] = [len(mine), len(compared) - len(other), len(other)]
        counts.append(f"{sum(r.profiled == r.launches for r in ran)} of {len(ran)}")
        lines.append([group, *map(str, counts), f"{sum(peaks)} of {len(peaks)}"])
    notes = [f"- {row.group}, {row.name}: {text}" for row in rows for text in _told(row)]
    return (
        "\n".join(["| " + " | ".join(line) + " |" for line in lines] + (["", *notes] if notes else [])) + "\n"
    )


def _is_near(row: Row) -> bool | None:
    """Return True if the peak is within 2 % of the allocator's; ``None`` if there is none, or its rounding counts."""
    if row.predicted is None or row.allocated is None or row.allocated < 2**18:
        return None
    return abs(row.predicted - row.allocated) <= 0.02 * row.allocated


def _told(row: Row) -> list[str]:
    texts = [", ".join(row.apart)] if row.apart else []
    texts += [f"said: {text}" for text in row.said] if row.apart else []
    if row.profiled is not None and row.profiled != row.launches:
        texts.append(f"{row.launches} launches of generated kernels, {row.profiled} by the profiler")
    if _is_near(row) is False:
        predicted, allocated = (f"{(peak or 0) / 2**20:,.2f}" for peak in (row.predicted, row.allocated))
        texts.append(f"peak {predicted} MiB, by the allocator {allocated}")
    return [*texts, *(note.replace("\n", " ") for note in row.notes)]


def of_speed(found: Sequence[Speed], bandwidth: float) -> str:
    """Return modelled bytes over measured seconds. ``bandwidth`` is the device's published one, in bytes per second."""
    lines = [["function", "GB moved", "GB/s", "of a copy", "of published"], ["---", *["---:"] * 4]]
    for one in found:
        rate = one.nbytes / one.seconds
        share = f"{rate / bandwidth:.0%}" if bandwidth else "–"
        lines.append(
            [one.name, f"{one.nbytes / 1e9:.2f}", f"{rate / 1e9:,.0f}", f"{rate / one.copied:.0%}", share]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
