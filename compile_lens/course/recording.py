"""Recordings of a device: scenes recorded once on an NVIDIA GPU, for machines without one.

``tutorials/record_device.py`` wrote the file next to this one there. Opening it runs no code, and every view of it
states that it was recorded, and on which device.
"""

from __future__ import annotations

import difflib
import functools
import json
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..layout.text import columns
from ..views.drawing.lanes import Bar, Chart, Lane, to_svg
from . import wording

FILE = Path(__file__).with_name("recorded.json")
FORMAT = 1

_COLUMNS = 64
"""Columns of a lane in a terminal."""

_MESSAGE_COLUMNS = 96
"""Columns of a message."""


@dataclass(frozen=True)
class Event:
    """A span of a scene, in seconds from its start.

    ``what`` is ``"part"`` (an annotated part of the program), ``"ask"`` (Python submits work to a queue), ``"wait"``
    (Python waits for the device), ``"work"`` (a kernel or a memset) or ``"copy"``. ``stream`` is the device's queue,
    counted from 1, for work and copies; ``part`` the part in which Python submitted it.
    """

    what: str
    name: str
    start: float
    seconds: float
    stream: int = 0
    part: str = ""

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass(frozen=True)
class Made:
    """Origin of a recording: device, versions, day, and the command that recorded it."""

    device: str
    torch: str
    cuda: str
    driver: str | None
    python: str
    system: str
    date: str
    command: str


class _Figure:
    """Figure of one or more scenes for a notebook."""

    @property
    def scenes(self) -> tuple[Recorded, ...]:
        raise NotImplementedError

    @property
    def svg(self) -> str:
        """The drawing as an SVG document: Python's lanes above the device's streams."""
        charts = [scene._chart() for scene in self.scenes]
        about = " ".join(f"{wording.scene(s.name)}: {' '.join(s._sentences())}" for s in self.scenes)
        return to_svg(charts, about=about, stamp=self.scenes[0].origin)

    def __repr__(self) -> str:
        longest = max(scene.seconds for scene in self.scenes)
        lines = [line for scene in self.scenes for line in scene._lines(longest)]
        return "\n".join([*lines, self.scenes[0].origin])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.svg, "text/plain": repr(self)}


