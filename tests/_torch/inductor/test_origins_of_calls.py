"""Origins of calls (the program's Triton kernels, operators that write to an argument) and of the kernels around them,
against the operators in the kernels' own text. The lines are known: each operator stands on its own line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module", autouse=True)
def operators() -> Iterator[None]:
    with torch.library._scoped_library("origins_of_calls", "FRAGMENT") as library:
        library.define("scale_(Tensor(a!) x) -> ()")
        library.define("read(Tensor x, Tensor(a!) out) -> Tensor")
        library.impl("scale_", _scale, "CPU")
        library.impl("read", lambda x, out: out.copy_(x) + 1, "CPU")
        library.impl("scale_", lambda x: None, "Meta")
        library.impl("read", lambda x, out: torch.empty_like(x), "Meta")
        yield


def _scale(x: torch.Tensor) -> None:
    x.mul_(0.5)


def scaled(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch.ops.origins_of_calls.scale_(y)
    return y.cos()


def scaled_twice(x: torch.Tensor) -> torch.Tensor:
    y = x.exp() + 1
    torch.ops.origins_of_calls.scale_(y)
    z = y.tan() * 2
    torch.ops.origins_of_calls.scale_(z)
    return z.cos()


def two_arguments(x: torch.Tensor) -> torch.Tensor:
    out = x.sin()
    e = x.exp()
    read = torch.ops.origins_of_calls.read(e, out)
    return read.tan() + out.cos()


def product(x: torch.Tensor) -> torch.Tensor:
    return x.sin() @ x.exp()


def triton(x: torch.Tensor) -> torch.Tensor:
    import triton_kernels as k

    y = (x.sin() + 1).contiguous()
    z = k.launched(y, x.exp())
    return k.launched(z.tan(), x).cos()


OPERATORS = ("sin", "cos", "exp", "tan")


def text_of(kernel: Any) -> set[str]:
    """Operators that appear in the text of a kernel, in C++ or Triton."""
    return {name for name in OPERATORS if f"{name}(" in kernel.source.replace("rsqrt", "")}


def check(seen: Capture, calls: tuple[str, ...], words: Callable[[Any], set[str]] = text_of) -> None:
    nodes = {n.name: n.target for n in seen.compilations[0].graphs["inference.post_grad"].nodes}
    for kernel in seen.kernels:
        own = {name for name in OPERATORS for o in kernel.origins if f".{name}." in nodes[o]}
        called = [o for o in kernel.origins if any(call in nodes[o] for call in calls)]
        if kernel.language == "extern" or kernel.kind == "template":
            assert own == set() and len(kernel.origins) == 1 and (called or "mm" in kernel.origins[0])
            continue
        assert called == [] and own == words(kernel), kernel.name
        for line in kernel.lines:
            assert set(line.origins) <= set(kernel.origins)
            assert line.origins or line.no_origin, line


@pytest.mark.parametrize("function", [scaled, scaled_twice, two_arguments, product])
def test_a_call_computes_itself_and_nothing_else_does(function: Callable[..., Any]) -> None:
    seen = capture(function, torch.rand(8, 8))
    check(seen, ("origins_of_calls", "aten.mm"))
    assert "computed more than once" not in full(seen)
    for kernel in seen.kernels:
        lines = [frame.text for frame in seen.chain.lines(kernel)]
        assert any("origins_of_calls" in line for line in lines) == ("origins_of_calls" in kernel.name)


@pytest.mark.full
def test_a_kernel_of_the_programs_is_not_what_its_arguments_are() -> None:
    pytest.importorskip("triton")
    seen = capture(triton, torch.rand(33, 70), target="h100")
    own = [k for k in seen.kernels if "added" in k.name]
    names = {o for k in own for o in k.origins}
    assert len(names) == 2 and all("triton_kernel_wrapper" in name for name in names)
    for kernel in seen.kernels:
        if kernel not in own:
            assert names.isdisjoint(kernel.origins)
    assert "computed more than once" not in full(seen)
