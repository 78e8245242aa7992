"""The entries of a structured trace: a line of JSON, and the lines of its payload, each behind a tab."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

_LINE = re.compile(r"(?:\[rank\d+\]:)?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ .*?:\d+\] (?P<entry>\{.*)")
_CONTEXT = {
    "rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload", "stack", "subgraph_name",
    "timestamp", "pathname", "thread", "lineno", "process",
}  # fmt: skip
"""Fields of an entry that place it, rather than describe it."""


@dataclass(frozen=True)
class Entry:
    """One entry.

    Attributes:
        kind: torch's name of it; of an artifact the artifact's own (``recompile_reasons``).
        id: compile id, ``""`` of what is of no compile.
        attempt: which attempt of the compile it is of.
        facts: what the entry says, as JSON.
        payload: its text, ``""`` where it has none, or it cannot be read.
        rank: of the process, ``None`` where torch.distributed is not in use.
    """

    kind: str
    id: str
    attempt: int
    facts: Any
    payload: str
    rank: int | None
    readable: bool = True
    """False where the checksum of the text is another one: that there is a text is known, and not what it says."""


@dataclass
class Damage:
    """Unreadable parts of a log: lines that are no entry, payloads that are not what was written, and entries with a
    part of another type than torch writes."""

    lines: int = 0
    heads: int = 0
    """Of ``lines``, those with which an entry begins: it is lost."""
    payloads: Counter[str] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)


def entries(lines: Iterable[str], damage: Damage) -> Iterator[Entry]:
    """The entries of a log, in order; what cannot be read is counted in ``damage``."""
    held: dict[str, Any] | None = None
    payload: list[str] = []
    for line in lines:
        line = line.removesuffix("\n").removeprefix("\ufeff")
        if line.startswith("\t"):
            if held is None:
                damage.lines += 1
            payload.append(line[1:])
            continue
        if held is not None and payload and not line.strip():
            payload.append("")  # an editor removed the tab
            continue
        if held is not None:
            yield from _entry(held, payload, damage)
        held, payload = _head(line), []
        if held is None and line.strip():
            damage.lines += 1
            damage.heads += _LINE.fullmatch(line) is not None
    if held is not None:
        yield from _entry(held, payload, damage)


def _text(lines: list[str], digest: Any) -> str | None:
    """Return the text of which a checksum is; None if it is of none. A log that was copied from another system ends
    its lines in CR LF, and torch may have written a CR of the program's; empty lines may follow."""
    last = next((i for i in range(len(lines), 0, -1) if lines[i - 1]), 0)
    for own in (lines, lines[:last]):
        for text in ("\n".join(own), "\n".join(line.removesuffix("\r") for line in own)):
            known = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
            if known == digest:
                return text
    return None


def _head(line: str) -> dict[str, Any] | None:
    match = _LINE.fullmatch(line)
    try:
        head = json.loads(match["entry"]) if match else None
    except (ValueError, RecursionError):
        return None
    return head if isinstance(head, dict) else None


def _entry(head: dict[str, Any], payload: list[str], damage: Damage) -> Iterator[Entry]:
    kind = next((key for key in head if key not in _CONTEXT), "")
    facts = head.get(kind)
    if kind == "artifact" and isinstance(facts, dict):
        kind = str(facts.get("name", ""))
    digest = head.get("has_payload")
    text = "\n".join(payload) if digest is None else _text(payload, digest)
    if text is None:
        damage.payloads[kind] += 1
    attempt, rank = head.get("attempt"), head.get("rank")
    yield Entry(
        kind,
        _id(head),
        attempt if type(attempt) is int else 0,
        facts,
        text or "",
        rank if type(rank) is int else None,
        text is not None,
    )


def _id(head: dict[str, Any]) -> str:
    """The compile id as torch writes it: ``0/1``, ``!2/0/1`` of a part of compiled autograd."""
    numbers = [head.get(key) for key in ("compiled_autograd_id", "frame_id", "frame_compile_id")]
    own, frame, form = (n if type(n) is int else None for n in numbers)
    parts = ([f"!{own}"] if own is not None else []) + [str(n) for n in (frame, form) if n is not None]
    return "/".join(parts)
