"""The program's own Triton kernels, launched on the CPU by untraced Python or the captured graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ...record.graph import Frame
from .device_queries import DeviceQueries, frame_at, running_line
from .replacements import Replacements, is_marked, marked

COMPARED = "stand-in compared"
"""Mark of threads on which results are compared, which may take longer."""

IN_GRAPH = "stand-in runs a graph"
"""Mark of threads on which a captured graph runs, which itself records what cannot run."""

_COMPARISON_FACTOR = 8


def place(places: Replacements, mark: str, queries: DeviceQueries | None = None) -> None:
    """Launch kernels in Triton's interpreter on threads inside ``marked(mark)``. An autotuned kernel uses its first
    configuration, since only the device can time them.

    If untraced Python launches a kernel that cannot be interpreted, it writes nothing, and ``queries`` records it.
    """
    from ..._triton.launch import MAX_ELEMENTS, Launches, NotLaunched, launchers

    function, tuner = launchers()
    launches = Launches(_COMPARISON_FACTOR * MAX_ELEMENTS if is_marked(COMPARED) else MAX_ELEMENTS)

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
        tuned.cache_results = False  # there are no timings to save
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
    """Keep Dynamo from compiling Triton's launch function as the program's own code when autograd runs a captured graph
    in Python."""
    from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation as operator

    key = torch._C.DispatchKey.CompositeExplicitAutograd
    forget = operator._dispatch_cache.clear
    places.add(forget)
    places.entry(operator.py_kernels, key, torch.compiler.disable(operator.py_kernels[key]))
    forget()


def kernel_name(kernel: Any) -> str:
    """Return the name of a kernel in the program."""
    return str(_function(kernel).__name__)


def _function(kernel: Any) -> Any:
    """Return the function inside an autotuner or heuristics."""
    while not hasattr(kernel, "__name__"):
        kernel = kernel.fn
    return kernel


def kernel_line(kernel: Any) -> Frame:
    """Return the first line of a kernel."""
    code = _function(kernel).fn.__code__
    return frame_at(code.co_filename, code.co_firstlineno, code.co_name)


@contextlib.contextmanager
def comparison() -> Iterator[None]:
    """Make this thread launch all kernels, the program's and Inductor's, in the interpreter for the duration."""
    with Replacements() as places, places, marked(COMPARED):
        place(places, COMPARED)
        yield
