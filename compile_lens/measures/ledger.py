"""The ledger: five counts and two byte figures that stand side by side, for each phase and in total.

"Number of kernels" can mean five things, so each has a column of its own: operators that eager PyTorch
dispatches, ATen compute operators handed to Inductor, Inductor's loops before fusion, its groups after
fusion, and launches in the generated code. Counts are *measured* (counted in what the compiler made); bytes
are *modelled* (sizes of what each operator or group reads and writes). A figure that the record cannot
support is ``None``, and a note says why: never a guess, never an empty stage counted as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compile_lens.graph import Graph, Node
from compile_lens.record import PHASES, Absent, Capture, Code, Compilation

COLUMNS = ("eager_ops", "aten_ops", "loops", "groups", "launches", "bytes_before", "bytes_after")
"""Names of the figures of a row, in the order in which they are read."""

MEASURED = "measured"
MODELLED = "modelled"


class Figure(int):
    """A whole number that says how it was had: ``basis`` is ``"measured"`` or ``"modelled"``.

    It is an ``int`` in every other way; arithmetic gives plain ints (``add`` keeps the basis).
    """

    basis: str

    def __new__(cls, value: int, basis: str = MEASURED) -> Figure:
        figure = super().__new__(cls, value)
        figure.basis = basis
        return figure

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]
        return int(self), self.basis


def add(figures: Iterable[Figure]) -> Figure:
    """The sum of figures. It is measured only if every one of them is; the sum of none is a measured 0."""
    parts = tuple(figures)
    basis = MODELLED if any(p.basis == MODELLED for p in parts) else MEASURED
    return Figure(sum(parts), basis)


@dataclass(frozen=True)
class Row:
    """One line of the ledger.

    Attributes:
        name: the phase; a sum is ``both`` (forward and backward) or ``total``.
        eager_ops: operators that eager PyTorch dispatches, less views, metadata and allocation.
        aten_ops: compute nodes of the graph handed to Inductor, with those of its subgraphs.
        loops: Inductor's nodes before fusion that do work: no nops (views, memory that is only set aside), and a
            library call with several results once.
        groups: scheduler nodes after fusion, of the same.
        launches: kernel launches in one call of the generated code, library calls included.
        bytes_before: bytes read and written if each ATen compute operator ran by itself.
        bytes_after: bytes read and written by the groups. Both count what is accessed: of each tensor the elements
            that are looked at, once; by an index as many as are gathered or placed (which ones depends on data).
        notes: why each figure that is ``None`` is; figures with one reason share a line.
        exists: whether the capture has such a phase at all, seen or not.
    """

    name: str
    eager_ops: Figure | None = None
    aten_ops: Figure | None = None
    loops: Figure | None = None
    groups: Figure | None = None
    launches: Figure | None = None
    bytes_before: Figure | None = None
    bytes_after: Figure | None = None
    notes: tuple[str, ...] = ()
    exists: bool = True

    @property
    def figures(self) -> tuple[Figure | None, ...]:
        """The figures in the order of ``COLUMNS``."""
        return tuple(getattr(self, column) for column in COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain JSON data: a number or null for each column, ``basis`` for each number, notes."""
        found = {column: figure for column, figure in zip(COLUMNS, self.figures, strict=True)}
        return {
            "name": self.name,
            **{column: None if figure is None else int(figure) for column, figure in found.items()},
            "basis": {column: figure.basis for column, figure in found.items() if figure is not None},
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Ledger:
    """A row for each phase and their total; ``graphs`` holds a ledger of each compilation, by compile id."""

    forward: Row
    backward: Row
    inference: Row
    total: Row
    graphs: tuple[tuple[str, Ledger], ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of phases that exist, then the total. Empty if nothing was compiled."""
        found = tuple(r for r in (self.forward, self.backward, self.inference) if r.exists)
        return (*found, self.total) if found else ()

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain JSON data. A phase that does not exist is null."""
        phases = {
            r.name: r.to_dict() if r.exists else None for r in (self.forward, self.backward, self.inference)
        }
        out: dict[str, Any] = {**phases, "total": self.total.to_dict()}
        if self.graphs:
            out["graphs"] = {name: part.to_dict() for name, part in self.graphs}
        return out


def ledger(capture: Capture) -> Ledger:
    """The ledger of a capture: each compilation by itself, each phase over all compilations, and the total.

    A sum is given only if every part of it is known; else it is ``None`` and the notes say which part is not.
    A backward that the caller declined (``backward=False``) is no part: the sum is over what was asked for.
    """
    declined = capture.options.backward == "no"
    parts = tuple((c.id, _compilation(c, declined)) for c in capture.compilations)
    many = len(parts) > 1
    phases = []
    for phase in PHASES:
        rows = [(name if many else "", getattr(part, phase)) for name, part in parts]
        nothing = f"no {phase} graph" + (": backward=False" if phase == "backward" and declined else "")
        phases.append(_sum(phase, [(label, row) for label, row in rows if row.exists], nothing))
    return _ledger(phases, parts, capture.nothing or "nothing was compiled")


def _compilation(compilation: Compilation, declined: bool) -> Ledger:
    phases = [_row(compilation, phase, declined) for phase in PHASES]
    return _ledger(phases, (), "no graph of this compilation reached Inductor")


def _ledger(phases: list[Row], graphs: tuple[tuple[str, Ledger], ...], nothing: str) -> Ledger:
    found = [row for row in phases if row.exists]
    pair = {row.name for row in found} == {"forward", "backward"}
    total = _sum("both" if pair else "total", [("", row) for row in found], nothing)
    forward, backward, inference = phases
    return Ledger(forward, backward, inference, total, graphs)


def _sum(name: str, rows: list[tuple[str, Row]], nothing: str) -> Row:
    if not rows:
        return Row(name, notes=(nothing,), exists=False)
    figures: dict[str, Figure | None] = {}
    for column in COLUMNS:
        parts = [getattr(row, column) for _, row in rows]
        figures[column] = None if any(p is None for p in parts) else add(parts)
    notes = (f"{label}: {note}" if label else note for label, row in rows for note in row.notes)
    return Row(name, **figures, notes=tuple(dict.fromkeys(notes)))  # type: ignore[arg-type]


def _row(compilation: Compilation, phase: str, declined: bool) -> Row:
    if not _exists(compilation, phase, declined):
        return Row(phase, notes=(f"this compilation has no {phase} graph",), exists=False)
    had: dict[str, Figure | str] = {
        "eager_ops": _eager(compilation, phase),
        "aten_ops": _from(compilation, phase, _aten_ops),
        "loops": _from(compilation, f"{phase}.loops", _working),
        "groups": _from(compilation, f"{phase}.groups", _working),
        "launches": _launches(compilation, phase),
        "bytes_before": _from(compilation, phase, _aten_bytes),
        "bytes_after": _from(compilation, f"{phase}.groups", _group_bytes),
    }
    reasons: dict[str, list[str]] = {}
    for column, value in had.items():
        if isinstance(value, str):
            reasons.setdefault(value, []).append(column.replace("_", " ").replace("aten", "ATen"))
    return Row(
        phase,
        **{column: value if isinstance(value, Figure) else None for column, value in had.items()},  # type: ignore[arg-type]
        notes=tuple(f"{phase} {', '.join(columns)}: {reason}" for reason, columns in reasons.items()),
    )


def _exists(compilation: Compilation, phase: str, declined: bool) -> bool:
    if phase in compilation.phases:
        return True
    if phase == "backward" and declined:
        return False
    if any(op.phase == phase for op in compilation.eager or ()):
        return True
    # A graph is for training or for inference: the one that it is not does not exist, it is not lost.
    others = ("inference",) if phase != "inference" else ("forward", "backward")
    if any(other in compilation.phases for other in others):
        return False
    return any(m.stage == phase or m.stage.startswith(f"{phase}.") for m in compilation.missing)


def _eager(compilation: Compilation, phase: str) -> Figure | str:
    if compilation.eager is None:
        return compilation.eager_note or "eager operators were not counted"
    count = sum(op.count for op in compilation.eager if op.phase == phase)
    if not count:
        for missing in compilation.missing:
            if missing.stage == phase:  # nobody can tell none from not counted
                return f"stage {phase} was not seen: {missing.reason}"
    return Figure(count)


def _from(compilation: Compilation, key: str, count: Callable[[Graph], Figure | str]) -> Figure | str:
    stages = {s.key: s for s in compilation.stages}
    stage = stages.get(key)
    if isinstance(stage, Graph):
        return count(stage)
    return _reason(stages, key)


def _launches(compilation: Compilation, phase: str) -> Figure | str:
    stages = {s.key: s for s in compilation.stages}
    code = stages.get(f"{phase}.code")
    if isinstance(code, Code):
        return Figure(sum(kernel.launches for kernel in code.kernels))
    return _reason(stages, f"{phase}.code")


def _reason(stages: dict[str, Any], key: str) -> str:
    """Why a stage is not there: its own reason, or that of the graph it belongs to."""
    for name in (key, key.partition(".")[0]):
        stage = stages.get(name)
        if isinstance(stage, Absent):
            return stage.said
    return f"stage {key} is not in the record"


def _walk(graph: Graph) -> Iterator[Node]:
    yield from graph.nodes
    for _, body in graph.subgraphs:
        yield from _walk(body)


def _aten_ops(graph: Graph) -> Figure:
    return Figure(sum(1 for node in _walk(graph) if node.compute))


def _work(graph: Graph) -> list[Node]:
    """Loops or groups that do something: not the inputs and outputs drawn beside them, and no nops."""
    idle = ("nop", "input", "output", "constant")
    return [
        n for n in _walk(graph) if n.op not in ("placeholder", "get_attr", "output") and n.kind not in idle
    ]


def _working(graph: Graph) -> Figure:
    return Figure(len(_work(graph)))


def _aten_bytes(graph: Graph) -> Figure | str:
    return _bytes([node for node in _walk(graph) if node.compute], "ATen operators")


def _group_bytes(graph: Graph) -> Figure | str:
    return _bytes(_work(graph), "groups")


def _bytes(nodes: list[Node], what: str) -> Figure | str:
    total = 0
    unknown: list[str] = []
    for node in nodes:
        if node.reads is None or node.writes is None:
            unknown.append(node.name)
        else:
            total += node.reads + node.writes
    if unknown:
        names = ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")
        return f"the bytes of {len(unknown)} of {len(nodes)} {what} are unknown ({names})"
    return Figure(total, MODELLED)
