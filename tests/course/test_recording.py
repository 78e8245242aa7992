"""A recording of a device: its numbers, recomputed by hand from the file, and its display."""

from __future__ import annotations

import copy
import itertools
import json
import re
import statistics
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from bilingual import is_chinese, numbers_in_chinese, numbers_in_english

import compile_lens
from compile_lens import course
from compile_lens.course import chinese as chinese_texts
from compile_lens.course import recording, wording
from compile_lens.errors import UsageError

ROOT = Path(__file__).parents[2]
PACKAGE = Path(compile_lens.__file__).parent
DATA: dict[str, Any] = json.loads((PACKAGE / "course" / "recorded.json").read_text(encoding="utf-8"))
NAMES = list(DATA["scenes"])
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
SVG = "{http://www.w3.org/2000/svg}"


def raw(name: str) -> list[dict[str, Any]]:
    """Return the events of the file from the first annotated part on."""
    rows = DATA["scenes"][name]["events"]
    start = min(row["ts"] for row in rows if row["cat"] == "user_annotation")
    return [row for row in rows if row["ts"] >= start]


def covered(rows: list[dict[str, Any]], least: int = 1) -> float:
    """Return the microseconds with work in at least ``least`` streams: each stretch between two edges by itself."""
    edges = sorted({edge for row in rows for edge in (row["ts"], row["ts"] + row["dur"])})
    total = 0.0
    for start, end in itertools.pairwise(edges):
        middle = (start + end) / 2
        streams = {row.get("stream") for row in rows if row["ts"] < middle < row["ts"] + row["dur"]}
        total += end - start if len(streams) >= least else 0.0
    return total


@pytest.fixture
def chinese() -> Iterator[None]:
    course.language("zh")
    yield
    course.language("en")


@pytest.fixture(params=["en", "zh"])
def chinese_or_not(request: pytest.FixtureRequest) -> Iterator[str]:
    course.language(request.param)
    yield request.param
    course.language("en")


# Numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_its_numbers_are_those_of_the_events(name: str) -> None:
    scene = course.recorded(name)
    device = [row for row in raw(name) if row["cat"] in DEVICE]
    waits = [row for row in raw(name) if "Synchronize" in row["name"] and row["cat"].startswith("cuda")]
    asks = [row for row in raw(name) if re.search("Launch|Memcpy|Memset", row["name"]) and row not in device]
    first, last = min(r["ts"] for r in device), max(r["ts"] + r["dur"] for r in device)
    assert scene.working == pytest.approx(covered(device) / 1e6)
    assert scene.busy == pytest.approx(covered(device) / (last - first))
    assert scene.overlap == pytest.approx(covered(device, least=2) / 1e6, abs=1e-12)
    assert scene.waited == pytest.approx(covered(waits) / 1e6)
    assert len(scene.of("ask")) == len(asks)
    assert scene.streams == len({row["stream"] for row in device})
    assert len(scene.of("work")) + len(scene.of("copy")) == len(device)


@pytest.mark.parametrize("name", NAMES)
def test_its_readings_are_those_of_the_clock(name: str) -> None:
    scene = course.recorded(name)
    assert {part: list(seconds) for part, seconds in scene.readings.items()} == DATA["readings"][name]
    for part, seconds in DATA["readings"][name].items():
        low, middle, high = scene.quartiles(part)
        assert middle == scene.median(part) == pytest.approx(statistics.median(seconds))
        assert [low, high] == pytest.approx(list(numpy.quantile(seconds, [0.25, 0.75], method="weibull")))


def test_work_belongs_to_the_part_that_asked_for_it() -> None:
    """A product requested in one part runs while Python is in the next one."""
    scene = course.recorded("clock alone")
    launch = {row["correlation"]: row["ts"] for row in raw("clock alone") if row["cat"].startswith("cuda")}
    (product,) = [row for row in raw("clock alone") if row["name"] == "product"]
    work = [
        row
        for row in raw("clock alone")
        if row["cat"] in DEVICE
        and product["ts"] <= launch[row["correlation"]] <= product["ts"] + product["dur"]
    ]
    assert work and scene.took("product") == pytest.approx(covered(work) / 1e6)
    (part,) = [event for event in scene.of("part") if event.name == "product"]
    longest = max(scene.of("work"), key=lambda event: event.seconds)
    assert longest.part == "product" and longest.end > part.end, "it is done after Python has left the part"


