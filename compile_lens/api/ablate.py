"""Ablations: the same function compiled with less, so that each step of the compiler shows what it saves."""

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
    """``capture``, with the same graphs compiled in three steps: real code for each, not arithmetic.

    The capture is the one that ``capture`` makes; ``capture.ablations`` has the steps of
    ``compile_lens.record.capture.ABLATIONS``, from least to most: *nothing inlined or fused* (each ATen operator
    realised at lowering, ``max_fusion_size=1``), *inlined* (``max_fusion_size=1``), *fused* (the default). The last is
    the capture's own: its ``compilations`` are empty. Those of the others hold the stages that differ;
    ``measures.steps.at_step(capture, step)`` makes a whole capture of one, with ledger, kernels and code.

    Without ``build`` the function runs once, as a plain call would: the steps compile the graph that Dynamo
    captured, and none of them runs. With ``build`` each step is built and timed as ``benchmark`` does it, on
    copies, and ``capture.benchmark`` has the times.

    Arguments are those of ``capture``. Graph passes (decompositions, pattern rewrites) come before lowering and
    are the same in every step. A step that the compiler could not make says so in its ``notes``.

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
