"""``generate`` returns the source of the one kernel, or explains why there is not exactly one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from short_programs import around_a_sort, broken, one, over_the_wrong_dimension

import compile_lens

pytestmark = pytest.mark.torch

X = torch.rand(64, 64)


def library(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def squared(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum()


def plain(x: torch.Tensor) -> int:
    return 3


def why_not(fn: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(compile_lens.NotOneKernelError) as caught:
        compile_lens.generate(fn, *args, **options)
    assert isinstance(caught.value.capture, compile_lens.Capture)
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_it_is_the_source_that_torch_itself_writes(child: Callable[..., str]) -> None:
    source = compile_lens.generate(one, X)
    program = """
import torch
from torch._inductor.utils import run_and_get_code
_, codes = run_and_get_code(torch.compile(lambda x: torch.sin(x) * 2), torch.rand(64, 64))
print(*codes)
"""
    written = child(program)
    body = [line.strip() for line in source.splitlines() if line.strip() and "kernel(" not in line]
    assert len(body) > 5 and "tmp1 = tmp0.sin()" in source
    assert all(line in written for line in body), source


def test_for_a_device_that_is_not_there() -> None:
    source = compile_lens.generate(one, X, target="h100")
    assert "@triton.jit" in source and "sin" in source
    assert compile_lens.generate(one, X, target="mps").count("kernel void") == 1


def test_what_a_library_call_keeps_apart() -> None:
    said = why_not(around_a_sort, X)
    assert said.startswith("around_a_sort is 3 kernels, not one")
    assert "torch.ops.aten.sort.stable, library call" in said and "short_programs.py:" in said
    # Without columns (Python 3.10) an operator is identified by its line only.
    assert re.search("cpp_fused_gelu_0 and torch.ops.aten.sort.stable, that is (a part of )?`", said)
    assert "is a call of a library: Inductor did not generate its loop" in said


def test_what_a_reduction_keeps_apart_and_what_to_try() -> None:
    said = why_not(over_the_wrong_dimension, X, target="h100")
    assert "(reduction barrier)" in said
    assert "to try:\n  Reduce over the last dimension" in said
    # The advice is right: over the last dimension it is one kernel.
    assert compile_lens.generate(lambda x: x - x.sum(1, keepdim=True).softmax(1), X, target="h100")


def test_a_graph_break_is_told_with_its_line() -> None:
    said = why_not(broken, X)
    assert "broken is 2 kernels, not one" in said
    assert "A graph break ← short_programs.py:" in said and "torch._dynamo.graph_break()" in said


def test_forward_and_backward_are_two() -> None:
    x = torch.rand(100, requires_grad=True)
    said = why_not(squared, x)
    assert "squared is 2 kernels, not one" in said and "backward=False leaves the forward alone" in said
    assert "kernel(" in compile_lens.generate(squared, x, backward=False)


def test_a_library_call_has_no_source() -> None:
    assert why_not(library, X).startswith("library is one kernel without a source: it is a call of a library")


def test_nothing_was_compiled() -> None:
    assert why_not(plain, X).startswith("plain has no kernel: nothing was compiled")


def test_what_was_left_to_python_is_told() -> None:
    @torch._dynamo.disable
    def outside(x: torch.Tensor) -> torch.Tensor:
        return x.tanh()

    def calls(x: torch.Tensor) -> torch.Tensor:
        return outside(x.sin())

    # One kernel was compiled, but the function contains more than that.
    said = why_not(calls, X)
    assert "calls is not one kernel: Python runs a part of it" in said and "test_generate.py" in said


def test_options_are_those_of_capture() -> None:
    with pytest.raises(
        compile_lens.UsageError, match=r"^generate needs a callable first, got 3 .*, generate\(f, x\)"
    ):
        compile_lens.generate(3)
    with pytest.raises(
        compile_lens.UsageError, match=r"^generate has no argument 'swiches' .*; it has kwargs, target, "
    ):
        compile_lens.generate(one, X, swiches=["dynamic"])
    with pytest.raises(compile_lens.UsageError, match=r"no argument 'tagret' .*; did you mean 'target'"):
        compile_lens.generate(one, X, tagret="h100")
