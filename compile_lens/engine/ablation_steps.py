"""The steps of an ablation that were compiled beside a capture."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..measures.steps import trimmed_name
from ..record.capture import ABLATIONS, Ablation
from ..results.capture import Capture

if TYPE_CHECKING:
    from .._torch.session import Outcome


def with_steps(made: Capture, outcome: Outcome) -> Capture:
    """The capture with the steps that were compiled beside it."""
    whole = {c.id: c for c in made.compilations}
    ablations = []
    for step in outcome.steps:
        compilations, _ = step.recorder.finish()
        notes = list(step.recorder.notes)
        if step.error is not None:
            first = str(step.error).strip().splitlines()
            notes.insert(
                0, f"this step could not be made: {type(step.error).__name__}: {(first or [''])[0][:200]}"
            )
        step.recorder.drafts.clear()
        step.error = None
        notes += _joined(compilations)
        if (
            step.name == ABLATIONS[0]
        ):  # its values have buffers since we gave them one: Inductor had no reason
            compilations = tuple(dataclasses.replace(c, lowered=()) for c in compilations)
        kept = tuple(trimmed_name(c, whole[c.id]) for c in compilations if c.id in whole)
        ablations.append(Ablation(step.name, step.settings, kept, tuple(dict.fromkeys(notes))))
    done = dataclasses.replace(made, ablations=(*ablations, Ablation(ABLATIONS[-1])))
    if (live := getattr(made, "_live", None)) is not None:
        object.__setattr__(done, "_live", live)
    return done


def _joined(compilations: Any) -> list[str]:
    """Return notes on loops that were fused although the step fuses nothing."""
    notes = []
    for c in compilations:
        for phase, code in c.code.items():
            stage = f"{phase}.groups"
            groups = c.graphs[stage].nodes if stage in c.graphs else ()
            several = [g for g in groups if len(g.members) > 1]
            notes += [f"{phase}: {g.name} still has {len(g.members)} loops" for g in several]
            notes += [
                f"{phase}: {k.name} runs {len(k.groups)} groups in {k.launches} launch(es)"
                for k in code.kernels
                if len(k.groups) > k.launches  # the same code may serve several groups, one launch each
            ]
    return notes
