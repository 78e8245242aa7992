"""Derivatives that the program computes itself are linked to the lines that they differentiate.

The oracle is a changed program: kernel terms that disappear with a changed line of the loss belong to that line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch

import compile_lens

pytestmark = pytest.mark.torch

LOSS = """
import torch

def loss(x, w):
    h = torch.sin(x * w)
    k = h ** 3
    return torch.tanh(k).sum()
"""
CHANGED = {"sin": (5, "torch.sin(", "torch.exp(", ".cos()"), "power": (6, "h ** 3", "h * w", "(3.0)")}
"""By name a line of the loss, what is changed in it, and a term of its derivative."""
TAKEN = {
    "grad": "torch.func.grad(loss)(x, w) + x",
    "grad of grad": "torch.func.grad(lambda x, w: torch.func.grad(loss)(x, w).sum())(x, w) + x",
    "value": "sum(torch.func.grad_and_value(loss)(x, w))",
    "vjp": "torch.func.vjp(loss, x, w)[1](x.sum())[0] + x",
    "vmap": "torch.func.vmap(torch.func.grad(loss))(x, w) + x",
    "jacrev": "torch.func.jacrev(loss)(x, w) + x",
    "jvp": "torch.func.jvp(loss, (x, w), (w, x))[1] + x",
}


def program(folder: Path, taken: str, changed: str = "") -> FunctionType:
    text = LOSS
    if changed:
        _, old, new, _ = CHANGED[changed]
        assert old in text
        text = text.replace(old, new)
    text += f"\ndef f(x, w):\n    return {TAKEN[taken]}\n"
    path = folder / f"{taken}_{changed}.py".replace(" ", "_")
    path.write_text(text)
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def inputs(taken: str) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (4, 16) if taken == "vmap" else (16,)
    return torch.rand(shape), torch.rand(shape)


def terms(function: Callable[..., Any], taken: str, mark: str) -> tuple[Counter[str], list[set[int]]]:
    """Count a term in the kernels, and return the lines that each occurrence is linked to."""
    seen = compile_lens.capture(function, *inputs(taken))
    linked = []
    for kernel in seen.kernels:
        text = kernel.source.splitlines()
        for line in kernel.lines:
            if mark in text[line.line - 1]:
                address = ("0/0", f"{kernel.phase}.code", f"{kernel.name}:{line.line}")
                linked.append({frame.line for frame in seen.chain.lines(address)})
    return Counter({mark: len(linked)}), linked


@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.cases(full=4)
def test_a_term_is_linked_to_the_line_that_it_is_the_derivative_of(
    tmp_path: Path, taken: str, changed: str
) -> None:
    line, _, _, mark = CHANGED[changed]
    before, linked = terms(program(tmp_path, taken), taken, mark)
    after, _ = terms(program(tmp_path, taken, changed), taken, mark)
    assert before[mark] > after[mark] == 0, "it was that line's"
    assert all(line in lines for lines in linked)


def test_hooks_of_autograd_are_as_they_were() -> None:
    """The gradient is plain PyTorch's, and the program's own autograd nodes keep their backward."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() ** 3).sum()

    def taken(x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(loss)(x) * 2

    x = torch.rand(8)
    seen = compile_lens.capture(taken, x)
    assert seen.kernels
    y = x.clone().requires_grad_()
    loss(y).backward()
    assert torch.allclose(torch.compile(taken, backend="aot_eager")(x), y.grad * 2)
