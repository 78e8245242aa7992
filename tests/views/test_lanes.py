"""Timeline lanes as SVG: one scale, an axis of round numbers, and any text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from compile_lens.views.drawing.lanes import WIDTH, Bar, Chart, Lane, to_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart, stamp: str = "by hand") -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(charts, about="about it", stamp=stamp))


def bars(drawing: ElementTree.Element) -> list[tuple[float, float]]:
    """Return left and width of each bar."""
    boxes = (r for r in drawing.iter(f"{SVG}rect") if r.attrib["class"] != "paper")
    return [(float(box.attrib["x"]), float(box.attrib["width"])) for box in boxes]


def test_a_length_is_a_time() -> None:
    lane = Lane("a", (Bar(0.0, 1e-3, "work"), Bar(1e-3, 3e-3, "work")))
    (x1, w1), (x2, w2) = bars(drawn(Chart("one", (), (lane,))))
    assert w2 == pytest.approx(3 * w1, abs=0.3) and x2 == pytest.approx(x1 + w1, abs=0.2)
    assert x2 + w2 == pytest.approx(WIDTH - 16, abs=0.2)


def test_charts_share_the_longest_ones_scale() -> None:
    charts = [Chart(str(s), (), (Lane("a", (Bar(0.0, s, "wait"),)),)) for s in (1e-3, 4e-3)]
    (_, short), (left, long) = bars(drawn(*charts))
    assert long == pytest.approx(4 * short, abs=0.5) and left + long <= WIDTH - 15


@pytest.mark.parametrize(
    ("seconds", "last"),
    [(13.3e-3, "12 ms"), (3.2e-3, "3 ms"), (0.3e-3, "300 µs"), (9e-6, "9 µs"), (2.0, "2000 ms")],
)
def test_an_axis_has_round_numbers_and_one_unit(seconds: float, last: str) -> None:
    drawing = drawn(Chart("one", (), (Lane("a", (Bar(0.0, seconds, "work"),)),)))
    (axis,) = (g for g in drawing.iter(f"{SVG}g") if g.attrib.get("class") == "axis")
    ticks = [t.text or "" for t in axis.iter(f"{SVG}text")]
    assert ticks[0] == "0" and ticks[-1] == last and 3 <= len(ticks) <= 12
    assert all(re.fullmatch(r"\d+(\.\d+)?", tick) for tick in ticks[:-1])


def test_any_text_is_text() -> None:
    hostile = "</svg><script>alert(1)</script>&\"'\x00\u202e"
    chart = Chart(hostile, (hostile,), (Lane(hostile, (Bar(0.0, 1.0, "part", hostile, hostile),)),))
    drawing = drawn(chart, stamp=hostile)
    assert not list(drawing.iter(f"{SVG}script")) and "alert(1)" in (drawing.findtext(f"{SVG}title") or "")


def test_nothing_leaks_into_the_page_that_holds_it() -> None:
    style = drawn(Chart("one", (), (Lane("a", (Bar(0.0, 1.0, "work"),)),))).findtext(f"{SVG}style", "")
    rules = re.sub(r"@media[^{]*\{|\}\}", "}", style)
    selectors = [s for rule in rules.split("}") if "{" in rule for s in rule.split("{")[0].split(",")]
    assert len(selectors) > 20 and all(s.startswith(".lens-lanes") for s in selectors)
    assert "prefers-color-scheme:dark" in style


def test_a_label_stands_where_it_fits() -> None:
    """A label is in its bar, or beside that of a part if nothing follows at once; a word may be cut, but no number."""
    spans = {"left out": (0, 1), "turn 12": (1, 40), "calculation": (41, 70), "shown": (111, 800)}
    bars = tuple(Bar(start * 1e-6, s * 1e-6, "part", label) for label, (start, s) in spans.items())
    beside = Lane("b", (Bar(0.0, 1e-6, "part", "after it"), Bar(5e-4, 1e-6, "work", "never")))
    drawing = drawn(Chart("one", (), (Lane("a", bars), beside)))
    labels = [t.text for t in drawing.iter(f"{SVG}text") if t.attrib.get("class", "").startswith("label")]
    assert labels == ["calcula…", "shown", "← after it"]


def test_long_sentences_stay_inside() -> None:
    for sentence in ("word " * 100, "字" * 200, "x" * 400):
        drawing = drawn(Chart("one", (sentence,), ()), stamp=sentence)
        lines = [t.text or "" for t in drawing.iter(f"{SVG}text")]
        assert max(map(len, lines)) <= 112 and len(lines) > 4


def test_nothing_to_draw_is_a_drawing() -> None:
    assert bars(drawn(Chart("empty", (), ()))) == [] and bars(drawn()) == []
