"""Expectations of a capture: assertions that explain themselves when they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..measures import quantities
from ..measures.quantities import Bounds
from ..record.delegates import delegate
from ..record.figures import AtLeast, Figure
from ..record.missing import AbsentStage
from .capture import Capture, ErrorOfCapture

if TYPE_CHECKING:
    from ..record.kernel import Kernel
    from ..views.explanations import Explanation


class ExpectationError(ErrorOfCapture, AssertionError):
    """Error for a capture that is not as expected, or not known to be: the actual value, the reasons, and what to try.

    Attributes:
        capture: the capture; ``error.capture.save("report.html")`` writes its page.
    """

    __module__ = "compile_lens"


class NumericExpectation:
    """A number of a capture, to be called with its expected value in one of four forms."""

    def __init__(self, expectations: Expectations, name: str) -> None:
        self._expectations, self._name = expectations, name

    def __call__(
        self,
        equal: int | None = None,
        *,
        at_most: int | None = None,
        at_least: int | None = None,
        within: tuple[int, int] | None = None,
        phase: str = "",
    ) -> Expectations:
        """Raise ``ExpectationError`` unless it holds. ``within`` includes both numbers; ``phase`` selects one phase."""
        __tracebackhide__ = True
        bounds = Bounds.of(self._name, equal, at_most, at_least, within)
        return self._expectations._figure(self._name, bounds, phase)


class NumericAttribute:
    """An attribute of ``Expectations`` for a number."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, expectations: Expectations, owner: type) -> NumericExpectation:
        return NumericExpectation(expectations, self._name)


