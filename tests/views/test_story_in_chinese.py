"""The story in Chinese has the same sentences about the same items, from another table."""

from __future__ import annotations

import ast
import dataclasses
import re
import string
from collections import Counter
from pathlib import Path

import pytest
import samples
import samples_findings
import samples_machine
import samples_targets

from compile_lens.record.figures import AtLeast, Count, Figure
from compile_lens.record.missing import NotApplicable
from compile_lens.results.capture import Capture
from compile_lens.views.story.chinese import CHINESE
from compile_lens.views.story.english import ENGLISH
from compile_lens.views.words.characters import cells, wrap

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = """\
f 的编译故事

整个调用都被编译，得到 1 张图。

Dynamo
  Dynamo 读取了 f（example.py:4）的字节码，记下 5 次调用。它们来自 1 行代码：example.py:5。3 个
  条件全部成立时，这份代码才会被再次使用；这些条件叫守卫（guard）。

AOTAutograd
  AOTAutograd 用更小的算子把前向和反向写进一张联合图（joint graph）：17 次调用。这张图被切成两
  半：前向 5 次调用，反向 12 次调用。前向为反向保存 1 个值：primals_1。

前向
  交给 Inductor 的有 5 个做计算的 ATen 算子。如果不编译，PyTorch 在这里会派发 5 个算子。下降
  （lowering）之后得到 1 个循环。只有一个循环，没有可以与它融合的对象：它就是唯一的组。生成的代
  码里有 1 个内核，语言是 C++：cpp_fused_add_cos_pow_sin_0。每次调用的启动次数：1。每个 ATen 算
  子单独运行要搬运 ~44 kB；融合之后搬运 ~8,000 B。

反向
  交给 Inductor 的有 12 个做计算的 ATen 算子。如果不编译，PyTorch 在这里会派发 12 个算子。下降
  （lowering）之后得到 1 个循环。只有一个循环，没有可以与它融合的对象：它就是唯一的组。生成的代
  码里有 1 个内核，语言是 C++：cpp_fused_add_cos_mul_neg_pow_sin_0。每次调用的启动次数：1。每个
  ATen 算子单独运行要搬运 ~116 kB；融合之后搬运 ~12 kB。

总计
  每张图调用一次，eager PyTorch 需要 17 个算子，编译后是 2 次启动。每个 ATen 算子单独运行的字节
  数：~160 kB；融合之后：~20 kB。字节数是按张量大小推算的，不是测量值。代码只是生成出来，没有构
  建，也没有运行。
"""

CAPTURES = {
    "sample": samples.sample,
    "break": samples.graph_break,
    "skipped": samples.skipped,
    "failed": samples.failed,
    "nothing": samples.nothing,
    "missing": samples.missing,
    "findings": samples_findings.told,
    "h100": samples_machine.h100,
    "split": lambda: samples_targets.reduction("h100", split=True).capture(),
}


def test_the_sample_is_told_stage_by_stage() -> None:
    assert str(samples.sample().story("zh")) == SAMPLE


@pytest.mark.parametrize("name", CAPTURES)
def test_it_says_the_same_of_the_same(name: str) -> None:
    capture: Capture = CAPTURES[name]()
    english, chinese = capture.story(), capture.story("zh")
    assert (english.lang, chinese.lang) == ("en", "zh")
    for one, other in zip(english.sentences, chinese.sentences, strict=True):
        same = ("key", "compilation", "stage", "about", "counts")
        assert [getattr(one, field) for field in same] == [getattr(other, field) for field in same]
        assert one.text != other.text
        assert numbers(one.text) == numbers(other.text), other.text


def numbers(text: str) -> Counter[str]:
    """Return the numbers that a text has in digits, including those in names, in no order."""
    return Counter(re.findall(r"\d(?:[\d.,]*\d)?", text))


def _fields(template: str | tuple[str, str]) -> list[set[str]]:
    forms = (template,) if isinstance(template, str) else template
    return [{field for _, field, _, _ in string.Formatter().parse(form) if field} for form in forms]


def test_both_tables_have_the_same_keys_and_placeholders() -> None:
    assert set(CHINESE.sentences) == set(ENGLISH.sentences)
    for key, template in ENGLISH.sentences.items():
        assert _fields(CHINESE.sentences[key])[0] == _fields(template)[0], key
        assert isinstance(CHINESE.sentences[key], str) == isinstance(template, str), key
    assert set(CHINESE.nouns) == set(ENGLISH.nouns) and set(CHINESE.words) == set(ENGLISH.words)


def test_every_sentence_is_whole() -> None:
    for key, template in CHINESE.sentences.items():
        for form in (template,) if isinstance(template, str) else template:
            assert key == "title" or form.endswith(("。", "{clause}")), key
            assert not set(form) & set(",;:()"), f"{key}: punctuation of another script"
    for key, words in CHINESE.words.items():
        assert key.startswith(("apart.", "try.")) == words.endswith("。"), key
        assert not key.startswith(("apart.", "try.", "realised.")) or not words.isascii(), key


def test_reasons_that_are_always_the_same_are_said_in_chinese() -> None:
    source = (ROOT / "compile_lens" / "_torch" / "ground" / "recorder.py").read_text(encoding="utf-8")
    texts = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert set(CHINESE.reasons) <= texts
    capture = samples.sample()
    for reason, chinese in CHINESE.reasons.items():
        gone = (*capture.compilations[0].stages, NotApplicable("pre_grad", reason))
        one = dataclasses.replace(capture.compilations[0], stages=gone)
        changed = dataclasses.replace(capture, compilations=(one,)).story("zh")
        assert any(s.text == f"没有 pre_grad 阶段：{chinese}。" for s in changed.sentences), reason


@pytest.mark.parametrize(
    ("count", "graphs", "said"),
    [
        (Count(iterations=(Count(4),), fixed=3), 1, "3 + 每次迭代 4 次启动"),
        (Count(iterations=(Count(1), Count(2))), 1, "循环 1 每次迭代 1 + 循环 2 每次迭代 2 次启动"),
        (Count(1, branches=((Count(), Count(2)),)), 1, "1 或 3 次启动"),
        (Count(2, branches=((Count(), Count(2)),), correlated=True), 1, "2 至 4 次启动"),
        (Count(5), 2, "≥ 5 次启动（2 张图中的 1 张）"),
    ],
)
def test_figures_that_are_no_single_number(count: Count, graphs: int, said: str) -> None:
    assert CHINESE.counted(AtLeast(count, graphs=graphs), *CHINESE.nouns["launch"]) == said


def test_bytes() -> None:
    assert CHINESE.amount(Figure(46_137_344, "modelled")) == "~46.1 MB"
    turned = AtLeast(Count(8, (Count(4),)), "modelled", known=1, graphs=1)
    assert CHINESE.amount(turned) == "~8 B + 每次迭代 4 B"


def test_lines_break_between_characters_and_not_before_a_stop() -> None:
    lines = wrap("算子" * 30 + "。" + "（融合）" * 20, 40)
    assert all(cells(line) <= 40 for line in lines)
    assert not any(line[0] in "。）" or line[-1] == "（" for line in lines)
    assert "".join(lines) == "算子" * 30 + "。" + "（融合）" * 20
    assert wrap("one two three", 8) == ["one two", "three"], "other text breaks at spaces"
