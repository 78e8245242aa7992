"""The ledger: five counts and two byte figures side by side, for each phase and in total.

"Number of kernels" can mean five things, so each has a column of its own: operators that eager PyTorch
dispatches, ATen compute operators handed to Inductor, Inductor's loops before fusion, its groups after
fusion, and launches in the generated code. Counts are *measured* (counted in the compiler's output); bytes
are *modelled* (sizes of the data that each operator or group reads and writes). A figure that the record cannot
support is ``None`` with a note that says why: never a guess, never an empty stage counted as zero. A figure that
depends on control flow, or a sum with unknown parts, is an ``AtLeast`` with the known part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.figures import MEASURED as MEASURED
from compile_lens.record.figures import MODELLED as MODELLED
from compile_lens.record.figures import AtLeast as AtLeast
from compile_lens.record.figures import Count, figure, summed
from compile_lens.record.figures import Figure as Figure
from compile_lens.record.figures import add as add
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import UNREACHED, Code
from compile_lens.record.messages import NO_COMPILATION
from compile_lens.record.missing import why_missing

from .control_flow import (
    GENERATED,
    NOT_FOLLOWED,
    STEERING,
    aten,
    bodies,
    body_of,
    controls_flow,
    generated,
    launches,
    walk,
)
from .memo import memoized

ROW_FIGURES = ("eager_ops", "aten_ops", "loops", "groups", "launches", "bytes_before", "bytes_after")
"""Names of the figures of a row, in display order."""


@dataclass(frozen=True)
class _Partial:
    """Figure of the known part of a graph, and the reason why the rest is unknown."""

    figure: Figure | AtLeast
    reason: str


_Cell = Figure | AtLeast | _Partial | str
"""A figure, or why there is none."""


@dataclass(frozen=True)
class Row:
    """One line of the ledger.

    Attributes:
        name: the phase; a sum is ``both`` (forward and backward) or ``total``.
        eager_ops: operators that eager PyTorch dispatches for the calls that Dynamo captured, without views, metadata
            and allocation.
        aten_ops: compute nodes of the graph handed to Inductor, including its subgraphs.
        loops: Inductor's nodes before fusion that do work: no nops (views, mere allocations), and a library call with
            several results once.
        groups: scheduler nodes after fusion that do work.
        launches: kernel launches in one call of the generated code, library calls included.
        bytes_before: bytes read and written if each ATen compute operator ran by itself.
        bytes_after: bytes read and written by the groups. Both count accessed elements, each once per operator or
            group; an index counts the elements that it gathers or scatters.
        notes: why figures are ``None``, and limits of others; figures with the same reason share a line.
        exists: whether the capture has such a phase at all, observed or not.
        eager_bytes: bytes that eager PyTorch's own operators read and write; one of them may be many ATen operators,
            whose sum is ``bytes_before``.
        copied_bytes: bytes of ``eager_bytes`` for copying a tensor of which a part is then written; the graph handed
            to Inductor writes in place instead.
        as_captured: whether the eager counts are of the captured calls, while eager PyTorch runs other operators.
    """

    name: str
    eager_ops: Figure | AtLeast | None = None
    aten_ops: Figure | AtLeast | None = None
    loops: Figure | AtLeast | None = None
    groups: Figure | AtLeast | None = None
    launches: Figure | AtLeast | None = None
    bytes_before: Figure | AtLeast | None = None
    bytes_after: Figure | AtLeast | None = None
    notes: tuple[str, ...] = ()
    exists: bool = True
    eager_bytes: Figure | AtLeast | None = None
    copied_bytes: int = 0
    as_captured: bool = False

    @property
    def moved_before(self) -> Figure | AtLeast | None:
        """Bytes that eager PyTorch's operators move; if not known, those of the separate ATen operators."""
        return self.bytes_before if self.eager_bytes is None else self.eager_bytes

    @property
    def figures(self) -> tuple[Figure | AtLeast | None, ...]:
        """The figures in the order of ``ROW_FIGURES``."""
        return tuple(getattr(self, column) for column in ROW_FIGURES)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain JSON data: a number or null for each column, ``basis`` for each figure, notes.

        ``at_least``, if present, has the known parts of figures that are not single numbers.
        """
        by_column = {column: figure for column, figure in zip(ROW_FIGURES, self.figures, strict=True)}
        bounds = {column: f.to_dict() for column, f in by_column.items() if isinstance(f, AtLeast)}
        return {
            "name": self.name,
            **{column: int(f) if isinstance(f, Figure) else None for column, f in by_column.items()},
            "basis": {column: figure.basis for column, figure in by_column.items() if figure is not None},
            **({"at_least": bounds} if bounds else {}),
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
        rows = tuple(r for r in (self.forward, self.backward, self.inference) if r.exists)
        return (*rows, self.total) if rows else ()

    @property
    def single(self) -> tuple[Row, ...]:
        """Rows of the single graphs that the total sums up."""
        parts = [part for _, part in self.graphs] or [self]
        return tuple(r for part in parts for r in (part.forward, part.backward, part.inference) if r.exists)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain JSON data. A phase that does not exist is null."""
        phases = {
            r.name: r.to_dict() if r.exists else None for r in (self.forward, self.backward, self.inference)
        }
        out: dict[str, Any] = {**phases, "total": self.total.to_dict()}
        if self.graphs:
            out["graphs"] = {name: part.to_dict() for name, part in self.graphs}
        return out