@dataclass(frozen=True, repr=False)
class Recorded(_Figure):
    """One scene of the recording: clock readings, and the events of one run under the profiler.

    Attributes:
        name: name of the scene.
        made: origin of the recording.
        readings: clock readings without a profiler, in seconds, for each timed part.
        events: events of one run under the profiler, which slows Python down, not the device.
    """

    name: str
    made: Made
    readings: dict[str, tuple[float, ...]]
    events: tuple[Event, ...]

    @property
    def scenes(self) -> tuple[Recorded, ...]:
        return (self,)

    def beside(self, *others: str | Recorded | Beside) -> Beside:
        """Return this scene and others, given by name or as scenes, drawn on one time scale.

        Raise ``UsageError`` for an unknown name, or without another scene.
        """
        if not others:
            raise UsageError(wording.message("beside what"))
        figures = (other.scenes if isinstance(other, _Figure) else (recorded(other),) for other in others)
        return Beside((self, *(scene for scenes in figures for scene in scenes)))

    @property
    def origin(self) -> str:
        """Last sentence of every view: the device and script of the recording, and that it was not measured here."""
        facts = vars(self.made) | {"script": self.made.command.split()[1]}
        return wording.message("recorded with driver" if self.made.driver else "recorded", **facts)

    def quartiles(self, part: str) -> tuple[float, float, float]:
        """Return the lower quartile, the median and the upper quartile of a part's clock readings, in seconds.

        Raise ``UsageError`` for a part that was not timed.
        """
        if part not in self.readings:
            raise UsageError(
                wording.message("no readings", name=self.name, part=part, there=_listed(self.readings))
            )
        low, middle, high = statistics.quantiles(self.readings[part], n=4)
        return low, middle, high

    def median(self, part: str) -> float:
        """Return the median of a part's clock readings in seconds; raise ``UsageError`` if it was not timed."""
        return self.quartiles(part)[1]

    @property
    def seconds(self) -> float:
        """Duration of the run under the profiler, in seconds."""
        return max((event.end for event in self.events), default=0.0)

    def of(self, what: str, stream: int = 0) -> tuple[Event, ...]:
        """Return the events of one kind, in one stream or all (0)."""
        return tuple(e for e in self.events if e.what == what and stream in (0, e.stream))

    @property
    def streams(self) -> int:
        """Number of the device's streams that had work."""
        return max((event.stream for event in self.events), default=0)

    @property
    def waited(self) -> float:
        """Time that Python waited for the device, in seconds."""
        return _length(self.of("wait"))

    @property
    def working(self) -> float:
        """Time that the device was busy in any stream, in seconds."""
        return _length(self._on_device())

    @property
    def busy(self) -> float:
        """Share of busy time between the device's first and last work, from 0 to 1."""
        work = self._on_device()
        lasted = max(e.end for e in work) - min(e.start for e in work)
        return self.working / lasted

    @property
    def overlap(self) -> float:
        """Time that at least two streams of the device were busy at once, in seconds."""
        each = [_merged_spans(self._on_device(stream)) for stream in range(1, self.streams + 1)]
        edges = sorted((t, step) for spans in each for a, b in spans for t, step in ((a, 1), (b, -1)))
        total, depth, since = 0.0, 0, 0.0
        for time, step in edges:
            total += time - since if depth > 1 else 0.0
            depth, since = depth + step, time
        return total

    def took(self, part: str) -> float:
        """Return the seconds that the device worked on launches of a part, whenever they ran."""
        parts = {event.name for event in self.of("part")}
        if part not in parts:
            raise UsageError(
                wording.message("no part", name=self.name, part=part, there=_listed(sorted(parts)))
            )
        return _length([event for event in self._on_device() if event.part == part])

    def _on_device(self, stream: int = 0) -> tuple[Event, ...]:
        return self.of("work", stream) + self.of("copy", stream)

    def _sentences(self) -> list[str]:
        """Return the description in words, a sentence each."""
        parts = []
        for part in self.readings:
            low, middle, high = (_milliseconds(seconds) for seconds in self.quartiles(part))
            parts.append(f"{wording.of_scene(part)} {middle} [{low}–{high}] ms")
        rounds = len(next(iter(self.readings.values())))
        clock = "events" if self.name == "three events" else "clock"
        sentences = [wording.message(clock, parts=wording.message(", ").join(parts), rounds=rounds)]
        seen = {
            "asks": wording.message(
                "once" if len(self.of("ask")) == 1 else "times", count=len(self.of("ask"))
            ),
            "waited": _milliseconds(self.waited),
            "working": _milliseconds(self.working),
            "busy": f"{100 * self.busy:.0f}" if self.busy < 0.995 else ">99",
        }
        sentences.append(wording.message("under the profiler", **seen))
        if self.streams > 1:
            overlap = _milliseconds(self.overlap)
            sentences.append(wording.message("at once", overlap=overlap))
        elif _length(self.of("copy")) > self.working / 100:
            sentences.append(wording.message("one at a time"))
        return sentences

    def _lanes(self) -> list[tuple[str, tuple[Event, ...]]]:
        rows = [(wording.message(f"lane {what}"), self.of(what)) for what in ("part", "ask", "wait")]
        for stream in range(1, self.streams + 1):
            # Short events are drawn over long ones.
            work = sorted(self._on_device(stream), key=lambda event: -event.seconds)
            rows.append((wording.message("lane stream", stream=stream), tuple(work)))
        return [(name, events) for name, events in rows if events]

    def _chart(self) -> Chart:
        lanes = [Lane(name, tuple(map(_bar, events))) for name, events in self._lanes()]
        return Chart(wording.scene(self.name), tuple(self._sentences()), tuple(lanes))

    def _lines(self, longest: float) -> list[str]:
        rows = self._lanes()
        room = max(columns(name) for name, _ in rows)
        lanes = [f"  {name}{' ' * (room - columns(name))}  {_row(events, longest)}" for name, events in rows]
        return [wording.scene(self.name), *(f"  {sentence}" for sentence in self._sentences()), *lanes]


@dataclass(frozen=True, repr=False)
class Beside(_Figure):
    """Several scenes on one time scale."""

    shown: tuple[Recorded, ...]

    @property
    def scenes(self) -> tuple[Recorded, ...]:
        return self.shown


