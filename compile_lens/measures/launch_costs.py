"""Cost of each launch in the generated code, and the nodes that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel

from .launch_accesses import Access, LaunchAccesses, size
from .roofline import Bound, Roofline
from .traffic import KernelTraffic

MEASURED_TIME, ROOFLINE, MOVED = "measured", "roofline", "bytes"
BASES = (MEASURED_TIME, ROOFLINE, MOVED)
"""Values of ``Cost.basis``, the best first."""

Key = tuple[str, str, str]
"""Compile id, phase and name of a kernel."""


def measured(capture: Record, moved: Iterable[KernelTraffic]) -> tuple[dict[Key, float], str]:
    """Measured seconds of one call by kernel, and which kernels have none."""
    if capture.profile is None:
        return {}, "no kernel was timed: benchmark(f, x, by='kernel') or capture.join(trace)"
    seconds: dict[Key, float] = {}
    for graph in capture.profile.graphs:
        for kernel in graph.kernels if graph.compilation and graph.calls else ():
            key = (graph.compilation, graph.phase, kernel.kernel)
            seconds[key] = seconds.get(key, 0.0) + kernel.seconds / graph.calls
    without = [k.name for k in moved if _key(capture, k) not in seconds]
    if not without:
        return seconds, ""
    some = ", ".join(without[:3]) + (", …" if without[3:] else "")
    return seconds, f"{len(without)} of the kernels have no measured time: {some}"


def _key(capture: Record, kernel: KernelTraffic) -> Key:
    cid = kernel.compilation or next(c.id for c in capture.compilations)
    return cid, kernel.phase, kernel.name


_Amount = tuple["float | None", bool]
"""An amount, and whether it is a lower bound."""


def amounts(basis: str, line: Roofline, seconds: Mapping[Key, float]) -> Callable[[Key, Bound], _Amount]:
    """A function from a kernel to what all of its launches cost."""

    def amount(key: Key, bound: Bound) -> _Amount:
        nbytes = size(bound.kernel.nbytes)
        if basis == MEASURED_TIME:
            return seconds.get(key), False
        if bound.kernel.steered:
            return None, False
        if basis == MOVED:
            return nbytes, False
        if bound.seconds is not None:
            return bound.seconds, False
        if nbytes is not None and line.speed is not None and bound.kernel.flops is None:
            return nbytes / line.speed.bandwidth, True
        return (0.0, False) if nbytes == 0 and bound.kernel.flops == 0 else (None, False)

    return amount


@dataclass(frozen=True)
class LaunchCost:
    """One launch in the code, with its part of what its kernel costs, by nodes."""

    key: Key
    kernel: Kernel
    order: int
    amount: float | None
    at_least: bool
    nbytes: float | None
    work: float | None
    bound: str
    note: str
    parts: tuple[tuple[str, float], ...]
    """Names of post-grad nodes, with the share of each: together 1, or nothing if no node is known."""

    @property
    def phase(self) -> str:
        return self.key[1]


def launch_costs(
    capture: Record, bounds: Iterable[Bound], amount: Callable[[Key, Bound], _Amount]
) -> Iterator[LaunchCost]:
    next_bound = iter(bounds)
    order = 0
    for compilation in capture.compilations:
        for phase in compilation.phases:
            code = compilation.code.get(phase)
            if code is None:
                continue
            accesses = LaunchAccesses(compilation, phase)
            places = []
            for kernel in code.kernels:
                own, bound = accesses.launches(kernel), next(next_bound)
                numbers = kernel.launch_lines or (0,)
                places += [
                    (number, kernel, bound, *_parts(own, place)) for place, number in enumerate(numbers)
                ]
            for _, kernel, bound, parts, share in sorted(places, key=lambda one: one[0]):
                order += 1
                key = (compilation.id, phase, kernel.name)
                whole, partly = amount(key, bound)
                moved = size(bound.kernel.nbytes) if not bound.kernel.steered else None
                work = size(bound.kernel.work)
                yield LaunchCost(
                    key,
                    kernel,
                    order,
                    None if whole is None else whole * share,
                    partly,
                    None if moved is None else moved * share,
                    None if work is None else work * share,
                    bound.bound,
                    "; ".join(bound.kernel.notes) if whole is None or partly else "",
                    parts,
                )


def _parts(own: list[tuple[Access, ...]], place: int) -> tuple[tuple[tuple[str, float], ...], float]:
    """The nodes of one launch of a kernel with their shares of it, and its share of the kernel."""
    weights: dict[str, float] = {}
    for access in own[place]:
        for node in access.nodes:
            weights[node] = weights.get(node, 0.0) + access.nbytes / len(access.nodes)
    total, every = sum(weights.values()), sum(a.nbytes for one in own for a in one)
    share = sum(a.nbytes for a in own[place]) / every if every else 1 / len(own)
    if not total:
        return tuple((node, 1 / len(weights)) for node in weights), share
    return tuple((node, weight / total) for node, weight in weights.items()), share
