"""Library calls: matrix products that one line calls several times, and the provider of an operator's code."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

import compile_lens
from compile_lens.measures.library_calls import provider_of, repeated_calls

pytestmark = [pytest.mark.torch]

WEIGHTS = torch.rand(4, 16, 16)
UNEVEN = [torch.rand(16, 8 * n) for n in (1, 2, 3, 4)]


def experts(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([(x @ w).tanh() for w in WEIGHTS]).sum(0)


def experts_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    out = x
    for w in WEIGHTS:
        out = out + torch.addmm(x, x, w)
    return out


def steps(x: torch.Tensor) -> torch.Tensor:
    for w in WEIGHTS:
        x = (x @ w).tanh()
    return x


def uneven(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x @ w for w in UNEVEN], 1)


def two(x: torch.Tensor) -> torch.Tensor:
    return sum((x @ w).tanh() for w in WEIGHTS[:2])


def on_lines_of_their_own(x: torch.Tensor) -> torch.Tensor:
    a = x @ WEIGHTS[0]
    b = x @ WEIGHTS[1]
    c = x @ WEIGHTS[2]
    return a.tanh() * b.tanh() * c.tanh()


def batched(x: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x.expand(4, -1, -1), WEIGHTS).tanh().sum(0)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum(layer(x).tanh() for layer in self.layers)


@pytest.mark.parametrize(("fn", "operator"), [(experts, "mm"), (experts_in_a_loop, "addmm")])
def test_calls_of_a_loop_that_need_nothing_of_each_other(
    fn: Callable[[torch.Tensor], torch.Tensor], operator: str
) -> None:
    capture = compile_lens.capture(fn, torch.rand(32, 16) if fn is experts else torch.rand(16, 16))
    [call] = repeated_calls(capture)
    assert (call.operator, call.count) == (operator, len(WEIGHTS))
    assert " @ w" in call.frame.text or "addmm" in call.frame.text
    text = " ".join(capture.text("short").split())
    expression = " of `x @ w`" if fn is experts else " of `torch.addmm(x, x, w)`"
    if sys.version_info < (3, 11):  # frames have no columns
        expression = ""
    assert f"{operator}{expression} is called 4 times, and no call needs another's result" in text


@pytest.mark.parametrize(
    "fn", [steps, uneven, two, on_lines_of_their_own, batched, Layers()], ids=lambda fn: type(fn).__name__
)
def test_calls_that_one_call_cannot_replace(fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    capture = compile_lens.capture(fn, torch.rand(32, 16), backward=False)
    assert repeated_calls(capture) == () and "stacked operands" not in capture.text("short")


NAMESPACES = """
import json, torch, torch._inductor.compile_fx, torch.ao.quantization.fx._decomposed
import torch._inductor.fx_passes.mkldnn_fusion, torch.distributed.tensor, torch.distributed._symmetric_memory
import torch.distributed.fsdp, torch.nn.attention.flex_attention, torch.sparse.semi_structured
print(json.dumps(sorted({name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()})))
"""


@pytest.mark.full
def test_no_operator_that_torch_registers_is_a_custom_one() -> None:
    done = subprocess.run([sys.executable, "-c", NAMESPACES], capture_output=True, text=True, check=True)
    spaces = [space for space in json.loads(done.stdout) if "test" not in space and "onnx" not in space]
    assert {"aten", "mkl", "onednn", "_c10d_functional"} <= set(spaces)
    assert [space for space in spaces if provider_of(f"{space}.op.default") == "a custom operator"] == []


@pytest.mark.parametrize(
    ("operator", "provider"),
    [
        ("torch.ops.mkl._mkl_linear.default", "a library"),
        ("extern_kernels.mm", "a library"),
        ("_c10d_functional.wait_tensor.default", "a collective"),
        ("torch.ops.symm_mem.one_shot_all_reduce.default", "a collective"),
        ("torch.ops.my_library.plus.default", "a custom operator"),
    ],
)
def test_whose_code_an_operator_is(operator: str, provider: str) -> None:
    assert provider_of(operator) == provider


COLLECTIVE = """
import compile_lens, torch, torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
def f(x):
    return fc.all_reduce(x.sin(), "sum", dist.group.WORLD).cos()
capture = compile_lens.capture(f, torch.randn(8))
print(capture.why("sin", "cos"), capture.why("sin", "all_reduce"), capture.text("full"))
"""


@pytest.mark.full
def test_a_collective_is_no_operator_to_write_anew() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTIVE], capture_output=True, text=True, check=True)
    assert "calls of a collective" in done.stdout and "custom operator" not in done.stdout


IN_PLACE = """
import compile_lens, torch, torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
def f(x, y):
    z = x.bmm(y)
    return fc.broadcast(z, 0, dist.group.WORLD).cos()
capture = compile_lens.capture(f, torch.randn(2, 3, 3), torch.randn(2, 3, 3))
print({kernel.name: kernel.origins for kernel in capture.kernels})
"""


@pytest.mark.full
def test_a_call_whose_result_a_collective_overwrites_keeps_its_own_line() -> None:
    done = subprocess.run([sys.executable, "-c", IN_PLACE], capture_output=True, text=True, check=True)
    origins = ast.literal_eval(done.stdout)
    assert origins["extern_kernels.bmm"] == ("bmm",)
    assert origins["torch.ops._c10d_functional.broadcast_.default"] == ("broadcast",)
    assert origins["torch.ops._c10d_functional.wait_tensor.default"] == ("wait_tensor",)


@pytest.mark.full
def test_a_weight_that_freezing_packed_is_no_operator_to_write_anew() -> None:
    linear = nn.Linear(32, 32).eval()

    def program(x: torch.Tensor) -> torch.Tensor:
        return linear(x.sin()).cos()

    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        capture = compile_lens.capture(program, torch.randn(64, 32))
    assert any("mkl" in kernel.name for kernel in capture.kernels), "else this shows nothing"
    assert "custom operator" not in f"{capture.why('sin', 'cos')} {capture.text('full')}"
