"""Lines inside bodies lead to the kernels that compute them. The oracle is the generated code: each number stands on
one Python line only, and the kernels whose code contains it compute that line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def loop(x: torch.Tensor) -> torch.Tensor:
    def check(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y.sum() < -731.5

    def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = y.sin() * 1.375
        w = z @ z
        i = i + 1
        return i, w + 2.625

    _, y = while_loop(check, body, (torch.zeros((), dtype=torch.int64), x))
    return y.cos() + 4.125


def branches(x: torch.Tensor) -> torch.Tensor:
    def yes(y: torch.Tensor) -> torch.Tensor:
        a = y.sin() * 1.375
        return a.exp() + 2.625

    def no(y: torch.Tensor) -> torch.Tensor:
        return y.cos() - 3.875

    return torch.cond(x.sum() > 0, yes, no, (x,)) + 4.125


def nested(x: torch.Tensor) -> torch.Tensor:
    def inner(q: torch.Tensor) -> torch.Tensor:
        return q.tanh() + 5.125

    def other(q: torch.Tensor) -> torch.Tensor:
        return q.exp() - 6.625

    def yes(y: torch.Tensor) -> torch.Tensor:
        a = torch.cond(y.max() > 7.125, inner, other, (y,))
        return a * 1.375

    def no(y: torch.Tensor) -> torch.Tensor:
        return y.cos() - 3.875

    return torch.cond(x.sum() > 0, yes, no, (x,)) + 4.125


@pytest.mark.parametrize("target", ["", "h100"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", [loop, branches, nested])
@pytest.mark.cases(full=4)
def test_a_line_of_a_body_leads_to_the_kernels_with_its_number(
    fn: Callable[[torch.Tensor], torch.Tensor], dynamic: bool, target: str
) -> None:
    asked: dict[str, Any] = {"target": target} if target else {}
    record = capture(fn, torch.rand(6, 6), dynamic=dynamic, **asked)
    source, first = inspect.getsourcelines(fn)
    seen = 0
    for line, text in enumerate(source, first):
        for number in re.findall(r"\d\.\d{3}|\d{3}\.5", text):
            seen += 1
            computing = {k.name for k in record.kernels if number in k.source}
            assert computing, number
            reached = {k.name for k in record.chain.kernels(__file__, line)}
            assert computing <= reached, (text, computing, reached)
            if "cond(" not in text:  # the line of a call also has the kernels of its bodies
                assert reached == computing, (text, computing, reached)
    assert seen >= 4
    assert record.coverage().total.line_share == record.coverage().total.kernel_share == 1
