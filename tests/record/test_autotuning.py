"""A contest as text: a line for each candidate, and no source."""

from __future__ import annotations

from compile_lens.record.autotuning import Autotuning
from compile_lens.record.kernel import Candidate, Kernel


def test_a_contest_is_printed_in_lines() -> None:
    library = Kernel("extern_kernels.mm", "inference", "extern", "extern", "")
    sizes = (Candidate((("BLOCK_M", 64), ("num_warps", 4))),)
    template = Kernel("triton_mm", "inference", "triton", "template", "import triton", candidates=sizes)
    contest = Autotuning("inference", "mm", ("mm",), ("float16[8, 8]", "float16[8, 8]"), (library, template))
    assert str(contest).splitlines() == [
        "mm of float16[8, 8] and float16[8, 8] (inference): nothing was timed",
        "  extern_kernels.mm (extern)",
        "  triton_mm (triton), BLOCK_M=64, num_warps=4",
    ]
