"""The compiles of a log, each collected from the entries with its compile id."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from ..compile_events import Event, event_details
from ..graph import Frame
from .entries import Damage, Entry
from .generated_code import CODE_KINDS, CodeLog
from .vllm import KINDS as VLLM_KINDS
from .vllm import VllmLog

Place = tuple[str, str, int]
"""File, function name and first line of a code object."""


class LoggedCompile:
    """Contents of the entries of one compile."""

    def __init__(self, id: str, generation: int) -> None:
        self.id = id
        self.code = id.rpartition("/")[0], generation  # shared by all compiles of one code object
        self.place: Place | None = None
        self.stack: list[tuple[str, int, str]] = []  # file, line and function, callers first
        self.metrics: dict[str, Any] | None = None
        self.graphs: list[tuple[int, str | None]] = []  # attempt and printed graph; None: unreadable
        self.breaks: list[str | None] = []  # None: unreadable
        self.reasons: list[str] | None = None  # None: unreadable
        self.again = False
        self.guarded = False
        self.guards = ""
        self.symbols: list[tuple[int, dict[str, Any]]] = []  # attempt and torch's facts about the symbol
        self.fixed: list[tuple[int, dict[str, Any]]] = []  # attempt and facts about a specialized symbol
        self.sources: list[str] = []
        self.attempts = 0
        self.exports_before = 0


class CompileLog:
    """Contents of a log by compile, in the order in which the compiles begin."""

    def __init__(self) -> None:
        self.compiles: list[LoggedCompile] = []
        self._current: dict[
            str, LoggedCompile
        ] = {}  # by compile id, which torch reuses after torch._dynamo.reset()
        self._generations: Counter[str] = Counter()
        self.code, self.vllm = CodeLog(), VllmLog()
        self.files: dict[int, str] = {}  # torch writes each file name once and refers to it by number
        self.events: list[Event] = []
        self.announced: Counter[tuple[str, str]] = Counter()  # cache events by name and compile id
        self.rank: int | None = None
        self.other_ranks: set[int] = set()
        self.torch = self.python = self.triton = ""
        self.limit = 0  # torch._dynamo.config.recompile_limit
        self.read = 0

    def has_gaps(self) -> bool:
        """Return True if a number is missing between those that torch gives in order: to the names of files and, in a
        log with an event for each compile, to frames and to the compiles of each."""
        numbers: dict[str, set[int]] = {"file": set(self.files)}
        for id in (event[4] for event in self.events):
            frame, _, own = id.partition("/")
            if frame.isdecimal() and own.isdecimal():
                numbers.setdefault("frame", set()).add(int(frame))
                numbers.setdefault(id[: len(frame) + 1], set()).add(int(own))
        return any(max(each) >= len(each) for each in numbers.values() if each)

    def compile(self, id: str) -> LoggedCompile:
        """Return the current compile with this id; create it if there is none."""
        if id not in self._current:
            self._current[id] = LoggedCompile(id, self._generations[id.rpartition("/")[0]])
            self.compiles.append(self._current[id])
        return self._current[id]

    def begin(self, id: str) -> LoggedCompile:
        """Return the unfinished compile with this id; create one if there is none or its metrics were written."""
        if id in self._current and self._current[id].metrics is not None:
            del self._current[id]
            frame, _, entry = id.rpartition("/")
            self._generations[frame] += entry == "0"
        return self.compile(id)

    def end_export(self) -> None:
        """Move compiles that have a graph, but no start and no metrics, to the exports: torch writes the metrics of a
        strict export without the compile id of its graph."""
        for own in [
            own for own in self._current.values() if own.graphs and own.place is None and own.metrics is None
        ]:
            del self._current[own.id]
            self.compiles.remove(own)
            self.code.note_traced(own.graphs[-1][1], own.sources, own.exports_before)

    def place_of(self, own: LoggedCompile) -> Place | None:
        """Return where the code is defined; a compile without a place takes that of another compile of its code."""
        if own.place is not None:
            return own.place
        return next((c.place for c in self.compiles if c.place and c.code == own.code), None)

    def caller_of(self, own: LoggedCompile) -> tuple[str, int, str] | None:
        """Return file, line and function of the program's frame that called the code; ``None`` if unknown."""
        place, of_torch = self.place_of(own), self.of_torch
        if place is None or not of_torch:
            return None
        last = own.stack and own.stack[-1] == (place[0], place[2], place[1])
        for at in reversed(own.stack[:-1] if last else own.stack):
            if (
                at[0]
                and not at[0].startswith(of_torch)
                and _COMPILE_LENS_FILES not in at[0].replace("\\", "/")
            ):
                return at
        return None

    @cached_property
    def of_torch(self) -> str:
        """Torch's package folder as the log writes it; ``""`` if no file name shows it."""
        ours = (name for name in self.files.values() if name.endswith(_TORCH_FILE))
        return next((name.removesuffix(_TORCH_FILE) for name in ours), "")


_COMPILE_LENS_FILES = "/compile_lens/_torch/"
_TORCH_FILE = "_dynamo/convert_frame.py"


def compile_log(entries: Iterable[Entry], damage: Damage) -> CompileLog:
    """Return the compiles that the entries describe. Entries of an unexpected format are counted in ``damage``."""
    log = CompileLog()
    for entry in entries:
        log.read += 1
        log.rank = entry.rank if log.rank is None else log.rank
        if entry.rank not in (None, log.rank):
            log.other_ranks.add(entry.rank)
            continue
        try:
            _note(log, entry)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
            damage.entries[entry.kind] += 1
    return log


