"""Branches on a number from a tensor, found in the text of a program."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from compile_lens._torch.frames.number_branches import of_frames
from compile_lens.record.graph import Frame

FUNCTIONS = {
    "read and compared": ("n = x.item()\nif n > 3:\n    x = x + 1", 3),
    "part of the test": ("m = 2\nif x.item() > m:\n    x = x + 1", 3),
    "by other names": ("n = int(x.sum().item())\nk = 2 * n + 1\nwhile k:\n    k -= 1", 4),
    "in an expression": ("n = x.item()\ny = 1 if n else 2", 3),
    "not followed through a call": ("n = x.item()\nk = other(n)\nif k:\n    x = x + 1", None),
    "another number": ("n = x.item()\nk = 3\nif k:\n    x = x + 1", None),
}


@pytest.mark.parametrize(("text", "line"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_line_that_branches(text: str, line: int | None, tmp_path: Path) -> None:
    file = tmp_path / "branching.py"
    file.write_text("def f(x):\n" + textwrap.indent(text, "    ") + "\n    return x\n", encoding="utf-8")
    read = next(n for n, one in enumerate(file.read_text("utf-8").splitlines(), 1) if ".item()" in one)
    branch = of_frames([Frame(str(file), read, "f")])
    assert (branch and branch.line) == line
