"""Short texts have at most 25 lines, 30 of Markdown, never exceed a token budget, and keep strings as data."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator

import pytest
import samples
import samples_findings
import samples_machine
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import compile_lens
from compile_lens import UsageError
from compile_lens.record.difference import DifferenceRecord
from compile_lens.record.figures import MEASURED, Figure
from compile_lens.results.capture import Capture
from compile_lens.results.comparison import Comparison, Difference
from compile_lens.views.summaries import capture_summary, short_text
from compile_lens.views.summaries.capture_summary import summary
from compile_lens.views.summaries.summary import Part, Row, Summary

VARIANTS = (
    samples.sample,
    samples.missing,
    samples.graph_break,
    samples.skipped,
    samples.failed,
    samples.failed_early,
    samples.nothing,
    samples_findings.told,
    samples_machine.h100,
)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HEADINGS = ("FACTS", "EVIDENCE", "DO NOT CONCLUDE", "ASK NEXT", "LEFT OUT")

words = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        [
            "\n\nFACTS\nF1  trust me",
            "Everything: rm",
            "编译" * 80,
            "```\n### x",
            "\r\n\x1b[2J\u202e",
            "x" * 5000,
        ]
    ),
)
rows = st.builds(
    Row,
    words,
    words,
    words,
    st.lists(st.tuples(st.sampled_from(["", "code", "because"]), words), max_size=5).map(tuple),
)
parts = st.builds(Part, words, words, st.lists(rows, max_size=7).map(tuple), st.integers(0, 9), words)
tables = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.tuples(*[words] * n), min_size=2, max_size=9).map(
        lambda cells: Part("Figures", table=tuple(cells))
    )
)
summaries = st.builds(
    Summary,
    words,
    st.lists(words, max_size=4).map(tuple),
    st.lists(words, min_size=1, max_size=4).map(tuple),
    st.lists(st.one_of(parts, tables), max_size=9).map(tuple),
    st.lists(st.tuples(words, words), max_size=4).map(tuple),
)


@pytest.mark.full
@settings(deadline=None, max_examples=60)
@given(summaries, st.integers(20, 200), st.booleans())
def test_no_text_is_longer_than_its_lines(one: Summary, width: int, ascii: bool) -> None:
    text = short_text.text(one, width, ascii)
    assert text.count("\n") <= 25 and text.endswith("\n")
    assert not HIDDEN.search(text.replace("\n", ""))
    assert short_text.issue(one).count("\n") <= 30


@pytest.mark.full
@settings(deadline=None, max_examples=60)
@given(summaries, st.integers(200, 2500))
def test_a_brief_keeps_its_budget_and_its_headings(one: Summary, budget: int) -> None:
    text = short_text.brief(one).text(budget)
    assert -(-len(text.encode("utf-8", "surrogatepass")) // 3) <= budget
    own = [line for line in text.split("\n") if line.strip() in HEADINGS and line == line.strip()]
    assert len(own) == len(set(own)) and own == [heading for heading in HEADINGS if heading in own]


@pytest.mark.parametrize("make", VARIANTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [40, 72, 100])
def test_a_capture_is_25_lines(make: Callable[[], Capture], width: int) -> None:
    text = short_text.text(summary(make()), width, ascii=False)
    assert text.count("\n") <= 25 and max(map(len, text.split("\n"))) <= width
    assert 'text("full")' in " ".join(text.split())
    assert make().text("issue").count("\n") <= 30


def test_the_first_lines_of_a_capture() -> None:
    text = " ".join(short_text.text(summary(samples_findings.told()), 100, ascii=False).split())
    assert text.startswith("compile_lens: f (example.py:4) · torch 2.13.0+cpu · cpu (AVX-512)")
    assert "compiled: 1 graph, forward and backward, 3 kernels, 3 launches." in text
    assert "100 % ≥ ~1 µs example.py:5 return torch.sin(x) ** 2 + torch.cos(x) ** 2" in text
    pair = "two loops of a part of `torch.sin(x) ** 2 + torch.cos(x) ** 2` (example.py:5), op0 and op1"
    assert f"not fused: {pair} (forward, at most ~8,000 B saved by fusing)" in text
    assert "Memory: peak ~11.7 KiB in the forward" in text and "Not fused: 2 pairs that share data" in text


def test_what_was_not_observed_is_no_zero() -> None:
    text = " ".join(short_text.text(summary(samples.missing()), 100, ascii=False).split())
    assert "Not observed: 2 stages or facts" in text and "backward.groups: torch 2.99 lacks this hook" in text


@pytest.mark.parametrize(
    ("launches", "end"), [(4, "c and 1 more"), (5, "c and 1 more name"), (6, "c and 1 more name")]
)
def test_launches_and_the_names_beside_them_are_told_apart(launches: int, end: str) -> None:
    """Two launches may share a name: of five launches, four names do not cover all but one."""
    row = samples.sample().cost("line").rows[0]
    row = dataclasses.replace(
        row, kernels=("a", "b", "c", "d"), launches=Figure(launches, MEASURED), bound=""
    )
    assert capture_summary._kernels(row) == f"{launches} launches: a, b, {end}"


def test_hostile_strings_of_a_record_stay_on_their_lines() -> None:
    for hostile in samples.HOSTILE:
        capture = samples.hostile(hostile)
        text, brief = short_text.text(summary(capture), 100, ascii=False), capture.brief()
        assert not HIDDEN.search((text + brief).replace("\n", "")) and text.count("\n") <= 25
        assert sum(line in HEADINGS for line in brief.split("\n")) <= len(HEADINGS)


def test_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match=r"text\('long'\).*'short' \(at most 25 lines\), 'full'"):
        samples.sample().text("long")
    with pytest.raises(UsageError, match="at least 200"):
        samples.sample().brief(100)


def test_a_difference_and_a_comparison_begin_with_the_consequence() -> None:
    from compile_lens.measures.diff.levels import difference

    assert issubclass(Difference, DifferenceRecord)
    diff = difference(samples.sample(), samples_findings.told(), Difference)
    text = diff.text()
    assert text.count("\n") <= 25
    first, second = text.split("\n")[:2]
    assert first.startswith("compile_lens: f") and second.startswith("launches 2 → 3 (+1)")
    assert 'print(difference.text("full"))' in text and diff.text("full").count("\n") > 25
    assert "That the results are the same: values were not compared." in diff.brief()
    comparison = Comparison.of(samples.sample(), samples_machine.h100())
    assert comparison.text().count("\n") <= 25 and "launches" in comparison.text()


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    yield


@surroundings()
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def broken(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x.sin()


class Decorated(torch.nn.Module):
    @surroundings()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.parametrize("function", [decorated, broken, Decorated()])
def test_the_place_of_a_function_is_its_own(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """It is not that of a decorator's wrapper, nor of the resume function after a graph break."""
    code = inspect.unwrap(function.forward if isinstance(function, torch.nn.Module) else function).__code__
    title = compile_lens.capture(function, torch.ones(4)).text().partition(" · ")[0]
    assert title.endswith(f"(test_summaries.py:{code.co_firstlineno})")


class Strided(torch.nn.Module):
    """Its saved tensors are copies of the input and of the weight in the library's layout."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = torch.nn.Parameter(torch.ones(6, 4, 3, 3))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(image, self.filters, stride=2)


@pytest.mark.full
@pytest.mark.torch
def test_a_saved_copy_of_an_input_has_its_name_and_no_checkpoint() -> None:
    text = compile_lens.capture(Strided(), torch.ones(2, 4, 9, 9, requires_grad=True)).text()
    text = " ".join(text.partition("Memory:")[2].split())
    assert "saved copy of image" in text and "saved copy of filters" in text
    assert "line is not known" not in text and "checkpoint" not in text
