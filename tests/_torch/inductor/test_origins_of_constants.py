"""Origins of constants that were folded into another node's loop, against generated code: the test changes a constant
in the source, and the kernels and code lines that change with it belong to its line.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = pytest.mark.torch

CHAINED = """
def program(x):
    a = torch.sin(x) * 1.25
    out = torch.full_like(x, 0.75)
    ops.add_to(out, a)
    b = torch.full_like(x, 0.625)
    ops.add_to(b, out)
    d = torch.full_like(x, 0.375)
    ops.add_to(d, b)
    return d, a + 1.75
"""

TWO_ARGUMENTS = """
def program(x):
    a = torch.cos(x) + 2.25
    low = torch.full_like(x, 0.125)
    high = torch.full_like(x, 0.875)
    ops.add_to_both(low, high, a)
    rest = torch.full_like(x, 0.5625)
    ops.add_to_both(rest, low, high)
    return rest, a * 3.25
"""

TWICE = """
def program(x):
    total = torch.full_like(x, 0.75)
    a = torch.exp(x) * 1.25
    ops.add_to(total, a)
    ops.add_to(total, x)
    b = torch.full_like(x, 0.375)
    ops.add_to(b, total)
    ops.add_to(b, a)
    return b - 0.1875
"""

FOLDED = """
def program(x):
    one = torch.ones(32) * 1.25
    a = torch.sin(x) + one
    b = torch.cos(a) - torch.full((32,), 2.5)
    return b * 3.75
"""

TRITON = """
def program(x):
    a = torch.sin(x) * 1.25
    b = torch.cos(x) + 2.25
    out = torch.full_like(x, 0.375)
    other = torch.full_like(x, 0.75)
    kernels.added[(16,)](a, b, out, x.numel(), BLOCK=64)
    kernels.added[(16,)](out, b, other, x.numel(), BLOCK=64)
    return other
"""


def captured(folder: Path, text: str, size: int | tuple[int, ...], **options: Any) -> tuple[Capture, str]:
    """Capture the program in a source text with new inputs, and return the capture and the path of its file."""
    path = folder / f"program_{len(list(folder.iterdir()))}.py"
    helper = "triton_kernels as kernels" if "kernels." in text else "mutating_operators as ops"
    path.write_text(f"import {helper}\nimport torch\n{text}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch._dynamo.reset()
    return capture(module.program, torch.rand(size), **options), str(path)


def constants(text: str) -> list[str]:
    return re.findall(r"\d\.\d+", text)


def check(folder: Path, text: str, size: int = 1024, **options: Any) -> None:
    seen, path = captured(folder, text, size, **options)
    lines = Path(path).read_text().splitlines()
    generated = [kernel for kernel in seen.kernels if kernel.source and "def added" not in kernel.source]
    for constant in constants(text):
        number = next(i for i, line in enumerate(lines, 1) if constant in line)
        other = captured(folder, text.replace(constant, f"{float(constant) + 0.03125}"), size, **options)[0]
        others = [kernel for kernel in other.kernels if kernel.source and "def added" not in kernel.source]
        changed = set()
        for kernel, twin in zip(generated, others, strict=True):
            pairs = zip(kernel.source.splitlines(), twin.source.splitlines(), strict=True)
            for at, (line, new) in enumerate(pairs, 1):
                if line != new:
                    changed.add(kernel.name)
                    address = ("0/0", f"{kernel.phase}.code", f"{kernel.name}:{at}")
                    assert {f.line for f in seen.chain.lines(address)} == {number}, (constant, line)
        assert changed, constant
        linked = {kernel.name for kernel in seen.chain.kernels(path, number) if kernel in generated}
        assert linked == changed, (constant, lines[number - 1])


@pytest.mark.full
@pytest.mark.parametrize("text", [CHAINED, TWO_ARGUMENTS, TWICE], ids=["chained", "two arguments", "twice"])
@pytest.mark.parametrize("target", [None, "h100"])
@pytest.mark.cases(full=2)
def test_operators_that_write_to_arguments(tmp_path: Path, text: str, target: str | None) -> None:
    if target is not None:
        pytest.importorskip("triton")
    check(tmp_path, text, **({} if target is None else {"target": target}))


def test_a_constant_in_the_loop_of_its_reader(tmp_path: Path) -> None:
    check(tmp_path, FOLDED, 32)


@pytest.mark.full
def test_kernels_of_the_programs(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    check(tmp_path, TRITON, target="h100")


def test_an_index_that_is_also_a_value() -> None:
    """A loop that only reads an index also computes it, while another loop uses it as a value."""

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        i = torch.arange(0, 16, 2)
        return (x[i] @ w) + i

    seen = capture(program, torch.rand(32, 8), torch.rand(8, 8))
    generated = [kernel for kernel in seen.kernels if kernel.source]
    assert len(generated) == 2
    assert all(any("iota" in name for name in kernel.origins) for kernel in generated)
    assert [any("iota" in line.origins for line in kernel.lines) for kernel in generated] == [False, True]


def test_a_constant_with_a_buffer_is_inlined_too(tmp_path: Path) -> None:
    text = """
def program(x):
    one = torch.full((1, 8), 1.25)
    return torch.cat([one, x[1:]]).cumprod(0), torch.cat([one, x.sin()]).flip(1)
"""
    seen, _ = captured(tmp_path, text, (4, 8))
    for kernel in seen.kernels:
        assert ("1.25" in kernel.source) == any("full" in name for name in kernel.origins)
        for line in kernel.lines:
            if "1.25" in kernel.source.splitlines()[line.line - 1]:
                assert any("full" in name for name in line.origins)
                assert set(line.origins) <= set(kernel.origins)
