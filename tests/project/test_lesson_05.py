"""Lesson 5, decompositions and lowering: its output, and the claims of its text."""

from __future__ import annotations

import re

import lessons
import pytest
import torch
import torch.nn.functional as F
from torch._inductor.decomposition import select_decomp_table

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("05")


@pytest.mark.exhaustive
def test_it_takes_calls_apart() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    counts = re.findall(r"no guess; the capture has (\d+) ATen operators", cells["reveal"])
    rows = {name: ops for name, *ops in map(str.split, cells["aten"].splitlines())}
    assert rows["mse"] == ["sub.Tensor", "pow.Tensor_Scalar", "mean.default"]
    assert [op.partition(".")[0] for op in rows["gelu"]] == ["mul", "mul", "erf", "add", "mul"]
    assert [op.partition(".")[0] for op in rows["norm"]] == ["var_mean", "add", "rsqrt", "sub", "mul"]
    assert counts == [str(len(rows[name])) for name in ("mse", "gelu", "norm")]
    half, by_root, root = cells["constants"].split()
    assert half == "0.5" and abs(float(by_root) - float(root)) < 1e-15
    loops = cells["norm-loops"].splitlines()
    assert len(loops) == 4 and all("var_mean" in line for line in loops)
    assert [line.count(",") for line in (line.partition(" from ")[2] for line in loops)] == [0, 0, 0, 4]
    last = cells["norm-last"].partition("op3:")[2]
    assert all(f" = {name}(" in last for name in ("sub", "add", "rsqrt", "mul"))
    assert cells["cubed"].startswith("aten.pow.Tensor_Scalar\n") and cells["cubed"].count(" = mul(") == 2


def test_a_pattern_matches_and_misses() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert re.match(r"_sfdp_pattern_\w+: 19 operators became 2\n", cells["passes"])
    assert "_scaled_dot_product_flash_attention_for_cpu" in cells["passes"] and "getitem" in cells["passes"]
    miss = " ".join(cells["miss"].split())
    assert "finds %tanh = aten.tanh.default(%div)" in miss and "without %tanh" in miss
    assert max(map(len, (cells["passes"] + cells["miss"]).splitlines())) <= 100
    before, after = map(int, re.findall(r"launches: (\d+) became (\d+)", cells["miss"])[0])
    assert before == 1 < after


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    x = torch.rand(64, 64)
    gelu = capture(F.gelu, x).ledger.total
    assert lessons.said(prose["take-home"], r"one `gelu` is (\w+) ATen operators") == (gelu.aten_ops,)
    norm = capture(lambda x: F.layer_norm(x, (64,)), x).compilations[0]
    alone = [loop for loop in norm.graphs["inference.loops"].calls if loop.origins == ("var_mean",)]
    assert lessons.said(prose["take-home"], r"one `var_mean` into (\w+) of its own") == (len(alone),)
    cubed = capture(lambda x: x**3, x).compilations[0].graphs["inference.loops"].readable()
    assert lessons.said(prose["cubed-meaning"], r"(\w+) multiplications") == (cubed.count(" = mul("),)


def test_what_it_says_of_decompositions_is_so_in_torchs_own_table() -> None:
    prose = lessons.prose(NAME)["aten-meaning"]
    table = {
        operator.name().partition(".")[0].partition("::")[2]
        for operator in select_decomp_table()
        if isinstance(operator, torch._ops.OpOverload)
    }
    assert "Many large operators have a **decomposition**" in prose and {"mse_loss", "gelu"} <= table
    assert "(Others have none, a convolution or a sort" in prose and not {"convolution", "sort"} & table


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the text speaks of PyTorch 2.13")
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_pattern_of_attention_does_not_look_at_the_dimension(dim: int) -> None:
    """Plain torch compiles attention for it, although the program computes another function."""
    assert "does not look at the dimension of the softmax" in lessons.prose(NAME)["miss-meaning"]

    def over(q: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ q.transpose(-1, -2) / 8, dim) @ q

    q = torch.rand(2, 4, 16, 64)
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(over)(q)
    torch._dynamo.reset()
    torch.testing.assert_close(compiled, F.scaled_dot_product_attention(q, q, q))
    assert (compiled - over(q)).abs().max() > 0.1


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
