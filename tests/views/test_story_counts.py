"""Groups, kernels and launches of different number: reconciled from the record, recounted in its text."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compile_lens import capture
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.views.live.page import plain_parts as parts
from compile_lens.views.story import between

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def twice(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.tanh(x @ v) @ w) @ v


def normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (64,), w, b)


def phases(found: Any) -> dict[str, tuple[int, int, int, int, int]]:
    """Return by phase: groups, kernels, launches, kernels of more than one launch, kernels of more groups than
    launches, from the saved JSON and the text of ``call`` in the generated module."""
    (compilation,) = json.loads(found.to_json())["compilations"]
    results = {}
    for stage in compilation["stages"]:
        if "kernels" not in stage:
            continue
        phase = stage["phase"]
        (groups,) = (
            s for s in compilation["stages"] if (s.get("stage"), s.get("phase")) == ("groups", phase)
        )
        work = [n for n in groups["nodes"] if n["kind"] not in ("nop", "input", "output", "constant")]
        call = stage["text"][stage["text"].index("def call(") :]
        launched = re.findall(r"^\s+(?:\w+ = )?(cpp_fused\w*|extern_kernels\.\w+)\(", call, re.MULTILINE)
        own = [name for name in launched if name.startswith("cpp")]
        again = {name for name in own if own.count(name) > 1}
        held = {k["name"]: len(k["groups"]) for k in stage["kernels"] if k["name"] in own}
        several = [name for name, count in held.items() if count > own.count(name)]
        library = len(launched) - len(own)
        results[phase] = (len(work), len(set(own)) + library, len(launched), len(again), len(several))
    return results


@pytest.mark.parametrize(
    ("f", "sizes"), [(twice, ((8, 16), (16, 16), (16, 16))), (normed, ((32, 64), (64,), (64,)))]
)
def test_why_groups_kernels_and_launches_differ(f: Any, sizes: Any) -> None:
    record = capture(f, *(torch.rand(*size, requires_grad=True) for size in sizes))
    by_phase = {key: [s.text for s in some if s.key == "counts"] for key, some in between(record).items()}
    differ = 0
    for phase, (groups, kernels, launches, again, several) in phases(record).items():
        texts = by_phase[record.compilations[0].id, phase]
        if groups == kernels == launches:
            assert texts == []
            continue
        differ += 1
        (text,) = texts
        assert [int(n) for n in re.findall(r"\d+(?= (?:group|kernel|launch)(?:s|es)?[,:])", text)] == [
            groups,
            kernels,
            launches,
        ]
        more = re.search(r"(\d+) kernels? (?:is|are) launched more than once", text)
        wide = re.search(r"(\d+) kernels? computes? several groups in one launch", text)
        assert (int(more[1]) if more else 0, int(wide[1]) if wide else 0) == (again, several), text
        chinese = [s.text for s in record.story(lang="zh").sentences if s.key == "counts"]
        assert any(re.findall(r"\d+", one) == re.findall(r"\d+", text) for one in chinese)
    assert differ


def test_nothing_is_said_where_they_agree() -> None:
    record = capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.rand(1000, requires_grad=True))
    assert not [s for s in record.story().sentences if s.key == "counts"]


def test_it_says_what_to_try_once_for_all_pairs_of_one_remedy() -> None:
    record = capture(lambda x: torch.softmax(x, 0), torch.rand(64, 64))
    remedies = {pair.why.remedy for pair in unfused_pairs(record, "0/0", "inference")} - {""}
    tried = [one for one in record.story().sentences if one.key == "to_try"]
    assert remedies and len(tried) == len(remedies)
    assert all(remedy in str(record.story()).replace("\n  ", " ") for remedy in remedies)
    (chinese,) = (one.text for one in record.story("zh").sentences if one.key == "to_try")
    assert "转置" in chinese and not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", chinese)


def test_no_shared_data_is_explained_where_both_touch_a_buffer() -> None:
    data = str(parts(capture(lambda x: torch.softmax(x, 0), torch.rand(512, 512))))
    quoted = re.findall(r"“no shared data”(.{0,30})|\\u201cno shared data\\u201d(.{0,30})", data)
    assert quoted and all("".join(rest).startswith(" (it counts only") for rest in quoted)
