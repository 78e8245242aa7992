"""The operators listed for a kernel are those in its source, even if one operator becomes several loops.

The oracle removes each operator from the program: kernels that do not contain it keep their source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from suite import rand

from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.record.kernel import Kernel

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

Operator = Callable[[torch.Tensor], torch.Tensor]
PLACES = torch.arange(100).reshape(2, 50) % 50


def same(x: torch.Tensor) -> torch.Tensor:
    return x


def scattered(base: Operator, source: Operator, x: Any, i: Any, y: Any) -> Any:
    return base(x).scatter(-1, i, source(y))


def added(base: Operator, source: Operator, x: Any, i: Any, y: Any) -> Any:
    return base(x).scatter_add(-1, i, source(y))


def greatest(base: Operator, source: Operator, x: Any, i: Any, y: Any) -> Any:
    return base(x).scatter_reduce(-1, i, source(y), "amax")


def put(base: Operator, source: Operator, x: Any, i: Any, y: Any) -> Any:
    return base(x).index_put((i[:, 0],), source(y))


def kernels(program: Any, base: Operator, source: Operator) -> list[Kernel]:
    def fn(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> Any:
        return program(base, source, x, i, y)

    args = (rand(2, 50).detach(), PLACES, rand(2, 50).detach())
    found, _ = perform(Call.read(fn, args, None, CaptureOptions(target="h100"), model=resolve("h100")))
    return [k for k in found.compilations[0].code["inference"].kernels if k.source]


def body(kernel: Kernel) -> str:
    """The code of a kernel without its name and launch metadata, which contain the origins."""
    return re.sub(r"\w*fused\w*", "", kernel.source[kernel.source.index("def ") :])


@pytest.mark.parametrize("program", [scattered, added, greatest, put])
def test_an_operator_is_of_the_kernels_whose_source_changes_without_it(program: Any) -> None:
    whole = kernels(program, torch.sin, torch.exp)
    assert len(whole) == 2
    for name, base, source in (("sin", same, torch.exp), ("exp", torch.sin, same)):
        less = {body(k) for k in kernels(program, base, source)}
        of = [name in k.origins for k in whole]
        assert of == [body(k) not in less for k in whole]
        assert sum(of) == 1


def test_the_second_step_of_a_sum_computes_nothing_of_what_is_summed() -> None:
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.sin().sum()

    found, _ = perform(
        Call.read(
            total, (rand(1000, 1000).detach(),), None, CaptureOptions(target="h100"), model=resolve("h100")
        )
    )
    of = [(k.origins, "sin(" in k.source) for k in found.compilations[0].code["inference"].kernels]
    assert of == [(("sin", "sum_1"), True), (("sum_1",), False)]


CALLS: dict[str, Operator] = {
    "sort": lambda x: x.sort().values,
    "scatter_reduce": lambda x: x.scatter_reduce(0, PLACES[:, :8], x.exp(), "prod"),
    "topk": lambda x: x.topk(2).values,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_library_call_computes_its_own_operator_alone(name: str) -> None:
    """A kernel computes the operand before the call. Inductor calls another overload of the first two operators."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return CALLS[name](x.sin())

    found, _ = perform(Call.read(fn, (rand(50, 8).detach(),)))
    code = found.compilations[0].code["inference"]
    (call,) = (k for k in code.kernels if k.language == "extern")
    assert name in call.name and call.origins == (name,)
