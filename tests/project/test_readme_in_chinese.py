"""The README and its pages in Chinese agree with the English ones: the same code, and no additions."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from bilingual import digits, is_chinese, numbers_in_chinese, numbers_in_english
from faults import for_each
from markdown_pages import headings, links

ROOT = Path(__file__).resolve().parents[2]
PAGES = [("README.md", "README.zh-CN.md")] + [
    (f"docs/{page.name}", f"docs/zh/{page.name}") for page in sorted((ROOT / "docs" / "zh").glob("*.md"))
]
"""Each page, and its Chinese version."""

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _sections(page: str) -> list[str]:
    return re.split(r"^## ", _text(page), flags=re.M)


SECTIONS = [(pair, number) for pair in PAGES for number in range(len(_sections(pair[0])))]


def _links(page: str, text: str) -> set[tuple[str, int]]:
    """Return the targets of all links: English file names from the root, with the number of the heading."""
    targets = {(link, 0) for link in re.findall(r"\]\((\w+://[^)#]+)[^)]*\)", text)}
    for path, anchor in links(text):
        path = os.path.normpath(Path(page).parent / path).replace(os.sep, "/") if path else page
        heading = headings(_text(path)).index(anchor) if anchor else 0
        targets.add((path.replace("/zh/", "/").replace("README.zh-CN.md", "README.md"), heading))
    return targets


def test_there_are_pages() -> None:
    assert len(PAGES) > 10 and len(_sections("README.md")) > 6


@for_each([(pair,) for pair in PAGES])
def test_it_has_the_same_sections(pair: tuple[str, str]) -> None:
    assert len(_sections(pair[0])) == len(_sections(pair[1]))


@for_each([(pair,) for pair in PAGES])
def test_its_code_is_that_of_the_english_one(pair: tuple[str, str]) -> None:
    """Comments may be in Chinese; commands are identical."""
    english, chinese = (FENCE.findall(_text(page)) for page in pair)
    assert len(english) == len(chinese)
    for (language, code), (its_language, its_code) in zip(english, chinese):
        assert language == its_language
        if language == "python":
            assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(its_code))
            assert digits(code) == digits(its_code), its_code
        else:
            assert code == its_code


def test_its_table_has_the_figures_of_the_ledger() -> None:
    def rows(page: str) -> dict[str, list[str]]:
        cells = re.findall(r"^\| ([\w ]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", _text(page), re.M)
        return {name: numbers for name, *numbers in cells}

    assert len(rows("docs/ledger.md")) == 7 and rows("docs/zh/ledger.md") == rows("docs/ledger.md")


@for_each([(pair,) for pair in PAGES])
def test_each_leads_to_the_other_and_to_what_is_there(pair: tuple[str, str]) -> None:
    for page, other in (pair, pair[::-1]):
        text, folder = FENCE.sub("", _text(page)), Path(page).parent
        assert f"]({os.path.relpath(other, folder)})" in text.partition("\n## ")[0]
        assert not [path for path, _ in links(text) if not (ROOT / folder / path).exists()]


@for_each(SECTIONS)
def test_a_section_names_what_the_english_one_names(pair: tuple[str, str], number: int) -> None:
    english, chinese = (FENCE.sub("", _sections(page)[number]) for page in pair)
    ours, theirs = (
        {re.sub(r"\s+", " ", name) for name in re.findall(r"`([^`]+)`", text)} for text in (english, chinese)
    )
    assert theirs == ours
    assert _links(pair[1], chinese) == _links(pair[0], english)
    rows = [len(re.findall(r"^(?:\|.*\||- .*)$", text, re.M)) for text in (english, chinese)]
    assert rows[0] == rows[1], "rows of tables and items of lists"


@for_each(SECTIONS)
def test_a_section_says_no_number_of_its_own(pair: tuple[str, str], number: int) -> None:
    english, chinese = (_sections(page)[number] for page in pair)
    assert is_chinese(chinese)
    assert numbers_in_chinese(chinese) <= numbers_in_english(english)
