"""The loop of each kernel line, checked against the loop that Inductor was generating when it wrote the line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def joined(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.sin(), x.cos(), x.tanh() + x.exp()]).sum(1)


def normal(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu((x - x.mean(0)) / x.var(0).sqrt())


@pytest.mark.parametrize("function", (wave, softmax, joined, normal))
def test_lines_stand_in_the_loops_that_were_being_written(
    function: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: dict[str, set[str]] = defaultdict(set)
    real = IndentedBuffer.writeline

    def writeline(buffer: Any, line: Any) -> Any:
        node = getattr(V.kernel, "current_node", None)
        text = getattr(line, "line", line)
        if node is not None and isinstance(text, str):
            written[text.strip()].update(one.get_name() for one in node.get_nodes())
        return real(buffer, line)

    monkeypatch.setattr(IndentedBuffer, "writeline", writeline)
    record = capture(function, torch.rand(64, 64, requires_grad=True))
    stood = _loops(record)
    assert len(stood) >= 10
    for text, several, loops in stood:
        if text in written and not several:  # a line of several operators is generated once, for the first
            assert loops <= written[text], text
    if function is wave:  # one loop in each phase: it contains every line that computes
        assert all(loops == {"op0"} for _, _, loops in stood)


def _loops(found: Capture) -> list[tuple[str, bool, set[str]]]:
    """Lines with origins: the text, True if it has several origins, and the loops that contain it."""
    (compilation,) = found.compilations
    rows = []
    for kernel in found.kernels:
        texts = kernel.source.splitlines()
        for line in kernel.lines:
            address = (compilation.id, f"{kernel.phase}.code", f"{kernel.name}:{line.line}")
            loops = {name for _, key, name in found.chain.beside(address) if key.endswith(".loops")}
            if line.origins:
                rows.append((texts[line.line - 1].strip(), len(line.origins) > 1, loops))
    return rows
