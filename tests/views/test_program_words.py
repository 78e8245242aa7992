"""Torch's expressions in reasons and advice are written as the program writes them."""

from __future__ import annotations

import pytest
import torch

from compile_lens import watch
from compile_lens.record.messages import in_program_words
from compile_lens.views.words import causes, remedies


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("net._modules['body']._modules['2']._parameters['gain'].size(1)", "net.body[2].gain.size(1)"),
        ("net._modules['by-name']._buffers['mean']", "net['by-name'].mean"),
        ("type(g.__code__)", "type(the code of g)"),
        ("len(g.__closure__[1].cell_contents) == 4", "len(free variable 2 of g) == 4"),
        ("x.size(0)", "x.size(0)"),
    ],
)
def test_an_expression_of_torch(expression: str, written: str) -> None:
    assert in_program_words(expression) == written
    if written.startswith("net."):
        net = torch.nn.Module()
        net.body = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Module())
        net.body[2].gain = torch.nn.Parameter(torch.ones(3, 7))
        assert eval(expression) == eval(written) == 7


@pytest.mark.torch
def test_a_free_variable_has_its_name() -> None:
    def holding(scale: int, zeros: int) -> object:
        return lambda x: x * scale + zeros

    def outer(x: torch.Tensor, inner: object) -> torch.Tensor:
        assert callable(inner)
        return inner(x)

    torch._dynamo.reset()
    with watch() as program:
        compiled = torch.compile(outer, backend="eager")
        compiled(torch.ones(2), holding(3, 5))
        compiled(torch.ones(2), holding(3, 6))
    (recompilation,) = (v.recompilation for v in program.record.evaluations if v.recompilation is not None)
    sentence = causes.again(recompilation)
    assert sentence.startswith(
        "free variable zeros of inner was 5, now 6; free variable zeros of inner became a symbol"
    )
    assert "cell_contents" not in sentence + remedies.to_try(recompilation)
