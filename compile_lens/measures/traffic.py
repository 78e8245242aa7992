"""Traffic: for each kernel, the bytes that it moves, the bytes that its operators would move separately, and its
arithmetic.

All figures are *modelled* from the record, without clocks or counters. Bytes and totals are those of the ledger;
arithmetic is that of ``compile_lens.measures.arithmetic``. An elementwise operator that two kernels compute counts in
both, so the bytes of the operators of all kernels can add up to more than the total, which has each operator once. Any
other operator counts once, however many kernels share it: in the library call that runs it; else a reduction in
several steps counts in the first step, a scatter in the last kernel (the others prepare its target). An elementwise
operator that no line of a kernel computes (``pow(x, 1)``) does not count as its arithmetic. A kernel that only prepares
data for another's operator has 0 bytes before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import LINE_FORMS, USER_WRITTEN, Code, Kernel

from .arithmetic import SCATTERS, SPECIAL_COST, Unknown, name_of, observed_sizes, operations, special
from .chain import walk
from .control_flow import bodies as run_bodies
from .ledger import AtLeast, Figure, ledger, why_no_compilation
from .memo import memoized

SCATTER_LAST = frozenset((*SCATTERS, "index_put", "index_put_", "scatter", "scatter_"))
"""Operators that Inductor turns into a copy and then a scatter: the work is in the last kernel."""


@dataclass(frozen=True)
class KernelTraffic:
    """Bytes and operations of one kernel, over all of its launches in one call.

    Attributes:
        name, phase, kind: those of the kernel; ``compilation`` is the compile id.
        launches: number of places where the code launches it; the figures are for one run of each.
        steered: whether a call runs some of them per iteration of a loop or per branch, not just once.
        reads, writes: modelled bytes; ``None`` if unknown.
        before: bytes that its ATen operators would move if each ran separately; ``None`` if unknown.
        flops: modelled operations, where a sine counts as one; ``None`` if unknown.
        products: operations in matrix products, convolutions and attention.
        special: operations that are transcendental functions, roots and divisions.
        dtype: the type of most of its arithmetic, such as ``float32``; ``""`` if it has none.
        notes: why figures are ``None``.
    """

    name: str
    phase: str
    compilation: str = ""
    kind: str = ""
    launches: int = 1
    reads: int | None = None
    writes: int | None = None
    before: int | None = None
    flops: int | None = None
    products: int = 0
    dtype: str = ""
    notes: tuple[str, ...] = ()
    steered: bool = False
    special: int = 0

    @property
    def nbytes(self) -> int | None:
        """Bytes read plus bytes written."""
        return None if self.reads is None or self.writes is None else self.reads + self.writes

    @property
    def work(self) -> int | None:
        """Operations weighted by time: a special function counts as ``SPECIAL_COST``, any other as one. Views call this
        "operations", in times, intensities and rates; ``None`` if ``flops`` is."""
        return None if self.flops is None else self.flops + (SPECIAL_COST - 1) * self.special

    @property
    def intensity(self) -> float | None:
        """Arithmetic intensity: ``work`` per byte moved; ``None`` if either is unknown or no byte moves."""
        return self.work / self.nbytes if self.work is not None and self.nbytes else None


@dataclass(frozen=True)
class Traffic:
    """Result of ``capture.traffic()``: the kernels in record order. All figures are modelled.

    ``nbytes`` and ``before`` are the ledger's ``bytes_after`` and ``bytes_before`` of all phases; ``None`` if it has
    none, and the ledger's notes say why.
    """

    kernels: tuple[KernelTraffic, ...] = ()
    notes: tuple[str, ...] = ()
    nbytes: Figure | AtLeast | None = None
    before: Figure | AtLeast | None = None

    @property
    def flops(self) -> int | None:
        """Operations of all kernels; ``None`` if those of one are unknown."""
        return _sum([None if k.steered else k.flops for k in self.kernels])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON data."""
        rows = [
            {
                "name": k.name,
                "phase": k.phase,
                "compilation": k.compilation,
                "kind": k.kind,
                "launches": k.launches,
                "reads": k.reads,
                "writes": k.writes,
                "bytes_before": k.before,
                "flops": k.flops,
                "special": k.special,
                "work": k.work,
                "intensity": k.intensity,
                "dtype": k.dtype,
                "notes": list(k.notes),
            }
            for k in self.kernels
        ]
        return {
            "basis": "modelled",
            "kernels": rows,
            "bytes": int(self.nbytes) if isinstance(self.nbytes, Figure) else None,
            "bytes_before": int(self.before) if isinstance(self.before, Figure) else None,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        if not self.kernels:
            return "; ".join(self.notes)
        lines = [
            "modelled: bytes now (of the operators alone), operations (a special function, such as a sine, counts as "
            f"{SPECIAL_COST}), operations for each byte"
        ]
        for k in self.kernels:
            ratio = "?" if k.intensity is None else f"{k.intensity:.3g}"
            where = f"{k.compilation} {k.phase}".strip()
            lines.append(
                f"{where:9} {k.name}: {_number(k.nbytes)} ({_number(k.before)}), {_number(k.work)}, {ratio}"
            )
            lines += [f"{'':9}   {note}" for note in k.notes]
        lines.append(f"together: {_number(self.nbytes)} ({_number(self.before)}, each operator once)")
        return "\n".join([*lines, *self.notes])


@memoized
def traffic(capture: Record) -> Traffic:
    """Return the traffic of every kernel of a capture."""
    many = len(capture.compilations) > 1
    kernel_traffic: list[KernelTraffic] = []
    notes: list[str] = []
    origins_unknown = capture.lacks(claims.LOOP_ORIGINS, claims.KERNELS)
    for compilation in capture.compilations:
        for phase in compilation.phases:
            code = compilation.code.get(phase)
            if code is None:
                notes += [m.reason for m in compilation.missing if m.stage in (f"{phase}.code", phase)]
                continue
            kernel_traffic += _Phase(
                compilation, code, compilation.id if many else "", origins_unknown
            ).kernels()
    if not kernel_traffic and not notes:
        notes.append(
            capture.nothing_compiled
            or ("no kernel was generated" if capture.compilations else why_no_compilation(capture))
        )
    total = ledger(capture).total
    return Traffic(tuple(kernel_traffic), tuple(dict.fromkeys(notes)), total.bytes_after, total.bytes_before)


_Arithmetic = tuple["int | None", int, int, str, list[str]]
"""Operations, those of products, special ones, the type of most, and the reasons why they are unknown."""


class _Phase:
    """The kernels of one phase, and the graph whose nodes they compute; ``origins_unknown`` says why the nodes of
    generated kernels are not all known."""

    def __init__(self, compilation: Compilation, code: Code, label: str, origins_unknown: str) -> None:
        self.code = code
        self.label = label
        self.origins_unknown = origins_unknown
        graph = compilation.graphs.get(f"{code.phase}.post_grad")
        self.nodes: dict[str, Node] = {}
        self.around: dict[str, Mapping[str, Node]] = {}
        if isinstance(graph, Graph):
            bodies: dict[str, dict[str, Node]] = {}
            for path, node in walk(graph):
                bodies.setdefault(path, {})[node.name] = node
                self.nodes[path + node.name] = node
                self.around[path + node.name] = bodies[path]
        self.sizes = observed_sizes(compilation)
        flow = code.flow
        self.once = (
            {body for body in flow.functions if flow.functions.count(body) == 1}
            if flow is not None
            else set()
        )
        if flow is not None:
            rest = (*flow.iterations, *(way for pair in flow.branches for way in pair))
            self.once.difference_update(body for inner in rest for body in run_bodies(inner))
        self.runs: dict[str, str] = {}
        ordered = sorted(code.kernels, key=lambda k: min(k.launch_lines, default=0))
        for kernel in ordered:
            for name in self._own(kernel):
                if (
                    kernel.kind in ("extern", "template", USER_WRITTEN)
                    or name_of(self.nodes[name]) in SCATTER_LAST
                ):
                    self.runs[name] = kernel.name
        for kernel in ordered:
            for name in self._own(kernel):
                self.runs.setdefault(name, kernel.name)

    def kernels(self) -> list[KernelTraffic]:
        """Return the traffic of each kernel."""
        return [self._kernel(kernel) for kernel in self.code.kernels]

    def _own(self, kernel: Kernel) -> tuple[str, ...]:
        """Return the nodes that a kernel computes. A library call computes only the last of its origins."""
        inside = _inline_bodies(kernel)
        work = [n for n in kernel.origins if n in self.nodes and self.nodes[n].compute and n not in inside]
        return tuple(work[-1:] if kernel.language == "extern" else work)

    def _kernel(self, kernel: Kernel) -> KernelTraffic:
        names = tuple(name for name in self._own(kernel) if self._counts_here(kernel, name))
        notes = []
        for target in dict.fromkeys(
            self.nodes[name].target for name in names if self.nodes[name].kind == "custom"
        ):
            notes.append(f"bytes: what {target} reads and writes cannot be seen")
        if not notes and (kernel.reads is None or kernel.writes is None):
            notes.append(
                "bytes: unknown, since a size depends on data or Inductor did not report what it runs"
            )
        flops, products, special, dtype, missing = self._arithmetic(kernel, names)
        notes += missing
        steered = any(
            self.code.flow is not None and body not in self.once for body in kernel.launch_functions
        )
        if steered:
            notes.append("the figures are of one run: a call runs it per iteration of a loop or per branch")
        return KernelTraffic(
            name=kernel.name,
            phase=self.code.phase,
            compilation=self.label,
            kind=kernel.kind,
            launches=kernel.launches,
            reads=kernel.reads,
            writes=kernel.writes,
            before=self._before(kernel, names),
            flops=flops,
            products=products,
            dtype=dtype,
            notes=tuple(notes),
            steered=steered,
            special=special,
        )

    def _before(self, kernel: Kernel, names: tuple[str, ...]) -> int | None:
        if self._uncertain_origins(kernel) or not any(name in self.nodes for name in kernel.origins):
            return None
        moved = [(self.nodes[name].reads, self.nodes[name].writes) for name in names]
        return _sum([None if r is None or w is None else r + w for r, w in moved])

    def _uncertain_origins(self, kernel: Kernel) -> str:
        """Return why the origins of a generated kernel may lack some of its nodes; ``""`` if they do not."""
        return "" if kernel.language == "extern" else self.origins_unknown

    def _arithmetic(self, kernel: Kernel, names: tuple[str, ...]) -> _Arithmetic:
        if reason := self._uncertain_origins(kernel):
            return None, 0, 0, "", [f"arithmetic: {reason}"]
        if not any(name in self.nodes for name in kernel.origins):
            reason = kernel.no_origin or "which operators it computes is not in the record"
            return None, 0, 0, "", [f"arithmetic: {reason}"]
        if _inline_bodies(kernel):
            return None, 0, 0, "", ["arithmetic: it has bodies in line whose arithmetic is not counted"]
        total = products = special_count = 0
        by_type: dict[str, int] = {}
        reasons: dict[str, None] = {}
        left_out = _not_computed(kernel)
        for name in names:
            node = self.nodes[name]
            if node.kind == "pointwise" and name in left_out:
                continue
            try:
                count = operations(node, self.around[name], self.sizes)
            except Unknown as reason:
                reasons[str(reason)] = None
                continue
            total += count
            products += count if node.kind == "matmul" else 0
            special_count += special(node, count)
            kind = self._dtype(name, node)
            by_type[kind] = by_type.get(kind, 0) + count
        if reasons:
            return None, products, special_count, "", [f"arithmetic: {reason}" for reason in reasons]
        return total, products, special_count, max(by_type, key=lambda k: by_type[k]) if total else "", []

    def _counts_here(self, kernel: Kernel, name: str) -> bool:
        """Return True if a node counts in this kernel: elementwise work in every kernel, other work in one."""
        node = self.nodes[name]
        if node.kind in ("pointwise", "random", "mutation") and name_of(node) not in SCATTER_LAST:
            return True
        return self.runs[name] == kernel.name

    def _dtype(self, name: str, node: Node) -> str:
        """Return the type in which an operator computes: that of its inputs (a comparison returns booleans)."""
        taken = [self.around[name].get(n) for n in node.inputs]
        input_dtypes = [t.dtype for source in taken if source is not None for t in source.outputs]
        output_dtypes = [t.dtype for t in node.outputs]
        floats = [d for d in (*input_dtypes, *output_dtypes) if d.startswith(("float", "bfloat"))]
        return (floats or input_dtypes or output_dtypes or [""])[0]


def _inline_bodies(kernel: Kernel) -> tuple[str, ...]:
    """Return the operators of bodies inlined into a template (FlexAttention), which run for every score."""
    inlines = kernel.kind == "template" and not kernel.launch_functions
    return tuple(name for name in kernel.origins if "/" in name) if inlines else ()


def _not_computed(kernel: Kernel) -> frozenset[str]:
    """Return the origins that no line of a kernel computes, such as ``pow(x, 1)``, generated as ``x``; none if the
    origins of a computing line are unknown."""
    if any(not line.origins and line.no_origin not in LINE_FORMS for line in kernel.lines):
        return frozenset()
    written = {origin for line in kernel.lines for origin in line.origins}
    return frozenset(kernel.origins) - written if written else frozenset()


def _sum(parts: list[int | None]) -> int | None:
    known = [p for p in parts if p is not None]
    return sum(known) if len(known) == len(parts) else None


def _number(figure: int | AtLeast | None) -> str:
    if isinstance(figure, AtLeast):
        return str(figure)
    return "?" if figure is None else f"{figure:,}"
