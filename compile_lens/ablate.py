"""Ablations: the same function compiled with less, so that each step of the compiler shows what it saves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ._torch.outside import outside_dynamo
from .capture import Asked, perform
from .measures.steps import trimmed
from .record import ABLATIONS, Ablation, Capture

if TYPE_CHECKING:
    from ._torch.session import Outcome


@outside_dynamo
def ablate(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
) -> Capture:
    """``capture``, with the same graphs compiled in three steps: real code for each, not arithmetic.

    The capture is the one that ``capture`` makes; ``capture.ablations`` has the steps of
    ``compile_lens.record.ABLATIONS``, from least to most: *nothing inlined or fused* (each ATen operator realised
    at lowering, ``max_fusion_size=1``), *inlined* (``max_fusion_size=1``), *fused* (the default). The last is the
    capture's own: its ``compilations`` are empty. Those of the others hold the stages that differ;
    ``measures.steps.stepped(capture, step)`` makes a whole capture of one, with ledger, kernels and code.

    Without ``build`` the function runs once, as a plain call would: the steps compile the graph that Dynamo
    captured, and none of them runs. With ``build`` each step is built and timed as ``benchmark`` does it, on
    copies, and ``capture.benchmark`` has the times.

    Arguments are those of ``capture``. Graph passes (decompositions, pattern rewrites) come before lowering and
    are the same in every step. A step that the compiler could not make says so in its ``notes``.

    Raises as ``capture``, with ``build`` as ``benchmark``.
    """
    if build:
        from .benchmark import benchmark

        return benchmark(
            fn,
            *args,
            kwargs=kwargs,
            backward=backward,
            dynamic=dynamic,
            mode=mode,
            options=options,
            fullgraph=fullgraph,
        )
    asked = Asked(backward, dynamic, mode, options, fullgraph)
    made, outcome = perform(fn, args, kwargs, asked, steps=ABLATIONS)
    return with_steps(made, outcome)


def with_steps(made: Capture, outcome: Outcome) -> Capture:
    """The capture with the steps that were compiled beside it."""
    whole = {c.id: c for c in made.compilations}
    found = []
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
        kept = tuple(trimmed(c, whole[c.id]) for c in compilations if c.id in whole)
        found.append(Ablation(step.name, step.settings, kept, tuple(dict.fromkeys(notes))))
    done = dataclasses.replace(made, ablations=(*found, Ablation(ABLATIONS[-1])))
    if (live := getattr(made, "_live", None)) is not None:
        object.__setattr__(done, "_live", live)
    return done


def _joined(compilations: Any) -> list[str]:
    """What was put together although the step fuses nothing."""
    notes = []
    for c in compilations:
        for phase, code in c.code.items():
            stage = f"{phase}.groups"
            groups = c.graphs[stage].nodes if stage in c.graphs else ()
            several = [g for g in groups if len(g.members) > 1]
            notes += [f"{phase}: {g.name} is {len(g.members)} loops all the same" for g in several]
            notes += [
                f"{phase}: {k.name} runs {len(k.groups)} groups in {k.launches} launch(es)"
                for k in code.kernels
                if len(k.groups) > k.launches  # the same code may serve several groups, one launch each
            ]
    return notes
