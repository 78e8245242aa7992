"""Kernels that the program wrote in Triton, where plain Python or the captured graph launches them on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .replaced import Places, marked, on

COMPARED = "stand-in compared"
"""Threads on which results are compared, which may take longer."""

_TIMES = 8


def place(places: Places, mark: str) -> None:
    """Launch them in Triton's interpreter, on threads inside ``marked(mark)``. An autotuned one is launched with the
    first of its configurations: which is the fastest is known on the device alone."""
    from ..._triton.launch import WORK, Launches, launchers

    function, tuner = launchers()
    launches = Launches(_TIMES * WORK if on(COMPARED) else WORK)
    run = torch.compiler.disable(launches.run)
    places.attribute(function, "run", mark, lambda kernel, *args, **kwargs: run(kernel, *args, **kwargs))
    tune: Any = tuner.run

    def first(tuned: Any, *args: Any, **kwargs: Any) -> Any:
        before, cached = dict(vars(tuned)), dict(tuned.cache)
        tuned.cache_results = False  # nothing is timed that could be kept
        try:
            return tune(tuned, *args, **kwargs)
        finally:
            tuned.cache.clear()
            tuned.cache.update(cached)
            vars(tuned).clear()
            vars(tuned).update(before)

    places.attribute(tuner, "run", mark, torch.compiler.disable(first))
    places.attribute(tuner, "_bench", mark, lambda tuned, *args, **kwargs: [0.0, 0.0, 0.0])


@contextlib.contextmanager
def compared() -> Iterator[None]:
    """For the duration, this thread launches kernels in the interpreter, those of the program and Inductor's."""
    with Places() as places, places, marked(COMPARED):
        place(places, COMPARED)
        yield