class Expectations:
    """Result of ``compile_lens.expect``: each method returns this object if the expectation holds, or raises
    ``ExpectationError``.

    Numbers are expected in one of four forms: ``launches(1)``, ``launches(at_most=2)``, ``launches(at_least=1)``,
    ``launches(within=(1, 3))``, bounds included. A number that is not certain (a stage is missing, control flow
    decides, a part is unknown) fails with the reason. ``phase`` (``"forward"``, ``"backward"``, ``"inference"``)
    selects one phase. For a capture that failed, or compiled nothing, only ``graphs(0)`` holds.
    """

    def __init__(self, capture: Capture) -> None:
        self.capture = capture

    launches = NumericAttribute()
    """Kernel launches in one call of the generated code, library calls included (measured)."""
    groups = NumericAttribute()
    """Groups that do work, after fusion (measured); on a CPU several of them may be one launch."""
    extern = NumericAttribute()
    """Library calls in one call of the generated code (measured)."""
    bytes = NumericAttribute()
    """Bytes that the groups read and write (modelled from sizes)."""
    peak = NumericAttribute()
    """Peak of live bytes within one graph, inputs and results included (modelled)."""
    saved = NumericAttribute()
    """Bytes that the forward saves for the backward besides inputs and results (modelled): an input or a result of the
    function that the backward reads is saved, too, but not counted, since it exists anyway. Softmax saves its result,
    and ``saved`` is 0."""
    graphs = NumericAttribute()
    """Graphs that Dynamo handed to the backend, as torch counts them, recompiles included (measured)."""
    graph_breaks = NumericAttribute()
    """Graph breaks (measured). A function skipped without a break does not count: see ``compiled``."""
    recompiles = NumericAttribute()
    """Number of recompiles (measured)."""

    def compiled(self) -> Expectations:
        """Expect that everything was compiled: no graph break, and nothing ran eagerly."""
        __tracebackhide__ = True
        from ..views.explanations import program
        from ..views.words import outcome

        if outcome.state(self.capture) == outcome.COMPILED:
            return self
        self._check_compiled("all of it compiled", nothing=True)
        head = f"expected all of it compiled, found: {outcome.verdict(self.capture)}"
        raise self._error(head, program.left_to_python(self.capture))

    def agrees(self) -> Expectations:
        """Expect built code to give values as accurate as eager PyTorch's: results, in-place changes and gradients.

        The code is built and run on copies of the inputs. For an absent device it runs in Triton's interpreter. If
        the values differ, the error names the cause, as ``Capture.divergence`` does. Raise ``UsageError`` for a
        capture without its function and inputs: ``expect(f, x)`` keeps them, a loaded record has none.
        """
        __tracebackhide__ = True
        from ..views.explanations.divergence import of_divergence, of_verification

        wanted = "compiled values as good as eager's"
        self._check_compiled(wanted)
        target = self.capture.target
        if target is not None and target.model.device != "cpu":
            verification = self.capture.verify()
            if verification.ok:
                return self
            raise self._error(f"expected {wanted}: {verification.verdict}", of_verification(verification))
        divergence = self.capture.divergence()
        if divergence.agrees:
            return self
        verdict = divergence.verification.verdict
        raise self._error(f"expected {wanted}: {verdict}", of_divergence(divergence))

    def fused(
        self,
        a: Kernel | tuple[str, str, str] | str | int,
        b: Kernel | tuple[str, str, str] | str | int,
        phase: str = "",
    ) -> Expectations:
        """Expect ``a`` and ``b`` to be computed together: inlined into one loop, or fused into one group.

        They are given as for ``capture.why``: kernels, operators of a graph, calls of the program, or lines. Two
        groups that only share a C++ function, and thus a launch, are not fused. Raise ``UsageError`` for an unknown or
        ambiguous name.
        """
        __tracebackhide__ = True
        return self._check_fusion(a, b, phase, True)

    def not_fused(
        self,
        a: Kernel | tuple[str, str, str] | str | int,
        b: Kernel | tuple[str, str, str] | str | int,
        phase: str = "",
    ) -> Expectations:
        """Expect ``a`` and ``b`` not to be computed together; they are given as for ``fused``."""
        __tracebackhide__ = True
        return self._check_fusion(a, b, phase, False)

    def no(self, op: str, phase: str = "") -> Expectations:
        """Expect no operator ``op`` in the graphs handed to Inductor, in the graphs after its passes, or in library
        calls.

        ``"aten.sort"`` means all its overloads, ``"sort"`` that of any namespace. If torch is installed, a name that it
        does not know raises ``UsageError``, and so does one that it always decomposes (``"softmax"``, ``"conv2d"``) or
        that writes in place (``"add_"``, which is ``"add"`` there), since the expectation would always hold.
        """
        __tracebackhide__ = True
        from ..measures.operators import uses
        from ..views.explanations.program import where_used

        never: str = delegate("Expectations.no")(op)
        wanted = f"no {op}"
        self._check_compiled(wanted)
        self._check_phase(phase)
        uses_of_op, unknown = uses(self.capture, op, phase)
        if uses_of_op:
            raise self._error(f"expected {wanted}, found it", where_used(self.capture, uses_of_op))
        if never:
            raise UsageError(
                f"no({op!r}) holds for any program: {never}. Name an operator that it becomes there"
            )
        self._check_known(wanted, unknown)
        return self

    def dtype(self, *allowed: str, of: str = "", phase: str = "") -> Expectations:
        """Expect results of one of these types from every compute operator after Inductor's passes.

        Types have torch's names without ``torch.``: ``dtype("bfloat16", "int64")``. ``of`` selects one operator, which
        must exist. The type in which a kernel computes before storing is not checked.

        If torch is installed, a name that is none of its types raises ``UsageError``.
        """
        __tracebackhide__ = True
        from ..measures.operators import uses
        from ..views.explanations.program import where_used

        if not allowed:
            raise UsageError(
                'dtype was given no type: write, for example, dtype("float16") or dtype("float32", "bool")'
            )
        names: set[str] = delegate("Expectations.dtype")(allowed)
        wanted = f"results {f'of {of} ' if of else ''}in {' or '.join(sorted(names))}"
        self._check_compiled(wanted)
        self._check_phase(phase)
        every, unknown = uses(self.capture, of, phase)
        lowered = [u for u in every if u.node is not None and u.address[1].endswith("post_grad")]
        wrong = [u for u in lowered if u.node is not None and {t.dtype for t in u.node.outputs} - names]
        if wrong:
            raise self._error(f"expected {wanted}, found others", where_used(self.capture, wrong, types=True))
        if of and not lowered:
            raise self._error(
                f"expected {wanted}, found no {of} after Inductor's passes", where_used(self.capture, every)
            )
        self._check_known(wanted, unknown)
        return self

    def _figure(self, name: str, bounds: Bounds, phase: str = "") -> Expectations:
        __tracebackhide__ = True
        if phase and name not in quantities.OF_PHASES:
            raise UsageError(f"{name} counts the whole capture: leave out phase={phase!r}")
        words = name.replace("_", " ") + (f" of the {phase}" if phase else "")
        self._check_compiled(f"{words}: {bounds}", nothing=name == "graphs")
        self._check_phase(phase)
        figure = quantities.of_name(self.capture, name, phase)
        if isinstance(figure, AbsentStage):
            raise self._error(
                f"{words}: expected {bounds}, but it is not known: {figure.reason}", self._why(name, phase)
            )
        holds = bounds.holds(figure)
        if holds:
            return self
        finding = f"found {self._figure_text(figure)}, {figure.basis}"
        if holds is None:
            finding = f"which is not certain: {finding}"
        parts = isinstance(figure, AtLeast) and name in quantities.OF_PHASES
        rest = quantities.unknown_parts(self.capture, phase) if parts else ()
        raise self._error(f"{words}: expected {bounds}, {finding}", self._why(name, phase), *rest)

    def _check_fusion(self, a: Any, b: Any, phase: str, together: bool) -> Expectations:
        __tracebackhide__ = True
        from ..measures.fusion import of_each_graph
        from ..measures.fusion_answer import DIFFERENT_GRAPHS, FUSED, INLINED, NOT_FUSED, SAME
        from ..views.explanations import Explanation
        from ..views.explanations.kernels import of_calls, of_two

        one, two = (getattr(thing, "name", thing) for thing in (a, b))
        wanted = f"{one} and {two} {'fused' if together else 'not fused'}"
        self._check_compiled(wanted)
        holding = (SAME, INLINED, FUSED) if together else (NOT_FUSED, DIFFERENT_GRAPHS)
        failing = [why for why in of_each_graph(self.capture, a, b, phase) if why.verdict not in holding]
        if not failing:
            return self
        why = max(failing, key=lambda answer: answer.rank)
        place = f" ({why.where})" if why.where else ""
        verdict = f"{why.a} and {why.b}{place}: {why.verdict}{f', {why.reason}' if why.reason else ''}"
        called = of_calls(self.capture, why)
        reasons = (why.sentence, *why.facts, *(reason for reason, _ in called))
        to_try = dict.fromkeys(filter(None, (why.remedy, *(remedy for _, remedy in called))))
        stand = of_two(self.capture, a, b, phase)
        raise self._error(f"expected {wanted}, found {verdict}", Explanation(stand, reasons, tuple(to_try)))

    def _why(self, name: str, phase: str) -> Explanation:
        from ..views.explanations import kernels, program

        capture = self.capture
        makers: dict[str, Callable[[], Explanation]] = {
            "launches": lambda: kernels.kernels(capture, phase),
            "extern": lambda: kernels.kernels(capture, phase, ("extern",)),
            "bytes": lambda: kernels.by_bytes(capture, phase),
            "groups": lambda: kernels.groups(capture, phase),
            "peak": lambda: program.live_memory(capture, phase),
            "saved": lambda: program.saved_tensors(capture),
            "graphs": lambda: program.compilations(capture),
            "graph_breaks": lambda: program.left_to_python(capture),
            "recompiles": lambda: program.compilations(capture, again=True),
        }
        return makers[name]()

    @staticmethod
    def _figure_text(value: Figure | AtLeast) -> str:
        return f"{value:,}" if isinstance(value, Figure) else str(value)

    def _check_compiled(self, wanted: str, nothing: bool = False) -> None:
        """Raise ``ExpectationError`` if the capture failed, or if nothing was compiled unless ``nothing`` is True."""
        __tracebackhide__ = True
        from ..views.explanations.program import left_to_python
        from ..views.words import outcome

        state = outcome.state(self.capture)
        if state == outcome.FAILED or (state == outcome.NOTHING and not nothing):
            head = f"expected {wanted}, but {self.capture.function} {_ended(outcome.verdict(self.capture))}"
            raise self._error(head, left_to_python(self.capture))

    def _check_phase(self, phase: str) -> None:
        __tracebackhide__ = True
        phases = quantities.phases(self.capture)
        if phase and phase not in phases:
            raise UsageError(
                f"phase={phase!r} is not one of {', '.join(map(repr, phases)) or 'none'}, which this capture has"
            )

    def _check_known(self, wanted: str, unknown: list[str]) -> None:
        __tracebackhide__ = True
        from ..views.explanations import Explanation, few

        if unknown:
            raise self._error(
                f"expected {wanted}, but that is not known",
                Explanation(why=few(unknown, "stages", "capture.missing")),
            )

    def _error(self, head: str, explanation: Explanation, *rest: str) -> ExpectationError:
        from ..views.words import labels, stamp

        made_for = stamp.of_capture(self.capture) or labels.environment(self.capture)[0]
        return ExpectationError(
            explanation.text(
                f"{self.capture.function}: {head}", *rest, f"({made_for}; error.capture holds all of it)"
            ),
            self.capture,
        )

    def __repr__(self) -> str:
        return f"<Expectations of {self.capture!r}>"


def _ended(verdict: str) -> str:
    return verdict if verdict.startswith("failed") else f"is no compiled code: {verdict}"