@memoized
def ledger(capture: Record) -> Ledger:
    """Return the ledger of a capture: each compilation alone, each phase over all compilations, and the total.

    A sum with an unknown part is an ``AtLeast`` of the known parts, and the notes say which part is unknown.
    A backward that the caller declined (``backward=False``) is not part of the sum.
    """
    declined = capture.options.backward == "no"
    parts = tuple((c.id, _compilation(c, declined)) for c in capture.compilations)
    many = len(parts) > 1
    every = [
        (phase, [(name if many else "", getattr(part, phase)) for name, part in parts]) for phase in PHASES
    ]
    phases = []
    for phase, rows in every:
        nothing = f"no {phase} graph" + (": backward=False" if phase == "backward" and declined else "")
        phases.append(_sum(phase, rows, nothing))
    leaves = [row for _, rows in every for row in rows]
    reason = "nothing was compiled" if capture.compilations else why_no_compilation(capture)
    return _ledger(phases, leaves, parts, capture.nothing_compiled or reason)


def why_no_compilation(capture: Record) -> str:
    """Return why a record without compilations has none."""
    if capture.failure is not None:
        return f"the capture failed in stage {capture.failure.stage}"
    return capture.nothing_compiled or NO_COMPILATION


def _compilation(compilation: Compilation, declined: bool) -> Ledger:
    phases = [_row(compilation, phase, declined) for phase in PHASES]
    nothing = "no graph of this compilation reached Inductor"
    return _ledger(phases, [("", row) for row in phases], (), nothing)


def _ledger(
    phases: list[Row], leaves: list[tuple[str, Row]], graphs: tuple[tuple[str, Ledger], ...], nothing: str
) -> Ledger:
    """Return a ledger of the rows of its phases; ``leaves`` are the rows of single graphs, summed up in the total."""
    pair = {row.name for row in phases if row.exists} == {"forward", "backward"}
    total = _sum("both" if pair else "total", leaves, nothing)
    forward, backward, inference = phases
    return Ledger(forward, backward, inference, total, graphs)


def _sum(name: str, leaves: list[tuple[str, Row]], nothing: str) -> Row:
    """Return the sum of the rows of single graphs, each given with its label."""
    rows = [(label, row) for label, row in leaves if row.exists]
    if not rows:
        return Row(name, notes=(nothing,), exists=False)
    figures: dict[str, Any] = {c: summed(getattr(row, c) for _, row in rows) for c in ROW_FIGURES}
    notes = (f"{label}: {note}" if label else note for label, row in rows for note in row.notes)
    eager_bytes = summed(row.eager_bytes for _, row in rows)
    copied = sum(row.copied_bytes for _, row in rows)
    return Row(
        name,
        **figures,
        notes=tuple(dict.fromkeys(notes)),
        eager_bytes=eager_bytes,
        copied_bytes=copied,
        as_captured=any(row.as_captured for _, row in rows),
    )


