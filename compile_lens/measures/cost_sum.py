"""One row of a cost: a line, a kernel or a module, and the sums of which it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from compile_lens.record.figures import MEASURED, MODELLED, AtLeast, Count, Figure, figure, summed
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Flow

from .address import Address
from .control_flow import generated
from .launch_costs import LaunchCost

NO_LAUNCHES = Figure(0)


@dataclass(frozen=True)
class CostRow:
    """Cost of one line, kernel or module, over forward and backward.

    Attributes:
        name: ``"model.py:7"``; the kernel's name (for equal library calls the first one's); or the path of the module
            that does the work itself, not in a submodule. ``""`` for work without a line or outside submodules.
        address: address for ``capture.chain`` and ``capture.why``: ``"model.py:7"``, ``"module:layers.3"``, a kernel.
        amount: in the unit of the ``Cost``; ``None`` if not known.
        share: share of all known amounts, from 0 to 1; ``None`` if the amount or the sum is not one known number.
        at_least: True if a part of the amount is not known.
        varies: the amount where loops or branches decide it, in bytes or femtoseconds: ``amount`` is then the least of
            every call, and there is no share.
        nbytes: modelled bytes moved, of one run of each launch; ``None`` if not known.
        launches: how often a call launches the row's kernels, as in the ledger.
        order: position of the first launch in the code, counted from 1, whatever the order of the rows.
        kernels: names of these kernels, in code order. Equal library calls are one row.
        lines: Python lines, most expensive first.
        modules: paths of the modules, most expensive first.
        phases: ``forward``, ``backward`` or ``inference``.
        compilations: compile ids.
        bound: ``memory`` or ``compute`` at the roofline, ``""`` if unknown or both.
        note: why the amount or a part of it is not known, or why there is no line.
        addresses: addresses of the kernels in the chain.
    """

    name: str
    address: Address | str = ""
    amount: float | None = None
    share: float | None = None
    at_least: bool = False
    varies: AtLeast | None = None
    nbytes: float | None = None
    launches: Figure | AtLeast = NO_LAUNCHES
    order: int = 0
    kernels: tuple[str, ...] = ()
    lines: tuple[Frame, ...] = ()
    modules: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    compilations: tuple[str, ...] = ()
    bound: str = ""
    note: str = ""
    addresses: tuple[Address, ...] = ()

    @property
    def expression(self) -> str:
        """Text of the most expensive line; ``""`` if there is none."""
        return self.lines[0].whole_line.expression if self.lines else ""


class CostSum:
    """Sums of one row: amounts, bytes, launches, and the weights of lines and modules."""

    def __init__(self, flows: Mapping[tuple[str, str], Flow], quantum: float) -> None:
        self._flows, self._quantum = flows, quantum
        self._fixed = 0.0
        self._runs: dict[tuple[str, str], Counter[str]] = {}
        """Amounts of one run of each function where loops or branches decide, by graph."""
        self.nbytes = 0.0
        self.known = self.bytes_known = self.at_least = False
        self.bytes_unknown = False
        self.launches: dict[int, LaunchCost] = {}
        self.lines: dict[Frame, float] = {}
        self.modules: dict[str, float] = {}
        self.notes: dict[str, None] = {}

    def add(self, launch: LaunchCost, share: float) -> None:
        self.launches[launch.order] = launch
        if launch.amount is None:
            self.at_least = True
        elif launch.steered and launch.key[:2] in self._flows:
            runs = self._runs.setdefault(launch.key[:2], Counter())
            runs[launch.function] += launch.amount * share  # type: ignore[assignment]
            self.known = True
        elif launch.steered:
            self.at_least = True
        else:
            self._fixed += launch.amount * share
            self.known = True
        self.at_least |= launch.at_least
        if launch.nbytes is None:
            self.bytes_unknown = True
        else:
            self.nbytes += launch.nbytes * share
        if launch.note:
            self.notes[f"{launch.kernel.name}: {launch.note}"] = None

    def join(self, other: CostSum) -> None:
        """Add the amounts of another."""
        self._fixed += other._fixed
        for graph, runs in other._runs.items():
            self._runs.setdefault(graph, Counter()).update(runs)
        self.at_least |= other.at_least

    def amount(self) -> tuple[float, AtLeast | None]:
        """Return the amount of every call, and what it is where loops or branches decide."""
        if not self._runs:
            return self._fixed, None
        counts = [Count(round(self._fixed / self._quantum))]
        for graph, runs in self._runs.items():
            of_one = {body: round(amount / self._quantum) for body, amount in runs.items()}
            counts.append(generated(self._flows[graph], partial(_get, of_one)))
        varies = summed(figure(one, MODELLED) for one in counts)
        if isinstance(varies, AtLeast):
            return varies.least * self._quantum, varies
        return (varies or 0) * self._quantum, None

    def row(self, name: str, address: Address | str, total: float | None, note: str = "") -> CostRow:
        launches = [self.launches[order] for order in sorted(self.launches)]
        bounds = {launch.bound for launch in launches}
        kernels = dict.fromkeys(launch.key for launch in launches)
        amount, varies = self.amount()
        return CostRow(
            name,
            address,
            amount if self.known else None,
            amount / total if self.known and total and varies is None else None,
            self.at_least,
            varies,
            None if self.bytes_unknown else self.nbytes,
            self.launched(),
            launches[0].order if launches else 0,
            tuple(dict.fromkeys(key[2] for key in kernels)),
            tuple(sorted(self.lines, key=lambda line: -self.lines[line])),
            tuple(sorted(self.modules, key=lambda path: -self.modules[path])),
            tuple(dict.fromkeys(launch.phase for launch in launches)),
            tuple(dict.fromkeys(key[0] for key in kernels)),
            bounds.pop() if len(bounds) == 1 else "",
            "; ".join(filter(None, (note, *self.notes))),
            tuple((cid, f"{phase}.code", kernel) for cid, phase, kernel in kernels),
        )

    def launched(self) -> Figure | AtLeast:
        """Return how often a call runs the launches."""
        functions: dict[tuple[str, str], Counter[str]] = {}
        for launch in self.launches.values():
            own = functions.setdefault(launch.key[:2], Counter())
            own[launch.function if launch.key[:2] in self._flows else ""] += 1
        counts = (generated(self._flows.get(graph), own.__getitem__) for graph, own in functions.items())
        return summed(figure(count, MEASURED) for count in counts) or NO_LAUNCHES


def _get(amounts: Mapping[str, int], body: str) -> int:
    return amounts.get(body, 0)
