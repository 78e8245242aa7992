"""Reasons for an empty compile, if the program or its environment disables the compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import compile_lens

pytestmark = pytest.mark.torch


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.tanh() * 3


@pytest.mark.parametrize("stance", ["force_eager", "eager_on_recompile", "eager_then_compile"])
def test_a_stance_is_the_reason(stance: str) -> None:
    """Plain torch calls no backend under the stance."""
    x, counter = torch.rand(4), CompileCounter()
    with torch.compiler.set_stance(stance):
        torch.compile(lambda x: x.tanh() * 3, backend=counter)(x)
        of_function = compile_lens.capture(scaled, x)
        of_module = compile_lens.capture(torch.nn.Softplus(), x)
    torch._dynamo.reset()
    assert counter.frame_count == 0
    for capture in (of_function, of_module):
        assert stance in capture.nothing_compiled and "Dynamo" not in capture.nothing_compiled
        assert stance in str(capture)
        with pytest.raises(compile_lens.ExpectationError, match=stance):
            compile_lens.expect(capture).launches(0)


PROGRAM = """
import torch, compile_lens
def scaled(x):
    return x.tanh() * 3
x = torch.rand(4)
assert torch.compile(scaled) is scaled or torch.compile(scaled)(x).equal(scaled(x))
for callable_, calls in ((scaled, None), (torch.nn.Linear(4, 2).forward, None), (scaled, [(x,), (x,)])):
    given = {"calls": calls} if calls else {}
    print(compile_lens.capture(callable_, *(() if calls else (x,)), **given).nothing_compiled)
"""


@pytest.mark.full
@pytest.mark.parametrize("variable", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_a_variable_of_the_environment_is_the_reason(variable: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, variable: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    reasons = ended.stdout.splitlines()
    assert len(reasons) == 3 and all(
        "torch.compile is switched off in this process" in one for one in reasons
    )


def test_a_function_of_torchs_hooks_is_no_layer() -> None:
    """``BackwardHookFunction.forward`` runs without a module, though its file is next to torch's layers."""
    layer = torch.nn.Bilinear(3, 3, 2)
    layer.register_full_backward_hook(lambda module, entering, leaving: None)

    def f(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return layer(a, b).sin()

    capture = compile_lens.capture(f, torch.rand(2, 3, requires_grad=True), torch.rand(2, 3))
    names = [skip.function for skip in capture.skipped]
    assert capture.breaks and not [name for name in names if name.startswith("NoneType")]
