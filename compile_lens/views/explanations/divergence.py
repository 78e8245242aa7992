"""Explanations of compiled values that are less accurate than eager values."""

from __future__ import annotations

from compile_lens.record.divergence import DivergenceRecord
from compile_lens.record.verification import Verification

from ..subjects.divergence import headline, lines_of, what
from ..subjects.kernel_values import errors, expression
from ..words.labels import place
from ..words.quantities import error
from . import Explanation, few


def of_verification(verification: Verification) -> Explanation:
    """Return the values that differ, or the reason why no values were compared."""
    failed = [str(check) for check in verification.comparisons if not check.ok]
    reasons = [f"{part}: {why}" for part, why in (*verification.not_compared, *verification.not_run)]
    reasons += filter(None, (verification.random, verification.uninitialized))
    return Explanation(few(failed, "values"), few(reasons, "reasons"))


def of_divergence(record: DivergenceRecord) -> Explanation:
    """Return the values that differ, the cause with its lines, and the setting that makes the values agree."""
    plain = of_verification(record.verification)
    cause, value = record.cause, record.first_value
    why = []
    if value is not None:
        where = f"{place(value.frames[0])}: " if value.frames else ""
        kernel = f" ({value.kernel})" if value.kernel else ""
        why.append(f"the first value that differs: {where}{expression(value)}{kernel}: error {errors(value)}")
        why += [record.doubt] if record.doubt else []
    if cause is None:
        return Explanation(plain.found, few((*plain.why, *why), "lines"))
    why.append(cause.sentence)
    if cause.transformation is not None:
        one = cause.transformation
        why.append(f"{one.kind} {one.name}: {what(cause)}" + (f" ({cause.where})" if cause.where else ""))
        why += [f"{place(frame)}: {frame.expression}" for frame in lines_of(cause)]
    to_try: tuple[str, ...] = ()
    if record.switch is not None:
        code = record.switch.to_apply or record.switch.name
        to_try = (f"{code}: they differ by {error(record.switch.difference)} with it",)
    return Explanation((headline(record), *plain.found), few(why, "lines"), to_try)
