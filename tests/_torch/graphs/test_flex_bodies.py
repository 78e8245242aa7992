"""FlexAttention's kernel computes the program's ``score_mod`` and ``mask_mod``. The oracle is the generated code: each
number stands on one Python line only, and the kernels whose code contains it compute that line."""

from __future__ import annotations

import importlib.util
import inspect
import re
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from compile_lens import capture
from compile_lens._torch.graphs import provenance

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def attention(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    def score_mod(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        shifted = (i - j) * 0.1875
        halved = score * 0.4375
        return halved.sin() + shifted

    def mask_mod(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i + 1373 >= j

    mask = create_block_mask(mask_mod, 1, 1, 128, 128, device=q.device.type)
    return flex_attention(q, k, k + 1, score_mod=score_mod, block_mask=mask)  # of torch 2.11 not of k twice


def inputs(learns: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(1, 2, 128, 32, requires_grad=learns), torch.rand(1, 2, 128, 32)


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Inductor needs Triton for the template"
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "learns"),
    [
        ("", False),
        pytest.param("h100", False, marks=needs_triton),
        pytest.param("h100", True, marks=needs_triton),
    ],
)
@pytest.mark.cases(full=2)
def test_a_line_of_a_body_leads_to_the_template_that_has_it_in_line(target: str, learns: bool) -> None:
    asked: dict[str, Any] = {"target": target} if target else {}
    record = capture(attention, *inputs(learns), **asked)
    source, first = inspect.getsourcelines(attention)
    for line, text in enumerate(source, first):
        for number in re.findall(r"0\.\d{4}|1373", text):
            computing = {k.name for k in record.kernels if number in k.source}
            assert computing, number
            assert computing <= {k.name for k in record.chain.kernels(__file__, line)}, text
    templates = [k for k in record.kernels if k.kind == "template"]
    assert len(templates) == 1 + learns
    of_scores = {first + at for at, text in enumerate(source) if re.search(r"0\.\d{4}|halved\.sin", text)}
    for template in templates:
        assert of_scores <= {f.line for f in record.chain.lines(template)}


@needs_triton
def test_the_body_of_one_call_is_not_linked_to_the_kernel_of_another() -> None:
    def twice(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        one = flex_attention(q, k, k, score_mod=lambda score, b, h, i, j: score * 0.1875)
        one = one.sin()
        return flex_attention(one, k, k, score_mod=lambda score, b, h, i, j: score + 0.4375)

    found = capture(twice, *inputs(True), target="h100")
    first = twice.__code__.co_firstlineno
    for line, number in ((first + 1, "0.1875"), (first + 3, "0.4375")):
        computing = {k.name for k in found.kernels if k.kind == "template" and number in k.source}
        reached = {k.name for k in found.chain.kernels(f"test_flex_bodies.py:{line}") if k.kind == "template"}
        assert len(computing) == 2 and computing == reached


@pytest.mark.exhaustive
@needs_triton
def test_noting_changes_nothing_of_what_torch_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = capture(attention, *inputs(True), target="h100").code
    monkeypatch.setattr(provenance, "_traced_body", lambda value: value)
    assert noted == capture(attention, *inputs(True), target="h100").code
