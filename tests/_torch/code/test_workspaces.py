"""Library calls on a kernel's workspace in generated wrappers, against the operators that torch dispatches for them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import compile_lens
from compile_lens._torch.code import wrapper
from compile_lens.measures.operators import called
from compile_lens.record.kernel import Code

pytestmark = pytest.mark.torch


def cumulative(x: torch.Tensor) -> torch.Tensor:
    return x.flatten().cumsum(0)


def norms(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


def scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, weight.shape, weight)


def rows_and_columns(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sum(-1), x.sum(0)


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


PROGRAMS: dict[str, tuple[Any, ...]] = {
    "a scan that is split": (cumulative, torch.randn(1024, 1024)),
    "two sums over columns": (norms, leaf(8192, 1024), leaf(1024), leaf(1024)),
    "a sum, cast": (rows_and_columns, torch.randn(32768, 768).bfloat16()),
    "a sum over columns": (scaled, leaf(16384, 512, dtype=torch.bfloat16), leaf(512, dtype=torch.bfloat16)),
}


class Dispatched(TorchDispatchMode):
    """Records the operators that do work, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not func.is_view:
            self.names.append(str(func).removesuffix(".default"))
        return func(*args, **kwargs or {})


def dispatched(code: Code) -> list[str]:
    """Operators that torch dispatches for the wrapper lines that use a workspace, without the launch itself."""
    body = code.text[code.text.index("def call(") : code.text.index("runner = ")]
    memory: dict[str, Any] = {"torch": torch}
    ran: list[str] = []
    for line in map(str.strip, body.splitlines()):
        if re.match(r"workspace_\d+ = ", line):
            size, dtype = re.findall(r"\((\d+), \), \(1, \), (torch\.\w+)\)", line)[0]
            memory[line.split()[0]] = torch.empty(int(size), dtype=eval(dtype))
        elif "workspace_" in line and ".run(" not in line and not line.startswith("del "):
            with Dispatched() as mode:
                exec(line, memory)
            ran += mode.names
    return ran


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_runs_on_a_workspace_is_a_library_call(name: str) -> None:
    function, *args = PROGRAMS[name]
    capture = compile_lens.capture(function, *args, target="h100", backward=len(args) > 1)
    code = list(capture.compilations[0].code.values())[-1]
    externs = [kernel for kernel in code.kernels if kernel.language == "extern"]
    ran = dispatched(code)
    assert ran and [called(kernel.name) for kernel in externs] == ran
    assert capture.ledger.total.launches == sum(k.launches for k in capture.kernels)
    generated = [kernel for kernel in code.kernels if kernel.language != "extern"]
    assert all(kernel.groups and kernel.kind in ("reduction", "scan", "pointwise") for kernel in generated)
    if "zero_" in ran[0]:
        assert "stands for no operator" in externs[0].no_origin
    else:
        assert all(kernel.origins and kernel.reads for kernel in externs)


def test_the_calls_of_a_line_are_in_the_order_in_which_they_run() -> None:
    line = "buf4 = workspace_0[0 * (8) * (4) : (0 + 1) * (8) * (4)].view(8, 4).prod(dim=0).view([4]).to(torch.float16)"
    memory = {"torch": torch, "workspace_0": torch.empty(32)}
    with Dispatched() as mode:
        exec(line, memory)
    assert [called(name) for name in wrapper.library_calls(line)] == mode.names
    assert wrapper.library_calls("size = math.prod(sizes)") == wrapper.library_calls("args.clear()") == []
