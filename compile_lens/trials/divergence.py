"""The cause of a difference between compiled code and eager PyTorch, found by compiling the same call in other ways.

Each attempt is one compile and one run. First, torch's debug backends show down to which compiler level the values
agree. Within Inductor, optional settings are turned off, all at once and then by bisection, until one decisive setting
is left. Then transformations of one kind (passes and patterns, fusions, lowerings, decompositions) are skipped from the
n-th on; bisection finds the one that makes the values differ.
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
from .off_settings import KIND_OF_SETTING, MEMORY_REUSE, OFF_VALUES
from .switches import Switch, applied
from .trial import Trial, draws, shows_unwritten
from .verify import call_of

LEVELS = {
    "aot_eager_decomp_partition": PARTITION,
    "aot_eager": PARTITION,
    "aot_eager_default_partitioner": AUTOGRAD,
    "eager": DYNAMO,
}
"""Torch's debug backends by compiler level, lowest first, each with the cause if the values differ at that level but at
none above. ``aot_eager`` uses Inductor's min-cut partitioner, which also merges equal expressions; the default
partitioner does neither."""

HALF_DTYPES = ("float16", "bfloat16")


def divergence(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    named: Mapping[str, Any] = MappingProxyType({}),
    calls: tuple[Arguments, ...] = (),
) -> Divergence:
    """Compare the built code with eager PyTorch as ``verify`` does, and find the cause of a difference.

    ``calls`` are the arguments of several successive calls, in place of ``args``.

    Raises:
        UsageError: as ``verify``; or the capture is of several calls and ``calls`` is empty, or ``calls`` is given for
            an absent device.
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
    """Call a function once with each tuple of arguments, and return all results."""
    return [fn(*args, **kwargs) for args, kwargs in each]


