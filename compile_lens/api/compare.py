"""Comparison of one function across targets: a capture for each, side by side, with the reasons for differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..devices.models import resolve
from ..engine.call import check_callable, check_fit
from ..engine.entry import outside_dynamo, separates_keywords
from ..engine.options import name_of
from ..errors import LensError, UsageError
from ..measures.compare.table import across
from ..record.comparison import Column
from ..record.device import DeviceModel
from ..results.capture import CaptureError
from ..results.comparison import Comparison
from ..trials.progress import interrupts
from .capture import capture

TargetName = str | DeviceModel | Path
"""Name of a target, as for ``capture(target=…)``."""

TARGETS = ("cpu", "h100", "mps")
"""Default targets."""


@outside_dynamo
@separates_keywords(capture, without=("target",))
def compare(
    fn: Any,
    *args: Any,
    targets: Sequence[TargetName] = TARGETS,
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Capture ``fn(*args, **kwargs)`` for each target and put the captures side by side.

    The result has the captures, a row for each Python line with its kernels on each target, and the differences with
    the reasons in the records (``comparison.differences``): Inductor received another operator, a pass rewrote it on
    one target only, a library is called, a reduction is split, loops were not fused. A difference without a known
    reason is reported as unexplained. The devices may be absent: see ``capture``.

    The function runs once for each target, on the CPU and without results.

    Args:
        fn, kwargs: as for ``capture``.
        targets: names (``"h100"``, ``"mps"``, ``"cpu:avx2"``), device models, or paths of models; at least one.
        options: every other option of ``capture``, such as ``backward=True`` or ``build=True``.

    A target that cannot be captured becomes a column with the reason.

    Raises:
        UsageError: ``targets`` is invalid, or no target could be captured because of an invalid argument.
        CaptureError: no target could be captured; ``error.capture`` is that of the first target with a
            ``CaptureError``.
    """
    if "calls" in options:
        check_callable(fn, "compare")
    else:
        check_fit(fn, args, kwargs, "compare")
    names = _names(targets)
    columns: list[Column] = []
    errors: list[LensError] = []
    with interrupts() as check:
        for name, target in zip(names, targets, strict=True):
            check()
            try:
                captured = capture(fn, *args, kwargs=kwargs, target=target, **options)
            except LensError as error:
                errors.append(error)
                columns.append(Column(name, getattr(error, "capture", None), _first_line(error)))
            else:
                columns.append(Column(name, captured, "", _features(target)))
    if len(errors) == len(columns):
        _raise(errors, columns)
    return across(name_of(fn), columns, Comparison)


def _names(targets: Sequence[TargetName]) -> list[str]:
    if isinstance(targets, (str, Path, DeviceModel)) or not isinstance(targets, Sequence):
        raise UsageError(
            f"targets={targets!r} is not a list of targets: write for example targets={list(TARGETS)}"
        )
    if not targets:
        raise UsageError(
            f"targets={list(targets)} names no target: write for example targets={list(TARGETS)}"
        )
    names = [t.name if isinstance(t, DeviceModel) else str(t) for t in targets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"targets names {', '.join(twice)} more than once: name each target once")
    return names


def _first_line(error: LensError) -> str:
    first, *rest = str(error).strip().split("\n")
    if isinstance(error, CaptureError):  # place, source line and carets, then the exception
        first = ": ".join([first, *[line for line in rest if line and not line.startswith(" ")][:1]])
    return first or type(error).__name__


def _features(target: TargetName) -> tuple[str, ...] | None:
    from .._torch.operators import support

    return support.features(resolve(target).device)


def _raise(errors: list[LensError], columns: list[Column]) -> None:
    same = len({str(error) for error in errors}) == 1
    reasons = "; ".join(f"{c.target}: {c.failure}" for c in columns)
    message = str(errors[0]) if same else f"no target could be captured: {reasons}"
    for error in errors:
        if isinstance(error, CaptureError):
            raise CaptureError(message, error.capture) from (error.__cause__ or error)
    raise UsageError(message) from None
