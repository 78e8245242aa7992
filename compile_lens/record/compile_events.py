"""Parts of a compile with their times, from torch's begin and end events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .program import CompileEvent

Event = tuple[str, str, float, int, str, tuple[tuple[str, str], ...]]
"""Event of a part of a compile: ``B``, ``E`` or ``i``, name, microseconds, thread, compile id, and torch's details."""

_KEPT_DETAILS = {
    "fn_name", "is_backward", "is_forward", "cache_state", "cache_status", "cache_status_detailed",
    "cache_bypass_reason", "cache_bypass_exception_type", "cache_bypass_hard_exception", "key", "time_taken_ns",
    "num_restarts", "fail_type", "recompile_reason",
}  # fmt: skip
"""Details of an event that are recorded; the others are torch's own telemetry."""
_MAX_CHARACTERS = 200


def event_details(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the details of an event to record."""
    return tuple(
        (k, str(v)[:_MAX_CHARACTERS]) for k, v in facts.items() if k in _KEPT_DETAILS and v is not None
    )


def paired_events(events: Iterable[Event], began: float) -> tuple[CompileEvent, ...]:
    """Pair begin and end events, in order of the beginnings; parts that did not end are left out.

    ``began`` is the start of the watch, in microseconds of torch's clock.
    """
    open_: dict[int, list[tuple[int, Event]]] = {}
    threads: dict[int, int] = {}
    paired: list[tuple[int, CompileEvent]] = []
    for position, event in enumerate(events):
        phase, name, at, ident, id, event_details = event
        thread = threads.setdefault(ident, len(threads))
        stack = open_.setdefault(ident, [])
        if phase == "B":
            stack.append((position, event))
        elif phase == "i":
            paired.append((position, _event(name, at - began, 0.0, thread, id, event_details, len(stack))))
        elif phase == "E" and any(e[1] == name for _, e in stack):
            while stack:
                first, begun = stack.pop()
                if begun[1] == name:
                    facts = tuple(dict((*begun[5], *event_details)).items())
                    whole_event = _event(
                        name, begun[2] - began, at - begun[2], thread, id or begun[4], facts, len(stack)
                    )
                    paired.append((first, whole_event))
                    break
    return tuple(event for _, event in sorted(paired, key=lambda one: one[0]))


def _event(
    name: str,
    start: float,
    duration: float,
    thread: int,
    id: str,
    event_details: tuple[tuple[str, str], ...],
    depth: int,
) -> CompileEvent:
    facts = dict(event_details)
    backward = facts.pop("is_backward", "")
    facts.pop("is_forward", "")
    evaluation = int(facts.pop("visit", "-1"))
    phase = {"True": "backward", "False": "forward"}.get(backward, "")
    return CompileEvent(
        name, round(start, 1), round(duration, 1), thread, id, phase, tuple(facts.items()), depth, evaluation
    )