def test_streams_are_counted_from_one_and_apart() -> None:
    rows = [
        {"cat": "user_annotation", "name": "load", "ts": 10.0, "dur": 5.0},
        {"cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": 11.0, "dur": 1.0, "correlation": 1},
        {"cat": "cuda_runtime", "name": "cudaEventRecord", "ts": 13.0, "dur": 1.0, "correlation": 2},
        {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 14.0, "dur": 8.0, "stream": 20, "correlation": 1},
        {"cat": "kernel", "name": "k", "ts": 20.0, "dur": 8.0, "stream": 7, "correlation": 9},
    ]
    early = {"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": 1.0, "dur": 2.0, "correlation": 5}
    load, ask, copied, work = recording.events([early, *rows])
    assert [e.what for e in (load, ask, copied, work)] == ["part", "ask", "copy", "work"]
    assert (copied.stream, work.stream) == (2, 1) and (copied.part, work.part) == ("load", "")
    scene = recording.Recorded(
        "two streams", course.recorded("two streams").made, {}, (load, ask, copied, work)
    )
    assert scene.overlap == pytest.approx(2e-6) and scene.working == pytest.approx(14e-6)
    assert scene.busy == pytest.approx(1.0) and load.start == 0.0


def test_a_wrong_name_is_told_the_right_ones() -> None:
    with pytest.raises(
        UsageError, match=r"there is no scene 'matmul'; there are 'clock alone', 'after waiting'"
    ):
        course.recorded("matmul")
    with pytest.raises(UsageError, match="no scene 'matmul'"):
        course.recorded("clock alone").beside("matmul")
    with pytest.raises(
        UsageError, match=r"'clock alone' has no readings of 'mean'; there are 'product', 'sum'"
    ):
        course.recorded("clock alone").median("mean")
    with pytest.raises(UsageError, match=r"'clock alone' has no part 'mean'; there are 'product', 'sum'"):
        course.recorded("clock alone").took("mean")


def test_a_near_name_is_meant_and_no_line_is_long(chinese_or_not: str) -> None:
    with pytest.raises(UsageError) as raised:
        course.recorded("Clock alone")
    text = str(raised.value)
    meant = {"en": "did you mean 'clock alone'?", "zh": "你是不是想用 'clock alone'？"}
    assert meant[chinese_or_not] in text and is_chinese(text) == (chinese_or_not == "zh")
    assert all(repr(name) in text for name in NAMES) and max(map(len, text.splitlines())) <= 96
    with pytest.raises(UsageError) as raised:
        course.recorded(["clock alone"])  # type: ignore[arg-type]
    assert "mean" not in str(raised.value) and "['clock alone']" in str(raised.value)
    with pytest.raises(UsageError, match=r"^beside\(\)"):
        course.recorded("clock alone").beside()


def test_scenes_stand_beside_names_and_scenes() -> None:
    one, two, three = map(course.recorded, ("one stream", "two streams", "eager"))
    assert one.beside(two).scenes == one.beside("two streams").scenes == (one, two)
    assert one.beside(two.beside("eager")).scenes == (one, two, three)


def test_one_launch_is_asked_for_once() -> None:
    assert "Python submits work once, waits" in repr(course.recorded("compiled"))
    assert "Python submits work 5 times, waits" in repr(course.recorded("eager"))


# The file ------------------------------------------------------------------------------------------------------


def test_it_is_a_file_of_the_package_that_the_script_wrote() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^compile_lens = (\[.*\])$", project.partition("package-data]")[2], re.M)
    assert any(recording.FILE in PACKAGE.glob(pattern) for pattern in json.loads(listed))
    assert recording.FILE.stat().st_size < 100_000
    assert DATA["format"] == recording.FORMAT and list(DATA["readings"]) == NAMES == list(wording.SCENES)
    script = DATA["made"]["command"].split()[1]
    assert (ROOT / script).is_file()
    assert not re.search(r"/(root|home|work|tmp)\b", json.dumps(DATA))


def test_a_file_of_another_form_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recorded.json").write_text(json.dumps({"format": 99}))
    monkeypatch.setattr(recording, "FILE", tmp_path / "recorded.json")
    recording._data.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"recorded\.json has the format 99; this version reads 1"):
            course.recorded("clock alone")
    finally:
        recording._data.cache_clear()


def test_what_is_shown_is_no_part_of_the_data() -> None:
    before = copy.deepcopy(recording._data())
    scene = course.recorded("two streams")
    scene.readings["loop"] = ()
    assert recording._data() == before and course.recorded("two streams").median("loop") > 0


# Display ---------------------------------------------------------------------------------------------------------


def stamped(text: str) -> bool:
    """Assert that the text states that it was recorded, on which device, and by which program."""
    origin = DATA["made"]
    facts = (origin["device"], origin["torch"], origin["date"], "tutorials/record_device.py")
    return all(fact in text for fact in facts) and ("not measured here" in text or "不是在这里测的" in text)