def recorded(name: str) -> Recorded:
    """Return a scene of the recording from an NVIDIA GPU; nothing is run or measured here.

    A notebook shows it as a timeline: Python's submissions and waits above the work of the device's streams. Its
    numbers are in seconds: ``median`` and ``quartiles`` of clock readings, the time that Python ``waited``, the time
    that the device was ``working``, the share of the time that it was ``busy``, the ``overlap`` of its streams, and the
    time that it ``took`` for the launches of a part. ``recorded("one stream").beside("two streams")`` draws both on one
    scale.

    Raise ``UsageError`` for an unknown name; the message lists the valid ones.
    """
    data = _data()
    if not isinstance(name, str) or name not in data["scenes"]:
        raise UsageError(_unknown(name, data["scenes"]))
    readings = {part: tuple(seconds) for part, seconds in data["readings"][name].items()}
    return Recorded(name, Made(**data["made"]), readings, events(data["scenes"][name]["events"]))


def _unknown(name: object, there: Iterable[str]) -> str:
    """Return the error for an unknown scene, with a suggestion and all names; no name is split between lines."""
    close = difflib.get_close_matches(name.lower(), list(there), 1) if isinstance(name, str) else []
    meant = wording.message("meant", close=close[0]) if close else ""
    names = ", ".join(repr(scene).replace(" ", "\N{NO-BREAK SPACE}") for scene in there)
    text = textwrap.fill(wording.message("no scene", name=name, meant=meant, there=names), _MESSAGE_COLUMNS)
    return text.replace("\N{NO-BREAK SPACE}", " ")


@functools.cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if data.get("format") != FORMAT:
        raise UsageError(f"{FILE.name} has the format {data.get('format')!r}; this version reads {FORMAT}")
    return data


def events(rows: Sequence[dict[str, Any]]) -> tuple[Event, ...]:
    """Return the events of a scene from its rows in the file: from the first annotated part on, in seconds."""
    start = min((row["ts"] for row in rows if row["cat"] == "user_annotation"), default=0.0)
    kept = [row for row in rows if row["ts"] >= start and _event_kind(row)]
    numbers = {stream: n for n, stream in enumerate(sorted({r["stream"] for r in kept if "stream" in r}), 1)}
    parts = [(r["ts"], r["ts"] + r["dur"], r["name"]) for r in kept if _event_kind(r) == "part"]
    launched_by = {
        r["correlation"]: _within(r["ts"], parts)
        for r in kept
        if _event_kind(r) == "ask" and "correlation" in r
    }
    return tuple(
        Event(
            _event_kind(row),
            row["name"],
            (row["ts"] - start) / 1e6,
            row["dur"] / 1e6,
            numbers.get(row.get("stream"), 0),
            launched_by.get(row.get("correlation"), "") if "stream" in row else "",
        )
        for row in kept
    )


def _event_kind(row: dict[str, Any]) -> str:
    """Return the kind of an event; ``""`` for calls that neither launch work nor wait (events in a stream)."""
    if row["cat"] == "user_annotation":
        return "part"
    if row["cat"] == "gpu_memcpy":
        return "copy"
    if row["cat"] in ("kernel", "gpu_memset"):
        return "work"
    if "Synchronize" in row["name"]:
        return "wait"
    return "ask" if any(word in row["name"] for word in ("Launch", "Memcpy", "Memset")) else ""


def _within(time: float, parts: Iterable[tuple[float, float, str]]) -> str:
    return next((name for start, end, name in parts if start <= time <= end), "")


def _merged_spans(events: Iterable[Event]) -> list[tuple[float, float]]:
    """Return the disjoint spans that the events cover, in order."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted((event.start, event.end) for event in events):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def _length(events: Iterable[Event]) -> float:
    return sum(end - start for start, end in _merged_spans(events))


def _bar(event: Event) -> Bar:
    part = event.name if event.what == "part" else event.part
    named = wording.of_scene(part) if part else ""
    label = {"ask": "", "wait": wording.message("waits"), "copy": wording.message("copy")}.get(
        event.what, named
    )
    about = named if event.what == "part" else f"{event.name} ({named})" if named else event.name
    return Bar(event.start, event.seconds, event.what, label, f"{about}: {_milliseconds(event.seconds)} ms")


def _row(events: Iterable[Event], longest: float) -> str:
    """Return a lane as text: a column is filled if an event overlaps it."""
    row = ["·"] * _COLUMNS
    for event in events:
        first = min(int(_COLUMNS * event.start / longest), _COLUMNS - 1)
        last = min(int(_COLUMNS * event.end / longest), _COLUMNS - 1)
        row[first : last + 1] = "█" * (last + 1 - first)
    return "".join(row)


def _milliseconds(seconds: float) -> str:
    """Return milliseconds with three digits, without an exponent."""
    value = 1e3 * seconds
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
