"""A compilation in one line for each phase, from Python to the kernels: the counts of each stage and the step to the
next stage. Counts are the ledger's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.measures.ledger import Ledger
from compile_lens.measures.source_units import units
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation

from ..document import Step
from . import labels, quantities

TITLE = "Flow"
ABOUT = "the stages of the function, in order"

ARROW = " → "

STOPPED = "stopped here"
"""Replaces the count of a stage in which the compiler failed."""

_UNKNOWN = "?"


@dataclass(frozen=True)
class Way:
    """The stages of one phase; ``phase`` is ``""`` if no phase was reached.

    Attributes:
        words: alternating stages and steps: ``("1 line", "traced", "5 calls", "joint 17", "5 ops", …, "1 kernel")``.
    """

    phase: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return (f"{self.phase}: " if self.phase else "") + ARROW.join(self.words)


def ways(capture: Record, compilation: Compilation, ledger: Ledger) -> tuple[Way, ...]:
    """Return a ``Way`` for each phase of a compilation with the ledger ``ledger``; ``()`` if no stage was recorded."""
    lanes = {
        lane.phase: {step.key: step for step in lane.steps} for lane in labels.lanes(capture, compilation)
    }
    if not lanes:
        return ()
    failed = capture.failure.stage if capture.failure is not None else ""
    shared = lanes.pop("", {})
    start = tuple(_start(capture, compilation, shared, failed))
    if not lanes:
        return (Way("", start),)
    rows = {row.name: row.figures for row in ledger.rows}
    every = []
    for phase, steps in lanes.items():
        figures = [quantities.figure(f) for f in rows[phase]] if phase in rows else []
        pairs = len(unfused_pairs(capture, compilation.id, phase))
        rest = _rest(phase, steps, figures, pairs, shared.get("joint"), failed)
        every.append(Way(phase, (*start, *rest)))
    return tuple(every)


def _start(capture: Record, compilation: Compilation, shared: dict[str, Step], failed: str) -> Iterator[str]:
    lines = {(unit.file, unit.line) for unit in units(capture)[compilation.id].all}
    if lines:
        yield quantities.plural(len(lines), "line")
    elif capture.sources:
        yield quantities.plural(len(capture.sources), "function")
    dynamo = shared.get("dynamo")
    if dynamo is not None:
        broke = compilation.ending is not None and compilation.ending.kind == "graph break"
        yield "traced up to a break" if broke else "traced"
        yield _count(dynamo, (*dynamo.facts[1:], *dynamo.facts)[0] if dynamo.facts else "", failed)


def _rest(
    phase: str,
    steps: dict[str, Step],
    figures: list[str],
    unfused_pairs: int,
    joint: Step | None,
    failed: str,
) -> Iterator[str]:
    def counted(step: Step, column: int, one: str) -> str:
        if not figures:
            return _count(step, step.facts[0] if step.facts else "", failed)
        figure = figures[column]
        shown = _UNKNOWN if figure in ("", quantities.NOT_KNOWN) else figure
        return _count(step, f"{shown} {one if figure == '1' else f'{one}s'}", failed)

    if aten := steps.get(phase):
        if joint is not None and len(joint.facts) > 1:
            yield f"joint {joint.facts[1].split()[0]}"
        else:
            yield "joint not seen" if joint is not None and joint.missing else "decomposed"
        yield counted(aten, 1, "op")
    if loops := steps.get(f"{phase}.loops"):
        yield "inlined"
        yield counted(loops, 2, "loop")
    if groups := steps.get(f"{phase}.groups"):
        yield f"fused ({quantities.plural(unfused_pairs, 'pair')} not)" if unfused_pairs else "fused"
        yield counted(groups, 3, "group")
    if code := steps.get(f"{phase}.code"):
        yield "generated"
        yield _count(code, code.facts[0] if code.facts else "", failed)


def _count(step: Step, count: str, failed: str) -> str:
    if step.missing:
        return STOPPED if step.key == failed else "not seen"
    return "none" if step.none else count
