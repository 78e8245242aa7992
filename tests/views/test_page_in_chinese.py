"""Choice of pages that are in Chinese, and the table of their sentences."""

from __future__ import annotations

import json
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
from compile_lens.views.words.translator import Translator

HAN = re.compile("[\u4e00-\u9fff]")
PLACE = re.compile(r"\{([nwc=]?)\}")


@pytest.fixture
def in_english() -> Iterator[None]:
    """Restore pages in English afterwards."""
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


def _examples(script: str) -> list[tuple[str, str]]:
    """Return the pairs that the tests of the page's own script expect: a text, and its translation."""
    pairs = re.findall(r'assert\.equal\(translate\(("(?:[^"\\]|\\.)*")\), ("(?:[^"\\]|\\.)*")\)', script)
    return [(json.loads(text), json.loads(expected)) for text, expected in pairs]


def test_the_static_layer_is_translated_as_the_scripts_do() -> None:
    """Both use the same table and the examples of the tests of ``translator.js``."""
    script = (Path(__file__).parents[1] / "viewer" / "translation.test.mjs").read_text("utf-8")
    rows = re.search(r"new Translator\((\[.*?\n  \])\)", script, re.DOTALL)
    assert rows is not None
    table = json.loads(re.sub(r",\s*\]$", "]", rows[1]))
    translate = Translator(table).translate
    examples = _examples(script)
    assert len(examples) > 10
    for text, expected in examples:
        assert translate(text) == expected, text


def test_the_static_layer_is_chinese_but_for_code_and_names() -> None:
    capture = samples.sample()
    english, chinese = (fragment(capture, one).partition("<script")[0] for one in (ENGLISH, CHINESE))
    assert not HAN.search(english)
    for kind in ("pre", "code"):
        code = re.compile(rf"<{kind}\b.*?</{kind}>", re.DOTALL)
        assert code.findall(english) == code.findall(chinese)
    assert len(re.findall("<[a-z]", english)) == len(re.findall("<[a-z]", chinese))
    plain = re.sub(
        r"<(pre|code|style)\b.*?</\1>|<(\w+)[^>]*monospace[^>]*>.*?</\2>", "", chinese, flags=re.DOTALL
    )
    left = [words for words in re.findall(">([^<>]+)<", plain) if re.search(r"(?:\b[a-z]{2,} ){3}", words)]
    assert left == []


def test_sentences_of_a_picture_are_translated_and_names_are_not() -> None:
    svg = '<svg><style>.a b{fill:none}</style><text class="a">3 nodes, 2 calls</text><text>view</text></svg>'
    shown = translation.picture(svg, CHINESE)
    assert "3 个节点" in shown and ">view<" in shown and ".a b{fill:none}" in shown
    assert translation.picture(svg, ENGLISH) == svg
