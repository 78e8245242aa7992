"""Text of ``what_if`` views: code to copy beside each helpful switch, and no pair that adds nothing."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import pytest
from samples import sample

from compile_lens.record.what_if import Trial
from compile_lens.results.comparison import WhatIf
from compile_lens.trials.switches import SWITCHES, CaptureContents
from compile_lens.views.render import html as page
from compile_lens.views.render import markdown, text
from compile_lens.views.subjects.what_if import document, heading

LONG = 'torch.compile(f, options={"a": 1, ' + '"b": 2, ' * 30 + '"c": 3})'
HOSTILE = 'torch.compile(f, options={"x": "</pre><script>`|```"})'


def trial(name: str, to_apply: str = "", **figures: tuple[int | None, int | None]) -> Trial:
    parts = tuple(name.split(" + ")) if " + " in name else ()
    return Trial(name, (f"{name}=1",), "…", tuple(figures.items()), "", sample(), True, {}, to_apply, parts)


def found(*trials: Trial) -> WhatIf:
    return WhatIf("f", sample(), trials)


ONE = trial("one", launches=(4, 2))
TWO = trial("two", bytes=(800, 400))


@pytest.mark.parametrize(
    ("figures", "helps"),
    [
        ({"launches": (4, 2), "bytes": (800, 400)}, True),  # each part has one of them alone
        ({"launches": (4, 1), "bytes": (800, 400)}, True),
        ({"launches": (4, 2)}, False),  # like the first alone
        ({"bytes": (800, 400)}, False),  # like the second alone
        ({"launches": (4, 2), "bytes": (800, 500)}, False),  # more bytes than the second has
        ({"launches": (4, 2), "bytes": (800, 300), "peak": (9, 10)}, False),  # and a higher peak than either
        ({"launches": (4, 2), "bytes": (800, None)}, False),  # not known
        ({"launches": (4, 3), "bytes": (800, 100)}, False),
    ],
)
def test_a_pair_helps_where_it_is_better_than_both(
    figures: dict[str, tuple[int | None, int | None]], helps: bool
) -> None:
    pair = trial("one + two", **figures)
    result = found(ONE, TWO, pair)
    assert (pair in result.helpful) is helps
    assert (pair.name in result.to_dict()["helpful"]) is helps
    shown = str(result)
    if helps:
        assert result.helpful[0] is pair
        assert "pairs no better" not in shown
    else:
        assert shown.count("one + two") == 1
        assert "pairs no better than one of their two switches" in shown


def test_a_pair_that_only_changes_figures_is_told_once() -> None:
    worse = trial("one + two", launches=(4, 5))
    assert worse not in found(ONE, TWO, worse).helpful


@pytest.mark.parametrize("code", [LONG, HOSTILE, "import torch._functorch.config\ntorch.compile(f)"])
def test_each_view_has_the_code_as_it_is(code: str, tmp_path: Path) -> None:
    result = found(trial("one", code, launches=(4, 2)), trial("worse", "torch.compile(g)", launches=(4, 9)))
    lines = [line.strip() for line in text.page(document(result), width=60, ascii=False).split("\n")]
    assert [line for line in lines if line in code.split("\n")] == code.split("\n"), "none is wrapped"
    shown = re.search(r"^(`{3,})python\n(.*?)\n\1$", markdown.page(document(result)), re.M | re.S)
    assert shown is not None and shown[2] == code
    (listing,) = re.findall(r'<pre class="cl-apply"[^>]*>(.*?)</pre>', page.fragment(document(result)), re.S)
    assert html.unescape(listing) == code and "<script" not in page.fragment(document(result))
    assert json.loads(result.to_json())["trials"][0]["to_apply"] == code
    for view in (str(result), markdown.page(document(result)), page.fragment(document(result))):
        assert "torch.compile(g)" not in view, "what does not help is no advice"


def test_one_loop_is_one() -> None:
    (fusion,) = [switch for switch in SWITCHES if switch.name == "max_fusion_size"]
    held = CaptureContents(sample())
    for count, words in ((1, "there is 1 loop, and"), (2, "there are 2 loops, and")):
        held.loops = held.loops[:1] * count
        assert fusion.idle(held) == f"{words} one kernel may hold 64"
        held.settings = {"torch._inductor.config.max_fusion_size": "2"}
        assert fusion.idle(held) == f"{words} one kernel may hold 2"
        held.settings = {}


def test_a_lambda_goes_by_its_line() -> None:
    capture = sample()
    name = "main.<locals>.<lambda>"
    sources = (dataclasses.replace(capture.sources[0], name="<lambda>"),)
    result = WhatIf(name, dataclasses.replace(capture, function=name, sources=sources))
    at = f"{capture.sources[0].file.rpartition('/')[2]}:{capture.sources[0].first_line}"
    assert heading(result) == f"what would change the lambda of {at}"
    assert heading(dataclasses.replace(result, function="main.<locals>.f")).endswith("main.<locals>.f")
