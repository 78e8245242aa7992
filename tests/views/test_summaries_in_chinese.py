"""Short texts in Chinese contain no English but code, names, and texts of torch or the program."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import samples

from compile_lens import Capture, UsageError, course
from compile_lens.views import language
from compile_lens.views.summaries.short_text import issue, text
from compile_lens.views.summaries.summary import REPORTED, Part, Row, Summary
from compile_lens.views.translated_summary import in_language
from compile_lens.views.words import sentences
from compile_lens.views.words.sentences import CHINESE, ENGLISH

HAN = re.compile("[\u4e00-\u9fff]")
OF_THE_FIELD = re.compile(
    r"\b(?:eager|torch|cpu|traceback|roofline|dynamo|threads|NVIDIA|triton|and)\b|[\w.]*[._\d(][\w.()]*|`[^`]*`"
)
"""Names, code, and words that Chinese engineers use."""
RECORDS = [samples.sample, samples.graph_break, samples.failed, samples.skipped, samples.nothing]


@pytest.fixture
def in_english() -> Iterator[None]:
    """Restore texts in English afterwards."""
    yield
    language.use(ENGLISH)


def words_of(summary: Summary, english: Summary) -> Iterator[str]:
    """Return every sentence of a Summary that is ours; ``english`` identifies them."""
    yield from (*summary.verdict, *(words for words, _ in summary.calls), *summary.not_to_conclude)
    for part, plain in zip(summary.parts, english.parts, strict=True):
        yield part.title
        yield from () if plain.title.lower() in REPORTED else (part.fact,)
        for row, other in zip(part.rows, plain.rows, strict=True):
            yield row.head
            for (_, words), (label, _) in zip(row.lines, other.lines, strict=True):
                yield from () if label in REPORTED else (words,)


@pytest.mark.parametrize("record", RECORDS)
def test_each_sentence_has_a_chinese_one(record: object) -> None:
    summary = record()._summary()  # type: ignore[operator]
    chinese = in_language(summary, CHINESE)
    for before, after in zip(words_of(summary, summary), words_of(chinese, summary), strict=True):
        rest = OF_THE_FIELD.sub("", before)
        assert after != before or not re.search("[A-Za-z]{3}", rest), before


def test_the_text_of_a_capture_is_in_the_language_asked_for(in_english: None) -> None:
    capture = samples.sample()
    english, chinese = capture.text(), capture.text(lang="zh")
    assert not HAN.search(english) and "已编译：" in chinese and "compiled:" not in chinese
    assert "**" in capture.text("issue", lang="zh") and HAN.search(capture.text("issue", lang="zh"))
    course.language("zh")
    assert capture.text() == str(capture) == chinese and capture.text(lang="en") == english
    assert not HAN.search(capture.brief()) and not HAN.search(capture.text("full"))


def test_what_is_not_in_chinese_is_refused(in_english: None) -> None:
    capture = samples.sample()
    with pytest.raises(UsageError, match="this text is in English"):
        capture.text("full", lang="zh")
    with pytest.raises(UsageError, match="lang='fr'"):
        capture.text(lang="fr")


def test_figures_and_places_are_those_of_the_english_text() -> None:
    for record in RECORDS:
        capture: Capture = record()
        numbers = [
            sorted(re.findall(r"\d[\d,.]*\d|\d", re.sub(r"\s+", "", capture.text(lang=lang))))
            for lang in ("en", "zh")
        ]
        assert numbers[0] == numbers[1], record


def test_rows_that_are_left_out_are_counted_in_the_language() -> None:
    rows = tuple(Row(f"{n}") for n in range(40))
    summary = Summary("f", (), (), (Part("Page", "", rows, where="capture.cost()"),), ())
    assert "… and 35 more: capture.cost()" in text(summary)
    chinese = in_language(summary, CHINESE)
    assert "……还有 35 项：capture.cost()" in text(chinese) and "还有" in issue(chinese)


def test_a_language_without_words_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sentences.SHORT_TEXT, CHINESE)
    with pytest.raises(LookupError, match="the short text is missing in 'zh'"):
        samples.sample().text(lang="zh")
