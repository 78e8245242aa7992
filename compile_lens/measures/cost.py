"""Cost of a call by Python line, kernel or module, most expensive first.

The unit is measured time if every kernel was measured (``benchmark(f, x, by="kernel")``, ``capture.join(trace)``);
else the roofline time if the device's speeds are known; else the modelled bytes moved. Each load and store of a kernel
counts for its line, split equally among several lines; a kernel's time is split like its bytes. Shares are of the known
amounts and add up to 1. Unknown amounts are left out and make a sum "at least".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.figures import MEASURED, MODELLED, AtLeast, Figure
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.kernel import Flow

from .address import MODULE, Address, line_address, walk
from .chain import Chain
from .cost_sum import CostRow as CostRow
from .cost_sum import CostSum
from .launch_costs import MEASURED_TIME, MOVED, ROOFLINE, LaunchCost, launch_list, unknown_origins
from .memo import memoized
from .roofline import Roofline

BY = ("line", "kernel", "module")

BYTES, SECONDS = "bytes", "seconds"
FEMTOSECOND = 1e-15


@dataclass(frozen=True)
class ModuleTotal:
    """Cost of repeated modules of one class, submodules included.

    Attributes:
        pattern: their path, with ``*`` for the number: ``"layers.*"``.
        type: their class, ``""`` if none of their own operations was observed.
        paths: the path of each.
        amount, share, varies: sums over all of them, as in ``CostRow``.
        launches: distinct numbers of launches per call of the kernels that work for one module.
    """

    pattern: str
    type: str
    paths: tuple[str, ...]
    amount: float
    share: float | None
    launches: tuple[Figure | AtLeast, ...]
    at_least: bool = False
    varies: AtLeast | None = None


@dataclass(frozen=True)
class Cost:
    """Result of ``capture.cost()``.

    Attributes:
        by: ``line``, ``kernel`` or ``module``.
        unit: ``seconds`` or ``bytes``, for one call.
        basis: ``measured``, ``roofline`` or ``bytes``.
        origin: the source of the figures, in a sentence.
        rows: most expensive first; unknown amounts last.
        total: the sum of all known amounts.
        at_least: True if a part of the total is not known.
        varies: the total where loops or branches decide it, as in ``CostRow``.
        modules: for ``by="module"``, repeated modules with their submodules.
        missing: why parts are not known.
    """

    by: str
    unit: str
    basis: str
    origin: str
    rows: tuple[CostRow, ...] = ()
    total: float = 0.0
    at_least: bool = False
    modules: tuple[ModuleTotal, ...] = ()
    missing: tuple[str, ...] = ()
    varies: AtLeast | None = None

    @property
    def evidence(self) -> str:
        """``measured`` or ``modelled``."""
        return MEASURED if self.basis == MEASURED_TIME else MODELLED

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON data."""
        return {
            "by": self.by,
            "unit": self.unit,
            "basis": self.basis,
            "origin": self.origin,
            "total": self.total,
            "at_least": self.at_least,
            "varies": None if self.varies is None else self.varies.to_dict(),
            "rows": [
                {
                    "name": row.name,
                    "address": row.address,
                    "expression": row.expression,
                    "amount": row.amount,
                    "share": row.share,
                    "at_least": row.at_least,
                    "varies": None if row.varies is None else row.varies.to_dict(),
                    "bytes": row.nbytes,
                    **_launches(row.launches),
                    "kernels": list(row.kernels),
                    "lines": [frame.address for frame in row.lines],
                    "modules": list(row.modules),
                    "phases": list(row.phases),
                    "bound": row.bound or None,
                    "note": row.note,
                }
                for row in self.rows
            ],
            "modules": [
                {
                    "pattern": group.pattern,
                    "type": group.type,
                    "paths": list(group.paths),
                    "amount": group.amount,
                    "share": group.share,
                    "at_least": group.at_least,
                    "varies": None if group.varies is None else group.varies.to_dict(),
                    "launches": [_launches(one)["launches"] for one in group.launches],
                    "launched": [_launches(one)["launched"] for one in group.launches],
                }
                for group in self.modules
            ],
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        from compile_lens.record.delegates import delegate

        text: str = delegate("Cost.__str__")(self)
        return text


def _launches(count: Figure | AtLeast) -> dict[str, Any]:
    """Return launches as plain JSON data: a number, or null if it depends on loops or branches; and in words."""
    return {"launches": int(count) if isinstance(count, Figure) else None, "launched": f"{count}"}


@memoized
def cost(capture: Record, by: str = "line", basis: str = "") -> Cost:
    """Return the cost of a call by line, kernel or module.

    Args:
        by: ``"line"``, ``"kernel"`` or ``"module"``.
        basis: ``"measured"``, ``"roofline"`` or ``"bytes"``; by default the first of these that is known.

    Raises:
        UsageError: for another ``by``, or a ``basis`` that the record does not have.
    """
    if by not in BY:
        raise UsageError(f"by={by!r} is not one of {', '.join(map(repr, BY))}")
    priced = launch_list(capture, basis)
    launches, chosen, line = list(priced.launches), priced.basis, priced.line
    notes = list(priced.notes)
    quantum = 1.0 if chosen == MOVED else FEMTOSECOND
    flows = _flows(capture)
    whole = CostSum(flows, quantum)
    for launch in launches:
        whole.add(launch, 1.0)
    notes += whole.notes
    missing_code = tuple(_missing_code(capture))
    notes += missing_code
    total, varies = whole.amount()
    rows, groups = _Table(capture, launches, None if varies else total, flows, quantum).of(by)
    return Cost(
        by,
        BYTES if chosen == MOVED else SECONDS,
        chosen,
        _origin(capture, chosen, line),
        rows,
        total,
        whole.at_least or bool(missing_code),
        groups,
        tuple(dict.fromkeys(notes)),
        varies,
    )


def _flows(capture: Record) -> dict[tuple[str, str], Flow]:
    """Return the loops and branches of each module of generated code that has any."""
    return {
        (compilation.id, phase): code.flow
        for compilation in capture.compilations
        for phase, code in compilation.code.items()
        if code.flow is not None
    }


def _missing_code(capture: Record) -> Iterator[str]:
    """Yield the reasons why the code of a phase is not in the record."""
    for compilation in capture.compilations:
        for missing in compilation.missing:
            phase = missing.stage.partition(".")[0]
            if (
                missing.stage in (phase, f"{phase}.code")
                and phase in PHASES
                and phase not in compilation.code
            ):
                yield missing.reason


def _origin(capture: Record, basis: str, line: Roofline) -> str:
    if basis == MEASURED_TIME and capture.profile is not None:
        return f"time of the kernels of one call, measured: {capture.profile.source}"
    if basis == ROOFLINE and line.speed is not None:
        how = "measured speeds" if line.speed.measured else "published peaks"
        return f"least time at the roofline of {line.speed.device} ({how}), modelled: no kernel was timed"
    return "bytes moved, modelled from sizes: no kernel was timed"


_NO_LINE = "the chain does not reach a line of Python"
NO_SUBMODULE, MODULE_UNKNOWN = "in no submodule", "the module is not known"


class _Table:
    """The rows of a capture."""

    def __init__(
        self,
        capture: Record,
        launches: list[LaunchCost],
        total: float | None,
        flows: Mapping[tuple[str, str], Flow],
        quantum: float,
    ) -> None:
        self._chain = Chain(capture)
        self._launches = launches
        self._total = total
        self._origins_unknown = unknown_origins(capture)
        self._flows, self._quantum = flows, quantum
        self._lines: dict[Address, tuple[Frame, ...]] = {}
        self._places: dict[tuple[str, int], Frame] = {}
        """One frame for each line, whichever function ran there: a lambda, a comprehension, a resume function."""
        self._modules: dict[Address, tuple[str, str]] = {}
        for compilation in capture.compilations:
            self._modules.update(_modules(compilation))

    def of(self, by: str) -> tuple[tuple[CostRow, ...], tuple[ModuleTotal, ...]]:
        sums: dict[object, CostSum] = {}
        for launch in self._launches:
            own: dict[object, float] = {}
            same = self._kernel_key(launch) if by == "kernel" else None
            for node, part in launch.parts or (("", 1.0),):
                address = (launch.key[0], f"{launch.phase}.post_grad", node)
                lines, module = self._lines_of(address), self._module_of(address)
                for line in lines:
                    key = line if by == "line" else module if by == "module" else same
                    one = sums.setdefault(key, CostSum(self._flows, self._quantum))
                    own[key] = own.get(key, 0.0) + part / len(lines)
                    if line is not None:
                        one.lines[line] = one.lines.get(line, 0.0) + part / len(lines)
                    if module:
                        one.modules[module] = one.modules.get(module, 0.0) + part / len(lines)
            for key, share in own.items():
                sums[key].add(launch, share)
        if self._origins_unknown and by != "kernel" and not all(launch.parts for launch in self._launches):
            for key, one in sums.items():
                one.at_least |= bool(key)
        rows = [self._row(by, key, one) for key, one in sums.items()]
        rows.sort(key=self._rank)
        return tuple(rows), self._totals() if by == "module" else ()

    def _rank(self, row: CostRow) -> tuple[bool, int, float, int]:
        """A key that puts first what may cost most: what a loop repeats, then the largest; what is not known last."""
        repeated, largest = 0, row.amount or 0.0
        if row.varies is not None:
            repeated = sum(one.least for one in row.varies.count.iterations)
            largest = max(largest, (row.varies.most or 0) * self._quantum)
        return row.amount is None, -repeated, -largest, row.order

    def _row(self, by: str, key: object, one: CostSum) -> CostRow:
        if by == "kernel":
            first = one.launches[min(one.launches)].kernel.name
            launch = one.launches[min(one.launches)]
            address = (launch.key[0], f"{launch.phase}.code", first)
            note = "" if launch.parts else self._origins_unknown
            return one.row(first, first if first in self._chain else address, self._total, note)
        if isinstance(key, Frame):
            text = self._chain.texts.short(line_address(key.file, key.line))
            return one.row(text, text, self._total)
        if by == "line":
            reasons = dict.fromkeys(
                launch.kernel.no_origin for launch in one.launches.values() if launch.kernel.no_origin
            )
            return one.row("", "", self._total, self._origins_unknown or "; ".join(reasons) or _NO_LINE)
        path = str(key)
        known = all(launch.parts for launch in one.launches.values())
        note = "" if path else NO_SUBMODULE if known else self._origins_unknown or MODULE_UNKNOWN
        return one.row(path, f"{MODULE}{path}" if path else "", self._total, note)

    def _kernel_key(self, launch: LaunchCost) -> object:
        """Return the key of a launch's row: the kernel; for a library call its function, lines and figures."""
        if launch.kernel.language != "extern":
            return launch.key
        cid, phase, name = launch.key
        nodes = [(cid, f"{phase}.post_grad", node) for node, _ in launch.parts]
        lines = frozenset(line for node in nodes for line in self._lines_of(node))
        return cid, phase, re.sub(r"#\d+$", "", name), lines, launch.nbytes, launch.work

    def _lines_of(self, node: Address) -> tuple[Frame | None, ...]:
        if node not in self._lines:
            frames = self._chain.lines(node, derivatives=False) if node in self._chain else ()
            places = {(f.file, f.line): f for f in frames}
            self._lines[node] = tuple(
                self._places.setdefault(place, frame.whole_line) for place, frame in places.items()
            )
        return self._lines[node] or (None,)

    def _module_of(self, node: Address) -> str:
        """Return the module of a node; if a pass merged several nodes into it, the first module known for these."""
        own = self._modules.get(node, ("", ""))[0]
        above = self._chain.up(node) if not own and node in self._chain else ()
        return own or next(filter(None, (self._modules.get(one, ("", ""))[0] for one in above)), "")

    def _totals(self) -> tuple[ModuleTotal, ...]:
        """Return totals of repeated modules: those whose paths differ only in the first number."""
        types = {path: kind for path, kind in self._modules.values() if path}
        every = dict.fromkeys(_instance(path) for path in types if _instance(path))
        groups: dict[tuple[str, str], list[str]] = {}
        for path in every:
            pattern = f"{path.rpartition('.')[0]}.*".lstrip(".")
            groups.setdefault((pattern, types.get(path, "")), []).append(path)
        totals = []
        for (pattern, kind), paths in groups.items():
            if len(paths) < 2:
                continue
            sums = {path: CostSum(self._flows, self._quantum) for path in paths}
            for launch in self._launches:
                for node, share in launch.parts:
                    path = _instance(self._module_of((launch.key[0], f"{launch.phase}.post_grad", node)))
                    if path in sums:
                        sums[path].add(launch, share)
            together = CostSum(self._flows, self._quantum)
            for one in sums.values():
                together.join(one)
            amount, varies = together.amount()
            totals.append(
                ModuleTotal(
                    pattern,
                    kind,
                    tuple(paths),
                    amount,
                    amount / self._total if self._total else None,
                    tuple(dict.fromkeys(one.launched() for one in sums.values())),
                    together.at_least,
                    varies,
                )
            )
        return tuple(sorted(totals, key=lambda one: -one.amount))


def _instance(path: str) -> str:
    """Return a module's path up to its first number, ``"layers.3"`` of ``"layers.3.attn"``; ``""`` without one."""
    parts = path.split(".")
    number = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    return "" if number is None else ".".join(parts[: number + 1])


def _modules(compilation: Compilation) -> Iterator[tuple[Address, tuple[str, str]]]:
    for stage in compilation.stages:
        if isinstance(stage, Graph):
            for path, node in walk(stage):
                yield (compilation.id, stage.key, path + node.name), (node.module, node.module_type)
