"""The live page in Chinese: which pages are, and the table of their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import samples

import compile_lens.course
from compile_lens.errors import UsageError
from compile_lens.views import language
from compile_lens.views.live import translation
from compile_lens.views.live.page import encoded, fragment, page, parts
from compile_lens.views.words.sentences import CHINESE, ENGLISH

HAN = re.compile("[\u4e00-\u9fff]")
PLACE = re.compile(r"\{([nwc=]?)\}")


@pytest.fixture
def in_english() -> Iterator[None]:
    """Pages are in English again afterwards."""
    yield
    language.use(ENGLISH)


def test_a_page_says_its_language(tmp_path: Path) -> None:
    capture = samples.sample()
    english = capture.save(tmp_path / "en.html").read_text("utf-8")
    chinese = capture.save(tmp_path / "zh.html", lang="zh").read_text("utf-8")
    assert '<html lang="en">' in english and '"words":' not in english
    assert '<html lang="zh-CN">' in chinese and '"words":' in chinese
    assert capture.save(tmp_path / "en.html", lang="en").read_text("utf-8") == english


def test_a_language_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lang='fr': there are pages in 'en' and 'zh'"):
        samples.sample().save(tmp_path / "fr.html", lang="fr")
    assert not list(tmp_path.iterdir())


def test_the_language_of_the_course_is_that_of_its_pages(in_english: None) -> None:
    capture = samples.sample()
    english = fragment(capture)
    compile_lens.course.language("zh")
    assert fragment(capture) == fragment(capture, "zh") != english
    assert fragment(capture, "en") == english
    assert '<html lang="zh-CN">' in page(capture)


def test_only_the_story_differs_in_the_data() -> None:
    capture = samples.sample()
    english, chinese = parts(capture), parts(capture, CHINESE)
    assert [name for name in english if english[name] != chinese[name]] == ["story"]
    assert encoded(capture) == encoded(capture, ENGLISH)


def test_each_entry_is_chinese_and_keeps_its_places() -> None:
    table = dict(translation.translation(CHINESE))
    signs = re.compile(
        r"[\W\d]|FX|Inductor|roofline|[a-z]?Python|foreach|scatter|pass|include|Lowering|CUDA Graph"
    )
    assert [key for key, value in table.items() if not HAN.search(value) and signs.sub("", value)] == []
    for key, value in table.items():
        places, used = PLACE.findall(key), re.findall(r"\{(\d?)\}", value)
        numbered = [int(number) for number in used if number]
        assert len(numbered) in (0, len(used)), key
        assert set(numbered) <= set(range(1, len(places) + 1)), key
        assert numbered or len(used) <= len(places), key
        assert len(used) == len(places), f"{key!r} loses a place"
