"""The parts of compiling with their times, as torch reports them itself, and what its caches said."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ...record.program import CompileEvent
from . import scopes
from .draft import Event
from .observers import noting, observe

_LOGGER = "torch._dynamo.utils:ChromiumEventLogger."

_TOLD = {
    "fn_name", "is_backward", "is_forward", "cache_state", "cache_status", "cache_status_detailed",
    "cache_bypass_reason", "cache_bypass_exception_type", "cache_bypass_hard_exception", "key", "time_taken_ns",
    "num_restarts", "fail_type", "recompile_reason",
}  # fmt: skip
"""What of an event's own facts is kept; the others are of torch's own telemetry."""
_ROOM = 200


@observe(_LOGGER + "_log_timed_event", "the time of compiling")
def timed(
    real: Any, logger: Any, name: str, ns: int, phase: str, metadata: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Torch begins or ends a part of compiling."""
    result = real(logger, name, ns, phase, metadata, *args, **kwargs)
    _note(phase, name, ns, metadata)
    return result


@observe(_LOGGER + "log_instant_event", "what caches said")
def instant(
    real: Any, logger: Any, name: str, ns: int, metadata: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Torch says something that takes no time: that a cache was hit, or why it was not."""
    _note("i", name, ns, metadata)
    return real(logger, name, ns, metadata, *args, **kwargs)


def _note(phase: str, name: str, ns: int, metadata: Any) -> None:
    visiting = scopes.current()
    facts: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    id = str(facts.get("compile_id") or "")
    if id == "None":
        id = ""
    mine = visiting.scopes if visiting is not None else scopes.owners_of(_frame(id))
    if mine:
        with noting(mine, "the time of compiling"):
            told = tuple((k, str(v)[:_ROOM]) for k, v in facts.items() if k in _TOLD and v is not None)
            event = (phase, str(name), ns / 1000, threading.get_ident(), id or _current(), told)
            for scope in mine:
                scope.events.append(event)


def _current() -> str:
    import torch

    found = torch._guards.CompileContext.current_compile_id()
    return "" if found is None else str(found)


def _frame(id: str) -> int | None:
    found = re.match(r"(?:!\d+/)?(\d+)/", id)
    return int(found[1]) if found else None


def paired(events: Iterable[Event], began: float) -> tuple[CompileEvent, ...]:
    """Beginnings and ends put together, in the order of the beginnings; one that did not end is left out.

    ``began`` is when the watch did, in microseconds of torch's clock.
    """
    open_: dict[int, list[tuple[int, Event]]] = {}
    threads: dict[int, int] = {}
    found: list[tuple[int, CompileEvent]] = []
    for position, event in enumerate(events):
        phase, name, at, ident, id, told = event
        thread = threads.setdefault(ident, len(threads))
        stack = open_.setdefault(ident, [])
        if phase == "B":
            stack.append((position, event))
        elif phase == "i":
            found.append((position, _event(name, at - began, 0.0, thread, id, told, len(stack))))
        elif phase == "E" and any(e[1] == name for _, e in stack):
            while stack:
                first, begun = stack.pop()
                if begun[1] == name:
                    facts = tuple(dict((*begun[5], *told)).items())
                    made = _event(
                        name, begun[2] - began, at - begun[2], thread, id or begun[4], facts, len(stack)
                    )
                    found.append((first, made))
                    break
    return tuple(event for _, event in sorted(found, key=lambda one: one[0]))


def _event(
    name: str,
    start: float,
    duration: float,
    thread: int,
    id: str,
    told: tuple[tuple[str, str], ...],
    depth: int,
) -> CompileEvent:
    facts = dict(told)
    backward = facts.pop("is_backward", "")
    facts.pop("is_forward", "")
    phase = {"True": "backward", "False": "forward"}.get(backward, "")
    return CompileEvent(
        name, round(start, 1), round(duration, 1), thread, id, phase, tuple(facts.items()), depth
    )