def _note(log: CompileLog, entry: Entry) -> None:
    kind, facts, payload = entry.kind, entry.facts, entry.payload
    text = payload if entry.readable else None
    if text is None and kind in _PAYLOAD_ONLY_KINDS:
        return
    if kind == "str":
        name, number = facts
        log.files[int(number)] = str(name)
    elif kind == "torch_version":
        log.torch = str(json.loads(payload)["pytorch_version"])
    elif kind == "chromium_event":
        log.events.append(event := _event(json.loads(payload), entry.id))
        log.announced[event[1], event[4]] += event[1] in _CACHE_LOOKUP_KINDS
    elif kind in _CACHE_LOOKUP_KINDS:
        _record_cache_lookup(log, entry)
    elif kind == "dynamo_start" and "/" not in entry.id:
        raise ValueError("a compile without an id")
    elif not entry.id or kind in (*CODE_KINDS, *VLLM_KINDS):
        if kind in (*VLLM_KINDS, "graph_dump"):
            log.vllm.note(entry)
        log.code.note(entry, log.files)
        if kind == "compilation_metrics":
            log.end_export()
        if kind == "inductor_output_code":
            log.vllm.note_module(entry.id, len(log.code) - 1)
    elif kind == "dynamo_start":
        own = log.begin(entry.id) if not entry.attempt else log.compile(entry.id)
        own.stack = stack_of(log, facts["stack"])
        file, line, function = own.stack[-1]
        own.place = file, function, line
    elif kind == "compilation_metrics":
        own = log.begin(entry.id)
        own.attempts = entry.attempt
        _metrics(log, own, dict(facts))
    elif kind == "dynamo_graph_break_reason":
        log.compile(entry.id).breaks.append(text)
    elif kind == "recompile_reasons":
        own = log.begin(entry.id)
        own.again = True
        if text is not None:
            reasons = json.loads(text) if text.startswith("[") else [text]
            own.reasons = [str(reason) for reason in reasons]
    elif kind == "dynamo_output_graph":
        own = log.compile(entry.id)
        own.graphs.append((entry.attempt, text))
        own.exports_before = log.code.exports
    elif kind in ("dynamo_cpp_guards_str", "dynamo_guards"):
        own = log.compile(entry.id)
        own.guarded = True
        own.guards = payload if kind == "dynamo_cpp_guards_str" else own.guards
    elif kind == "create_symbol":
        log.compile(entry.id).symbols.append((entry.attempt, dict(facts)))
    elif kind == "symbolic_shape_specialization":
        frames = facts.get("user_stack") or ()
        texts = (str(frame.get("loc") or "") for frame in frames)
        lines = [Frame(*at, text) for at, text in zip(stack_of(log, frames), texts, strict=True)]
        log.compile(entry.id).fixed.append((entry.attempt, {**facts, "user_stack": lines}))
    elif kind == "describe_source":
        log.compile(entry.id).sources.append(str(facts["source"]))


def stack_of(log: CompileLog, frames: Iterable[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Return file, line and function of each logged frame."""
    return [(log.files.get(int(f["filename"]), ""), int(f["line"]), str(f["name"])) for f in frames]


_PAYLOAD_ONLY_KINDS = ("torch_version", "chromium_event")
"""Kinds of entries whose only content is their payload."""


def _metrics(log: CompileLog, own: LoggedCompile, facts: dict[str, Any]) -> None:
    own.metrics = facts
    file, function, line = (facts.get(key) for key in ("co_filename", "co_name", "co_firstlineno"))
    if isinstance(file, str) and isinstance(function, str) and type(line) is int:
        own.place = file, function, line  # the stack that an older torch logs ends at the calling line
    log.torch = log.torch or str(facts.get("pytorch_version") or "")
    log.python = log.python or str(facts.get("python_version") or "").partition(" ")[0]
    log.triton = log.triton or str(facts.get("triton_version") or "")
    match = re.search(r'"recompile_limit": (\d{1,6})', str(facts.get("dynamo_config") or ""))
    if match:
        log.limit = int(match[1])


_CACHE_LOOKUP_KINDS = ("fx_graph_cache_hit", "fx_graph_cache_miss")


def _record_cache_lookup(log: CompileLog, entry: Entry) -> None:
    """Record a lookup in Inductor's graph cache. Torch writes an event before this entry, which then is skipped;
    lookups that AOTAutograd makes for an entry of its own cache have no such event."""
    if log.announced[entry.kind, entry.id]:
        log.announced[entry.kind, entry.id] -= 1
        return
    if not entry.readable and not log.events:
        return
    facts = json.loads(entry.payload) if entry.readable else {}
    at = float(facts["cache_event_time"]) / 1000 if entry.readable else log.events[-1][2]
    if not math.isfinite(at):
        raise ValueError(f"a time of {at}")
    log.events.append(
        ("i", entry.kind, at, log.events[-1][3] if log.events else 0, entry.id, event_details(facts))
    )


def _event(facts: dict[str, Any], id: str) -> Event:
    detail = facts.get("args")
    detail = detail if isinstance(detail, dict) else {}
    own = str(detail.get("compile_id") or "")
    at = float(facts["ts"])
    if not math.isfinite(at):
        raise ValueError(f"a time of {at}")
    return (
        str(facts["ph"]),
        str(facts["name"]),
        at,
        int(facts["tid"]),
        id if own in ("", "None") else own,
        event_details(detail),
    )
