"""Coverage: how much of the generated code reaches a Python line. A figure about the tool itself.

A *computing* line computes, loads, stores or reduces: every line of a generated kernel except boilerplate
(``LINE_FORMS``: headers, declarations, masks, index arithmetic). A line *reaches* if one of its nodes leads up the
chain to a line of the user's program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from compile_lens.errors import UsageError
from compile_lens.measures.chain import PYTHON, Address, Chain, walk
from compile_lens.measures.dead_ends import SILENT
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import LINE_FORMS, NO_LINES, USER_WRITTEN, Code, Kernel, LineOrigin

UNTRACED = "its lines were not followed"


@dataclass(frozen=True)
class PhaseCoverage:
    """Counts for one phase, or for all phases.

    Attributes:
        name: the phase, or ``total``.
        lines: computing lines of the generated kernels.
        reached: those that reach a Python line.
        kernels: kernels, library calls included.
        kernels_reached: those that reach a Python line.
        untraced: generated kernels whose lines were not traced, so that no count of lines includes them.
    """

    name: str
    lines: int = 0
    reached: int = 0
    kernels: int = 0
    kernels_reached: int = 0
    untraced: int = 0

    @property
    def line_share(self) -> float | None:
        """Share of the computing lines that reach a Python line, from 0 to 1; ``None`` without lines."""
        return self.reached / self.lines if self.lines else None

    @property
    def kernel_share(self) -> float | None:
        """Share of the kernels that reach a Python line, from 0 to 1; ``None`` without kernels."""
        return self.kernels_reached / self.kernels if self.kernels else None

    def __str__(self) -> str:
        text = f"{self.name}: lines {_of(self.reached, self.lines)}, kernels {_of(self.kernels_reached, self.kernels)}"
        return text + (f", {self.untraced} not followed by the line" if self.untraced else "")


@dataclass(frozen=True)
class StageCoverage:
    """Counts of one stage.

    Attributes:
        name: ``joint``, ``forward``, ``backward`` or ``inference``.
        nodes: its compute nodes.
        covered: those that lead to a kernel.
    """

    name: str
    nodes: int = 0
    covered: int = 0

    def __str__(self) -> str:
        return f"{self.name}: compute nodes that lead to a kernel {_of(self.covered, self.nodes)}"


@dataclass(frozen=True)
class Coverage:
    """Result of ``capture.coverage()``.

    Attributes:
        phases: counts for each phase that has code, in the order of the record.
        total: their sum.
        reasons: why lines reach no Python line, each with the number of lines, most frequent first. It counts
            lines that compute nothing, too; ``unexplained`` has the computing lines only.
        uncovered: kernels that reach no Python line or were not traced by line, as ``"phase kernel: why"``.
        notes: limits of the figures (a torch that does not report the origins of lines).
        nodes: counts of compute nodes in the graphs before Inductor, and of those that lead to a kernel.
        node_reasons: why compute nodes lead to no kernel, each with the number of nodes, most frequent first.
    """

    phases: tuple[PhaseCoverage, ...]
    total: PhaseCoverage
    reasons: tuple[tuple[str, int], ...] = ()
    uncovered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: tuple[StageCoverage, ...] = ()
    node_reasons: tuple[tuple[str, int], ...] = ()

    @property
    def unexplained_nodes(self) -> int:
        """Number of compute nodes that lead to no kernel for no recorded reason."""
        return dict(self.node_reasons).get(SILENT, 0)

    @property
    def unexplained(self) -> tuple[tuple[str, int], ...]:
        """Reasons why computing lines reach no Python line, with the number of lines."""
        return tuple((reason, count) for reason, count in self.reasons if reason not in LINE_FORMS)

    def __str__(self) -> str:
        rows = (*self.phases, self.total) if len(self.phases) > 1 else self.phases
        text = [str(row) for row in rows] or ["no code was generated"]
        structure = sum(count for reason, count in self.reasons if reason in LINE_FORMS)
        if structure:
            words = ", ".join(f"{reason} {count}" for reason, count in self.reasons if reason in LINE_FORMS)
            text.append(f"lines that compute nothing: {structure} ({words})")
        text += [f"computing lines without a Python line: {count} ({why})" for why, count in self.unexplained]
        text += [str(row) for row in self.nodes]
        text += [f"compute nodes that lead to no kernel: {count} ({why})" for why, count in self.node_reasons]
        return "\n".join([*text, *self.uncovered, *self.notes])


def coverage(capture: Record) -> Coverage:
    """Return the coverage of a capture, from the record alone."""
    reached_lines = _ReachedLines(Chain(capture))
    rows: dict[str, list[PhaseCoverage]] = {}
    reasons: Counter[str] = Counter()
    uncovered: list[str] = []
    for compilation in capture.compilations:
        for phase, code in compilation.code.items():
            row, why = _code(reached_lines, compilation.id, code, reasons)
            rows.setdefault(phase, []).append(row)
            uncovered += why
    phases = tuple(_sum(phase, rows[phase]) for phase in PHASES if phase in rows)
    nodes, end_reasons = _nodes(capture, reached_lines.chain)
    lines_missing = capture.lacks(claims.KERNEL_LINES)
    return Coverage(
        phases=phases,
        total=_sum("total", phases),
        reasons=_ranked(reasons),
        uncovered=tuple(uncovered),
        notes=(f"{NO_LINES}: {lines_missing}",) if lines_missing else (),
        nodes=nodes,
        node_reasons=_ranked(end_reasons),
    )


def _ranked(reasons: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))


def _nodes(capture: Record, chain: Chain) -> tuple[tuple[StageCoverage, ...], Counter[str]]:
    """Count compute nodes of the graphs before Inductor that lead to a kernel, and the reasons why others do not."""
    leading = chain.leading()
    counts: dict[str, list[int]] = {}
    end_reasons: Counter[str] = Counter()
    for compilation in capture.compilations:
        for stage in compilation.stages:
            if not isinstance(stage, Graph) or stage.key not in ("joint", *PHASES):
                continue
            count = counts.setdefault(stage.key, [0, 0])
            for path, node in walk(stage):
                if node.compute:
                    address = (compilation.id, stage.key, path + node.name)
                    leads = address in leading
                    count[0] += 1
                    count[1] += leads
                    if not leads:
                        end_reasons[_end(chain, address)] += 1
    return tuple(
        StageCoverage(name, *counts[name]) for name in ("joint", *PHASES) if name in counts
    ), end_reasons


CYCLIC = "what came of it leads back to it"
"""Reason for nodes below which the chain is cyclic, which only happens in a corrupt record."""


def _end(chain: Chain, address: Address) -> str:
    """Return why no kernel came of a node: the reason at the first dead end below it."""
    way = (address, *chain.descendants(address))
    return next((chain.end(a).words for a in way if not chain.down(a)), CYCLIC)


def _code(
    reached_lines: _ReachedLines, cid: str, code: Code, reasons: Counter[str]
) -> tuple[PhaseCoverage, list[str]]:
    lines = reached = kernels_reached = unfollowed = 0
    uncovered = []
    for kernel in code.kernels:
        if reached_lines.chain.lines(kernel):
            kernels_reached += 1
        else:
            uncovered.append(
                f"{code.phase} {kernel.name}: {kernel.no_origin or 'no origin reaches a Python line'}"
            )
        if kernel.source and not kernel.lines:
            unfollowed += 1
            uncovered.append(f"{code.phase} {kernel.name}: {UNTRACED}{_because(kernel)}")
        for line in kernel.lines:
            why = reached_lines.why_not(cid, code.phase, line)
            if why:
                reasons[why] += 1
            if line.origins or line.no_origin not in LINE_FORMS:
                lines += 1
                reached += not why
    return PhaseCoverage(
        code.phase, lines, reached, len(code.kernels), kernels_reached, unfollowed
    ), uncovered


def _because(kernel: Kernel) -> str:
    return {"template": " (a template)", USER_WRITTEN: " (the program's own)"}.get(kernel.kind, "")


class _ReachedLines:
    """Cache of which nodes reach a Python line, and why others do not."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._known: dict[Address, str] = {}

    def why_not(self, cid: str, phase: str, line: LineOrigin) -> str:
        """Return why a line reaches no Python line; ``""`` if it does."""
        if not line.origins:
            return line.no_origin
        reasons = [self._node((cid, f"{phase}.post_grad", name)) for name in line.origins]
        return "" if "" in reasons else reasons[0]

    def _node(self, address: Address) -> str:
        if address not in self._known:
            self._known[address] = self._look(address)
        return self._known[address]

    def _look(self, address: Address) -> str:
        try:
            if self.chain.lines(address):
                return ""
            path = (address, *self.chain.ancestors(address))
            ends = [self.chain.why_not(a) for a in path if a[1] != PYTHON and not self.chain.up(a)]
        except UsageError as error:  # the stage is missing, or holds no such node
            return str(error)
        return ends[0] if ends else "its origins reach no Python line"


def _sum(name: str, rows: tuple[PhaseCoverage, ...] | list[PhaseCoverage]) -> PhaseCoverage:
    return PhaseCoverage(
        name,
        sum(r.lines for r in rows),
        sum(r.reached for r in rows),
        sum(r.kernels for r in rows),
        sum(r.kernels_reached for r in rows),
        sum(r.untraced for r in rows),
    )


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")