class _Search:
    """The search for the cause: attempts at one call, each on copies of the same inputs."""

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
        """Values that differ, by kind and name; True for those with numbers."""
        options = CaptureOptions.from_record(capture.options, build=True)
        self.options = options
        self.own = inductor_patches(options.mode, options.options, options.dynamic)

    def result(self) -> Divergence:
        """Compare the unchanged code, and search for the cause of a difference."""
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
        """Compile the call with settings, a limit or another backend, and return the comparison with eager."""

        @outside_dynamo
        def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
            if self.several:  # ``fn`` is the copy of the ``in_turn`` partial
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
        """Compile and run one variant and record the outcome. Return True if the values agree, None if unknown: it
        cannot be compiled, or the differing values cannot be compared."""
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

    def _attempt_off(self, names: list[str]) -> bool | None:
        settings = {name: OFF_VALUES[name] for name in names}
        text = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        single = len(names) == 1
        code = applied(self.fn, Switch(text, "", options=settings), self._given()) if single else ""
        return self._attempt(text if single else f"{len(names)} settings", settings, code)

    def _given(self) -> dict[str, Any]:
        """Return the arguments of ``torch.compile`` to use with a setting. It takes no mode together with options, so
        the mode's settings are among the options."""
        options = self.options
        return {"options": self.own, "dynamic": options.dynamic, "fullgraph": options.fullgraph}

    # The search -------------------------------------------------------------------------------------------------

    def _cause(self) -> tuple[RootCause, Attempt | None]:
        above = self._cause_above_inductor()
        if above is not None:
            return above, None
        switch = self._setting()
        name = switch.name.partition("=")[0] if switch is not None else ""
        kinds = [PASS, FUSION, LOWERING]
        kinds.sort(key=lambda kind: kind != KIND_OF_SETTING.get(name))
        for kind in kinds:
            transformation = self._transformation(kind)
            if transformation is not None:
                cause = self._with_lines(located(self.built, transformation))
                reuse = name in MEMORY_REUSE or transformation.name in MEMORY_REUSE
                return (dataclasses.replace(cause, kind=MEMORY) if reuse else cause), switch
        cause = RootCause(SETTING if switch is not None else NOT_FOUND)
        return self._with_operators(cause), switch

    def _cause_above_inductor(self) -> RootCause | None:
        """Return the cause of a difference that exists without Inductor; None if there is none, or if unknown."""
        backends = list(LEVELS)
        limits = {backend: Limit() for backend in backends}

        def agrees(level: int) -> bool | None:
            backend = backends[level]
            return self._attempt(f"backend={backend!r}", backend=backend, limit=limits[backend])

        if agrees(0) is not False:
            return None
        level = _bisect(0, len(backends), agrees)
        if level is None:
            return RootCause(NOT_FOUND)
        lowest = backends[level - 1]  # of the differing levels
        if LEVELS[lowest] == AUTOGRAD:
            return self._autograd_cause(lowest, limits[lowest])
        if LEVELS[lowest] == DYNAMO:
            return RootCause(DYNAMO)
        return self._with_operators(self._level_cause(lowest, limits[lowest]), backend=lowest)

    def _autograd_cause(self, backend: str, counted: Limit) -> RootCause:
        """Return the cause of a difference that starts in AOTAutograd's tracing: AOTAutograd if Dynamo's graph, run
        eagerly, agrees."""
        agrees = self._attempt(GRAPH_OF_DYNAMO, backend=GRAPH_OF_DYNAMO)
        if agrees is None:
            return RootCause(NOT_FOUND)
        if agrees is False:
            return RootCause(DYNAMO)
        return self._with_operators(self._level_cause(backend, counted), backend=backend)

    def _level_cause(self, backend: str, counted: Limit) -> RootCause:
        """Return the cause of a difference that starts where operators are decomposed or the graph is partitioned."""
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
        # The values differ even without decompositions, unless these could not be observed.
        return RootCause(PARTITION if none and not self.built.lacks(claims.TRANSFORMATIONS) else NOT_FOUND)

    def _setting(self) -> Attempt | None:
        """Return the attempt with the single setting that makes the values agree, found by bisection; None if there is
        none."""
        from .._torch.session import inductor_settings

        known = inductor_settings()
        names = [n for n, off in OFF_VALUES.items() if n in known and n not in self.own and known[n] != off]
        if not names or self._attempt_off(names) is not True:
            return None
        count = _bisect(0, len(names), lambda count: self._attempt_off(names[:count]))
        if count is None:
            return None
        if not self.attempts[-1].to_apply or not self.attempts[-1].agrees:
            self._attempt_off([names[count - 1]])
        last = self.attempts[-1]
        return last if last.to_apply and last.agrees else None

    def _transformation(self, kind: str, counted: Limit | None = None, **how: Any) -> Transformation | None:
        """Return the transformation of a kind that makes the values differ; None if none does."""
        total = (counted or self.counted).counts[kind]
        if not total or self._limited(kind, 0, total, **how)[0] is not True:
            return None
        last = {total: (counted or self.counted).last.get(kind)}

        def differs(most: int) -> bool | None:
            agrees, last[most] = self._limited(kind, most, total, **how)
            return None if agrees is None else not agrees

        decisive = _bisect(0, total, differs)
        return None if decisive is None else last[decisive]

    def _with_lines(self, cause: RootCause) -> RootCause:
        """Return the cause with Python lines: a pass that only annotates nodes gets those of the operators that
        differ."""
        marks = cause.transformation
        if marks is None or marks.kind != PASS or marks.frames:
            return cause
        alone = self._with_operators(RootCause(NOT_FOUND)).transformation
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

    def _with_operators(self, cause: RootCause, **how: Any) -> RootCause:
        """Return a cause that has no transformation with the shortest range of operators that, compiled alone, differ
        from eager, given by its first and last operator."""
        if cause.transformation is not None:
            return cause
        total = len(operators_of_graphs(self.built))
        limits: dict[tuple[int, int], Limit] = {}

        def differ(last: int, skipped: int = 0) -> bool:
            limit = limits[last, skipped] = Limit(OPERATOR, last, skipped)
            return self._compiled_alone(limit, total, **how) is False

        if not total or not differ(total):
            return cause
        last = _bisect(0, total, differ) or total
        first = _bisect(0, last, lambda skipped: not differ(last, skipped)) or last
        return dataclasses.replace(cause, transformation=joined(limits[last, first - 1]))

    def _compiled_alone(self, limit: Limit, total: int, **how: Any) -> bool | None:
        first, last = limit.least + 1, limit.most
        name = f"operator {last}" if first == last else f"operators {first} to {last}"
        return self._attempt(f"{name} of {total} alone compiled", limit=limit, **how)

    def _rounding(self, verification: Verification) -> tuple[RootCause, Attempt | None]:
        """Return the cause of a difference within tolerance: precision casts, or rounding."""
        difference = largest_difference(verification) or 0.0
        nodes = (n for c in self.built.compilations for g in c.graphs.values() for n in g.nodes)
        half = any(output.dtype in HALF_DTYPES for node in nodes for output in node.outputs)
        name = "emulate_precision_casts"
        if half and name not in self.own and self._attempt_off([name]):
            attempt = self.attempts[-1]
            if attempt.difference is not None and attempt.difference < difference / 2:
                return RootCause(PRECISION), attempt
        return RootCause(ROUNDING), None

    def _nearer(self, verification: Verification) -> tuple[RootCause, Attempt | None]:
        """Return the cause where compiled values are nearer to float64 than eager's, with its location."""
        cause, switch = self._rounding(verification)
        transformation = self._transformation(LOWERING) if cause.kind == PRECISION else None
        if transformation is not None:
            cause = dataclasses.replace(located(self.built, transformation), kind=PRECISION)
        return cause, switch


def _bisect(low: int, high: int, holds: Callable[[int], bool | None]) -> int | None:
    """Return the smallest number for which ``holds``, by bisection; it must hold for ``high`` and not for ``low``.
    Return None as soon as one outcome is unknown."""
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
