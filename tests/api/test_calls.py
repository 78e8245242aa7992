"""Captures of several calls compile and run for each call the same graphs as plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from compile_lens import Capture, CaptureError, UsageError, capture
from compile_lens.views.render.text import page
from compile_lens.views.subjects.capture import document

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def f(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    y = x.sin() * scale
    print(end="")
    return y.cos().sum()


CALLS: list[Any] = [
    (torch.ones(3),),
    (torch.ones(4),),
    (torch.ones(5),),
    {"x": torch.ones(5), "scale": 3.0},
    (torch.ones(3),),
]


def test_compilations_and_runs_of_each_call_are_plain_torchs() -> None:
    ran: list[int] = []
    backend = CompileCounterWithBackend("eager")
    counted = []

    def counting(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        number, run = backend.frame_count, backend(gm, inputs)
        return lambda *args: (ran.append(number), run(*args))[1]

    compiled = torch.compile(f, backend=counting)
    for call in CALLS:
        before = backend.frame_count
        ran.clear()
        compiled(**call) if isinstance(call, dict) else compiled(*call)
        counted.append((list(range(before, backend.frame_count)), list(ran)))
    torch._dynamo.reset()
    record = capture(f, calls=CALLS)
    order = [id for call in record.calls for id in call.compiled]  # in the order of creation
    assert [
        ([order.index(i) for i in c.compiled], [order.index(i) for i in c.executed]) for c in record.calls
    ] == counted
    assert sorted(order) == sorted(c.id for c in record.compilations) and len(order) == backend.frame_count
    assert [c.inputs[0] for c in record.calls] == [f"x: float32[{n}] cpu" for n in (3, 4, 5, 5, 3)]
    assert record.inputs == record.calls[0].inputs and record.calls[3].inputs[1] == "scale: 3.0"
    assert Capture.from_json(record.to_json()) == record


def test_the_page_tells_each_call() -> None:
    text = " ".join(page(document(capture(f, calls=CALLS[:3])), width=200).split())
    assert "call 2 0/1 0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4" in text
    assert "call 3 (x: float32[5] cpu): nothing was compiled, it ran 0/1, 1/1" in text


def test_a_limit_is_told_in_its_call() -> None:
    def by_value(x: torch.Tensor, n: str) -> torch.Tensor:
        return x.sin() + len(n)

    with torch._dynamo.config.patch(recompile_limit=2):
        record = capture(by_value, calls=[(torch.ones(3), "a" * n) for n in (1, 2, 3)])
    assert [c.compiled for c in record.calls] == [("0/0",), ("0/1",), ()]
    assert record.calls[2].executed == () and record.calls[2].skipped == ("by_value: recompile limit",)
    assert "call 3 (x: float32[3] cpu, n: 'aaa'): no compiled graph ran" in page(document(record), width=200)


def test_a_call_that_raises_keeps_those_before_it() -> None:
    def g(x: torch.Tensor, fail: bool) -> torch.Tensor:
        if fail:
            raise ValueError("as asked")
        return x.sin()

    with pytest.raises(CaptureError, match=r"g failed in calls\[1\] \(x: float32\[3\].*fail: True") as caught:
        capture(g, calls=[(torch.ones(3), False), (torch.ones(3), True), (torch.ones(4), False)])
    assert [c.executed for c in caught.value.capture.calls] == [("0/0",), ()]
    assert caught.value.capture.kernels and "as asked" in str(caught.value)
    said = page(document(caught.value.capture), width=200)
    assert "failed in call 2, stage run: ValueError" in said and "it failed: ValueError" in said


def test_the_call_whose_sizes_do_not_fit_is_named() -> None:
    def g(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y

    good, bad = (torch.ones(2, 3), torch.ones(3, 2)), (torch.ones(2, 3), torch.ones(4, 2))
    for calls, number in (([good, bad], 1), ([good, good, bad], 2), ([bad, good], 0)):
        with pytest.raises(CaptureError, match=rf"g failed in calls\[{number}\] \(.*float32\[4, 2\]"):
            capture(g, calls=calls)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_calls_that_are_built_or_for_a_target() -> None:
    def g(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).relu().sum()

    calls = [(torch.ones(n, 4), torch.ones(4, 4, requires_grad=True)) for n in (2, 3)]
    built = capture(g, calls=calls, build=True)
    assert [c.executed for c in built.calls] == [("0/0",), ("0/1",)] and calls[0][1].grad is None
    assert {code.stamp for c in built.compilations for code in c.code.values()} == {"ran"}
    there = capture(g, calls=calls, target="h100")
    assert [(c.compiled, c.executed) for c in there.calls] == [(("0/0",),) * 2, (("0/1",),) * 2]
    assert there.target is not None and any(k.language == "triton" for k in there.kernels)
    with pytest.raises(UsageError, match="this capture is of 2 calls: make a capture of each"):
        built.verify()


@pytest.mark.parametrize(
    ("args", "calls", "said"),
    [
        ((torch.ones(3),), [(torch.ones(3),)], "was given arguments and calls"),
        ((), [], "calls is empty"),
        ((), torch.ones(3), "calls is a Tensor"),
        ((), [(torch.ones(3),), torch.ones(4)], r"calls\[1\] is a float32\[4\] cpu tensor"),
        ((), [(torch.ones(3),), ()], r"calls\[1\]: .*cannot be called with 0 positional"),
    ],
)
def test_calls_that_are_none(args: tuple[Any, ...], calls: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        capture(f, *args, calls=calls)
