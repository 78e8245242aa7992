"""Constants that Inductor folds: every line that contributes to one is linked to the kernel that contains it.

The oracle changes the number in a line and recompiles: the line reaches exactly the kernels whose text changed.
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

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

PROGRAMS = {
    "exp of full": ["c = torch.full((8,), 2.0)", "d = c.exp()", "return d + x"],
    "three steps": ["c = torch.ones(8) * 3.0", "d = c - 0.5", "e = d / 4.0", "return x * e"],
    "two fulls": ["c = torch.full((8,), 2.0)", "d = torch.full((8,), 5.0)", "e = c * d", "return x + e"],
    "arange": ["i = torch.arange(8)", "j = i * 2.5", "return x * j"],
    "like what is not read": ["s = x.sin() * 2.0", "c = torch.full_like(s, 3.0)", "d = c.exp()", "return x - d"],
    "a product with zero": ["s = torch.sin(x * 2.0)", "z = s * 0", "return x * 1.5 + (z + 7.0)"],
    "in kernels apart": [
        "c = torch.full((8,), 2.0)",
        "d = c.exp()",
        "a = (x * d).sum()",
        "e = torch.full((8,), 5.0)",
        "f = e.log()",
        "return torch.mm(w, w).sin() * f + a",
    ],
    "equal, in kernels apart": [
        "c = torch.full((8,), 2.0)",
        "d = c.exp()",
        "a = torch.mm((x * d).expand(8, 8), w)",
        "e = torch.full((8,), 2.0)",
        "f = e.exp()",
        "return a.sin() * f",
    ],
    "a bias of two lines": [
        "scale = torch.tensor(2.0)",
        "shift = scale * 3.0",
        "return torch.nn.functional.softmax(x * shift, 0)",
    ],
    "dtype": ["c = torch.full((8,), 2, dtype=torch.int64)", "d = c.to(torch.float32)", "return x / (d + 0.25)"],
}  # fmt: skip
"""Lines of functions of a vector ``x`` and a matrix ``w``."""

NUMBER = re.compile(r"(?<![\w(])-?\d+\.\d+|(?<=\(\(8,\), )\d+")


def module(path: Path, lines: list[str]) -> Any:
    path.write_text("import torch\n\ndef f(x, w):\n" + "".join(f"    {line}\n" for line in lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def captured(path: Path, lines: list[str], train: bool) -> Capture:
    x, w = torch.rand(8, requires_grad=train), torch.rand(8, 8, requires_grad=train)
    return capture(module(path, lines).f, x, w)


def texts(found: Capture) -> list[str]:
    return [
        "".join(line for line in kernel.source.splitlines() if not line.strip().startswith(("//", "#")))
        for kernel in found.kernels
    ]


@pytest.mark.cases(quick=4, full=5)
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_of_a_folded_constant_is_linked_to_the_kernels_that_it_changes(
    name: str, train: bool, tmp_path: Path
) -> None:
    lines = PROGRAMS[name]
    record = captured(tmp_path / "program.py", lines, train)
    for at, line in enumerate(lines):
        number = NUMBER.search(line)
        if number is None:
            continue
        other = f"{float(number[0]) + 1.25}" if "." in number[0] else f"{int(number[0]) + 1}"
        changed = [*lines[:at], line[: number.start()] + other + line[number.end() :], *lines[at + 1 :]]
        again = captured(tmp_path / f"changed_{at}.py", changed, train)
        pairs = list(zip(texts(record), texts(again), strict=True))
        reached = {kernel.name for kernel, (a, b) in zip(record.kernels, pairs) if a != b}
        file = str(tmp_path / "program.py")
        linked = {kernel.name for kernel in record.chain.kernels(file, at + 4)}
        back = {
            kernel.name
            for kernel in record.kernels
            if any(f.line == at + 4 for f in record.chain.lines(kernel))
        }
        assert (linked, back) == (reached, reached), line
