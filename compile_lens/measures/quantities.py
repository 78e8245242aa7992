"""Figures of a whole capture or one of its phases, to compare with a limit or another capture.

Each is a ``Figure``; an ``AtLeast`` if a part is unknown or depends on control flow; ``Missing`` with the reason if it
is not known; or ``NotApplicable`` if there is nothing to count. An unknown figure never satisfies a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.figures import MEASURED, MODELLED, AtLeast, Count, Figure, figure, summed
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code
from compile_lens.record.memory import saved_bytes
from compile_lens.record.missing import AbsentStage, Missing, NotApplicable

from .control_flow import launches as launched
from .ledger import Row
from .ledger import ledger as ledger_of

Quantity = Figure | AtLeast | Missing | NotApplicable


def of_ledger(column: str, capture: Record, phase: str = "") -> Quantity:
    """Return a column of the ledger, for one phase or all."""
    whole = ledger_of(capture)
    row = getattr(whole, phase or "total")
    value: Figure | AtLeast | None = getattr(row, column)
    if value is None:
        return _unknown(column, row.notes, phase)
    return value


def _unknown(name: str, notes: Iterable[str], phase: str) -> Quantity:
    reason = "; ".join(notes)
    return Missing(name, reason) if reason else NotApplicable(name, f"there is no {phase or 'graph'}")


def unknown_parts(capture: Record, phase: str = "") -> tuple[str, ...]:
    """Return why figures of the ledger are unknown or partly unknown."""
    whole = ledger_of(capture)
    row: Row = getattr(whole, phase or "total")
    return row.notes


def extern(capture: Record, phase: str = "") -> Quantity:
    """Return the number of library calls in one call of the generated code."""
    parts: list[Figure | AtLeast | None] = []
    for compilation, row in _rows(capture, phase):
        code = compilation.code.get(row.name)
        if row.launches is None:
            parts.append(None)
        elif code is None:  # a graph without operations
            parts.append(Figure(0))
        else:
            parts.append(
                figure(launched(code, [k for k in code.kernels if k.language == "extern"]), MEASURED)
            )
    return _sum(parts, capture, phase, "launches")


def peak(capture: Record, phase: str = "") -> Quantity:
    """Return the peak of live bytes within a graph; for several graphs the largest."""
    memories = [(c, row, {m.phase: m for m in c.memory}.get(row.name)) for c, row in _rows(capture, phase)]
    known = [m.peak for _, _, m in memories if m is not None and m.peak is not None]
    if memories and len(known) == len(memories):
        return Figure(max(known), MODELLED)
    if known:
        return AtLeast(Count(max(known)), MODELLED, known=len(known), graphs=len(memories))
    notes = dict.fromkeys(
        f"{c.id} {row.name}: {(m.note if m is not None else '') or 'the record holds no buffers of it'}"
        for c, row, m in memories
    )
    return _unknown("peak", notes, phase)


def saved(capture: Record) -> Quantity:
    """Return the bytes that the forward saves for the backward besides inputs and results."""
    training = [c for c in capture.compilations if {"forward", "backward"} & set(c.phases)]
    if capture.options.backward == "no":
        return NotApplicable("saved", "the capture was made with backward=False")
    if not training:
        return NotApplicable("saved", "there is no backward: no input needs a gradient")
    parts = [None if c.partition is None else saved_bytes(c.partition.saved) for c in training]
    total = summed(None if part is None else Figure(part, MODELLED) for part in parts)
    if total is not None:
        return total
    notes = dict.fromkeys(c.partition.note for c in training if c.partition is not None and c.partition.note)
    return Missing(
        "saved", "; ".join(notes) or "the record does not have what the forward saves, or its size"
    )


def graphs(capture: Record) -> int:
    """Return the number of graphs that Dynamo handed to the backend, as torch counts them (``unique_graphs``): a
    compilation without a graph counts 0, one handed over in parts (``0/0.1``) counts 1."""
    compiled = (c for c in capture.compilations if any(isinstance(s, (Graph, Code)) for s in c.stages))
    return len({c.id.partition(".")[0] for c in compiled})


def _graphs(capture: Record) -> Quantity:
    return Figure(graphs(capture))


def graph_breaks(capture: Record) -> Quantity:
    """Return the number of graph breaks."""
    return _observed_count(capture, len(capture.breaks), claims.BREAKS)


def recompiles(capture: Record) -> Quantity:
    """Return the number of recompiles."""
    return _observed_count(capture, len(capture.recompiles), claims.RECOMPILES)


def _observed_count(capture: Record, count: int, claim: str) -> Quantity:
    """Return a count of Dynamo's; ``Missing`` with the lower bound if the record did not observe all of it."""
    lacking = capture.lacks(claim)
    return Missing(claim, f"at least {count:,}: {lacking}") if lacking else Figure(count)


