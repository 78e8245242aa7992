"""A column added to the common table appears in every view; a language without its translation fails."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import samples_machine as made

from compile_lens.results.comparison import Comparison
from compile_lens.views.document import Absence, Cell, Quantity
from compile_lens.views.live import translation
from compile_lens.views.live.compare import compare_page
from compile_lens.views.live.page import parts, static
from compile_lens.views.render import html, markdown, text
from compile_lens.views.story.chinese import CHINESE as CHINESE_STORY
from compile_lens.views.subjects import capture as of_capture
from compile_lens.views.subjects import compare as of_comparison
from compile_lens.views.words import ledger
from compile_lens.views.words.sentences import CHINESE

TITLE, DEFINITION = "registers", "the most registers of a thread"


def registers(scope: ledger.Scope) -> Cell:
    machines = [kernel.machine for code in scope.codes for kernel in code.kernels]
    known = [one.registers for one in machines if one is not None and one.registers is not None]
    return Quantity(max(known)) if known else Absence("registers", "nothing was built")


COLUMN = ledger.LedgerColumn("registers", TITLE, DEFINITION, registers, compared=True)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "COLUMNS", (*ledger.COLUMNS, COLUMN))


@pytest.mark.usefixtures("added")
def test_a_column_of_the_table_reaches_every_view() -> None:
    capture = made.h100()
    most = max(k.machine.registers or 0 for k in capture.kernels if k.machine is not None)
    assert most
    document = of_capture.document(capture)
    plain = text.page(document, width=200, ascii=False)
    (head,) = (line for line in plain.splitlines() if line.split()[-2:] == ["after", TITLE])
    rows = plain.splitlines()[plain.splitlines().index(head) + 1 :]
    assert rows[0].endswith(f" {most}"), "aligned to the right, under its title"
    (head,) = (line for line in markdown.page(document).splitlines() if line.endswith(f" {TITLE} |"))
    assert f" {most} |" in markdown.page(document).partition(head)[2].split("\n\n")[0]
    page = static(capture)
    assert f"{TITLE}<div" in page and DEFINITION in page and f"<td>{most}</td>" in page
    core: Any = parts(capture)["core"]
    assert core["ledger"]["columns"][-1] == {"title": TITLE, "meaning": DEFINITION}
    assert core["ledger"]["rows"][0]["figures"][-1] == str(most)
    assert core["compilations"][0]["ledger"]["rows"][0]["figures"][-1] == str(most)


@pytest.mark.usefixtures("added")
def test_a_column_of_the_table_reaches_every_view_of_a_comparison() -> None:
    comparison = Comparison.of(made.h100(), made.cpu())
    document = of_comparison.document(comparison)
    views = (text.page(document, 200, False), markdown.page(document), html.fragment(document))
    assert all(TITLE in view for view in views)
    data: Any = compare_page(comparison)
    assert TITLE in [title for title, _ in data["modules"][0]["counts"]]


def test_what_was_not_built_has_no_registers() -> None:
    assert registers(ledger.Scope(made.h100(), None, ())) == Absence("registers", "nothing was built")  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ledger.columns(), ids=lambda column: column.key)
def test_the_words_of_a_column_of_the_ledger_are_translated(column: ledger.LedgerColumn) -> None:
    page = translation.in_language(f"<th>{column.title}</th><th>{column.definition}</th>", CHINESE)
    assert (
        len(re.findall("[\u4e00-\u9fff]", page))
        and column.title not in page
        and column.definition not in page
    )


@pytest.mark.parametrize("table", ["sentences", "nouns", "words"])
def test_a_word_that_a_language_of_the_story_has_not_fails_with_a_sentence(table: str) -> None:
    kept = dict(getattr(CHINESE_STORY, table))
    key = next(iter(kept))
    del kept[key]
    language = dataclasses.replace(CHINESE_STORY, **{table: kept})
    ask = {"sentences": lambda: language.say(key, {}), "nouns": lambda: language.noun(key)}
    with pytest.raises(LookupError, match=f"the {table[:-1]} '{key}' is missing in 'zh'"):
        ask.get(table, lambda: language.word(key))()
