"""What the compiler's caches said while a program compiled: which were hit or missed, and why one was passed by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compile_lens.record.program import ProgramRecord

NAMES = {
    "autograd_cache": "AOTAutograd",
    "fx_graph_cache": "Inductor's FX graphs",
}
"""In words, of those that torch's events name; another is told by its own name."""

_EVENT = re.compile(r"(?P<cache>\w+_cache)_(?P<what>hit|miss|bypass|disabled)")


@dataclass(frozen=True)
class Cache:
    """How often one cache was asked, as torch's own counters have it: what AOTAutograd's cache has stands in part in
    that of Inductor's graphs, which is asked for each of them then.

    Attributes:
        name: in words, or as torch names it.
        hits, misses: graphs that it had, and had not.
        bypassed: graphs that it was not asked for.
        why: torch's reasons for that, and what it says of misses, each once.
        disabled: graphs for which it was switched off.
    """

    name: str
    hits: int
    misses: int
    bypassed: int
    why: tuple[str, ...] = ()
    disabled: int = 0


def caches(program: ProgramRecord) -> tuple[Cache, ...]:
    """The caches of which torch reported anything, in the order of the first report."""
    counts: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for event in program.events:
        found = _EVENT.fullmatch(event.name)
        if found is None:
            continue
        name = NAMES.get(found["cache"], found["cache"])
        own = counts.setdefault(name, dict.fromkeys(("hit", "miss", "bypass", "disabled"), 0))
        own[found["what"]] += 1
        facts = dict(event.detail)
        why = facts.get("cache_bypass_reason", "") if found["what"] in ("bypass", "disabled") else ""
        if found["what"] == "miss":
            why = facts.get("cache_status_detailed", "").replace("_", " ")
        if why:
            reasons.setdefault(name, {})[why] = None
    return tuple(
        Cache(name, own["hit"], own["miss"], own["bypass"], tuple(reasons.get(name, ())), own["disabled"])
        for name, own in counts.items()
    )
