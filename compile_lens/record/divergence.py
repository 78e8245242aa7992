"""Cause of a difference between compiled code and eager PyTorch, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .capture import Record
from .files import finite
from .graph import Frame
from .kernel import Kernel
from .kernel_values import DIFFERS, NEARER, GraphValues, KernelValue
from .verification import DISAGREES, Verification

DECOMPOSITION, PASS, FUSION, LOWERING = "decomposition", "pass", "fusion", "lowering"
"""Kinds of transformations that a compile can leave out one by one."""

OPERATOR = "operator"
"""Kind of a ``Transformation``: operators of a Dynamo graph, compiled while all others run eagerly."""

DYNAMO, AUTOGRAD, PARTITION, MEMORY, PRECISION, ROUNDING, SETTING, NOT_FOUND = (
    "capture by Dynamo",
    "AOTAutograd",
    "partition",
    "memory reuse",
    "precision kept",
    "rounding",
    "setting",
    "not found",
)

CAUSES = {
    DYNAMO: "The graph that Dynamo captured gives the other result, run by eager PyTorch.",
    AUTOGRAD: "AOTAutograd changes the result: tracing into ATen operators without mutation, or what all partitioners "
    "share.",
    DECOMPOSITION: "A decomposition: the operators that replace one do not compute the same.",
    PARTITION: "Splitting the graph into forward and backward, with equal expressions merged, changes the result.",
    PASS: "A rewrite: a pass replaces operators by others that do not compute the same.",
    FUSION: "Fusion: separate loops compute what eager does; fused into one kernel, they do not.",
    LOWERING: "Lowering or code generation: the code of one operator does not compute what the operator does.",
    MEMORY: "Memory that is reused: a value is overwritten while it is still needed.",
    SETTING: "A setting of Inductor decides it; no single transformation does.",
    PRECISION: "Compiled code keeps values in float32 that eager rounds to half precision after each operator.",
    ROUNDING: "The difference is of the size of eager's own rounding error, with its sums in this or another order: "
    "what runs in another order, or in another kernel, rounds differently.",
    NOT_FOUND: "No setting, pass, decomposition, fusion or lowering that was left out makes them agree.",
}
"""Kinds of causes, each with a sentence."""


@dataclass(frozen=True)
class Transformation:
    """One transformation of a compile: a decomposition, a pass or pattern, a fusion or a lowering; if no single one
    decides, the smallest set of operators of the program that differ when only they are compiled.

    Attributes:
        kind: ``decomposition``, ``pass``, ``fusion``, ``lowering`` or ``operator``.
        name: the operator, the pass and its pattern, or the two loops, by torch's own names; for several operators the
            first and the last.
        compile_id: id of its compilation.
        phase: the graph: ``inference``, ``forward``, ``backward``; ``""`` before the graphs are split.
        nodes: names of the nodes that it transforms: in the ATen graph for a pattern, after the passes for a lowering,
            in Dynamo's graph for operators.
        frames: the Python lines of these nodes, each the innermost that is not torch's own.
        operators: the operators concerned: ``aten.softmax.int``.
        pattern: name of the pattern that matched; ``""`` for a whole pass.
    """

    kind: str
    name: str
    compile_id: str = ""
    phase: str = ""
    nodes: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    operators: tuple[str, ...] = ()
    pattern: str = ""


@dataclass(frozen=True)
class Attempt:
    """The same call compiled in another way, and its agreement with eager.

    Attributes:
        name: the change: ``pattern_matcher=False``, ``backend="aot_eager"``, ``first 3 of 9 passes``.
        verdict: result of the comparison with eager, as ``Verification.verdict``.
        difference: the largest difference from an eager value; None if no numbers were compared.
        to_apply: code that applies it in a program; ``""`` if torch has no setting for it.
        reason: why nothing was compared; ``""`` if values were compared.
    """

    name: str
    verdict: str
    difference: float | None = None
    to_apply: str = ""
    reason: str = ""
    agrees: bool | None = None


@dataclass(frozen=True)
class RootCause:
    """Cause of a difference between compiled and eager values.

    Attributes:
        kind: a key of ``CAUSES``.
        transformation: the decisive transformation, found by leaving it out, or the operators that differ when only
            they are compiled; None if neither was found.
        kernels: kernels that compute the nodes of the transformation.
        before, after: for a rewrite, the nodes before and after it as text.
        where: place of the pattern or the pass in torch.
    """

    kind: str
    transformation: Transformation | None = None
    kernels: tuple[Kernel, ...] = ()
    before: str = ""
    after: str = ""
    where: str = ""

    @property
    def sentence(self) -> str:
        """The cause in a sentence."""
        return CAUSES[self.kind]


@dataclass(frozen=True, repr=False)
class DivergenceRecord:
    """Comparison of compiled code with eager PyTorch, the cause of a difference, and the evidence for it.

    Attributes:
        function: the function that was called.
        capture: the unchanged compilation.
        verification: the comparison of compiled and eager values.
        cause: the cause; None if the values agree bit for bit or could not be compared.
        attempts: the compiles that were tried, in order.
        switch: the narrowest setting that makes the values agree; None if none does.
        graphs: values at the kernels of each graph, compared with the graph before Inductor's passes.
        doubt: how the first value that differs contradicts the cause; ``""`` if it does not.
    """

    function: str
    capture: Record
    verification: Verification
    cause: RootCause | None = None
    attempts: tuple[Attempt, ...] = ()
    switch: Attempt | None = None
    graphs: tuple[GraphValues, ...] = ()
    doubt: str = ""

    @property
    def first_value(self) -> KernelValue | None:
        """The first value in program order that is off by more than rounding, if the compiled call is, too; None if no
        value stored by a kernel is."""
        first = first_value(self.graphs, self.verification)
        return None if first is None else first[1]

    @property
    def agrees(self) -> bool | None:
        """True if compiled values are as accurate as eager's, False if not, None if not known."""
        return self.verification.ok

    @property
    def difference(self) -> float | None:
        """The largest difference between a compiled and an eager value; None if no numbers were compared."""
        return largest_difference(self.verification)

    def to_dict(self) -> dict[str, Any]:
        """Return the divergence as plain JSON data, without the capture."""
        cause = self.cause
        return {
            "function": self.function,
            "agrees": self.agrees,
            "verdict": self.verification.verdict,
            "difference": finite(self.difference),
            "compared": self.verification.compared,
            "remarks": list(self.verification.remarks),
            "cause": None
            if cause is None
            else {
                "kind": cause.kind,
                "sentence": cause.sentence,
                "transformation": None if cause.transformation is None else asdict(cause.transformation),
                "kernels": [kernel.name for kernel in cause.kernels],
                "before": cause.before,
                "after": cause.after,
                "where": cause.where,
            },
            "switch": None if self.switch is None else _attempt(self.switch),
            "attempts": [_attempt(one) for one in self.attempts],
            "first_value": None if self.first_value is None else finite(asdict(self.first_value)),
            "doubt": self.doubt,
            "graphs": [finite(asdict(graph)) for graph in self.graphs],
        }


def first_value(
    graphs: tuple[GraphValues, ...], verification: Verification
) -> tuple[GraphValues, KernelValue] | None:
    """Return the first value in program order that differs, and its graph: over all forwards, then over all backwards
    from the last graph on; None if the call agrees."""
    if verification.verdict != DISAGREES:
        return None
    differing = [
        ((value.phase == "backward", -place if value.phase == "backward" else place), graph, value)
        for place, graph in enumerate(graphs)
        for value in graph.values
        if value.outcome in (DIFFERS, NEARER)
    ]
    differing.sort(
        key=lambda one: (one[2].outcome == NEARER, one[0])
    )  # stable: in program order within a graph
    return differing[0][1:] if differing else None


def largest_difference(verification: Verification) -> float | None:
    """Return the largest difference between a compiled and an eager value; None if no numbers were compared."""
    return max((c.max_abs for c in verification.comparisons if c.has_numbers and c.dtype), default=None)


def _attempt(one: Attempt) -> dict[str, Any]:
    return {**asdict(one), "difference": finite(one.difference)}