@pytest.mark.parametrize("name", NAMES)
def test_every_view_says_that_it_was_recorded(name: str) -> None:
    scene = course.recorded(name)
    shown = scene._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"} and shown["text/html"] == scene.svg
    assert stamped(shown["text/plain"]) and shown["text/plain"] == repr(scene)
    drawing = ElementTree.fromstring(scene.svg)
    visible = " ".join(t.text or "" for t in drawing.iter(f"{SVG}text"))
    assert all(map(stamped, (visible, drawing.findtext(f"{SVG}desc", ""), drawing.attrib["aria-label"])))


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_told_and_every_bar_has_its_lane(name: str) -> None:
    scene = course.recorded(name)
    drawing = ElementTree.fromstring(scene.svg)
    assert drawing.attrib["role"] == "img" and drawing.findtext(f"{SVG}title") == wording.SCENES[name]
    assert scene.svg.count(" id=") == 0 and float(drawing.attrib["width"]) <= 840
    assert float(drawing.attrib["height"]) < 360, "two of them fit a window of 1280×720"
    bars = [r for r in drawing.iter(f"{SVG}rect") if r.attrib["class"] != "paper"]
    assert len(bars) == len(scene.events)
    bottoms = {bar.attrib["class"]: set() for bar in bars}
    for bar in bars:
        bottoms[bar.attrib["class"]].add(float(bar.attrib["y"]) + float(bar.attrib["height"]))
        assert bar.findtext(f"{SVG}title")
    rows = [bottoms.get(look, set()) for look in ("part", "ask", "wait")]
    streams = bottoms["work"] | bottoms.get("copy", set())
    assert all(len(row) <= 1 for row in rows) and len(streams) == scene.streams
    assert len(set().union(*rows, streams)) == sum(map(len, rows)) + scene.streams, "a row for each kind"
    low, middle, high = scene.quartiles(next(iter(scene.readings)))
    assert low <= middle <= high and recording._milliseconds(middle) in drawing.findtext(f"{SVG}desc", "")


def test_two_scenes_have_one_scale() -> None:
    both = course.recorded("one stream").beside("two streams")
    drawing = ElementTree.fromstring(both.svg)
    bars = [r for r in drawing.iter(f"{SVG}rect") if r.attrib["class"] == "wait"]
    longest = sorted((float(bar.attrib["width"]) for bar in bars), reverse=True)[:2]
    waits = [max(e.seconds for e in scene.of("wait")) for scene in both.scenes]
    assert longest[0] / longest[1] == pytest.approx(max(waits) / min(waits), rel=0.01)
    assert drawing.findtext(f"{SVG}title", "").count(";") == 1
    assert repr(both).count("Recorded on") == 1 and float(drawing.attrib["height"]) < 600


def test_a_terminal_sees_lanes() -> None:
    lines = repr(course.recorded("clock alone")).splitlines()
    rows = {line[2:18].strip(): line[18:] for line in lines if "█" in line}
    assert list(rows) == ["Python is in", "Python submits", "Python waits", "stream 1 works"]
    assert {len(row) for row in rows.values()} == {64} and all(len(line) <= 160 for line in lines)
    waits, works = (rows[name].count("█") for name in ("Python waits", "stream 1 works"))
    assert waits > 50 and works > 50


def test_everything_recorded_is_said_in_chinese(chinese: None) -> None:
    assert list(chinese_texts.SCENES) == list(wording.SCENES)
    for name in NAMES:
        scene = course.recorded(name)
        assert is_chinese(chinese_texts.SCENES[name])
        assert numbers_in_chinese(chinese_texts.SCENES[name]) <= numbers_in_english(wording.SCENES[name])
        assert stamped(repr(scene)) and stamped(scene.svg)
        words = re.sub(r"<style>.*?</style>|<[^>]*>", " ", scene.svg)
        assert not re.findall(r"\b(waits|works|asks|Recorded|turn|product|loop)\b", words + repr(scene))
        parts = {event.name for event in scene.of("part")} | set(scene.readings)
        assert all(is_chinese(wording.of_scene(part)) for part in parts)


def test_to_open_it_needs_no_torch() -> None:
    """A recording is read without running anything, even without torch."""
    assert "torch" not in {
        name.partition(".")[0] for name, value in vars(recording).items() if value is sys.modules.get(name)
    }
    source = Path(recording.__file__).read_text(encoding="utf-8")
    assert not re.search(r"^\s*(import|from) torch|\bexec\(|\beval\(|pickle", source, re.M)
