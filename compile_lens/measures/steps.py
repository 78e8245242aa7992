"""The steps of an ablation side by side: the savings of each step of the compiler, in real code.

The steps follow "PyTorch 2" (ASPLOS 2024), section 6.4. *Nothing inlined or fused*: each ATen operator is realised, so
each is a loop and each loop a kernel. *Inlined*: lowering as usual, still a kernel for each loop. *Fused*: the usual
``torch.compile``. All three lower the same graph: decompositions and pattern rewrites happen before.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from compile_lens.errors import UsageError
from compile_lens.record.capture import ABLATIONS, Ablation, Record
from compile_lens.record.compilation import Compilation, Stage
from compile_lens.record.figures import AtLeast, Figure

from .ledger import ledger


@dataclass(frozen=True)
class Step:
    """One step: loops before fusion, groups, launches and modelled bytes, summed over all phases.

    A figure that the record cannot support is ``None``; ``notes`` give the reason, and other limits.
    """

    name: str
    loops: Figure | AtLeast | None
    groups: Figure | AtLeast | None
    launches: Figure | AtLeast | None
    nbytes: Figure | AtLeast | None
    notes: tuple[str, ...] = ()


def at_step(capture: Record, step: str) -> Record:
    """Return the capture as if made with one step; every measure and view works on it.

    Raise ``UsageError`` if the step is not in the record.
    """
    ablation = next((a for a in capture.ablations if a.step == step), None)
    if ablation is None:
        known = ", ".join(repr(a.step) for a in capture.ablations)
        raise UsageError(
            f"step {step!r} is not in this capture; it has {known}"
            if known
            else "this capture has no ablations: make them with compile_lens.ablate(f, x)"
        )
    if step == ABLATIONS[-1] and not ablation.compilations:
        return dataclasses.replace(capture, ablations=(), benchmark=None)
    own = {c.id: c for c in ablation.compilations}
    compilations = tuple(_over(c, own[c.id]) for c in capture.compilations if c.id in own)
    return dataclasses.replace(
        capture,
        compilations=compilations,
        timings=(),
        notes=(*capture.notes, *ablation.notes),
        ablations=(),
        benchmark=None,
    )


def trimmed_name(step: Compilation, whole: Compilation) -> Compilation:
    """Return a step's compilation without the parts equal to the capture's own, which ``at_step`` restores."""
    same: dict[str, Stage] = {s.key: s for s in whole.stages}
    return dataclasses.replace(
        step,
        stages=tuple(s for s in step.stages if same.get(s.key) != s),
        dynamic=(),
        ending=None,
        eager_note="",
        passes=() if step.passes == whole.passes else step.passes,
        partition=None if step.partition == whole.partition else step.partition,
    )


def _over(whole: Compilation, step: Compilation) -> Compilation:
    own: dict[str, Stage] = {s.key: s for s in step.stages}
    keys = dict.fromkeys([*(s.key for s in whole.stages), *own])
    usual: dict[str, Stage] = {s.key: s for s in whole.stages}
    return dataclasses.replace(
        whole,
        stages=tuple(own.get(key) or usual[key] for key in keys),
        decisions=step.decisions,
        lowered=step.lowered,
        memory=step.memory,
        passes=step.passes or whole.passes,
        partition=step.partition or whole.partition,
    )


def steps(capture: Record) -> tuple[Step, ...]:
    """Return the figures of each step of a capture's ablations, in their order; empty without ablations."""
    return tuple(_row(capture, ablation) for ablation in capture.ablations)


def _row(capture: Record, ablation: Ablation) -> Step:
    total = ledger(at_step(capture, ablation.step)).total
    return Step(
        ablation.step,
        total.loops,
        total.groups,
        total.launches,
        total.bytes_after,
        (*ablation.notes, *total.notes),
    )
