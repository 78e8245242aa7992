"""Lesson 16, your own Triton kernel: its output, and the claims of its text."""

from __future__ import annotations

import re

import lessons
import pytest
from answers import sixteen

pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

NAME = lessons.named("16")


def _cells() -> dict[str, str]:
    return {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}


def _rows(cells: dict[str, str]) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the table of machine code: registers, spilled bytes, loads and wide loads, by elements and block."""
    numbers = [tuple(map(int, line.split())) for line in cells["machine"].splitlines()[1:] if line.strip()]
    return {(count, block): tuple(rest) for count, block, *rest in numbers}


def test_it_shows_what_it_asks() -> None:
    cells = _cells()
    assert "the capture has 1 launch" in cells["around"]
    assert cells["around"].splitlines()[-3:] == [
        "triton_poi_fused_sin_0",
        "double_0",
        "triton_poi_fused_add_relu_1",
    ]
    assert "launches: 3 → 2" in cells["epilogue"] and "extern" in cells["wall"]
    assert re.search(r"tmp4 = \w+\.maximum\(.*\n.*\n *tl\.store\(out", cells["epilogue"])
    blocks = [f"block {n} has {min(256, 1000 - 256 * n)} numbers" for n in range(4)]
    assert cells["interpreter"].splitlines()[1:6] == [*blocks, "as in PyTorch: True"]


def test_a_mask_keeps_loads_apart_and_a_large_block_spills() -> None:
    rows = _rows(_cells())
    apart, together, large, spilled = rows.values()
    assert [*rows] == [(1000, 1024), (1024, 1024), (1024, 16384), (1024, 65536)]
    assert apart[3] == 0 and together[2] == together[3] > 0
    assert lessons.said(lessons.prose(NAME)["machine-meaning"], r"text, (\w+) times as many loads") == (
        apart[2] // together[2],
    )
    assert apart[1] == together[1] == large[1] == 0 < spilled[1]
    assert large[0] >= 128 > spilled[0]


@pytest.mark.skipif(
    bool(sixteen.TRITON), reason="Triton is not installed: pip install 'compile_lens[triton]'"
)
def test_plain_triton_makes_the_same_loads() -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    aligned = [["tt.divisibility", 16]]
    for (count, block), (_, _, loads, wide) in _rows(_cells()).items():
        source = ASTSource(
            fn=sixteen.double,
            signature={"x": "*fp32", "out": "*fp32", "count": "i32", "BLOCK": "constexpr"},
            constexprs={"BLOCK": block},
            attrs={(0,): aligned, (1,): aligned} | ({(2,): aligned} if count % 16 == 0 else {}),
        )
        ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
        assert len(re.findall(r"ld\.global", ptx)) == loads, (count, block)
        assert len(re.findall(r"ld\.global\.v4", ptx)) == wide, (count, block)
    if triton.__version__.startswith("3.7"):
        recorded = {key: rest for key, rest in _rows(_cells()).items()}
        for key, rest in recorded.items():
            assert f"{key}: {rest}" in lessons.prose(NAME)["machine"], "as it is recorded"


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
