"""Cost of each launch in the generated code, and the nodes that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from compile_lens.errors import UsageError
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel

from .chain import Chain
from .launch_accesses import Access, LaunchAccesses, size
from .links import unknown_node_origins
from .memo import memoized
from .roofline import Bound, Roofline, roofline
from .traffic import KernelTraffic, traffic

MEASURED_TIME, ROOFLINE, MOVED = "measured", "roofline", "bytes"
BASES = (MEASURED_TIME, ROOFLINE, MOVED)
"""Values of ``Cost.basis``, best first."""

Key = tuple[str, str, str]
"""Compile id, phase and name of a kernel."""


@dataclass(frozen=True)
class LaunchList:
    """The launches of a capture in code order, with their costs on one basis.

    Attributes:
        basis: one of ``BASES``.
        line: the roofline of the capture.
        notes: why parts of the costs are not known.
    """

    basis: str
    line: Roofline
    launches: tuple[LaunchCost, ...]
    notes: tuple[str, ...]


@memoized
def launch_list(capture: Record, basis: str = "") -> LaunchList:
    """Return the launches with their costs on a basis; by default the first of ``BASES`` that is known.

    Raises:
        UsageError: for an unknown ``basis``, or one that the record does not have.
    """
    if basis not in ("", *BASES):
        raise UsageError(f"basis={basis!r} is not one of {', '.join(map(repr, BASES))}")
    line = roofline(capture)
    moved = [bound.kernel for bound in line.bounds]
    seconds, unmeasured = _measured(capture, moved)
    if basis == MEASURED_TIME and (unmeasured or not moved):
        raise UsageError(f"basis={basis!r}: {unmeasured or 'no kernel was generated'}")
    if basis == ROOFLINE and line.speed is None:
        raise UsageError(f"basis={basis!r}: the speeds of the device are not known: {line.note}")
    chosen = basis or (
        MEASURED_TIME if moved and not unmeasured else ROOFLINE if line.speed is not None else MOVED
    )
    notes = list(traffic(capture).notes)
    if unmeasured and capture.profile is not None:
        notes.append(unmeasured)
    amount = _amounts(chosen, line, seconds)
    launches = tuple(_launch_costs(capture, line.bounds, amount, chosen == MEASURED_TIME))
    return LaunchList(chosen, line, launches, tuple(notes))


def _measured(capture: Record, moved: Iterable[KernelTraffic]) -> tuple[dict[Key, float], str]:
    """Return measured seconds per call by kernel, and a sentence on kernels without a time (``""`` if none)."""
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


def _amounts(basis: str, line: Roofline, seconds: Mapping[Key, float]) -> Callable[[Key, Bound], _Amount]:
    """Return a function that gives the cost of all launches of a kernel."""

    def amount(key: Key, bound: Bound) -> _Amount:
        nbytes = size(bound.kernel.nbytes)
        if basis == MEASURED_TIME:
            return seconds.get(key), False
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
    """One launch in the code, with its share of the kernel's cost, by node."""

    key: Key
    kernel: Kernel
    order: int
    amount: float | None
    """Amount of one run if ``steered``, otherwise of a call."""
    at_least: bool
    nbytes: float | None
    work: float | None
    bound: str
    note: str
    parts: tuple[tuple[str, float], ...]
    """Names of post-grad nodes with their shares, which add up to 1; empty if no node is known."""
    function: str
    """Function of the module that launches it (``Kernel.launch_functions``)."""
    steered: bool = False
    """True if a loop or a branch decides how often a call runs it."""

    @property
    def phase(self) -> str:
        return self.key[1]


def _launch_costs(
    capture: Record, bounds: Iterable[Bound], amount: Callable[[Key, Bound], _Amount], measured: bool
) -> Iterator[LaunchCost]:
    next_bound = iter(bounds)
    order = 0
    loop_origins_unknown, node_origins_unknown = unknown_loop_origins(capture), unknown_node_origins(capture)
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
                    (number, kernel, bound, *_parts(own, place), function)
                    for place, (number, function) in enumerate(
                        zip(numbers, kernel.launch_functions or ("",) * len(numbers))
                    )
                ]
            for _, kernel, bound, parts, share, function in sorted(places, key=lambda one: one[0]):
                order += 1
                key = (compilation.id, phase, kernel.name)
                whole, partly = amount(key, bound)
                moved = size(bound.kernel.nbytes)
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
                    ()
                    if node_origins_unknown or (loop_origins_unknown and kernel.language != "extern")
                    else parts,
                    function,
                    bound.kernel.steered and not measured,
                )


def unknown_origins(capture: Record) -> str:
    """Return why the lines behind kernels are not known; ``""`` if they are."""
    return unknown_loop_origins(capture) or unknown_node_origins(capture)


def unknown_loop_origins(capture: Record) -> str:
    """Return why the nodes behind generated kernels are not known; ``""`` if they are."""
    return capture.lacks(claims.LOOP_ORIGINS, claims.LOWERING)


def _parts(own: list[tuple[Access, ...]], place: int) -> tuple[tuple[tuple[str, float], ...], float]:
    """Return the nodes of one launch with their shares of it, and the launch's share of the kernel."""
    weights: dict[str, float] = {}
    for access in own[place]:
        for node in access.nodes:
            weights[node] = weights.get(node, 0.0) + access.nbytes / len(access.nodes)
    total, every = sum(weights.values()), sum(a.nbytes for one in own for a in one)
    share = sum(a.nbytes for a in own[place]) / every if every else 1 / len(own)
    if not total:
        return tuple((node, 1 / len(weights)) for node in weights), share
    return tuple((node, weight / total) for node, weight in weights.items()), share


@dataclass(frozen=True)
class NodeCost:
    """Share of the launches due to some nodes of a graph: the positions of these launches, and the cost.

    ``amount`` is ``None`` if no cost is known; ``at_least`` is True if not all costs are.
    """

    orders: frozenset[int] = frozenset()
    amount: float | None = None
    at_least: bool = False

    def __add__(self, other: NodeCost) -> NodeCost:
        known = [one.amount for one in (self, other) if one.amount is not None]
        return NodeCost(
            self.orders | other.orders, sum(known) if known else None, self.at_least or other.at_least
        )


@memoized
def node_costs(capture: Record) -> Mapping[tuple[str, str, str], NodeCost]:
    """Return the cost of each node of the ATen graphs of a phase, before and after the post-grad passes.

    The cost of a post-grad node is split equally among the ATen nodes that it came from.
    """
    costs: dict[tuple[str, str, str], NodeCost] = {}
    chain = Chain(capture)
    for launch in launch_list(capture).launches:
        for node, share in launch.parts:
            address = (launch.key[0], f"{launch.phase}.post_grad", node)
            above = chain.up(address) if address in chain else ()
            origins = [up for up in above if up[1] == launch.phase]
            for place, part in [(address, share), *((up, share / len(origins)) for up in origins)]:
                known = launch.amount is not None and not launch.steered
                amount = launch.amount * part if known and launch.amount is not None else None
                partly = launch.at_least or amount is None
                own = NodeCost(frozenset([launch.order]), amount, partly)
                costs[place] = costs.get(place, NodeCost()) + own
    return costs
