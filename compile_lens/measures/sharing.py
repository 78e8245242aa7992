"""Which kernels of a module compute the same operators, and of which a call launches one or the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compile_lens.record.kernel import Code, Kernel


def instead_of(kernel: Kernel, other: Kernel) -> bool:
    """Whether a line of the module launches the one or the other: it launches one kernel."""
    return other.name != kernel.name and not {*kernel.launch_lines}.isdisjoint({*other.launch_lines} - {0})


def computed_again(code: Code, nodes: Iterable[str]) -> Callable[[Kernel, str], tuple[str, ...]]:
    """For a kernel and one of its operators, the other kernels of the module that compute it as well.

    ``nodes`` are the operators that compute anything: a view moves nothing, however many kernels look through
    it. A library call shares its name with others, and is one operator: it counts for nothing here.
    """
    wanted = set(nodes)
    computing: dict[str, dict[str, None]] = {}
    named = {kernel.name: kernel for kernel in code.kernels}
    for kernel in code.kernels:
        for origin in wanted.intersection(_computed(kernel)) if kernel.language != "extern" else ():
            computing.setdefault(origin, {})[kernel.name] = None

    def others(kernel: Kernel, origin: str) -> tuple[str, ...]:
        if kernel.language == "extern":
            return ()
        found = computing.get(origin, {})
        if kernel.name not in found:
            return ()
        return tuple(name for name in found if name != kernel.name and not instead_of(kernel, named[name]))

    return others


def _computed(kernel: Kernel) -> Iterable[str]:
    """What a kernel computes itself, by its lines where they were followed: the second part of a reduction came from
    the same operators as the first, and computes none of those inlined there."""
    followed = {origin for line in kernel.lines for origin in line.origins}
    return followed.intersection(kernel.origins) or kernel.origins