def _row(compilation: Compilation, phase: str, declined: bool) -> Row:
    if not _exists(compilation, phase, declined):
        return Row(phase, notes=(f"this compilation has no {phase} graph",), exists=False)
    cells: dict[str, _Cell] = {
        "eager_ops": _eager(compilation, phase),
        "aten_ops": _from(compilation, phase, _aten_ops),
        "loops": _from(compilation, f"{phase}.loops", _working),
        "groups": _from(compilation, f"{phase}.groups", _working),
        "launches": _launches(compilation, phase),
        "bytes_before": _from(compilation, phase, _aten_bytes),
        "bytes_after": _from(compilation, f"{phase}.groups", partial(_group_bytes, compilation, phase)),
    }
    reasons: dict[str, list[str]] = {}
    figures: dict[str, Any] = {}
    for column, value in cells.items():
        reason = value.reason if isinstance(value, _Partial) else value
        if isinstance(reason, str):
            reasons.setdefault(reason, []).append(column.replace("_", " ").replace("aten", "ATen"))
        figures[column] = (
            value.figure if isinstance(value, _Partial) else None if isinstance(value, str) else value
        )
    notes = [f"{phase} {', '.join(columns)}: {reason}" for reason, columns in reasons.items()]
    as_captured = figures["eager_ops"] is not None and bool(compilation.eager_note)
    if as_captured:
        notes.append(f"{phase} eager ops: {compilation.eager_note}")
    return Row(
        phase,
        **figures,
        notes=(*notes, *(_eager_backward_notes(compilation) if phase == "inference" else ())),
        eager_bytes=_eager_bytes(compilation, phase) if isinstance(cells["eager_ops"], Figure) else None,
        copied_bytes=_copied_bytes(compilation, phase),
        as_captured=as_captured,
    )


def _eager_backward_notes(compilation: Compilation) -> tuple[str, ...]:
    """Return notes on a backward of views only, which autograd runs without the compiler."""
    count = sum(op.count for op in compilation.eager or () if op.phase == "backward")
    reasons = [stage.reason for stage in compilation.not_applicable if stage.stage == "backward"]
    return tuple(
        f"backward: {count} eager op{'s' * (count != 1)}, not compiled: {r}" for r in reasons if count
    )


def _exists(compilation: Compilation, phase: str, declined: bool) -> bool:
    if phase in compilation.phases:
        return True
    if phase == "backward" and (declined or any(s.stage == phase for s in compilation.not_applicable)):
        return False
    if any(op.phase == phase for op in compilation.eager or ()):
        return True
    # A graph is for training or for inference: the phases of the other kind do not exist; they are not missing.
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
            if missing.stage == phase:  # zero cannot be told from not counted
                return f"stage {phase} was not seen: {missing.reason}"
    return Figure(count)


def _eager_bytes(compilation: Compilation, phase: str) -> Figure | AtLeast | None:
    sizes = [op.nbytes for op in compilation.eager or () if op.phase == phase]
    known = [size for size in sizes if size is not None]
    if sizes and not known:
        return None
    return figure(Count(sum(known)), MODELLED, known=int(len(known) == len(sizes)))


def _copied_bytes(compilation: Compilation, phase: str) -> int:
    """Return the bytes of copies that eager PyTorch makes for scatters, minus those that the ATen graph makes, too: a
    scatter with a copy there writes more bytes than its result has."""
    eager = sum(op.copied for op in compilation.eager or () if op.phase == phase)
    if not eager:
        return 0
    graph = compilation.graphs.get(phase)
    sizes = (
        ((n.writes or 0, sum(t.nbytes or 0 for t in n.outputs)) for n in walk(graph) if n.compute)
        if graph
        else ()
    )
    return max(0, eager - sum(2 * whole for written, whole in sizes if written > whole))


def _from(compilation: Compilation, key: str, count: Callable[[Graph], _Cell]) -> _Cell:
    stages = {s.key: s for s in compilation.stages}
    stage = stages.get(key)
    if isinstance(stage, Graph):
        return count(stage)
    # A graph without operations is not lowered: the stage does not exist, and its figures are zero.
    return (
        count(Graph("", "", "", ()))
        if _empty(compilation, key.partition(".")[0])
        else why_missing(stages, key)
    )


