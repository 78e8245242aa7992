"""The graph breaks of a log: logged ones, and ones that the compile of a resume function proves."""

from __future__ import annotations

import dataclasses
import re

from .. import messages
from ..breaks import BREAK, Ending
from ..graph import Frame
from ..program import FUNCTION_RUNS_EAGERLY, OUTCOME_NOT_KNOWN, Break, ProgramGraph
from .compiles import CompileLog, LoggedCompile, Place

UNREADABLE = "the log's text of it cannot be read"

_PLACE = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d{1,9}), in (?P<function>.+)$')
_REASON_LABEL = "Graph Break Reason: "
_STACK_LABEL = re.compile(r"\n\n?User code traceback:\n")
_TRACEBACK_LABEL = re.compile(r"\n\n?Traceback \(most recent call last\):\n")
_HEADER = re.compile(r"^(?:Encountered graph break|Failed to handle)[^\n]*\n\n")
_ATTRIBUTION_LABEL = re.compile(r"\n\n?Stack variable source attribution:\n")


def logged_break(text: str | None, place: Place, graphs: list[ProgramGraph]) -> Break:
    """Return the graph break that torch's log text describes; ``text`` is ``None`` if unreadable."""
    if text is None:
        return Break(Ending(BREAK, UNREADABLE), outcome=OUTCOME_NOT_KNOWN)
    message = text.partition(_REASON_LABEL)[2] or text
    message, _, stack = _split(_STACK_LABEL, message)
    message = _ATTRIBUTION_LABEL.split(_TRACEBACK_LABEL.split(message, maxsplit=1)[0], maxsplit=1)[0]
    header = _HEADER.match(message)
    own = message[header.end() :] if header else message
    frames = _stack(_TRACEBACK_LABEL.split(stack, maxsplit=1)[0])
    if not frames:
        at = re.match(r"Graph break in user code at (?P<file>.*):(?P<line>\d{1,9})$", text.partition("\n")[0])
        frames = (Frame(at["file"], int(at["line"]), ""),) if at else ()
    inside = [
        i for i, f in enumerate(frames) if (f.file, f.function) == (place[0], messages.plain_name(place[1]))
    ]
    ending = messages.ending(own, frames[inside[0] :] if inside else frames)
    made_of = messages.graph_break(
        message,
        ending,
        ending.reason.partition("\n")[0].strip(),
        messages.break_number(ending.link),
        messages.consequence(own),
    )
    return with_graph(made_of, graphs)


def with_graph(one: Break, graphs: list[ProgramGraph]) -> Break:
    """Return the break with the number of the graph that ended at it."""
    before = graphs[-1].number if graphs and one.outcome != FUNCTION_RUNS_EAGERLY else None
    return dataclasses.replace(one, graph=before)


def _split(at: re.Pattern[str], text: str) -> tuple[str, str, str]:
    match = at.search(text)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, "", "")


def _stack(text: str) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    for line in text.splitlines():
        at = _PLACE.match(line)
        if at:
            frames.append(Frame(at["file"], int(at["line"]), messages.plain_name(at["function"])))
        elif frames and not frames[-1].text and line.strip(" ~^"):
            frames[-1] = dataclasses.replace(frames[-1], text=line.strip())
    return tuple(frames)


def proved_breaks(whole: list[LoggedCompile], log: CompileLog) -> dict[int, Break]:
    """Return graph breaks without a log entry, by the Python ``id`` of the compile. A compile has one if the next
    compile of the same function is the first of a resume function, called by it, and the compile was restarted or is
    the first of its code. So has a later compile with the same restart reasons or the same resume line."""
    next_codes: dict[int, LoggedCompile] = {}
    following: dict[tuple[str, str], LoggedCompile] = {}
    for own in reversed(whole):
        file, name, _ = _place(own, log)
        code = file, messages.plain_name(name)
        if code in following:
            next_codes[id(own)] = following[code]
        following[code] = own
    proved: dict[int, Break] = {}
    known: dict[Place, tuple[list[str], Break]] = {}
    for own in whole:
        if own.breaks or not own.guarded:
            continue
        place, reasons, after = _place(own, log), _restarts(own), next_codes.get(id(own))
        line = _resume_line(own, after, log)
        if line is not None and after is not None and _is_first(after) and (reasons or _is_first(own)):
            proved[id(own)] = _proved(reasons, Frame(place[0], line, messages.plain_name(place[1])))
            known.setdefault(place, (reasons, proved[id(own)]))
        elif place in known and known[place][0] == reasons:
            at = known[place][1].ending.frames[-1].line
            if reasons or line == at:
                proved[id(own)] = known[place][1]
    return proved


def _place(own: LoggedCompile, log: CompileLog) -> Place:
    return log.place_of(own) or ("", "", 0)


def _is_first(own: LoggedCompile) -> bool:
    return own.id.endswith("/0")


def _resume_line(own: LoggedCompile, after: LoggedCompile | None, log: CompileLog) -> int | None:
    """Return the line at which ``after`` resumes the function of ``own``; ``None`` if it does not."""
    if after is None:
        return None
    caller, (file, name, _) = log.caller_of(after), _place(own, log)
    of_torch = bool(log.of_torch) and file.startswith(log.of_torch)
    called = of_torch or caller is None or caller[2] == name
    return messages.resume_line(_place(after, log)[1]) if called else None


def _restarts(own: LoggedCompile) -> list[str]:
    """Return the reason of each restart of a compile; ``""`` for each that is not logged."""
    reasons = (own.metrics or {}).get("restart_reasons")
    if isinstance(reasons, list):
        return [str(reason) for reason in reasons]
    return [""] * own.attempts


def _proved(reasons: list[str], line: Frame) -> Break:
    reason = (reasons[-1].strip("'\"") if reasons else "") or "the log does not give the reason"
    ending = messages.ending(reason, (line,))
    type_ = ending.reason.partition("\n")[0].strip()
    return messages.graph_break(reason, ending, type_, messages.break_number(ending.link), "")
