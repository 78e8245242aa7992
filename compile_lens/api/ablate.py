"""Ablations: a function compiled with some optimizations off, to show what each step of the compiler saves."""

from __future__ import annotations

from typing import Any

from ..engine.call import Call
from ..engine.entry import outside_dynamo, separates_keywords
from ..engine.local import perform
from ..engine.options import CaptureOptions
from ..engine.record import with_steps
from ..record.capture import ABLATIONS
from ..results.capture import Capture


@outside_dynamo
@separates_keywords()
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
    **named: Any,
) -> Capture:
    """Capture a function, and compile its graphs in three steps, with actual code for each step.

    The capture is as from ``capture``; ``capture.ablations`` has the steps of
    ``compile_lens.record.capture.ABLATIONS``, from least to most optimized: *nothing inlined or fused* (each ATen
    operator realized at lowering, ``max_fusion_size=1``), *inlined* (``max_fusion_size=1``), *fused* (the default). The
    last step is the capture itself, so its ``compilations`` are empty; those of the others have the stages that differ.
    ``measures.steps.at_step(capture, step)`` returns a whole capture for a step, with ledger, kernels and code.

    Without ``build`` the function runs once, as in a plain call; the steps compile the graph that Dynamo captured, and
    none of them runs. With ``build`` each step is built and timed on copies as in ``benchmark``, and
    ``capture.benchmark`` has the times.

    Arguments are as for ``capture``. Graph passes (decompositions, pattern rewrites) come before lowering and are the
    same in every step. A step that failed to compile has the reason in its ``notes``.

    Raises as ``capture``, with ``build`` as ``benchmark``.
    """
    if build:
        from ..trials.benchmark import benchmark

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
    checked = CaptureOptions(backward, dynamic, mode, options, fullgraph)
    capture, outcome = perform(Call.read(fn, args, kwargs, checked), steps=ABLATIONS)
    return with_steps(capture, outcome)
