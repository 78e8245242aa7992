"""Cost of a call by Python line, kernel or module, most expensive first.

The unit is measured time if every kernel was measured (``benchmark(f, x, by="kernel")``, ``capture.join(trace)``);
else the roofline time if the device's speeds are known; else the modelled bytes moved. Each load and store of a kernel
counts for its line, split equally among several lines; a kernel's time is split like its bytes. Shares are of the known
amounts and add up to 1. Unknown amounts are left out and make a sum "at least".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.figures import MEASURED, MODELLED, AtLeast, Figure, figure, summed
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.kernel import Flow

from .address import MODULE, Address, line_address, walk
from .chain import Chain
from .control_flow import generated
from .launch_costs import MEASURED_TIME, MOVED, ROOFLINE, LaunchCost, launch_list, unknown_origins
from .memo import memoized
from .roofline import Roofline

BY = ("line", "kernel", "module")

BYTES, SECONDS = "bytes", "seconds"
NO_LAUNCHES = Figure(0)


@dataclass(frozen=True)
class CostRow:
    """Cost of one line, kernel or module, over forward and backward.

    Attributes:
        name: ``"model.py:7"``; the kernel's name (for equal library calls the first one's); or the path of the module
            that does the work itself, not in a submodule. ``""`` for work without a line or outside submodules.
        address: address for ``capture.chain`` and ``capture.why``: ``"model.py:7"``, ``"module:layers.3"``, a kernel.
        amount: in the unit of the ``Cost``; ``None`` if not known.
        share: share of all known amounts, from 0 to 1; ``None`` if the amount is not known.
        at_least: True if a part of the amount is not known.
        nbytes: modelled bytes moved; ``None`` if not known.
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
        return self.lines[0].text.strip() if self.lines else ""


@dataclass(frozen=True)
class ModuleTotal:
    """Cost of repeated modules of one class, submodules included.

    Attributes:
        pattern: their path, with ``*`` for the number: ``"layers.*"``.
        type: their class, ``""`` if none of their own operations was observed.
        paths: the path of each.
        amount, share: sums over all of them, as in ``CostRow``.
        launches: distinct numbers of launches per call of the kernels that work for one module.
    """

    pattern: str
    type: str
    paths: tuple[str, ...]
    amount: float
    share: float | None
    launches: tuple[Figure | AtLeast, ...]
    at_least: bool = False


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
            "rows": [
                {
                    "name": row.name,
                    "address": row.address,
                    "expression": row.expression,
                    "amount": row.amount,
                    "share": row.share,
                    "at_least": row.at_least,
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
    whole = _Sum()
    for launch in launches:
        whole.add(launch, 1.0)
    notes += whole.notes
    missing_code = tuple(_missing_code(capture))
    notes += missing_code
    rows, groups = _Table(capture, launches, whole.amount).of(by)
    return Cost(
        by,
        BYTES if chosen == MOVED else SECONDS,
        chosen,
        _origin(capture, chosen, line),
        rows,
        whole.amount,
        whole.at_least or bool(missing_code),
        groups,
        tuple(dict.fromkeys(notes)),
    )


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


class _Sum:
    """Sums of one row: amounts, bytes, launches, and the weights of lines and modules."""

    def __init__(self, flows: Mapping[tuple[str, str], Flow] | None = None) -> None:
        self._flows = flows or {}
        self.amount, self.nbytes = 0.0, 0.0
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
        else:
            self.amount += launch.amount * share
            self.known = True
        self.at_least |= launch.at_least
        if launch.nbytes is None:
            self.bytes_unknown = True
        else:
            self.nbytes += launch.nbytes * share
        if launch.note:
            self.notes[f"{launch.kernel.name}: {launch.note}"] = None

    def row(self, name: str, address: Address | str, total: float, note: str = "") -> CostRow:
        launches = [self.launches[order] for order in sorted(self.launches)]
        bounds = {launch.bound for launch in launches}
        kernels = dict.fromkeys(launch.key for launch in launches)
        return CostRow(
            name,
            address,
            self.amount if self.known else None,
            self.amount / total if self.known and total else None,
            self.at_least,
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


_NO_LINE = "the chain does not reach a line of Python"
NO_SUBMODULE, MODULE_UNKNOWN = "in no submodule", "the module is not known"


class _Table:
    """The rows of a capture."""

    def __init__(self, capture: Record, launches: list[LaunchCost], total: float) -> None:
        self._chain = Chain(capture)
        self._launches = launches
        self._total = total
        self._origins_unknown = unknown_origins(capture)
        self._flows = {
            (compilation.id, phase): code.flow
            for compilation in capture.compilations
            for phase, code in compilation.code.items()
            if code.flow is not None
        }
        self._lines: dict[Address, tuple[Frame, ...]] = {}
        self._places: dict[tuple[str, int], Frame] = {}
        """One frame for each line, whichever function ran there: a lambda, a comprehension, a resume function."""
        self._modules: dict[Address, tuple[str, str]] = {}
        for compilation in capture.compilations:
            self._modules.update(_modules(compilation))

    def of(self, by: str) -> tuple[tuple[CostRow, ...], tuple[ModuleTotal, ...]]:
        sums: dict[object, _Sum] = {}
        for launch in self._launches:
            own: dict[object, float] = {}
            same = self._kernel_key(launch) if by == "kernel" else None
            for node, part in launch.parts or (("", 1.0),):
                address = (launch.key[0], f"{launch.phase}.post_grad", node)
                lines, module = self._lines_of(address), self._module_of(address)
                for line in lines:
                    key = line if by == "line" else module if by == "module" else same
                    one = sums.setdefault(key, _Sum(self._flows))
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
        rows.sort(key=lambda row: (row.amount is None, -(row.amount or 0.0), row.order))
        return tuple(rows), self._totals() if by == "module" else ()

    def _row(self, by: str, key: object, one: _Sum) -> CostRow:
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
            sums = {path: _Sum(self._flows) for path in paths}
            for launch in self._launches:
                for node, share in launch.parts:
                    path = _instance(self._module_of((launch.key[0], f"{launch.phase}.post_grad", node)))
                    if path in sums:
                        sums[path].add(launch, share)
            amount = sum(one.amount for one in sums.values())
            totals.append(
                ModuleTotal(
                    pattern,
                    kind,
                    tuple(paths),
                    amount,
                    amount / self._total if self._total else None,
                    tuple(dict.fromkeys(one.launched() for one in sums.values())),
                    any(one.at_least for one in sums.values()),
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
