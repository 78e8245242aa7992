"""What a chip says of a pin, `4 of 21 calls`, is counted again in plain torch: share and whole by one definition."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import compile_lens

from .viewer import Viewer, python_line

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

PROGRAM = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        parts = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.mT, -1)
        return x + self.out((scores @ v).transpose(1, 2).flatten(-2))

def deep(count):
    return nn.Sequential(*(Layer() for _ in range(count)))

def broken(x):
    a = torch.sin(x).view(8, 8).T * 2.0
    torch._dynamo.graph_break()
    b = a.cos().reshape(-1)
    return b.relu() * b.sum()

def made(x, n):
    y = torch.arange(x.shape[0]) * n
    return x.view(-1, 1) + y + torch.zeros(1)
"""


def _calls(program: Any, calls: list[tuple[Any, ...]], file: str) -> list[tuple[int, dict[int, int]]]:
    """Of each graph that Dynamo hands over: its calls, and those that stand in each line of the file, as torch itself
    says it in the stack of each node."""
    import torch

    found = []

    def count(graph: Any, example: list[Any]) -> Any:
        nodes = [n for n in graph.graph.nodes if n.op in ("call_function", "call_method", "call_module")]
        lines: dict[int, int] = {}
        for node in nodes:
            stack = re.findall(r'File "(.*?)", line (\d+)', node.stack_trace or "")
            own = [int(number) for name, number in stack if name == file]
            for line in own[-1:]:
                lines[line] = lines.get(line, 0) + 1
        found.append((len(nodes), lines))
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=count)
    for arguments in calls:
        compiled(*arguments)
    torch._dynamo.reset()
    return found


@pytest.mark.parametrize("which", ["layer", "several layers", "break", "recompiled"])
def test_the_share_of_the_calls_is_that_of_torch(
    standalone: Callable[..., Page], tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    file = tmp_path / f"program_{which.replace(' ', '_')}.py"
    file.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module(file.stem)
    tokens = (torch.rand(2, 8, 32),)
    made, calls = {
        "layer": (program.Layer(), [tokens]),
        "several layers": (program.deep(4), [tokens]),
        "break": (program.broken, [(torch.rand(64),)]),
        "recompiled": (program.made, [(torch.rand(8), 2), (torch.rand(8), 3)]),
    }[which]
    wanted = _calls(made, calls, str(file))
    capture = compile_lens.capture(made, calls=calls)
    assert len(wanted) == len(capture.compilations)
    page = Viewer(standalone(capture), capture)
    for number, (whole, lines) in enumerate(wanted):
        if len(wanted) > 1:
            page.choose(number)
        for line, share in lines.items():
            (address,) = (a for a in page.items.lines if a[2] == f"{file}:{line}")
            page.pin(address)
            noun = "call" if whole == 1 else "calls"
            assert page.find(".flow-dynamo .flow-what").inner_text() == f"{share} of {whole} {noun}", line
            page.page.keyboard.press("Escape")


def test_what_is_no_operation_is_no_share_of_the_operations(
    standalone: Callable[..., Page], tmp_path: Path
) -> None:
    """By hand: a permutation and three parts of it move no data, so none of them is an operator of the ledger."""
    import torch

    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    capture = compile_lens.capture(scope["Layer"](), torch.rand(2, 8, 32), backward=False)
    page = Viewer(standalone(capture), capture)
    page.pin(python_line(capture, "parts.permute"))
    assert page.find(".flow-dynamo .flow-what").inner_text().startswith("4 of ")
    ledger = capture.ledger.inference if capture.ledger.inference.exists else capture.ledger.forward
    assert page.find(".flow-aten .flow-what").inner_text() == f"none of {ledger.aten_ops} ops"
