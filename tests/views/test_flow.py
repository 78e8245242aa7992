"""A page has the same order in text, Markdown and HTML, and its flow the same words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
import samples
import samples_machine

from compile_lens.record.missing import NotApplicable
from compile_lens.results.capture import Capture
from compile_lens.views.live import page as html
from compile_lens.views.render import markdown, text
from compile_lens.views.subjects.capture import document
from compile_lens.views.words.flow import ways


def said(capture: Capture) -> list[list[str]]:
    ledger = dict(capture.ledger.graphs)
    return [[str(way) for way in ways(capture, c, ledger[c.id])] for c in capture.compilations]


def test_the_way_of_each_phase() -> None:
    """Counted by hand in the sample's source and in its ledger."""
    assert said(samples.sample()) == [
        [
            "forward: 1 line → traced → 5 calls → joint 17 → 5 ops → inlined → 1 loop → fused → 1 group "
            "→ generated → 1 kernel",
            "backward: 1 line → traced → 5 calls → joint 17 → 12 ops → inlined → 1 loop → fused → 1 group "
            "→ generated → 1 kernel",
        ]
    ]


def test_where_the_compiler_failed_the_way_stops() -> None:
    assert said(samples.failed()) == [
        ["forward: 1 line → traced → 5 calls → joint 17 → 5 ops → inlined → stopped here"]
    ]
    assert said(samples.failed_early()) == []


def test_a_break_is_a_word_of_the_way() -> None:
    (first, *_), *_ = said(samples.graph_break())
    assert " → traced up to a break → " in first


def test_what_was_not_seen_and_what_there_is_not() -> None:
    (missing,) = said(samples.missing())
    assert any("not seen" in way for way in missing)
    capture = samples.sample()
    (one,) = capture.compilations
    none = NotApplicable("joint", "no gradient is needed")
    stages = tuple(none if s.key == "joint" else s for s in one.stages)
    (quiet,) = said(dataclasses.replace(capture, compilations=(dataclasses.replace(one, stages=stages),)))
    assert all(" → decomposed → " in way and "not seen" not in way for way in quiet)
    bare = dataclasses.replace(capture, compilations=(dataclasses.replace(one, stages=()),))
    assert said(bare) == [[]]
    assert "no stage was recorded" in text.page(document(bare)) and "no stage was recorded" in html.static(
        bare
    )


class Read(HTMLParser):
    """Collects a page as read without styles: texts, a line for each non-inline element, and rows of tables."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines = [""]
        self.rows: list[list[str]] = []
        self._cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = True
            self.lines[-1] += " "
        elif tag not in ("b", "span"):
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")
        if tag not in ("b", "span", "td", "th"):
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        self.lines[-1] += data
        if self._cell:
            self.rows[-1][-1] += data


@pytest.mark.parametrize(
    "make", (samples.sample, samples.skipped, samples_machine.h100), ids=lambda f: f.__name__
)
def test_one_order_and_the_same_words(make: Callable[[], Capture]) -> None:
    capture = make()
    terminal = " ".join(text.page(document(capture), width=2000, ascii=False).split())
    marks = markdown.page(document(capture)).replace("\\", "")
    read = "\n".join(Read(html.static(capture)).lines)
    for page in (terminal, marks, read):
        lower = page.lower()
        order = [lower.index(word) for word in ("compiled:", "forward: 1 line", "in between")]
        assert order == sorted(order)
        (phases,) = said(capture)
        for way in phases:
            assert way in page
        assert "Each ATen operator by itself would move" in page
        for kernel in capture.kernels:
            assert page.index(kernel.name) > lower.index("in between")
            assert ", ".join(kernel.origins[:3]) in page
    heads = re.findall(r"^── ([a-z ]+?)(?: of | ─)", text.page(document(capture), ascii=False), re.MULTILINE)
    titles = [t.lower() for t in re.findall(r"^## ([A-Z][a-z ]+?)(?: of .*)?$", marks, re.MULTILINE)]
    shared = [head for head in heads if head in titles]
    assert shared == [title for title in titles if title in heads]
    assert {"flow", "in between", "kernels", "ledger", "why"} <= set(shared)


def test_without_styles_the_stages_are_a_table() -> None:
    """A terminal browser shows it like this: not forty lines of one word each."""
    read = Read(html.static(samples.sample()))
    start = read.lines.index(next(line for line in read.lines if line.startswith("Flow")))
    end = read.lines.index(next(line for line in read.lines if line.startswith("Ledger")))
    words = [line for line in read.lines[start:end] if line.strip()]
    assert sum(len(line.split()) == 1 for line in words) == 0
    at = read.rows.index(["stage", "forward", "backward"])
    assert read.rows[at + 1 : at + 9] == [
        ["Dynamo", "7 nodes, 5 calls · 21 ms"],
        ["pre-grad", "7 nodes, 5 calls · 0.4 ms"],
        ["joint", "20 nodes, 17 calls · 18 ms"],
        ["ATen", "7 nodes, 5 calls", "15 nodes, 12 calls"],
        ["post-grad", "7 nodes, 5 calls", "15 nodes, 12 calls"],
        ["loops", "1 loop · 4.1 ms", "1 loop · 6.3 ms"],
        ["groups", "1 group · 1.3 ms", "1 group · 1.7 ms"],
        ["code", "1 kernel, 1 launch · 13 ms", "1 kernel, 1 launch · 15 ms"],
    ]
    (row,) = [row for row in read.rows if row[0] == "cpp_fused_add_cos_pow_sin_0"]
    assert row[1:] == [
        "C++ pointwise",
        "forward",
        "1 launch",
        "~8,000 B",
        "sin, pow_1, cos, pow_2, add ← example.py:5",
    ]
