"""Captures of one call with several values of ``activation_memory_budget``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._torch.graphs.partitioner import patched_settings
from ..engine.call import Call
from ..engine.entry import outside_dynamo
from ..engine.options import CaptureOptions
from ..engine.remote import dispatch
from ..errors import LensError, UsageError
from ..measures.chain import Chain
from ..measures.memo import forget
from ..measures.quantities import OF_ALL, OF_PHASES, Quantity, peak
from ..record.figures import Figure
from ..record.graph import Frame
from ..record.memory_curve import MemoryCurveRecord, MemoryPoint
from ..results.capture import Capture
from ..results.memory_curve import MemoryCurve
from .verify import call_of

BUDGETS = tuple(tenth / 10 for tenth in range(10, -1, -1))
"""Default budgets: 1.0 to 0.0 in steps of 0.1."""


@outside_dynamo
def memory_curve(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    budgets: Iterable[float] | None,
    kwargs: dict[str, Any] | None,
    named: dict[str, Any],
) -> MemoryCurve:
    """Capture the call with each budget, by which the partitioner decides what to save and what to recompute. The curve
    is also stored in ``capture``.

    Raises:
        UsageError: a budget is not a number from 0 to 1, the capture has no backward, or its function or an input no
            longer exists.
    """
    wanted = _checked(budgets)
    fn, args, keywords = call_of(capture, fn, args, {"kwargs": kwargs, **named}, "memory_curve")
    if not any("backward" in compilation.phases for compilation in capture.compilations):
        raise UsageError(
            f"{capture.function} has no backward in this capture: nothing is saved for one, whatever the budget"
        )
    target = None if capture.target is None else capture.target.model
    points = []
    for budget in wanted:
        options = CaptureOptions.from_record(capture.options, target=target)
        try:
            with patched_settings({"activation_memory_budget": budget}):
                points.append(_point(budget, dispatch(Call.read(fn, args, keywords, options))))
        except UsageError:
            raise
        except LensError as error:
            points.append(MemoryPoint(budget, failure=str(error).strip().partition("\n")[0]))
    title = "" if target is None else target.title
    object.__setattr__(capture, "budget_curve", MemoryCurveRecord(capture.function, title, tuple(points)))
    forget(capture)
    return MemoryCurve(capture.function, title, tuple(points))


def _checked(budgets: Iterable[float] | None) -> list[float]:
    if budgets is None:
        return list(BUDGETS)
    wrong = f"budgets={budgets!r} is not a list of numbers from 0 to 1, such as [1, 0.5, 0]"
    if isinstance(budgets, str) or not isinstance(budgets, Iterable):
        raise UsageError(wrong)
    values = list(budgets)
    if not values or any(
        isinstance(b, bool) or not isinstance(b, (int, float)) or not 0 <= b <= 1 for b in values
    ):
        raise UsageError(wrong)
    return sorted({float(value) for value in values}, reverse=True)


def _point(budget: float, record: Capture) -> MemoryPoint:
    chain = Chain(record)
    recomputed: int | None = 0
    frames: dict[Frame, None] = {}
    for compilation in record.compilations:
        if compilation.partition is None:
            recomputed = None if "backward" in compilation.phases else recomputed
            continue
        for node in compilation.partition.recomputed:
            address = (compilation.id, "joint", node)
            if address in chain:
                frames.update(dict.fromkeys(chain.lines(address, derivatives=False)))
        recomputed = None if recomputed is None else recomputed + len(compilation.partition.recomputed)
    return MemoryPoint(
        budget,
        _number(OF_ALL["saved"](record)),
        _number(peak(record, "forward")),
        _number(peak(record, "backward")),
        _number(OF_PHASES["bytes"](record, "")),
        _number(OF_PHASES["launches"](record, "")),
        recomputed,
        tuple(frames),
    )


def _number(quantity: Quantity | float) -> int | None:
    return int(quantity) if isinstance(quantity, (int, Figure)) else None