OF_PHASES: Mapping[str, Callable[[Record, str], Quantity]] = {
    "launches": partial(of_ledger, "launches"),
    "groups": partial(of_ledger, "groups"),
    "loops": partial(of_ledger, "loops"),
    "bytes": partial(of_ledger, "bytes_after"),
    "extern": extern,
    "peak": peak,
}
"""Figures of each phase; phase ``""`` means all together."""

OF_ALL: Mapping[str, Callable[[Record], Quantity]] = {
    "graphs": _graphs,
    "graph_breaks": graph_breaks,
    "recompiles": recompiles,
    "saved": saved,
}
"""Figures of a capture as a whole."""


def of_name(capture: Record, name: str, phase: str = "") -> Quantity:
    """Return a figure by name; ``phase`` only matters for figures of ``OF_PHASES``."""
    return OF_PHASES[name](capture, phase) if name in OF_PHASES else OF_ALL[name](capture)


def phases(capture: Record) -> tuple[str, ...]:
    """Return the phases that have a row in the ledger."""
    whole = ledger_of(capture)
    return tuple(phase for phase in PHASES if getattr(whole, phase).exists)


def _rows(capture: Record, phase: str) -> Iterator[tuple[Compilation, Row]]:
    """Yield the rows of single graphs, each with its compilation."""
    parts = dict(ledger_of(capture).graphs)
    for compilation in capture.compilations:
        part = parts[compilation.id]
        for row in (part.forward, part.backward, part.inference):
            if row.exists and phase in ("", row.name):
                yield compilation, row


def _sum(parts: Iterable[Figure | AtLeast | None], capture: Record, phase: str, column: str) -> Quantity:
    every = tuple(parts)
    total = summed(every)
    if total is None or not every:
        reason = of_ledger(column, capture, phase)
        return reason if isinstance(reason, AbsentStage) else Missing(column, "no graph of it is known")
    return total


FORMS = "a number for equal, at_most=, at_least= or within=(low, high)"


@dataclass(frozen=True)
class Bounds:
    """Lower and upper limit of a number; ``None``: no limit on that side."""

    low: int | None
    high: int | None

    @classmethod
    def of(
        cls,
        what: str,
        equal: Any = None,
        at_most: Any = None,
        at_least: Any = None,
        within: Any = None,
    ) -> Bounds:
        """Return the bounds given in one of the forms; raise ``UsageError`` for none, several, or an invalid one."""
        given = {"equal": equal, "at_most": at_most, "at_least": at_least, "within": within}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            arguments = ", ".join(f"{name}={value!r}" for name, value in named.items()) or "nothing"
            raise UsageError(f"{what} was given {arguments}: give one of {FORMS}")
        ((name, value),) = named.items()
        if name == "within":
            if not (isinstance(value, (tuple, list)) and len(value) == 2):
                raise UsageError(
                    f"{what}: within={value!r} is not two numbers: write within=(low, high), both included"
                )
            low, high = (_whole(what, "within", number) for number in value)
            if low > high:
                raise UsageError(f"{what}: within={value!r} is empty: the first number is the lower one")
            return cls(low, high)
        number = _whole(what, name, value)
        return cls(
            None if name == "at_most" else number,
            None if name == "at_least" else number,
        )

    def holds(self, figure: Figure | AtLeast) -> bool | None:
        """Return whether a figure is within the bounds; None if its known part does not decide."""
        least: int = figure if isinstance(figure, Figure) else figure.least
        most: int | None = figure if isinstance(figure, Figure) else figure.most
        if (self.high is not None and least > self.high) or (
            self.low is not None and most is not None and most < self.low
        ):
            return False
        if (self.high is not None and (most is None or most > self.high)) or (
            self.low is not None and least < self.low
        ):
            return None
        return True

    def __str__(self) -> str:
        if self.low is None:
            return f"at most {self.high:,}"
        if self.high is None:
            return f"at least {self.low:,}"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


def _whole(what: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{what}: {name}={value!r} is not a whole number of 0 or more: give {FORMS}")
    return int(value)
