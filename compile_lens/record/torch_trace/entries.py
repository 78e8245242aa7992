"""The entries of a structured trace: each a line of JSON followed by the lines of its payload, indented by a tab."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

_HEAD_LINE = re.compile(r"(?:\[rank\d+\]:)?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ .*?:\d+\] (?P<entry>\{.*)")
_CONTEXT_FIELDS = {
    "rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload", "stack", "subgraph_name",
    "timestamp", "pathname", "thread", "lineno", "process",
}  # fmt: skip
"""Fields of an entry that say where it comes from; the remaining field is its kind."""


@dataclass(frozen=True)
class Entry:
    """One entry of a structured trace.

    Attributes:
        kind: torch's name for it; for an artifact, the artifact's name (``recompile_reasons``).
        id: compile id, ``""`` if it belongs to no compile.
        attempt: attempt of the compile, 0 for the first.
        facts: its JSON value.
        payload: its text, ``""`` if it has none or the text is damaged.
        rank: rank of the process, ``None`` without torch.distributed.
    """

    kind: str
    id: str
    attempt: int
    facts: Any
    payload: str
    rank: int | None
    readable: bool = True
    """False if the payload does not match its checksum; ``payload`` is ``""`` then."""


@dataclass
class Damage:
    """Counts of unreadable parts of a log: lines outside any entry, payloads that do not match their checksum, by
    kind, and entries whose values have an unexpected type, by kind."""

    lines: int = 0
    heads: int = 0
    """Number of ``lines`` that begin an entry with unreadable JSON, which is lost."""
    payloads: Counter[str] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)


def entries(lines: Iterable[str], damage: Damage) -> Iterator[Entry]:
    """Yield the entries of a log in order; unreadable parts are counted in ``damage``."""
    head: dict[str, Any] | None = None
    payload: list[str] = []
    for line in lines:
        line = line.removesuffix("\n").removeprefix("\ufeff")
        if line.startswith("\t"):
            if head is None:
                damage.lines += 1
            payload.append(line[1:])
            continue
        if head is not None and payload and not line.strip():
            payload.append("")  # an editor removed the tab
            continue
        if head is not None:
            yield from _entry(head, payload, damage)
        head, payload = _head(line), []
        if head is None and line.strip():
            damage.lines += 1
            damage.heads += _HEAD_LINE.fullmatch(line) is not None
    if head is not None:
        yield from _entry(head, payload, damage)


def _text(lines: list[str], digest: Any) -> str | None:
    """Return the payload that matches the MD5 checksum; None if none does. Tries the lines as they are, without the
    CR that a copy from another system adds, and without trailing empty lines."""
    last = next((i for i in range(len(lines), 0, -1) if lines[i - 1]), 0)
    for own in (lines, lines[:last]):
        for text in ("\n".join(own), "\n".join(line.removesuffix("\r") for line in own)):
            known = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
            if known == digest:
                return text
    return None


def _head(line: str) -> dict[str, Any] | None:
    match = _HEAD_LINE.fullmatch(line)
    try:
        head = json.loads(match["entry"]) if match else None
    except (ValueError, RecursionError):
        return None
    return head if isinstance(head, dict) else None


def _entry(head: dict[str, Any], payload: list[str], damage: Damage) -> Iterator[Entry]:
    kind = next((key for key in head if key not in _CONTEXT_FIELDS), "")
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
    """Return the compile id as torch prints it: ``0/1``, or ``!2/0/1`` within compiled autograd."""
    numbers = [head.get(key) for key in ("compiled_autograd_id", "frame_id", "frame_compile_id")]
    own, frame, form = (n if type(n) is int else None for n in numbers)
    parts = ([f"!{own}"] if own is not None else []) + [str(n) for n in (frame, form) if n is not None]
    return "/".join(parts)
