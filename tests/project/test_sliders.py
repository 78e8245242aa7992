"""Claims of the texts beside the lessons' sliders, by plain torch and by captures of the same programs."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import Any

import lessons
import pytest
import torch
from plain_graphs import compiled
from torch.utils.checkpoint import checkpoint

from compile_lens import capture

pytestmark = pytest.mark.torch


def _prose(number: str) -> str:
    return lessons.prose(lessons.named(number))["series-why"]


def test_a_choice_in_python_is_two_graphs() -> None:
    def decides(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        if x.sum() > 0:
            return torch.cos(y)
        return y

    def chooses(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        return torch.where(x.sum() > 0, torch.cos(y), y)

    assert [compiled(one, [(torch.rand(8),)]) for one in (chooses, decides)] == [1, 2]
    first = capture(decides, torch.rand(8)).compilations[0].graphs["inference"]
    sines = [call for call in first.calls if call.target.startswith("aten.sin")]
    assert len(sines) == 1 and "on the left there are two graphs, and the sine of the first" in _prose("02")


def test_a_symbol_is_an_argument_of_the_kernel() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2

    marked = torch.rand(8)
    torch._dynamo.mark_dynamic(marked, 0)
    number, symbol = (capture(step, x).kernels[0].source for x in (torch.rand(8), marked))
    assert "const int64_t ks0" in symbol and "ks0" not in number and "(8L)" in number
    assert "one has a number, the other an argument" in _prose("03")


@pytest.mark.full
def test_a_checkpoint_changes_the_backward_alone() -> None:
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)]
    network = torch.nn.Sequential(*layers)

    def each_layer(y: torch.Tensor) -> Any:
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=False)
        return y

    def all_layers(y: torch.Tensor) -> Any:
        return checkpoint(network, y, use_reentrant=False)

    ledgers = [capture(one, torch.rand(4096, 64)).ledger for one in (network, each_layer, all_layers)]
    assert len({ledger.forward.launches for ledger in ledgers}) == 1
    assert len({ledger.backward.launches for ledger in ledgers}) == 3
    assert "what differs is what the backward launches" in _prose("04")


DEFINED = (ast.FunctionDef, ast.ClassDef)


def _functions(number: str, *cells: str) -> dict[str, Any]:
    """Return the functions and classes that some cells of a lesson define, without running the rest of these cells."""
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "__name__": __name__}
    sources = lessons.prose(lessons.named(number))
    for cell in cells:
        body = [one for one in ast.parse(sources[cell]).body if isinstance(one, DEFINED)]
        exec(compile(ast.Module(list(body), []), f"{number} {cell}", "exec"), scope)
    return scope


def test_a_device_changes_the_kernel_and_not_the_graph() -> None:
    f, x = _functions("00", "line")["f"], torch.rand(1000)
    captures = [capture(f, x, target=target) for target in ("cpu:avx2", "h100", "mps")]
    graphs = [[call.target for call in one.compilations[0].graphs["inference"].calls] for one in captures]
    assert graphs[0] == graphs[1] == graphs[2]
    assert [one.kernels[0].language for one in captures] == ["cpp", "triton", "metal"]
    assert "only the language of the kernel changes" in _prose("00")


def test_a_tanh_makes_two_products_of_one_call() -> None:
    scope, q = _functions("05", "passes", "miss"), torch.rand(2, 4, 16, 64)
    languages = [[k.language for k in capture(scope[name], q).kernels] for name in ("attention", "bounded")]
    assert languages == [["extern"], ["extern", "cpp", "extern"]]
    assert "two products of a library on the right, with a kernel between them" in _prose("05")


@pytest.mark.full
def test_a_long_chain_is_several_loops_of_one_group() -> None:
    chain_of, x = _functions("06", "series")["chain_of"], torch.rand(2**20)
    totals = [capture(chain_of(n), x).ledger.total for n in (5, 20, 80)]
    assert [(row.loops, row.groups) for row in totals] == [(1, 1), (1, 1), (3, 1)]
    assert "5 and 20 sines are one loop, 80 are three, in one group" in _prose("06")


@pytest.mark.full
def test_the_scores_are_what_the_memory_is_for() -> None:
    bounded = _functions("10", "attention")["bounded"]
    captures = [capture(bounded, torch.rand(1, 4, n, 64)) for n in (64, 128, 256)]
    peaks = [one.compilations[0].memory[0].peak for one in captures]
    assert all(3 * one < other for one, other in pairwise(peaks)) and "more than 3 times as large" in _prose(
        "10"
    )
    assert len({len(kernel.source.splitlines()) for one in captures for kernel in one.kernels[1:2]}) == 1


def test_half_the_bits_are_half_the_bytes_and_two_conversions() -> None:
    score, x = _functions("11", "values")["score"], torch.linspace(-4, 4, 4096)
    captures = [capture(score, one) for one in (x, x.bfloat16())]
    whole, half = (one.ledger.total.bytes_after for one in captures)
    assert whole == 2 * half == 2 * 4 * x.numel() and "moves half of the bytes" in _prose("11")
    loads, stores = (re.findall(pattern, captures[1].kernels[0].source) for pattern in (LOADS, STORES))
    assert len(set(loads)) == len(set(stores)) == 1 and "once at the load and once at the store" in _prose(
        "11"
    )


LOADS = r"convert<float,\d,at::BFloat16,\d>\(tmp\d+\)"
STORES = r"convert<at::BFloat16,\d,float,\d>\(tmp\d+\)"


@pytest.mark.full
def test_only_a_batch_has_a_loop_over_the_matrices() -> None:
    scope = _functions("12", "closed")
    programs = ((scope["closed_one_by_one"], 2), (scope["closed_one_by_one"], 5), (scope["closed"], 2000))
    captures = [capture(function, torch.rand(n, 3, 3)) for function, n in programs]
    assert [one.ledger.total.launches for one in captures] == [1, 1, 1]
    assert ["for(" in one.kernels[0].source for one in captures] == [False, False, True]
    assert "only the batch has a loop over the matrices" in _prose("12")


def test_an_operator_of_ones_own_parts_three_launches() -> None:
    @torch.library.custom_op("sliders::my_tanh", mutates_args=())
    def my_tanh(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    my_tanh.register_fake(lambda x: torch.empty_like(x))
    functions = (lambda x: torch.cos(torch.tanh(torch.sin(x))), lambda x: torch.cos(my_tanh(torch.sin(x))))
    captures = [capture(function, torch.rand(1024)) for function in functions]
    assert [one.ledger.total.launches for one in captures] == [1, 3]
    buffers = [
        sum(b.kind == "intermediate" for b in one.compilations[0].memory[0].buffers) for one in captures
    ]
    assert buffers == [0, 2] and "two values that were in registers go through memory" in _prose("09")


def test_a_multiple_of_the_step_leaves_nothing_over() -> None:
    f = _functions("01", "function")["f"]
    bodies = [capture(f, torch.rand(n)).kernels[0].source.count("auto tmp0 =") for n in (1003, 1024)]
    assert bodies == [2, 1] and "the second body is gone" in _prose("01")


def test_a_value_that_leaves_as_a_tensor_is_one_graph_again() -> None:
    scope, x = _functions("13", "block", "break", "mend"), torch.rand(2, 8, 128)
    models = [scope[name]().requires_grad_(False) for name in ("Block", "Watched", "Fixed")]
    assert [compiled(model, [(x,)]) for model in models] == [1, 2, 1]
    assert "one graph, two, and one again" in _prose("13")
