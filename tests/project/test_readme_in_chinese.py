"""The README in Chinese says what the English one says: its code, its commands and its figures stand there too."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def _blocks(text: str) -> list[str]:
    return [block for _, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M)]


def test_its_code_is_that_of_the_english_one() -> None:
    lines = {line for block in _blocks(ENGLISH) for line in block.splitlines()}
    assert len(_blocks(CHINESE)) >= 4
    for block in _blocks(CHINESE):
        assert set(block.splitlines()) <= lines, block


def test_its_table_has_the_figures_of_the_ledger() -> None:
    def rows(text: str) -> dict[str, list[str]]:
        found = re.findall(r"^\| ([\w ]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|", text, re.M)
        return {name: numbers for name, *numbers in found}

    assert len(rows(CHINESE)) == 7 and rows(CHINESE) == rows(ENGLISH)


def test_each_leads_to_the_other_and_to_what_is_there() -> None:
    assert "(README.zh-CN.md)" in ENGLISH and "(README.md)" in CHINESE
    local = [link for link in re.findall(r"\]\(([^)#]+)\)", CHINESE) if "://" not in link]
    assert local and not [link for link in local if not (ROOT / link).exists()]


def test_what_it_names_is_named_in_english() -> None:
    names = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", CHINESE, flags=re.S)))
    missing = [name for name in names if name not in ENGLISH]
    assert not missing
