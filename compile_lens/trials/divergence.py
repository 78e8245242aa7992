"""The cause of a difference between compiled code and eager PyTorch, found by compiling the same call in other ways.

Each attempt is one compile and one run. First torch's own debug backends say how far down the compiler the values
still agree. In Inductor, settings are turned all at once and then by halves, until one is left that decides. Then
transformations of one kind (passes and patterns, fusions, lowerings, decompositions) are left out from the n-th on;
bisection finds the one with which the values come to differ.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .._torch.backend import GRAPH_OF_DYNAMO
from .._torch.ground.limit import Limit
from ..engine.call import Arguments, Call
from ..engine.entry import outside_dynamo
from ..engine.local import perform
from ..engine.options import CaptureOptions, inductor_patches
from ..errors import UsageError
from ..record import claims
from ..record.divergence import (
    AUTOGRAD,
    DECOMPOSITION,
    DYNAMO,
    FUSION,
    LOWERING,
    MEMORY,
    NOT_FOUND,
    OPERATOR,
    PARTITION,
    PASS,
    PRECISION,
    ROUNDING,
    SETTING,
    Attempt,
    RootCause,
    Transformation,
    first_value,
    largest_difference,
)
from ..record.verification import DISAGREES, Verification
from ..results.capture import Capture
from ..results.divergence import Divergence
from .cause_location import joined, located, operators_of_graphs
from .kernel_values import KernelValues
from .off_settings import OF_SETTING, OFF, REUSE
from .switches import Switch, applied
from .trial import Trial, draws, shows_unwritten
from .verify import call_of

LEVELS = {
    "aot_eager_decomp_partition": PARTITION,
    "aot_eager": PARTITION,
    "aot_eager_default_partitioner": AUTOGRAD,
    "eager": DYNAMO,
}
"""Backends of torch's own that run the graphs at a level of the compiler, lowest first, and the cause if the values
differ at that level and at none above it. ``aot_eager`` splits the graph as Inductor does, by the least memory to
save, and merges equal expressions for that; the default partitioner does neither."""

HALF = ("float16", "bfloat16")


def divergence(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    named: Mapping[str, Any] = MappingProxyType({}),
    calls: tuple[Arguments, ...] = (),
) -> Divergence:
    """Compare the built code with eager PyTorch as ``verify`` does; where they differ, find the cause.

    ``calls`` are the arguments of several calls, one after another, in place of ``args``.

    Raises:
        UsageError: as ``verify``, or the capture is of several calls that are not given, or for an absent device.
        CaptureError: as ``verify``.
    """
    from .._torch.frames import code_copies

    fn, args, keywords = call_of(capture, fn, args, {"kwargs": kwargs, **named}, "divergence")
    if capture.target is not None and capture.target.model.device != "cpu":
        from . import verify_interpreted

        if calls:
            raise UsageError(
                "an absent device: divergence compares one call of its code, divergence(f, x, target=…)"
            )
        verification, graphs = verify_interpreted.compared(capture, fn, args, keywords, values=True)
        return Divergence(capture.function, capture, verification, graphs=graphs)
    if capture.failure is not None:
        raise UsageError(
            f"{capture.function} failed in stage {capture.failure.stage}: there is no code to run"
        )
    fn, _ = code_copies.uncompiled_function(fn)
    if calls:
        args, keywords = tuple((one.args, one.kwargs) for one in calls), {}
    return _Search(capture, fn, args, keywords, several=bool(calls)).result()


def in_turn(fn: Any, *each: tuple[tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    """Call a function with the arguments of each call, one after another; return all results."""
    return [fn(*args, **kwargs) for args, kwargs in each]


class _Search:
    """The attempts for one call, on copies of the same."""

    def __init__(
        self, capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], several: bool = False
    ) -> None:
        self.capture = capture
        self.fn = fn
        self.several = several
        self.trial = Trial(
            functools.partial(in_turn, fn) if several else fn,
            args,
            kwargs,
            capture.options.backward != "no",
            draws(capture),
            shows_unwritten(capture),
        )
        self.attempts: list[Attempt] = []
        self.counted = Limit()
        self.built = capture
        self.values = KernelValues()
        self.differing: dict[tuple[str, str], bool] = {}
        """Values that differ, by kind and name, and whether each has numbers."""
        options = CaptureOptions.from_record(capture.options, build=True)
        self.options = options
        self.own = inductor_patches(options.mode, options.options, options.dynamic)

    def result(self) -> Divergence:
        """Compare the code as it is; where it differs, search."""
        verification = self._verified(limit=self.counted)
        if reason := self.built.nothing_compiled:  # eager was compared with eager
            verification = Verification((), None, not_run=((self.capture.function, reason),))
        cause: RootCause | None = None
        switch: Attempt | None = None
        if verification.verdict == DISAGREES:
            failed = (check for check in verification.comparisons if not check.ok)
            self.differing = {(check.kind, check.name): check.has_numbers for check in failed}
            cause, switch = self._cause() if not _is_nearer(verification) else self._nearer(verification)
        elif verification.ok and (largest_difference(verification) or 0.0) > 0.0:
            cause, switch = self._rounding(verification)
        graphs = self.values.graphs(self.built)
        doubt = self.values.doubt(cause, first_value(graphs, verification))
        attempts = tuple(self.attempts)
        return Divergence(
            self.capture.function, self.built, verification, cause, attempts, switch, graphs, doubt
        )

    # Attempts ---------------------------------------------------------------------------------------------------

    def _verified(self, settings: dict[str, Any] | None = None, **how: Any) -> Verification:
        """Return the comparison with eager of the call compiled with settings, a limit or another backend."""

        @outside_dynamo
        def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
            if self.several:  # of the copy of ``in_turn``, with the copy of the function in it
                each = tuple(Arguments(*one) for one in args)
                call = dataclasses.replace(
                    Call.read(fn.args[0], each[0].args, each[0].kwargs, self.options), each=each
                )
            else:
                call = Call.read(fn, args, kwargs, self.options)
            if how.get("limit") is self.counted:
                self.values = KernelValues()
                self.built, outcome = perform(call, launch_probe=self.values.probe, **how)
            else:
                _, outcome = perform(call, settings=settings, **how)
            return [outcome.result, *outcome.later] if self.several else outcome.result

        return self.trial.against(compiled)

    def _attempt(
        self, name: str, settings: dict[str, Any] | None = None, code: str = "", **how: Any
    ) -> bool | None:
        """Compile and run in one way, and keep the outcome. Return True if the values agree, None if that is not
        known: it cannot be compiled so, or what differs cannot be compared."""
        verification = self._verified(settings, **how)
        reasons = [why for _, why in (*verification.not_compared, *verification.not_run)]
        agrees = self._agrees(verification)
        self.attempts.append(
            Attempt(
                name,
                verification.verdict,
                largest_difference(verification),
                code,
                "" if verification.comparisons else "; ".join(reasons[:1]),
                agrees,
            )
        )
        return agrees

    def _agrees(self, verification: Verification) -> bool | None:
        if not all(check.ok for check in verification.comparisons):
            return False
        compared = {(c.kind, c.name): c.has_numbers for c in verification.comparisons}
        known = all(
            compared.get(key, False) or (key in compared and not numbers)
            for key, numbers in self.differing.items()
        )
        return True if verification.ok or (verification.comparisons and known) else None

    def _set(self, names: list[str]) -> bool | None:
        settings = {name: OFF[name] for name in names}
        text = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        single = len(names) == 1
        code = applied(self.fn, Switch(text, "", options=settings), self._given()) if single else ""
        return self._attempt(text if single else f"{len(names)} settings", settings, code)

    def _given(self) -> dict[str, Any]:
        """Return the arguments of ``torch.compile`` beside a setting. It takes no mode beside options: the mode's own
        settings stand for it."""
        options = self.options
        return {"options": self.own, "dynamic": options.dynamic, "fullgraph": options.fullgraph}

    # The search -------------------------------------------------------------------------------------------------

    def _cause(self) -> tuple[RootCause, Attempt | None]:
        above = self._above_inductor()
        if above is not None:
            return above, None
        switch = self._setting()
        name = switch.name.partition("=")[0] if switch is not None else ""
        kinds = [PASS, FUSION, LOWERING]
        kinds.sort(key=lambda kind: kind != OF_SETTING.get(name))
        for kind in kinds:
            transformation = self._transformation(kind)
            if transformation is not None:
                cause = self._with_lines(located(self.built, transformation))
                reuse = name in REUSE or transformation.name in REUSE
                return (dataclasses.replace(cause, kind=MEMORY) if reuse else cause), switch
        cause = RootCause(SETTING if switch is not None else NOT_FOUND)
        return self._of_operators(cause), switch

    def _above_inductor(self) -> RootCause | None:
        """Return the cause of a difference that is there without Inductor; None if there is none, or that is not
        known."""
        backends = list(LEVELS)
        limits = {backend: Limit() for backend in backends}

        def agrees(level: int) -> bool | None:
            backend = backends[level]
            return self._attempt(f"backend={backend!r}", backend=backend, limit=limits[backend])

        if agrees(0) is not False:
            return None
        level = _least(0, len(backends), agrees)
        if level is None:
            return RootCause(NOT_FOUND)
        lowest = backends[level - 1]  # of those that differ
        if LEVELS[lowest] == AUTOGRAD:
            return self._of_autograd(lowest, limits[lowest])
        if LEVELS[lowest] == DYNAMO:
            return RootCause(DYNAMO)
        return self._of_operators(self._of_level(lowest, limits[lowest]), backend=lowest)

    def _of_autograd(self, backend: str, counted: Limit) -> RootCause:
        """Return the cause of a difference that begins where AOTAutograd traces: AOTAutograd if the graph that it was
        handed is right, run eagerly."""
        agrees = self._attempt(GRAPH_OF_DYNAMO, backend=GRAPH_OF_DYNAMO)
        if agrees is None:
            return RootCause(NOT_FOUND)
        if agrees is False:
            return RootCause(DYNAMO)
        return self._of_operators(self._of_level(backend, counted), backend=backend)

    def _of_level(self, backend: str, counted: Limit) -> RootCause:
        """Return the cause of a difference that begins where operators are decomposed or the graph is split."""
        if LEVELS[backend] != PARTITION:
            return RootCause(LEVELS[backend])
        merge = self._transformation(PASS, counted, backend=backend)
        if merge is not None:
            return located(self.built, merge)
        if backend != next(iter(LEVELS)):
            return RootCause(PARTITION)
        transformation = self._transformation(DECOMPOSITION, counted, backend=backend)
        if transformation is not None:
            return located(self.built, transformation)
        none = not counted.counts[DECOMPOSITION] or self.attempts[-1].agrees is False
        # Without any decomposition they differ as well, unless decompositions could not be observed.
        return RootCause(PARTITION if none and not self.built.lacks(claims.TRANSFORMATIONS) else NOT_FOUND)

    def _setting(self) -> Attempt | None:
        """Return the attempt with the one setting that makes the values agree, found by halves."""
        from .._torch.session import inductor_settings

        known = inductor_settings()
        names = [n for n, off in OFF.items() if n in known and n not in self.own and known[n] != off]
        if not names or self._set(names) is not True:
            return None
        count = _least(0, len(names), lambda count: self._set(names[:count]))
        if count is None:
            return None
        if not self.attempts[-1].to_apply or not self.attempts[-1].agrees:
            self._set([names[count - 1]])
        last = self.attempts[-1]
        return last if last.to_apply and last.agrees else None

    def _transformation(self, kind: str, counted: Limit | None = None, **how: Any) -> Transformation | None:
        """Return the transformation of a kind with which the values come to differ; None if none decides."""
        total = (counted or self.counted).counts[kind]
        if not total or self._limited(kind, 0, total, **how)[0] is not True:
            return None
        last = {total: (counted or self.counted).last.get(kind)}

        def differs(most: int) -> bool | None:
            agrees, last[most] = self._limited(kind, most, total, **how)
            return None if agrees is None else not agrees

        decisive = _least(0, total, differs)
        return None if decisive is None else last[decisive]

    def _with_lines(self, cause: RootCause) -> RootCause:
        """Return a cause with lines: a pass that only marks nodes has those of the operators that differ."""
        marks = cause.transformation
        if marks is None or marks.kind != PASS or marks.frames:
            return cause
        alone = self._of_operators(RootCause(NOT_FOUND)).transformation
        if alone is None:
            return cause
        marks = dataclasses.replace(marks, frames=alone.frames, nodes=alone.nodes, operators=alone.operators)
        return dataclasses.replace(cause, transformation=marks)

    def _limited(
        self, kind: str, most: int, total: int, **how: Any
    ) -> tuple[bool | None, Transformation | None]:
        limit = Limit(kind, most)
        plural = {PASS: "passes and patterns"}.get(kind, f"{kind}s")
        name = f"without {plural}" if not most else f"first {most} of {total} {plural}"
        agrees = self._attempt(name, limit=limit, **how)
        return agrees, limit.last.get(kind)

    def _of_operators(self, cause: RootCause, **how: Any) -> RootCause:
        """Return a cause without a transformation with the fewest operators that, compiled alone, differ from eager:
        from the first to the last of them, which it takes both."""
        if cause.transformation is not None:
            return cause
        total = len(operators_of_graphs(self.built))
        limits: dict[tuple[int, int], Limit] = {}

        def differ(last: int, skipped: int = 0) -> bool:
            limit = limits[last, skipped] = Limit(OPERATOR, last, skipped)
            return self._compiled_alone(limit, total, **how) is False

        if not total or not differ(total):
            return cause
        last = _least(0, total, differ) or total
        first = _least(0, last, lambda skipped: not differ(last, skipped)) or last
        return dataclasses.replace(cause, transformation=joined(limits[last, first - 1]))

    def _compiled_alone(self, limit: Limit, total: int, **how: Any) -> bool | None:
        first, last = limit.least + 1, limit.most
        name = f"operator {last}" if first == last else f"operators {first} to {last}"
        return self._attempt(f"{name} of {total} alone compiled", limit=limit, **how)

    def _rounding(self, verification: Verification) -> tuple[RootCause, Attempt | None]:
        """Return the cause of a difference where both sides are as good."""
        difference = largest_difference(verification) or 0.0
        nodes = (n for c in self.built.compilations for g in c.graphs.values() for n in g.nodes)
        half = any(output.dtype in HALF for node in nodes for output in node.outputs)
        name = "emulate_precision_casts"
        if half and name not in self.own and self._set([name]):
            attempt = self.attempts[-1]
            if attempt.difference is not None and attempt.difference < difference / 2:
                return RootCause(PRECISION), attempt
        return RootCause(ROUNDING), None

    def _nearer(self, verification: Verification) -> tuple[RootCause, Attempt | None]:
        """Return the cause where compiled values are nearer to float64 than eager's, with the place of it."""
        cause, switch = self._rounding(verification)
        transformation = self._transformation(LOWERING) if cause.kind == PRECISION else None
        if transformation is not None:
            cause = dataclasses.replace(located(self.built, transformation), kind=PRECISION)
        return cause, switch


def _least(low: int, high: int, holds: Callable[[int], bool | None]) -> int | None:
    """Return the least number for which something holds, by halves: it holds for ``high``, and not for ``low``. None as
    soon as it is not known: the call cannot be compiled so, and nothing is known of either half."""
    while high - low > 1:
        middle = (low + high) // 2
        outcome = holds(middle)
        if outcome is None:
            return None
        low, high = (low, middle) if outcome else (middle, high)
    return high


def _is_nearer(verification: Verification) -> bool:
    """Return True if each compiled value that differs is nearer to float64 than eager's."""
    failed = [check for check in verification.comparisons if not check.ok]
    return bool(failed) and all(
        not check.problem
        and check.eager_abs is not None
        and check.compiled_abs is not None
        and check.compiled_abs < check.eager_abs
        for check in failed
    )
