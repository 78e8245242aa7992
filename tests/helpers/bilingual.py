"""Facts that must be equal in a text and its Chinese version: code without its prose, numbers in digits or words."""

from __future__ import annotations

import ast
import re
from typing import Any

_WORDS = "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
NUMBERS = dict(zip(_WORDS.split(), range(17))) | {"seventeen": 17, "once": 1, "twice": 2}

WIDE = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
"""Chinese characters and punctuation, for a character class of a pattern."""

WORDS = NUMBERS | {
    **{"twenty": 20, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90},
    **{"hundred": 100, "thousand": 1000, "million": 10**6},
    **{"first": 1, "second": 2, "both": 2, "two": 2, "half": 2, "third": 3, "fourth": 4, "either": 2},
}
"""Values of English number words."""

NUMERALS = {mark: value for value, mark in enumerate("二三四五六七八九十", 2)} | {"两": 2}
"""Values of Chinese numerals, without 一, which is also the article."""

NO_NUMBER = re.compile("三角|四分位")
"""Words that contain a numeral but count nothing: triangle and trigonometry; quartile."""


FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def is_chinese(text: str) -> bool:
    return re.search(f"[{WIDE}]", text) is not None


def told(code: str) -> ast.Module:
    """Return code without its comments, with stories and course answers in one language."""
    english = re.sub(r'^course\.language\("zh"\).*\n?', "", code, flags=re.M)
    return ast.parse(english.replace('.story("zh")', ".story()"))


def same(one: Any, other: Any) -> bool:
    """Return True if two pieces of code are equal, except for texts that are Chinese in the second.

    Texts that name an exercise must be the same, and so must the expressions in a text's braces, in any order. A text
    may have no number that the other lacks.
    """
    if type(one) is not type(other):
        return False
    # The name of a series is prose: it is shown beside its slider.
    if isinstance(one, ast.Call) and re.match(r"course\.(?!series)", ast.unparse(one.func)):
        return ast.dump(one) == ast.dump(other)
    if isinstance(one, ast.JoinedStr) and is_chinese(ast.unparse(other)):
        parts = [
            sorted(ast.dump(v) for v in node.values if isinstance(v, ast.FormattedValue))
            for node in (one, other)
        ]
        plain = [
            "".join(v.value for v in node.values if isinstance(v, ast.Constant)) for node in (one, other)
        ]
        return parts[0] == parts[1] and numbers_in_chinese(plain[1]) <= numbers_in_english(plain[0])
    if isinstance(one, ast.Constant) and isinstance(other.value, str) and is_chinese(other.value):
        english = one.value if isinstance(one.value, str) else ""
        known = numbers_in_english(english)
        return re.search("[a-z]{2}", english) is not None and numbers_in_chinese(other.value) <= known
    if isinstance(one, ast.AST):
        return all(same(getattr(one, field, None), getattr(other, field, None)) for field in one._fields)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def digits(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in re.findall(r"\d(?:[\d,]*\d)?(?:\.\d+)?", text)}


def numbers_in_english(text: str) -> set[float]:
    """Return the numbers in digits and in words; "twenty-five" is 25, and "two thousand" 2,000."""
    tens = "|".join(word for word, value in WORDS.items() if value in range(20, 100, 10))
    words = re.sub(
        rf"\b({tens})-(\w+)", lambda found: str(WORDS[found[1]] + NUMBERS.get(found[2], 0)), text.lower()
    )
    words = re.sub(
        r"\b(\w+) thousand\b",
        lambda found: str(1000 * NUMBERS[found[1]]) if found[1] in NUMBERS else found[0],
        words,
    )
    return digits(words) | {float(WORDS[word]) for word in re.findall(r"[a-z]+", words) if word in WORDS}


def numbers_in_chinese(text: str) -> set[float]:
    rest = NO_NUMBER.sub("", text)
    return digits(rest) | {float(value) for mark, value in NUMERALS.items() if mark in rest}
