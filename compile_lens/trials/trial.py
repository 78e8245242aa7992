"""One call made in several ways on copies of the same inputs, each compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch

from ..engine.options import name_of
from ..errors import LensError, UsageError
from ..record import messages
from ..record.capture import Record
from ..record.verification import ValueCheck, Verification
from ..results.capture import CaptureError
from .agreement import Agreement, compared, without_values
from .observation import Observation, observed
from .restoration import SavedState
from .rounding import ROUNDING, rounded

EAGER_RANDOM = (
    "random numbers: compared with code that draws eager's (Inductor's fallback_random), from the same state"
)


OTHER_RANDOM = (
    "the function draws random numbers, and compiled code cannot be made to draw eager's ({reason}): values that "
    "depend on them are compared by type, shape and strides alone"
)


UNINITIALIZED = (
    "some of its values are what happened to be in memory (torch.empty), in eager as in compiled code: values that "
    "depend on them are compared by type, shape and strides alone"
)


TIES = (
    "it depends on which of equal elements comes first, which torch does not promise (sort without stable=True, topk, "
    "median): eager PyTorch gives something else in another order"
)
"""Reason why numbers that depend on the order of equal elements were not compared."""


RAISED = "torch.compile raised {where}, eager PyTorch did not: {type}: {message}"
"""Reason why a call that succeeds in eager PyTorch was not compared."""


NOT_RUNNABLE = ("BuildError", "NotLaunched")
"""Exception names for code that cannot be built or run here; their message is the reason."""


def left_to_python(built: Record) -> tuple[tuple[str, str], ...]:
    """Return the functions that ran eagerly on both sides, which the comparison does not cover."""
    return tuple(dict.fromkeys((s.function, f"{s.kind}, eager on both sides") for s in built.skipped))


NUDGE_COUNT = 4
"""Number of eager calls on inputs changed by one unit in the last place, to find values that depend on rounding."""


class Trial:
    """A call that is made in several ways on copies of the same inputs, to compare their effects.

    ``eager`` makes the reference call; None to call the function itself.
    """

    def __init__(
        self,
        fn: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        backward: bool,
        random: bool,
        unwritten: bool = False,
        eager: Callable[..., Any] | None = None,
    ) -> None:
        self.call = (fn, args, kwargs)
        self._eager = eager
        self.backward = backward
        self.saved_state = SavedState(fn, args, kwargs, state=True)
        try:
            self.eager = self._observed()
        except LensError:
            raise
        except Exception as error:  # the function may raise anything
            raise UsageError(
                f"{name_of(fn)} raised {type(error).__name__} without a compiler, so there is nothing to compare with: "
                f"{error}. Pass the inputs that it takes: capture.verify(f, x)"
            ) from error
        self.random = random or self.eager.drew
        self.unwritten = unwritten

    def against(self, compiled: Any) -> Verification:
        """Return the comparison of ``compiled`` with eager. If it raises where eager does not, or cannot be built, the
        result has no checks but the reason."""
        try:
            return self._against(compiled)
        except CaptureError as error:
            failure = error.capture.failure
            if failure is None:
                raise
            name = error.capture.function
            if failure.type in NOT_RUNNABLE:
                return Verification((), None, not_run=((name, failure.message),))
            where = "when it ran" if failure.stage == "run" else f"in stage {failure.stage}"
            message = messages.summary(failure.message)
            reason = RAISED.format(where=where, type=failure.type, message=message)
            return Verification((), None, not_compared=((name, reason),))

    def _against(self, compiled: Any) -> Verification:
        from .._torch.isolation import eager_random_numbers

        uninitialized = (
            self._disagreements(self._observed(fill=0), self._observed(fill=1)) if self.unwritten else {}
        )
        if not self.random:
            outcome = self._compared(compiled, reference=True)
            return self._verification(outcome, uninitialized)
        try:
            with eager_random_numbers():
                outcome = self._compared(compiled)
            return self._verification(outcome, uninitialized, note=EAGER_RANDOM)
        except CaptureError as error:  # not all operators support eager's random numbers
            failure = error.capture.failure
            if failure is None or failure.type == "BuildError":
                raise
            reason = f"{failure.type}: {(failure.message.splitlines() or [''])[0][:200]}"
        drawn = self._disagreements(self.eager, self._observed(seed=1))
        outcome = compared(self.eager, self._observed(call=compiled))
        _without(drawn, outcome, "the numbers")
        return self._verification(outcome, uninitialized, random=OTHER_RANDOM.format(reason=reason))

    def _compared(self, compiled: Any, reference: bool = False) -> Agreement:
        """Return the comparison; numbers that differ only by rounding or by the order of equal elements are set aside.
        Values that agree with eager after a change of its summation order pass. ``reference`` adds a float64 run."""
        observation = self._observed(call=compiled)
        # The float64 run comes last, to keep it out of memory during the compiled call.
        outcome = compared(self.eager, observation, self._reference if reference else None)
        failed = [c for c in outcome.checks if not c.ok]
        if failed:
            outcome.set_aside({c.name: TIES for c in failed if c.name in self._tie_dependent})
            failed = [c for c in failed if c.name not in self._tie_dependent]
        if failed and self._in_sequence is not None:
            again = compared(self._in_sequence, observation, self._reference if reference else None)
            agree = {(c.kind, c.name) for c in again.checks if c.ok and c.has_numbers}
            outcome.accept(agree)
            failed = [c for c in failed if (c.kind, c.name) not in agree]
        if failed:
            names = rounded(self.eager, observation, self._nudged, failed)
            outcome.set_aside(dict.fromkeys(names, ROUNDING), problems=True)
        return outcome

    def agrees_with(self, other: Trial) -> bool | None:
        """Return True if the eager calls of two trials agree; None if they differ only in values that depend on random
        numbers or uninitialized memory."""
        outcome = compared(self.eager, other.eager, self._reference)
        if outcome.ok:
            return True
        uninitialized = (
            self._disagreements(self._observed(fill=0), self._observed(fill=1)) if self.unwritten else {}
        )
        if self.random:
            uninitialized |= self._disagreements(self.eager, self._observed(seed=1))
        _without(uninitialized, outcome, "")
        return None if outcome.ok else False

    def _verification(
        self, outcome: Agreement, uninitialized: dict[str, ValueCheck], note: str = "", random: str = ""
    ) -> Verification:
        """Return the verification, without the values of the checks in ``uninitialized``."""
        _without(uninitialized, outcome, "unwritten memory")
        return Verification(
            tuple(outcome.checks),
            None,
            "; ".join(filter(None, (note, self._note()))),
            tuple(outcome.not_run),
            random=random,
            uninitialized=UNINITIALIZED if uninitialized else "",
            not_compared=tuple(outcome.not_compared),
        )

    @staticmethod
    def _disagreements(one: Observation, two: Observation) -> dict[str, ValueCheck]:
        return {c.name: c for c in compared(one, two).checks if not c.ok}

    def _observed(
        self, seed: int | None = None, fill: int | None = None, mode: Any = None, **how: Any
    ) -> Observation:
        from .._torch.graphs.operator_kinds import FilledMemory
        from .._torch.isolation import random_state

        nothing = contextlib.nullcontext()
        filled = nothing if fill is None else FilledMemory(fill)
        with random_state(), filled, mode or nothing:
            if seed is not None:
                torch.manual_seed(torch.initial_seed() + seed)
            return observed(*self.call, self.backward, self.saved_state, **{"call": self._eager, **how})

    @functools.cached_property
    def _reference(self) -> Observation | None:
        """The call in float64; None if it fails."""
        return self._optional(wide=True)

    @functools.cached_property
    def _tie_dependent(self) -> frozenset[str]:
        """Names of values that change in eager PyTorch with the order of equal elements."""
        from .._torch.graphs.tie_order import Ties

        last, first = Ties(last=True), Ties(last=False)
        others = self._optional(mode=last)
        # A dispatch mode alone may change the result, so both runs use one.
        usual = self._optional(mode=first) if others is not None and last.count else None
        if others is None or usual is None or first.count != last.count:
            return frozenset()
        return frozenset(self._disagreements(usual, others))

    @functools.cached_property
    def _in_sequence(self) -> Observation | None:
        """The eager call with sums in sequential order; None if it fails."""
        from .._torch.graphs.sum_order import SequentialSums

        return self._optional(mode=SequentialSums())

    @functools.cached_property
    def _nudged(self) -> list[Observation]:
        """Eager calls on inputs changed by one unit in the last place."""
        return [n for seed in range(NUDGE_COUNT) if (n := self._optional(nudge=seed)) is not None]

    def _optional(self, **how: Any) -> Observation | None:
        with contextlib.suppress(Exception):  # the function may reject changed inputs
            return self._observed(**how)
        return None

    def _note(self) -> str:
        count = self.eager.unchanged
        if not count:
            return ""
        some = (
            "1 tensor that the call takes or holds has"
            if count == 1
            else f"{count} tensors that the call takes or holds have"
        )
        return f"{some} the same values after the eager call as before"


def _without(uninitialized: dict[str, ValueCheck], outcome: Agreement, what: str) -> None:
    """Drop the values of these checks from the comparison, since they depend on ``what``."""
    kept = []
    for c in outcome.checks:
        if c.name not in uninitialized:
            kept.append(c)
        elif uninitialized[c.name].problem:
            outcome.not_run.append(
                (c.name, f"it depends on {what}: {uninitialized[c.name].problem} with others")
            )
        else:
            kept.append(without_values(c))
    outcome.checks = kept


def draws(capture: Record) -> bool:
    """Return True if the captured graphs draw random numbers."""
    return any(n.kind == "random" for c in capture.compilations for g in c.graphs.values() for n in g.nodes)


def shows_unwritten(capture: Record) -> bool:
    """Return True if the value of ``torch.empty`` reaches an output of a graph."""
    from .._torch.graphs.operator_kinds import UNINITIALIZED

    for compilation in capture.compilations:
        for phase in compilation.phases:
            graph = compilation.graphs.get(phase)
            if graph is None:
                continue
            # The graph is functional: an operator that overwrites a tensor does not take it as input.
            reached = {
                n.name
                for n in graph.nodes
                if n.target.removeprefix("aten.").partition(".")[0] in UNINITIALIZED
            }
            for node in graph.nodes:
                if reached.intersection(node.inputs):
                    if node.op == "output":
                        return True
                    reached.add(node.name)
    return False
