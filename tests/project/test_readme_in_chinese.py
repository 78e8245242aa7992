"""The README in Chinese says what the English one says: the same code, and no name, link or figure of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from bilingual import digits, is_chinese, numbers_in_chinese, numbers_in_english

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def _sections(text: str) -> list[str]:
    return re.split(r"^## ", text, flags=re.M)


SECTIONS = list(zip(_sections(ENGLISH), _sections(CHINESE)))
TITLES = [english.partition("\n")[0] for english, _ in SECTIONS]

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)


def test_it_has_the_same_sections() -> None:
    assert len(_sections(ENGLISH)) == len(_sections(CHINESE)) > 10


def test_its_code_is_that_of_the_english_one() -> None:
    """Comments may be in Chinese; commands are the same to the letter."""
    english, chinese = FENCE.findall(ENGLISH), FENCE.findall(CHINESE)
    assert len(english) == len(chinese) >= 9
    for (language, code), (its_language, its_code) in zip(english, chinese):
        assert language == its_language
        if language == "python":
            assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(its_code))
            assert digits(code) == digits(its_code), its_code
        else:
            assert code == its_code


def test_its_table_has_the_figures_of_the_ledger() -> None:
    def rows(text: str) -> dict[str, list[str]]:
        found = re.findall(r"^\| ([\w ]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", text, re.M)
        return {name: numbers for name, *numbers in found}

    assert len(rows(CHINESE)) == 7 and rows(CHINESE) == rows(ENGLISH)


def test_each_leads_to_the_other_and_to_what_is_there() -> None:
    assert (
        "(README.zh-CN.md)" in ENGLISH.partition("\n## ")[0]
        and "(README.md)" in CHINESE.partition("\n## ")[0]
    )
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", CHINESE) if "://" not in link]
    assert local and not [link for link in local if not (ROOT / link).exists()]


@pytest.mark.parametrize(("english", "chinese"), SECTIONS, ids=TITLES)
def test_a_section_names_what_the_english_one_names(english: str, chinese: str) -> None:
    ours, theirs = (FENCE.sub("", text.replace("tutorials/zh/", "tutorials/")) for text in (english, chinese))
    for pattern in (r"`([^`]+)`", r"\]\(([^)]+)\)"):
        named = [{re.sub(r"\s+", " ", name) for name in re.findall(pattern, text)} for text in (ours, theirs)]
        assert named[1] - {"README.md"} <= named[0]
    rows = [len(re.findall(r"^\|.*\|$", text, re.M)) for text in (ours, theirs)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(("english", "chinese"), SECTIONS, ids=TITLES)
def test_a_section_says_no_number_of_its_own(english: str, chinese: str) -> None:
    assert is_chinese(chinese)
    assert numbers_in_chinese(chinese) <= numbers_in_english(english)
