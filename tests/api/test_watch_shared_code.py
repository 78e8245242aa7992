"""Advice of a watch is about the program's own code, and not already followed.

Torch's own counters, without a watch, count the functions compiled under a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch._dynamo.utils
from full_text import full

import compile_lens
from compile_lens.measures.causes import CACHE_BYPASSED, RECOMPILE_LIMIT, RECOMPILED, Cause
from compile_lens.results.program import Program
from compile_lens.views.words import program as words

NEW = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def closures(**options: bool) -> None:
    def step_for(key: str) -> Callable[[torch.Tensor], torch.Tensor]:
        def step(x: torch.Tensor) -> torch.Tensor:
            return x * 2 if "odd" in key else x + 1

        return step

    for i in range(12):
        torch.compile(step_for(f"layer{i}{'odd' * (i % 2)}"), backend="eager", **options)(torch.ones(3))


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.width


def modules(**options: bool) -> None:
    for width in range(10):
        torch.compile(Block(width), backend="eager", **options)(torch.ones(3))


def sizes(**options: bool) -> None:
    def one(x: torch.Tensor, key: str) -> torch.Tensor:
        return x + len(key)

    compiled = torch.compile(one, backend="eager", **options)
    for i in range(10):
        compiled(torch.ones(3), "k" * i)


def causes(function: Callable[[], None]) -> tuple[Program, dict[str, Cause]]:
    with compile_lens.watch() as program:
        function()
    return program, {cause.kind: cause for cause in program.causes}


@pytest.mark.parametrize("function", [closures, modules])
def test_compiled_functions_that_share_a_code_are_not_to_be_compiled_once_each(
    function: Callable[..., None],
) -> None:
    program, by_kind = causes(function)
    limit = by_kind.pop(RECOMPILE_LIMIT)
    assert [one.kind for one in limit.effects] == [RECOMPILE_LIMIT, RECOMPILED], "one attribute"
    assert RECOMPILED not in by_kind
    for cause in (limit, *limit.effects):
        because, remedy = words.because(cause), words.advice(cause, program.record.environment.torch)
        assert (
            f"at least {cause.sharing} compiled functions share this code" in because and cause.sharing >= 8
        )
        assert "one function for each" not in remedy
        assert ("isolate_recompiles=True" if NEW else "recompile_limit") in remedy
        assert "isolate" not in words.advice(cause, "2.11.0") and "recompile_limit" in words.advice(
            cause, "2.11.0"
        )
    assert "one function for each" not in full(program)


@pytest.mark.full
@pytest.mark.skipif(not NEW, reason="torch 2.13 isolates recompiles")
@pytest.mark.parametrize(("function", "graphs"), [(closures, 12), (modules, 10)])
def test_what_is_advised_works(function: Callable[..., None], graphs: int) -> None:
    torch._dynamo.utils.counters.clear()
    function(isolate_recompiles=True)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs
    _, by_kind = causes(lambda: function(isolate_recompiles=True))
    assert not {RECOMPILE_LIMIT, RECOMPILED} & set(by_kind)


def test_one_compiled_function_shares_its_code_with_none() -> None:
    program, by_kind = causes(sizes)
    cause = by_kind[RECOMPILE_LIMIT]
    assert cause.sharing == 1 and "share this code" not in full(program)


def trained(x: torch.Tensor, layer: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> torch.Tensor:
    loss = layer(x).sum()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_no_line_of_torchs_own_is_to_be_changed(optimizer: type[torch.optim.Optimizer]) -> None:
    layer = torch.nn.Linear(2, 2)
    made = optimizer(layer.parameters(), lr=0.1)  # type: ignore[call-arg]
    x = torch.ones(2, 2)
    with compile_lens.watch() as program:
        torch.compile(trained, backend="eager")(x, layer, made)
    said = [words.advice(cause) for cause in program.causes]
    assert any("torch breaks there on purpose" in remedy for remedy in said)
    assert not any("Remove the" in remedy for remedy in said)
    torch._dynamo.reset()
    with compile_lens.watch() as alone:
        torch.compile(made.step, backend="eager")()
    remedies = [words.advice(cause) for cause in alone.causes]
    assert any("there is nothing to change" in remedy for remedy in remedies)
    assert not any("compile it alone" in remedy for remedy in remedies), "it is"


@pytest.mark.full
def test_a_capture_gives_no_advice_about_torchs_own_lines() -> None:
    layer = torch.nn.Linear(2, 2)
    made = torch.optim.SGD(layer.parameters(), lr=0.1)
    seen = compile_lens.capture(trained, torch.ones(2, 2), layer, made)
    with pytest.raises(compile_lens.ExpectationError) as caught:
        compile_lens.expect(seen).graph_breaks(0)
    for text in (full(seen), str(seen.story()), str(caught.value)):
        assert "Remove the `torch._dynamo.graph_break()`" not in text
    assert "torch breaks there on purpose" in " ".join(full(seen).split())


def test_values_of_the_stack_have_no_names_of_torchs() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * half(x.sin())

    def half(y: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return y / 2

    with compile_lens.watch() as program:
        compiled = torch.compile(broken, backend="eager")
        for size in (8, 9):
            compiled(torch.ones(size))
    names = [f.source for v in program.recompiles for f in v.recompilation.failed_guards]  # type: ignore[union-attr]
    assert any("___stack" in name for name in names), "what torch calls it"
    assert "___stack" not in full(program) and "from before the break)" in full(program)


@pytest.mark.full
@pytest.mark.parametrize("inside", [True, False])
def test_autocast_in_a_graph_keeps_it_from_a_cache(inside: bool) -> None:
    """The advised code has no such cause: torch's cache then has an entry, or creates one."""

    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    def casting(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    x = torch.ones(4, 4)
    with compile_lens.watch() as program:
        if inside:
            torch.compile(casting)(x)
        else:
            with torch.autocast("cpu", torch.bfloat16):
                torch.compile(product)(x)
    bypassed = [cause for cause in program.causes if cause.kind == CACHE_BYPASSED]
    assert len(bypassed) == inside
    for cause in bypassed:
        assert cause.function == "casting" and cause.cache == "AOTAutograd"
        assert "around the call of the compiled function" in words.advice(cause)
