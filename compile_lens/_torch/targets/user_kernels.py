"""Triton kernels of the program, which plain Python or the captured graph launches on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ...record.graph import Frame
from .device_queries import DeviceQueries, frame_at, running_line
from .replacements import Replacements, is_marked, marked

COMPARED = "stand-in compared"
"""Threads on which results are compared, which may take longer."""

IN_GRAPH = "stand-in runs a graph"
"""Threads on which a captured graph runs, which itself notes what cannot run."""

_TIMES = 8


def place(places: Replacements, mark: str, queries: DeviceQueries | None = None) -> None:
    """Launch them in Triton's interpreter, on threads inside ``marked(mark)``. An autotuned one is launched with the
    first of its configurations: only the device knows the fastest.

    If plain Python launches one that cannot be interpreted, it writes nothing, and ``queries`` note it.
    """
    from ..._triton.launch import MAX_ELEMENTS, Launches, NotLaunched, launchers

    function, tuner = launchers()
    launches = Launches(_TIMES * MAX_ELEMENTS if is_marked(COMPARED) else MAX_ELEMENTS)

    def launched(kernel: Any, *args: Any, **kwargs: Any) -> None:
        try:
            launches.run(kernel, *args, **kwargs)
        except NotLaunched as error:
            if queries is None or is_marked(COMPARED) or is_marked(IN_GRAPH):
                raise
            queries.put(
                "not run",
                kernel_name(kernel),
                str(error).splitlines()[0],
                running_line() or kernel_line(kernel),
            )

    run = torch.compiler.disable(launched)
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
    _place_in_graphs(places)


def _place_in_graphs(places: Replacements) -> None:
    """Keep Dynamo from compiling Triton's launching function where autograd runs a captured graph in Python: it would
    take it for the program's, with a graph and a kernel for no device."""
    from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation as operator

    key = torch._C.DispatchKey.CompositeExplicitAutograd
    forget = operator._dispatch_cache.clear
    places.add(forget)
    places.entry(operator.py_kernels, key, torch.compiler.disable(operator.py_kernels[key]))
    forget()


def kernel_name(kernel: Any) -> str:
    """Return the program's name of a kernel."""
    return str(_function(kernel).__name__)


def _function(kernel: Any) -> Any:
    """Return the function that is autotuned, or has heuristics."""
    while not hasattr(kernel, "__name__"):
        kernel = kernel.fn
    return kernel


def kernel_line(kernel: Any) -> Frame:
    """Return the line of a kernel."""
    code = _function(kernel).fn.__code__
    return frame_at(code.co_filename, code.co_firstlineno, code.co_name)


@contextlib.contextmanager
def comparison() -> Iterator[None]:
    """For the duration, this thread launches kernels in the interpreter, those of the program and Inductor's."""
    with Replacements() as places, places, marked(COMPARED):
        place(places, COMPARED)
        yield
