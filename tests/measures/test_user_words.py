"""Answers of ``why`` in the words of the program: real patterns, each with the words that a reader would look for."""

from __future__ import annotations

import re
import sys

import pytest
import samples_findings
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from compile_lens import capture
from compile_lens.measures.library_calls import MAX_AUTOTUNE
from compile_lens.measures.user_words import UserWords
from compile_lens.results.capture import Capture

pytestmark = pytest.mark.torch

INTERNAL = re.compile(r"\b(buf\d+|op\d+|primals_\d+|arg\d+_\d+)\b")


def softmax_and_product(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    scores = torch.softmax(q @ k, -1)
    return scores @ k.transpose(-1, -2)


def two_reductions(x: torch.Tensor) -> torch.Tensor:
    rows = x.sum(1)
    columns = x.sum(0)
    return rows.mean() + columns.max()


def product_and_relu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return y.relu()


def line(fn: object, offset: int) -> str:
    return f"test_user_words.py:{fn.__code__.co_firstlineno + offset}"  # type: ignore[attr-defined]


def attention() -> Capture:
    return capture(softmax_and_product, torch.rand(8, 32, 16), torch.rand(8, 16, 32))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")
def test_lines_and_expressions_stand_in_place_of_buffers() -> None:
    record = attention()
    first, second = line(softmax_and_product, 1), line(softmax_and_product, 2)
    answer = record.why("cpp_fused__softmax_0", "extern_kernels.bmm#2")
    assert answer.words == (
        f"`torch.softmax(q @ k, -1)` ({first})",
        f"`scores @ k.transpose(-1, -2)` ({second})",
    )
    assert answer.answer.startswith(f"`scores @ k.transpose(-1, -2)` ({second}) is a call of a library")
    text = str(answer)
    assert not INTERNAL.search(text.partition("\n")[2]), text
    assert text.index("saved at most") < text.index("- ")  # the gain comes before the details


def test_the_answer_about_lines_is_the_one_that_saves_most() -> None:
    """A line's work is in forward and backward; the lines alone are a valid query."""

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(x @ w)
        return F.layer_norm(h, (32,)).square().mean()

    x, w = (torch.rand(32, 32, requires_grad=True) for _ in range(2))
    record = capture(f, x, w)
    first, second = line(f, 1), line(f, 2)
    chosen = record.why(first, second)
    each = [record.why(first, second, phase=phase) for phase in ("forward", "backward")]
    apart = [one.saved or 0 for one in each if one.verdict == "not fused"]
    if not apart:
        pytest.skip("this torch fuses them")
    assert chosen.saved == max(apart) and chosen.where in {one.where for one in each}
    assert any(re.fullmatch(r"in 0/0 (for|back)ward: [a-z ]+", fact) for fact in chosen.facts)


def test_a_kernel_of_one_phase_picks_the_call_of_the_other() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).square().sum()

    x, w = (torch.rand(16, 16, requires_grad=True) for _ in range(2))
    record = capture(f, x, w)
    kernel = next(k for k in record.kernels if k.phase == "forward" and k.language != "extern")
    assert sum(k.name.startswith("extern_kernels.mm") for k in record.kernels) > 1
    assert record.why(kernel, "extern_kernels.mm").where == "0/0 forward"


def test_a_remedy_is_the_part_that_applies() -> None:
    record = capture(two_reductions, torch.rand(64, 48))
    answer = record.why(line(two_reductions, 1), line(two_reductions, 2))
    assert answer.reason == "different indices" and "same dimensions" in answer.remedy
    assert "reshape" not in answer.remedy  # there is none to remove


def test_nobody_is_told_to_take_out_a_reshape_that_is_not_there() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (128,)).square().mean()

    record = capture(f, torch.rand(64, 128))
    remedies = {pair.remedy for pair in _pairs(record)}
    assert not any("reshape" in remedy for remedy in remedies), remedies


@pytest.mark.full
def test_templates_are_to_be_tried_where_there_are_some_and_they_are_not_timed_already() -> None:
    """The advice is for the kernel's strip: ``why`` itself advises nothing that leaves this capture unchanged."""
    pytest.importorskip("triton")
    given = torch.rand(256, 256, dtype=torch.float16), torch.rand(256, 256, dtype=torch.float16)
    (pair,) = _pairs(capture(product_and_relu, *given, target="h100"))
    assert pair.remedy == f"{MAX_AUTOTUNE}, which needs the device" and not pair.why.remedy
    for options in (
        {"target": "h100", "mode": "max-autotune"},
        {},
    ):  # timed already; no template for such weights
        (pair,) = _pairs(capture(product_and_relu, *given, **options))
        assert not pair.remedy


def _pairs(record: Capture) -> tuple:
    from compile_lens.measures.unfused_pairs import all_unfused_pairs

    return all_unfused_pairs(record)


def test_evidence_names_buffers_in_the_words_of_the_program() -> None:
    """op0 and op1 belong to one line; a buffer that leads to no line keeps its name."""
    words = UserWords(samples_findings.told(), "0/0", "forward")
    line = "a part of `torch.sin(x) ** 2 + torch.cos(x) ** 2` (example.py:5)"
    assert words.evidence("both touch op0, op1; 3 against 4") == f"both touch {line}; 3 against 4"
    assert words.evidence("both touch nowhere") == "both touch nowhere"
    assert words.evidence("5 buffers, op0 of them") == "5 buffers, op0 of them"
    assert words.in_loops(["op0"]) == f"op0, the loop of {line}" and words.in_loops(["nowhere"]) == "nowhere"
    assert words.in_loops(["op0", "op1"]) == f"2 loops, of {line}"


class Doubled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 48), torch.nn.Linear(48, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)
        return x + self.down(F.silu(h))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")
def test_what_a_checkpoint_computes_again_is_not_called_a_backward() -> None:
    """By hand: two linear layers run forward, and the backward recomputes the first one for the derivative of silu."""
    net, x = Doubled(), torch.rand(8, 16, requires_grad=True)
    record = capture(lambda x: checkpoint(net, x, use_reentrant=False).sum(), x)
    again = [
        words
        for node in record.compilations[0].graphs["backward.groups"].nodes
        if node.op == "group" and "addmm" in node.target
        for words in [UserWords(record, "0/0", "backward").group(node.name)]
    ]
    assert again[0].startswith("the recomputation of `self.up(x)` (")
    assert all(words.startswith("the backward of ") for words in again[1:])  # a product added to a gradient
    with torch.profiler.profile() as profile:
        (gradient,) = torch.autograd.grad(checkpoint(net, x, use_reentrant=False).sum(), x)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert (
        counts["aten::addmm"] == 2 + 1 + 1 and gradient.shape == x.shape
    )  # eager PyTorch recomputes both layers
    others = [
        UserWords(record, "0/0", "backward").group(node.name)
        for node in record.compilations[0].graphs["backward.groups"].nodes
        if node.op == "group" and ".mm" in node.target
    ]
    assert others and all(words.startswith("the backward of `self.") for words in others)
