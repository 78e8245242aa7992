"""Figures of a switch that are measured by calling the function, since a capture does not contain them."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ..errors import LensError
from ..measures.quantities import OF_ALL
from ..record.figures import Figure
from ..record.verification import ALIAS
from ..results.capture import Capture
from .switches import SHARED_ARGUMENTS, Switch

LACKS = "this torch does not have it: "
"""Start of the reason why a switch is not tried: the running torch lacks it."""


class NotMeasured(LensError):
    """A figure could not be measured; the message says why."""


def run_figure(
    switch: Switch, base: Capture, changed: Capture, call: tuple[Any, Any, Any], options: dict[str, Any]
) -> tuple[float, float]:
    """Return the figure ``switch.run`` without the switch and with it. ``call`` is (function, args, kwargs);
    ``options`` are those of ``capture``.

    Raises:
        NotMeasured: the figure is not known.
    """
    if "calls" in options:
        raise NotMeasured("it is tried only for a single call")
    if switch.run == "disagreement":
        return _disagreement(base, *call), _disagreement(changed, *call)
    own = OF_ALL["recompiles"](base)
    if not isinstance(own, Figure):
        raise NotMeasured(f"recompiles are not known: {own}")
    given = {name: options[name] for name in (*SHARED_ARGUMENTS, "options") if options.get(name) is not None}
    before, after = (_recompiles(call, given | more) for more in ({}, switch.compiling))
    return own + before, own + after


def _disagreement(capture: Capture, fn: Any, args: Any, kwargs: Any) -> float:
    """Return the largest absolute difference between compiled and eager values of a call."""
    verification = capture.verify(fn, *args, kwargs=kwargs)
    numbers = [check for check in verification.comparisons if check.kind != ALIAS]
    reasons = [
        verification.random,
        verification.uninitialized,
        *(why for _, why in verification.not_compared),
    ]
    reason = next(filter(None, reasons), "")
    if reason or not numbers or not all(check.max_abs < float("inf") for check in numbers):
        raise NotMeasured(f"its agreement with eager is not known: {reason or verification.verdict}")
    return max(float(check.max_abs) for check in numbers)


def _recompiles(call: tuple[Any, Any, Any], options: dict[str, Any]) -> int:
    """Return 1 if the first call of the compiled function recompiles, or would but for the limit; else 0."""
    from .._torch.frames import shared_entries

    unknown = options.keys() - inspect.signature(torch.compile).parameters.keys()
    if unknown:
        raise NotMeasured(f"{LACKS}torch.compile takes no {', '.join(unknown)}")
    fn, args, kwargs = call
    try:
        outcome = shared_entries.first_call(fn, args, kwargs or {}, options)
    except Exception as error:  # raised by the program
        raise NotMeasured(
            f"a call of the compiled function raises {type(error).__name__}: {error}"
        ) from error
    if not outcome:
        raise NotMeasured("torch does not report which cache entries the function uses")
    return int(outcome in (shared_entries.RECOMPILES, shared_entries.REFUSED))
