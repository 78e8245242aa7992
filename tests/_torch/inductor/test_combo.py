"""Kernels that Inductor combines into one (``combo_kernels``): each line that computes leads to its operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compile_lens import capture
from compile_lens._torch.inductor import line_text
from compile_lens.record.kernel import LINE_FORMS, UNSAID

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def several(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(x.sin() * 2 for x in xs)


def mixed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin(), y.cos() + 1, z.sum(-1) * 2


CASES: dict[str, tuple[Any, list[torch.Tensor], dict[str, Any]]] = {
    "in turns": (several, [torch.rand(n) for n in (1000, 1100, 1200)], {}),
    "in a row": (several, [torch.rand(30, 40), torch.rand(32, 48), torch.rand(64, 64).t()], {}),
    "own blocks": (
        several,
        [torch.rand(1000), torch.rand(1100)],
        {"combo_kernel_per_subkernel_blocks": True},
    ),
    "with a reduction": (mixed, [torch.rand(1000), torch.rand(1200), torch.rand(300, 40)], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_every_computing_line_of_a_combined_kernel_is_covered(name: str) -> None:
    fn, args, options = CASES[name]
    record = capture(fn, *args, target="h100", options={"combo_kernels": True, **options})
    texts = [(k.source.splitlines(), k) for k in record.kernels if k.source]
    assert any("pid" in line for lines, _ in texts for line in lines), "the kernels were not combined"
    for lines, kernel in texts:
        for mark in kernel.lines:
            text = lines[mark.line - 1]
            computes = text.strip().startswith(("tmp", "_tmp", "tl.store"))
            assert bool(mark.origins) == computes, text
            assert mark.origins or mark.no_origin in LINE_FORMS, text
    cover = record.coverage()
    assert cover.total.line_share == 1 and cover.unexplained == ()


def test_kernels_that_share_a_launch_do_not_share_what_they_read() -> None:
    """By hand: each of two sums reads the whole input, in its own branch."""
    size = 2048 * 1024 * 4

    def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(1), x.sum(0)

    combined = capture(sums, torch.rand(2048, 1024), target="h100", options={"combo_kernels": True})
    apart = capture(sums, torch.rand(2048, 1024), target="h100")
    (kernel,) = [k for k in combined.kernels if "pid" in k.source and (k.reads or 0) >= size]
    assert kernel.source.count("tl.load(in_ptr0") == 2 and kernel.reads == 2 * size
    launches = [c.ledger.total.launches for c in (combined, apart)]
    assert launches == [2, 3] and combined.ledger.total.bytes_after == apart.ledger.total.bytes_after


def test_forms_of_a_combined_kernel() -> None:
    lines = """\
def triton_poi_fused_0(in_ptr0, out_ptr0, XBLOCK : tl.constexpr):
    pid = tl.program_id(0)
    num_xblocks_0 = tl.cdiv(1200, XBLOCK)
    x_blocks_1 = tl.cdiv(1100, XBLOCK_1)
    num_blocks_1 = num_blocks_0 + x_blocks_1
    if pid < num_xblocks_0:
        local_pid = pid
        x_pid_offset = local_pid
        pid_offset = pid
    elif pid % 4 == 1:
        odd(tmp0)
    else:
        pass
""".splitlines()
    index, branch = "index arithmetic", "branch"
    assert line_text.reasons("triton", lines, [False] * len(lines)) == [
        "signature", index, index, index, index, branch, index, index, index, branch, UNSAID, branch, branch,
    ]  # fmt: skip


def test_forms_of_kernels_that_are_functions_of_their_own() -> None:
    """The text is torch 2.15's, in which each combined kernel has its own block sizes."""
    lines = """\
@triton.jit(noinline=True)
def triton_poi_fused_0_body_0(in_ptr0, out_ptr0, x_pid_offset, XBLOCK : tl.constexpr):
    xoffset = x_pid_offset * XBLOCK
    tmp0 = tl.load(in_ptr0 + (x0), xmask)

@triton.jit(noinline=True)
def triton_poi_fused_0_body_1(in_ptr0, out_ptr0, x_pid_offset, XBLOCK : tl.constexpr):
    tmp1 = odd(in_ptr0)

@triton_heuristics.pointwise(
    size_hints={'x': 2048},
)
@triton.jit
def triton_poi_fused_0(in_ptr0, out_ptr0, XBLOCK_0 : tl.constexpr, XBLOCK_1 : tl.constexpr):
    pid = tl.program_id(0)
    if pid < num_blocks_0:
        triton_poi_fused_0_body_0(in_ptr0, out_ptr0, x_pid_offset, XBLOCK_0)
    odd(tmp0)
""".splitlines()
    index, known = "index arithmetic", [line.strip().startswith("tmp0") for line in lines]
    assert line_text.reasons("triton", lines, known) == [
        "signature", "signature", index, "", None,
        "signature", "signature", UNSAID, None,
        "signature", "signature", None, "signature", "signature", index, "branch", "branch", UNSAID,
    ]  # fmt: skip
