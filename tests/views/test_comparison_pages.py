"""A comparison as text, HTML, Markdown and files: complete, escaped, readable on a dark ground."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import contract as contract_of_the_page
import pytest
import samples_targets as made
from contrast import contrast
from samples import HOSTILE, graph_break, hostile, sample

from compile_lens.errors import UsageError
from compile_lens.measures.compare.table import across
from compile_lens.record.comparison import Column
from compile_lens.results.comparison import Comparison
from compile_lens.views.live.compare import compare_page, fragment
from compile_lens.views.live.compare import page as document
from compile_lens.views.live.page import static
from compile_lens.views.render import markdown as markdown_of
from compile_lens.views.render import text as text_of
from compile_lens.views.render.formats import COMPARISON as FORMS
from compile_lens.views.render.html import markup as dark
from compile_lens.views.subjects import compare
from compile_lens.views.words.highlight import INKS
from compile_lens.views.words.ledger import compared_counts


def page(comparison: Comparison, width: int | None = None, ascii: bool | None = None) -> str:
    return text_of.page(compare.document(comparison), width, ascii)


def markdown(comparison: Comparison) -> str:
    return markdown_of.page(compare.document(comparison))


def three() -> Comparison:
    columns = [
        Column("cpu", made.scan("cpu", True).capture(), "", ()),
        Column("h100", made.scan("h100", False).capture(), "", ("SCAN",)),
        Column("mps", None, "f failed in stage inference.code: KeyError: torch.float64"),
    ]
    return across("f", columns, Comparison)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_has_each_target_its_stamp_and_what_may_differ_beside_the_code() -> None:
    read = Tags(document(three()))
    assert not read.open
    for words in (
        "generated only, for h100: the device model, not the device",
        "may differ on the real device: 1 thing",
        "the launches",
        "aten.cumsum is a library call on cpu, and generated on h100.",
        "KeyError: torch.float64",
        "f failed in stage inference.code",
        "// k_scan",
    ):
        assert words in read.words, words
    assert sum((a.get("class") or "") == "cl-column" for _, a in read.tags) == 3, "code side by side"
    # The corner has no text, so it is not a header.
    (heads,) = re.findall(r"<tr[^>]*><td[^>]*></td>(<th.*?)</tr>", document(three()))
    assert re.findall(r"<th[^>]*>([^<]*)</th>", heads) == ["cpu", "h100", "mps"], "figures side by side"
    lines = document(three()).split('class="cl-line"')[1:]
    assert len(lines) == len(three().rows) > 0
    assert all(f">{cell.target}<" in line for line, row in zip(lines, three().rows) for cell in row.cells)


@pytest.mark.parametrize("view", [document, markdown, page], ids=["html", "markdown", "text"])
def test_every_page_says_what_may_differ_in_a_whole_capture(view: Callable[[Comparison], str]) -> None:
    columns = [Column(name, made.scan(name, False).capture(), "", ()) for name in ("h100", "a100")]
    text = " ".join(view(across("f", columns, Comparison)).replace("\\", "").split())
    assert "ay differ on the real device" in text
    assert text.count("h100, a100: the whole capture") == 1
    assert "h100, a100: model.py:1 queried Tensor.is_cuda and got False: if x.is_cuda:" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_the_users_becomes_markup_or_a_script(text: str) -> None:
    capture = hostile(text)
    comparison = across(
        text, [Column("cpu", capture), Column(text, capture), Column("gone", None, text)], Comparison
    )
    read = Tags(document(comparison))
    assert not read.open
    names = {tag for tag, _ in read.tags}
    assert names <= set(
        "html head meta title style body main h1 div span table tr th td b details summary pre script".split()
    )
    assert len([tag for tag, _ in read.tags if tag == "script"]) == 2, "the page's data, and what starts it"
    assert not [a for _, a in read.tags if any(k.startswith("on") or k in ("src", "href", "id") for k in a)]
    assert "\x1b" not in page(comparison) and "\u202e" not in page(comparison)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown(comparison), flags=re.DOTALL)
    assert "<script" not in outside and "<img" not in outside


def test_the_page_forbids_outside_requests() -> None:
    text = document(three())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert (
        policy is not None
        and "default-src 'none'" in policy[1]
        and "script-src 'unsafe-inline';" in policy[1]
    )
    assert "http://" not in text and "https://" not in text
    assert text == document(three()), "the same comparison gives the same page"


def test_every_colour_of_the_page_has_a_dark_one_that_can_be_read() -> None:
    compared = (
        fragment(Comparison.of(sample(), graph_break())).partition("</style>")[2].partition("<style>")[0]
    )
    own = " ".join(re.findall(r'style="([^"]*)"', static(sample()) + static(graph_break())))
    used = set(re.findall(r"#[0-9a-f]{3,6}\b", compared + own))
    known = {*dark.GROUNDS, *dark.EDGES, *dark.TEXTS}
    assert used <= known and set(INKS) <= set(dark.TEXTS)
    for ink in dark.TEXTS.values():
        assert min(contrast(ink, dark.GROUNDS[g]) for g in list(dark.GROUNDS)[:2]) >= 4.5
    for state in range(3):
        ground = list(dark.GROUNDS.values())[2 + state]
        assert contrast(list(dark.TEXTS.values())[5 + state], ground) >= 4.5
    assert "prefers-color-scheme: dark" in dark.dark_style(
        ".cl-comparison"
    ) and "data-jp-theme-light" in dark.dark_style(".cl-comparison")


def test_the_text_page_fits_and_tells_figures_reasons_and_lines() -> None:
    text = page(three(), width=80, ascii=False)
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in (
        "launches",
        "~",
        "why they differ",
        "library call",
        "kernels by line",
        "model.py:1",
        "(differs)",
    ):
        assert words in text
    assert page(three(), width=60, ascii=True).isascii()


def test_a_phase_that_one_target_lacks_is_a_dash_and_not_a_zero() -> None:
    text = page(Comparison.of(sample(), made.pair("h100", True).capture()), width=90, ascii=False)
    assert re.search(r"launches +1 +—", text) and re.search(r"launches +— +1", text)


def test_every_form_is_written_and_others_are_refused(tmp_path: Path) -> None:
    comparison = three()
    for form in FORMS:
        path = comparison.save(tmp_path / f"x{form}")
        assert path.read_text(encoding="utf-8").strip()
    for name, message in (
        ("x.svg", "ends in '.svg'"),
        ("x", "has no file extension"),
        ("gone/x.html", "does not exist"),
    ):
        with pytest.raises(UsageError, match=message):
            comparison.save(tmp_path / name)
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == page(comparison, width=100, ascii=False)


def test_a_notebook_gets_html_and_text() -> None:
    bundle = three()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"} and bundle["text/html"] == fragment(three())
    assert set(three()._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert set(three()._repr_mimebundle_(exclude=["text/html"])) == {"text/plain"}
    assert "Comparison of f for cpu, h100, mps (failed)" in repr(three())


def test_many_lines_are_counted_and_those_that_differ_are_kept() -> None:
    comparison = three()
    alike = dataclasses.replace(comparison.rows[0], alike=True)
    rows = (
        *(dataclasses.replace(alike, line=n) for n in range(100)),
        dataclasses.replace(alike, line=777, alike=False),
    )
    many = dataclasses.replace(comparison, rows=rows)
    assert "more: comparison.rows" in page(many) and "model.py:777" in page(many)
    assert "more: comparison.rows" in fragment(many) and "model.py:777" in fragment(many)


def test_the_living_page_holds_each_capture_and_what_only_one_has() -> None:
    comparison = three()
    data = compare_page(comparison)
    contract_of_the_page.check(data, "Compared")
    assert [column["target"] for column in data["columns"]] == ["cpu", "h100", "mps"]  # type: ignore[attr-defined]
    assert "KeyError" in data["columns"][2]["failure"]  # type: ignore[index]
    (module,) = data["modules"]  # type: ignore[misc]
    assert [title for title, _ in module["counts"]] == list(compared_counts())
    assert all(len(values) == 3 for _, values in module["counts"])
    assert module["own"][2] == [], "a target that failed has nothing of its own"
    carried = json.loads(re.findall(r'class="cl-data">(.*?)</script>', document(comparison))[0])
    assert {"comparison", "column 0", "column 1", "script", "style"} == set(carried)
