"""Results of a check against eager PyTorch: one comparison for each observable effect of a call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

RESULT, CHANGED, GRADIENT, ALIAS = "result", "changed in place", "gradient", "shared memory"


KINDS = {
    RESULT: ("result", "results"),
    CHANGED: ("value changed in place", "values changed in place"),
    GRADIENT: ("gradient", "gradients"),
    ALIAS: ("pair that shares memory", "pairs that share memory"),
}
"""Kinds of comparison, with singular and plural."""


AGREES, DISAGREES, PARTLY, NOTHING, RANDOM, UNWRITTEN, NOT_RUN = (
    "agrees",
    "DISAGREES",
    "agrees in part",
    "nothing to compare",
    "not comparable: random",
    "not comparable: uninitialised memory",
    "was not compared",
)
"""Values of ``Verification.verdict``."""


@dataclass(frozen=True)
class ValueCheck:
    """One effect of the call, compiled against eager: a tensor or a plain value of the result, a value changed in
    place, a gradient, or memory that a result shares.

    ``kind`` is a key of ``KINDS``; ``problem`` says what differs besides the numbers (dtype, shape, strides, …), and
    ``special`` where only one side has a NaN or an infinity, or another one: the difference is infinite then.
    ``max_abs`` and ``max_rel`` are the largest absolute and relative differences between compiled and eager;
    ``eager_abs`` and ``compiled_abs`` are the largest absolute differences of each from a float64 run of the same
    function (``None`` if the function does not run in float64). All are measured.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_rel: float
    eager_abs: float | None
    compiled_abs: float | None
    ok: bool
    kind: str = RESULT
    problem: str = ""
    special: str = ""

    @property
    def has_numbers(self) -> bool:
        """False if only type, shape and strides were compared, not numbers."""
        return self.max_abs == self.max_abs

    def __str__(self) -> str:
        text = f"{'ok' if self.ok else 'DIFFERS':7} {self.name}"
        if self.kind == ALIAS:
            return f"{text}: {self.problem or f'shares memory with {self.dtype}'}"
        if not self.has_numbers:
            return f"{text}: {self.dtype}{list(self.shape)}, numbers not compared"
        sizes = list(self.shape) if self.shape or self.eager_abs is not None else ""
        text += f": {self.dtype}{sizes} max abs {self.max_abs:.2e}, max rel {self.max_rel:.2e}"
        if self.eager_abs is not None and self.compiled_abs is not None:
            text += f"; off float64: eager {self.eager_abs:.2e}, compiled {self.compiled_abs:.2e}"
        return "; ".join(filter(None, (text, self.problem, self.special)))


@dataclass(frozen=True)
class Verification:
    """The comparisons of one ``verify``.

    Attributes:
        comparisons: one for each observable effect.
        same_code: True if the newly built code equals the code in the record; None if the record has none, or other
            code had to be built.
        not_run: parts without code to compare, each with its reason.
        not_compared: effects that could not be compared, each with its reason: a graph that cannot run here, a call
            that raises when compiled, values that depend on rounding or on the order of equal elements, or cannot be
            read.
        runner: what ran the code; ``""`` if this machine did.
        random: why random numbers could not be compared.
        uninitialized: why values that depend on uninitialized memory could not be compared.
    """

    comparisons: tuple[ValueCheck, ...]
    same_code: bool | None
    note: str = ""
    not_run: tuple[tuple[str, str], ...] = ()
    runner: str = ""
    random: str = ""
    uninitialized: str = ""
    not_compared: tuple[tuple[str, str], ...] = ()

    @property
    def verdict(self) -> str:
        """One of ``agrees``, ``DISAGREES``, ``agrees in part``, ``nothing to compare``, ``not comparable: random``,
        ``not comparable: uninitialised memory`` or ``was not compared``."""
        if not all(c.ok for c in self.comparisons):
            return DISAGREES
        if self.random:
            return RANDOM
        if self.uninitialized:
            return UNWRITTEN
        if self.not_compared:
            return PARTLY if any(c.has_numbers for c in self.comparisons) else NOT_RUN
        if self.comparisons:
            return AGREES
        return NOT_RUN if self.not_run else NOTHING

    @property
    def ok(self) -> bool | None:
        """True if all comparisons agree, False if one does not. None if effects could not be compared, or the
        comparison leaves out random numbers or uninitialized memory."""
        return {AGREES: True, DISAGREES: False}.get(self.verdict)

    @property
    def compared(self) -> str:
        """Number of compared values by kind: ``1 result, 2 gradients``; ``""`` for none."""
        counts = Counter(c.kind for c in self.comparisons)
        return ", ".join(
            f"{counts[k]} {one if counts[k] == 1 else more}" for k, (one, more) in KINDS.items() if counts[k]
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on changes to the compared call, and on values that were not compared, each with its reason."""
        parts = (*self.not_compared, *self.not_run)
        remarks = (self.note, self.random, self.uninitialized, self.runner)
        return (*filter(None, remarks), *(f"not compared: {part}: {reason}" for part, reason in parts))

    def __bool__(self) -> bool:
        return self.ok is True

    def __str__(self) -> str:
        what = f"{self.compared}; measured" if self.comparisons else "0 values"
        if self.verdict == NOTHING:
            lines = ["compiled and eager: nothing to compare (nothing is returned, nothing is changed)"]
        elif self.verdict in (RANDOM, UNWRITTEN):
            lines = [
                f"compiled and eager are {self.verdict} ({what})",
                f"  {self.random or self.uninitialized}",
            ]
        else:
            lines = [f"compiled {self.verdict} with eager ({what})"]
        if self.runner:
            lines.append(f"  {self.runner}")
        lines += [f"  not compared: {part}: {reason}" for part, reason in (*self.not_compared, *self.not_run)]
        lines += [f"  {c}" for c in self.comparisons]
        if self.verdict == DISAGREES and not self.runner:  # code for an absent device is not searched
            lines.append("  the operation and the cause: capture.divergence()")
        if self.same_code is False:
            lines.append("  the code that was built now differs from the code in the record")
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)
