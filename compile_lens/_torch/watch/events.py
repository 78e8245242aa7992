"""Torch's own events: the times of parts of a compile, and results of its caches."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ...record import claims
from ...record.compile_events import event_details
from ...record.compile_events import paired_events as paired_events
from . import scopes
from .observers import observe, observe_late, observing, place_late
from .scopes import Scope

_LOGGER = "torch._dynamo.utils:ChromiumEventLogger."


@observe(_LOGGER + "_log_timed_event", claims.TIMES)
def timed(
    real: Any, logger: Any, name: str, ns: int, phase: str, metadata: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Record the beginning or end of a part of a compile."""
    result = real(logger, name, ns, phase, metadata, *args, **kwargs)
    _note(phase, name, ns, metadata)
    return result


@observe(_LOGGER + "log_instant_event", claims.CACHES)
def instant(
    real: Any, logger: Any, name: str, ns: int, metadata: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Record an event without duration: a cache hit, a miss, or the reason for using no cache."""
    _note(
        "i",
        name,
        ns,
        metadata if not name.endswith("_cache_disabled") else {**(metadata or {}), **_why_disabled()},
    )
    return real(logger, name, ns, metadata, *args, **kwargs)


def _why_disabled() -> dict[str, str]:
    """Return why no cache is used, which torch does not report."""
    forced = getattr(torch.compiler.config, "force_disable_caches", False)
    why = (
        "torch.compiler.config.force_disable_caches is set, for all caches" if forced else "it is not enabled"
    )
    return {"cache_bypass_reason": why}


LOADS = "torch._functorch._aot_autograd.aot_autograd_result:FxGraphCacheLoadable.load"


def place_loads(mine: Iterable[Scope]) -> None:
    """Install the observer of loads, or record that this torch has no such function."""
    place_late(LOADS, mine)


@observe_late(LOADS, claims.CACHES)
def loads(real: Any, entry: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a lookup of AOTAutograd's cache in Inductor's, which torch counts without an event."""
    try:
        result = real(entry, *args, **kwargs)
    except Exception as error:
        if type(error).__name__ == "FXGraphCacheMiss":
            _note_lookup(entry, "miss")
        raise
    _note_lookup(entry, "hit")
    return result


def _note_lookup(entry: Any, state: str) -> None:
    """Record a lookup as the event that torch emits for Inductor's own lookups."""
    facts = {"cache_state": state, "is_backward": bool(entry._is_backward())}
    _note("i", f"fx_graph_cache_{state}", time.time_ns(), facts)


def _note(phase: str, name: str, ns: int, metadata: Any) -> None:
    evaluation = scopes.current()
    facts: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    id = str(facts.get("compile_id") or "")
    if id == "None":
        id = ""
    mine = evaluation.scopes if evaluation is not None else scopes.owners_of(_frame(id))
    if mine:
        with observing(mine, claims.TIMES):
            now = torch._guards.CompileContext.current_compile_id()
            at = ns / 1000, threading.get_ident(), id or ("" if now is None else str(now))
            for scope in mine:
                number = scope.compiles.get(_id(now), (None, -1))[1]
                of = (("visit", str(number)),) if number >= 0 else ()
                scope.events.append((phase, str(name), *at, (*event_details(facts), *of)))


def remember_compile(mine: Iterable[Scope], compile_id: Any, number: int) -> None:
    """Record the evaluation of a compile by the id object, which its later backward shares. The id's text may also be
    that of another compile if the program resets Dynamo in between."""
    for scope in mine:
        scope.compiles[_id(compile_id)] = compile_id, number


_id = id


def _frame(id: str) -> int | None:
    match = re.match(r"(?:!\d+/)?(\d+)/", id)
    return int(match[1]) if match else None
