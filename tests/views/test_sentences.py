"""Each sentence is defined once: the live page receives sentences shared with Python with its data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import compile_lens
from compile_lens.views.words import sentences

PACKAGE = Path(compile_lens.__file__).parent
SCRIPTS = PACKAGE / "views" / "live" / "web"

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
"""A text in double quotes or in backquotes: the formatter leaves no other quotes."""


def script_sentences(text: str) -> Iterator[str]:
    """Return the sentences in the literals of a script: those of at least four words, without values."""
    text = re.sub(r"/\*.*?\*/|(?m:^\s*//[^\n]*)", "", text, flags=re.DOTALL)
    for plain, template in LITERAL.findall(text):
        for part in re.split(r"\$\{[^}]*\}", plain or template):
            yield from _sentence(part)


def python_sentences(text: str) -> Iterator[str]:
    """Return those in the literals of a Python file, without documentation."""
    tree = ast.parse(text)
    documentation = {
        item.value
        for item in ast.walk(tree)
        if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
    }
    for item in ast.walk(tree):
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and item not in documentation:
            yield from _sentence(item.value)


def _sentence(text: str) -> Iterator[str]:
    words = re.sub(r"\s+", " ", text).strip(" .,;:")
    if len(words.split(" ")) > 3 and re.search("[a-z]{2}", words):
        yield words


def twice(scripts: list[str], files: list[str]) -> list[str]:
    """Return sentences of scripts that equal, contain or are part of a sentence of Python files."""
    known = {words for text in files for words in python_sentences(text)}
    texts = {words for text in scripts for words in script_sentences(text)}
    return sorted(words for words in texts if any(words in other or other in words for other in known))


@pytest.mark.full
def test_no_sentence_stands_in_python_and_in_a_script() -> None:
    scripts = [file.read_text(encoding="utf-8") for file in sorted(SCRIPTS.rglob("*.js"))]
    files = [file.read_text(encoding="utf-8") for file in sorted(PACKAGE.rglob("*.py"))]
    assert len(scripts) > 40 and len({s for text in scripts for s in script_sentences(text)}) > 60
    assert twice(scripts, files) == [], "add it to views/words/sentences.py: the page gets it with its data"


def test_the_scan_sees_one_that_does() -> None:
    code = 'def f():\n    """A view: it moves no data."""\n    return f"{x}: a view: it moves no data"\n'
    assert twice(["h('p', `${name}: a view: it moves no data, ${why}`);"], [code]) == [
        "a view: it moves no data"
    ]
    assert twice(["// a view: it moves no data\n/* a view: it moves no data */"], [code]) == []
    assert twice(['const a = "a view: it moves no data";'], [code.partition("return")[0]]) == []


def test_each_that_the_page_is_given_is_used_there() -> None:
    scripts = "".join(file.read_text(encoding="utf-8") for file in SCRIPTS.rglob("*.js"))
    assert [name for name in sentences.PAGE["en"] if not re.search(rf"\bwords\.{name}\b", scripts)] == []