def _empty(compilation: Compilation, phase: str) -> bool:
    """Return True if the graph handed to Inductor is known and has no operations."""
    graph = compilation.graphs.get(phase)
    return graph is not None and not graph.calls


def _launches(compilation: Compilation, phase: str) -> _Cell:
    code = compilation.code.get(phase)
    if code is None and _empty(compilation, phase):
        return Figure(0)
    if code is None:
        return why_missing({s.key: s for s in compilation.stages}, f"{phase}.code")
    if _flow_unknown(compilation, code):
        return NOT_FOLLOWED
    return figure(launches(code, code.kernels), MEASURED)


def _flow_unknown(compilation: Compilation, code: Code) -> bool:
    """Return True if the code has control flow that the record does not describe (an older record, calls in C++)."""
    if code.flow is not None:
        return any(UNREACHED in kernel.launch_functions for kernel in code.kernels)
    graph = compilation.graphs.get(code.phase)
    return graph is not None and controls_flow(graph)


def _aten_ops(graph: Graph) -> Figure:
    return Figure(sum(1 for node in walk(graph) if node.compute))


def _work(graph: Graph) -> list[Node]:
    """Return loops or groups that do work, without inputs, outputs and nops."""
    return [node for node in walk(graph) if _works(node)]


def _works(node: Node) -> bool:
    idle = ("nop", "input", "output", "constant")
    return node.op not in ("placeholder", "get_attr", "output") and node.kind not in idle


def counts(graph: Graph, node: Node, path: str = "") -> bool:
    """Return True if the count of a stage includes a node: ATen compute operators, loops and groups that do work, as
    in a row; in any other graph its calls, without those of subgraphs (``path`` names the subgraph)."""
    if graph.key in PHASES:
        return node.compute
    if graph.stage in ("loops", "groups"):
        return _works(node)
    return not path and node.op not in ("placeholder", "get_attr", "output")


def _working(graph: Graph) -> Figure:
    return Figure(len(_work(graph)))


def _aten_bytes(graph: Graph) -> _Cell:
    nodes = [n for n in walk(graph) if n.compute and not (n.kind == "control" and n.target in STEERING)]
    return _known_bytes(
        aten(graph, lambda node: _moved(node) if node.compute else 0), nodes, "ATen operators"
    )


def _group_bytes(compilation: Compilation, phase: str, graph: Graph) -> _Cell:
    nodes = [node for node in _work(graph) if node.target not in GENERATED]
    code = compilation.code.get(phase)
    if code is None or code.flow is None:
        before = compilation.graphs.get(phase)
        lost = before is not None and controls_flow(before)
        return NOT_FOLLOWED if lost else _known_bytes(Count(sum(map(_moved, nodes))), nodes, "groups")
    names = set(bodies(code.flow))
    # The groups of an inlined block cannot be told from those around it.
    if any(name.startswith("line ") for name in names):
        return NOT_FOLLOWED
    bytes_by_function: dict[str, int] = {}
    for node in nodes:
        body = body_of(node.name, names)
        bytes_by_function[body] = bytes_by_function.get(body, 0) + _moved(node)
    return _known_bytes(generated(code.flow, lambda body: bytes_by_function.get(body, 0)), nodes, "groups")


def _moved(node: Node) -> int:
    return 0 if node.reads is None or node.writes is None else node.reads + node.writes


def _known_bytes(total: Count, nodes: list[Node], what: str) -> _Cell:
    """Return the bytes of nodes: a lower bound if they are known for only some."""
    unknown = [node for node in nodes if node.reads is None or node.writes is None]
    if not unknown:
        return figure(total, MODELLED)
    names = ", ".join(node.name for node in unknown[:3]) + (", …" if len(unknown) > 3 else "")
    reason = f"the bytes of {len(unknown)} of {len(nodes)} {what} are unknown ({names})"
    if any(node.kind in ("custom", "control") for node in unknown):
        reason += ": what a custom operator, a collective or a kernel of the program's reads and writes cannot be seen"
    return reason if len(unknown) == len(nodes) else _Partial(figure(total, MODELLED, known=0), reason)
