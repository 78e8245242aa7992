"""Comparison of the values at each kernel of a call with the graph before Inductor's passes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping

import torch

from .._torch.graphs.sum_order import SUMS, SequentialSums
from .._torch.graphs.tie_order import UNORDERED, Ties
from .._torch.inductor.launch_values import LaunchValues, Sample
from ..record.capture import Record
from ..record.divergence import AUTOGRAD, DECOMPOSITION, DYNAMO, MEMORY, OPERATOR, RootCause
from ..record.kernel import Code, Kernel
from ..record.kernel_values import (
    AGREES,
    DIFFERS,
    FOLLOWS,
    IN_REGISTERS,
    NEARER,
    NOT_COMPARED,
    REMOVED,
    ROUNDING,
    TIES,
    GraphValues,
    KernelValue,
)
from .agreement import DEFAULT_TOLERANCE, TOLERANCES, compare
from .distances import distances
from .observation import perturb
from .rounding import as_far
from .trial import NUDGE_COUNT

NOT_RUN = "no call ran the code that stores it"
NO_CODE = "the code of its graph was not observed"

ABOVE = (
    "a kernel's value, {}, differs from the graph that Inductor was given, and the cause that was found is above "
    "Inductor: there may be two"
)
ELSEWHERE = (
    "the first value that differs, {}, is not computed from what {} takes: there may be two causes, or the "
    "comparison of that value is not what decides"
)


class KernelValues:
    """Values at the kernels of one compiled call, compared by ``probe`` while the kernels run."""

    def __init__(self, device: torch.device | None = None) -> None:
        self.probe = LaunchValues(self._read, device)
        self._rows: dict[tuple[str, str], KernelValue] = {}

    def _read(self, sample: Sample) -> None:
        key = sample.compile_id, sample.value
        known = self._rows.get(key)
        if known is not None and known.outcome in (DIFFERS, FOLLOWS):
            return
        row = self._compared(sample)
        if known is None or row.outcome in (DIFFERS, FOLLOWS):
            self._rows[key] = row

    def _compared(self, sample: Sample) -> KernelValue:
        compiled, eager, wide = sample.compiled, sample.eager, sample.wide
        floating = eager.is_floating_point()
        apart = distances(
            compiled, eager, wide, TOLERANCES.get(eager.dtype, DEFAULT_TOLERANCE), ulps=floating
        )
        check = compare(sample.value, compiled, eager, wide, known=apart)
        return KernelValue(
            sample.value,
            AGREES if check.ok else self._outcome(sample, check.eager_abs, check.compiled_abs),
            sample.phase,
            sample.call,
            sample.run,
            dtype=check.dtype,
            shape=check.shape,
            buffer=sample.buffer,
            launch_line=sample.line,
            eager=apart.relative(apart.error_of_eager),
            compiled=apart.relative(apart.error),
            eager_ulps=apart.error_of_eager.ulps if floating else None,
            compiled_ulps=apart.error.ulps if floating else None,
            eager_special=apart.special_of_eager,
            compiled_special=apart.special,
            first_special=check.special,
        )

    def _outcome(self, sample: Sample, eager: float | None, compiled: float | None) -> str:
        """Return the outcome for a value that differs beyond its tolerance."""
        if eager is not None and compiled is not None and compiled < eager:
            return NEARER
        reference = self.probe.references[sample.compile_id]
        off = {
            node
            for (compile_id, node), row in self._rows.items()
            if compile_id == sample.compile_id and row.outcome in (DIFFERS, FOLLOWS)
        }
        if not off.isdisjoint(reference.above(sample.node)):
            return FOLLOWS
        if reference.of_targets(sample.node, SUMS):
            with contextlib.suppress(Exception):  # an operator may not support the mode
                again = sample.again(mode=SequentialSums())
                if compare(sample.value, sample.compiled, again, sample.wide).ok:
                    return ROUNDING
        nudged = []
        for seed in range(NUDGE_COUNT):
            with contextlib.suppress(Exception):  # an operator may reject other numbers
                nudged.append(sample.again(lambda tensors, seed=seed: perturb(tensors, seed)))
                if as_far(sample.compiled, sample.eager, nudged):  # further runs can only widen the bound
                    return ROUNDING
        if reference.of_targets(sample.node, UNORDERED):
            with contextlib.suppress(Exception):
                others = sample.again(mode=Ties(last=True))
                if not compare(sample.value, others, sample.again(mode=Ties(last=False)), None).ok:
                    return TIES
        return DIFFERS

    def graphs(self, capture: Record, not_run: Mapping[str, str] | None = None) -> tuple[GraphValues, ...]:
        """Return all values in program order; ``not_run`` maps graphs to the reason why their code did not run."""
        results = []
        for compilation in capture.compilations:
            reference = self.probe.references.get(compilation.id)
            if reference is None:
                reason = NO_CODE if compilation.graphs else "no graph was compiled"
                results.append(GraphValues(compilation.id, (), compilation.function, reason))
                continue
            codes = {code.phase: code for code in compilation.stages if isinstance(code, Code)}
            names = reference.values
            if reference.differentiates and (compilation.id, "backward") not in self.probe.graphs:
                names = self._of_forward(compilation.id)
            stored = {node for of, node in self._rows if of == compilation.id}  # includes parts of values
            names = sorted({*names, *stored}, key=reference.index.__getitem__)
            values = tuple(self._value(compilation.id, name, codes) for name in names)
            values = tuple(_with_reason(value, compilation.id, not_run or {}) for value in values)
            results.append(GraphValues(compilation.id, values, compilation.function))
        return tuple(results)

    def _of_forward(self, compile_id: str) -> list[str]:
        """Return the values of a differentiable graph that its forward computes."""
        reference = self.probe.references[compile_id]
        graph = self.probe.graphs.get((compile_id, "forward"))
        needed = set(graph.lowered) if graph is not None else set()
        needed |= {above for name in needed for above in reference.above(name)}
        return [name for name in reference.values if name in needed]

    def _value(self, compile_id: str, name: str, codes: dict[str, Code]) -> KernelValue:
        from .._torch.ground.transformations import own_line

        reference = self.probe.references[compile_id]
        row = self._rows.get((compile_id, name)) or self._not_compared(compile_id, name)
        frame = own_line(reference.nodes[name].meta.get("stack_trace"))
        code = codes.get(row.phase)
        kernel = _kernel(code, row.launch_line) if code is not None else None
        lines = [line.line for line in kernel.lines if name in line.origins] if kernel is not None else []
        return dataclasses.replace(
            row,
            frames=() if frame is None else (frame,),
            kernel="" if kernel is None else kernel.name,
            kernel_line=max(lines, default=0),
        )

    def _not_compared(self, compile_id: str, name: str) -> KernelValue:
        reference = self.probe.references[compile_id]
        graphs = {phase: graph for (of, phase), graph in self.probe.graphs.items() if of == compile_id}
        if not graphs:
            return KernelValue(name, NOT_COMPARED, reason=NO_CODE)
        for phase, graph in graphs.items():
            if name in graph.missing:
                return KernelValue(name, NOT_COMPARED, phase, reason=graph.missing[name])
        for phase, graph in graphs.items():
            if any(reference.value_of(node) == name for node in graph.nodes.values()):
                return KernelValue(name, NOT_COMPARED, phase, reason=NOT_RUN)
        left = {reference.value_of(node) for graph in graphs.values() for node in graph.lowered}
        return KernelValue(name, IN_REGISTERS if name in left else REMOVED)

    def doubt(self, cause: RootCause | None, first: tuple[GraphValues, KernelValue] | None) -> str:
        """Return how the first differing value contradicts the cause; ``""`` if it does not, or one of them is
        unknown."""
        if cause is None or first is None:
            return ""
        graph, value = first
        one = cause.transformation
        if cause.kind in (DYNAMO, AUTOGRAD, DECOMPOSITION):  # a partition comes after the graph
            return ABOVE.format(value.node)
        if one is None or not one.nodes or one.kind == OPERATOR:  # nodes of Dynamo's graph have other names
            return ""
        if cause.kind == MEMORY:  # an overwritten value is not computed from its overwriter
            return ""
        above = one.compile_id == graph.compile_id
        if above and (known := self._is_above(graph.compile_id, one.nodes, value)) is not None:
            above = known
        return "" if above else ELSEWHERE.format(value.node, one.name)

    def _is_above(self, compile_id: str, nodes: tuple[str, ...], first: KernelValue) -> bool | None:
        """Return True if a value is one of these nodes or computed from one; None if the graph has none of them."""
        reference = self.probe.references.get(compile_id)
        known = [node for node in nodes if reference is not None and node in reference.nodes]
        if reference is None or not known:
            return None
        return not {first.node, *reference.above(first.node)}.isdisjoint(map(reference.value_of, known))


def _with_reason(value: KernelValue, compile_id: str, not_run: Mapping[str, str]) -> KernelValue:
    """Return the value, with the reason why its code did not run if there is one."""
    why = not_run.get(f"graph {compile_id} ({value.phase})", "")
    return dataclasses.replace(value, reason=why) if why and value.reason == NOT_RUN else value


def _kernel(code: Code, line: int) -> Kernel | None:
    return next((kernel for kernel in code.kernels if line in kernel.launch_lines), None)
