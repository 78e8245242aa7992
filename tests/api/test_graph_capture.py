"""Graphs of a watched program that are captured later: their code is the program's, as torch itself lists it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import watched
from full_text import full
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import fresh_cache, run_and_get_code

import compile_lens
from compile_lens import Program, UsageError
from compile_lens._torch.watch import retained_graphs as keeping
from compile_lens._torch.watch.retained_graphs import DIFFERS, NOT_OBSERVED, VERIFIED, normalized
from compile_lens.api.graph_capture import capture_graph

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = (x.sin() ** 2 + x.cos() ** 2) @ w
    print(end="")
    return y.softmax(-1).sum()


def _inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(rows, 8), torch.ones(8, 8, requires_grad=True)


def _stamps(program: Program) -> list[str]:
    captures = [program.capture(graph) for graph in program.graphs]
    return [code.stamp for c in captures for one in c.compilations for code in one.code.values()]


@pytest.mark.exhaustive
def test_the_code_is_that_which_ran_also_from_a_cache() -> None:
    def run() -> None:
        torch._dynamo.reset()
        g = torch.compile(f)
        for rows in (4, 5):  # the second compile is for any size
            x, w = _inputs(rows)
            g(x, w).backward()

    with fresh_cache():
        _, codes = run_and_get_code(run)  # torch's own list of the generated code, without a watch
    with fresh_cache():
        for hits in (False, True):
            with compile_lens.watch() as program:
                run()
            assert bool(sum(cache.hits for cache in program.caches)) is hits
            captures = [program.capture(graph) for graph in program.graphs]
            texts = [code.text for c in captures for one in c.compilations for code in one.code.values()]
            assert len(captures) == 4 and {normalized(t) for t in texts} == {normalized(c) for c in codes}
            assert set(_stamps(program)) == {VERIFIED}
    softmax = captures[1]
    assert softmax.function == "f" and softmax.decisions and softmax.missing == ()
    lines = {
        frame.line for kernel in softmax.kernels for o in kernel.origins for frame in _frames(softmax, o)
    }
    assert lines == {f.__code__.co_firstlineno + 3}
    assert "same code, verified" in str(softmax) and str(softmax.story())


def _lines(node: Any) -> list[tuple[str, int]]:
    return [(frame.file, frame.line) for frame in node.frames]


def _frames(capture: compile_lens.Capture, name: str) -> Any:
    graphs = (g for c in capture.compilations for g in c.graphs.values())
    return [frame for g in graphs for n in g.nodes if n.name == name for frame in n.frames]


@pytest.mark.parametrize("target", [None, "h100"])
def test_what_became_of_the_function_is_not_claimed_of_one_graph(target: str | None) -> None:
    """Torch hands a backend four of its graphs, two for each size: a break, and a recompile of each half."""
    from torch._dynamo.testing import CompileCounter

    @torch._dynamo.disable
    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    def g(x: torch.Tensor) -> torch.Tensor:
        return halved(x.tanh()).exp()

    def call(backend: Any) -> None:
        torch._dynamo.reset()
        compiled = torch.compile(g, backend=backend, dynamic=False)
        compiled(torch.ones(3))
        compiled(torch.ones(6))

    call(counter := CompileCounter())
    with compile_lens.watch() as program:
        call("aot_eager")
    assert counter.frame_count == len(program.graphs) == 4
    alone = program.capture(0, target=target)
    expected = compile_lens.expect(alone)
    for claim in (expected.compiled, lambda: expected.graph_breaks(0), lambda: expected.recompiles(0)):
        with pytest.raises(compile_lens.ExpectationError, match=r"not (seen|known)"):
            claim()
    assert alone.guards == () and alone.lacks("guards")
    for text in (str(alone), alone.brief(), alone.text("full")):
        assert "not seen" in text and "0 graph breaks" not in text and " 0 guards" not in text


def test_another_text_is_not_verified() -> None:
    with compile_lens.watch() as program:
        torch.compile(f, backend="aot_eager")(*_inputs(3))
    assert set(_stamps(program)) == {NOT_OBSERVED}
    assert program._retained is not None
    graph, _ = program._retained(0)
    made = capture_graph(program, 0, graph, ["another code"])
    assert {code.stamp for c in made.compilations for code in c.code.values()} == {DIFFERS}


def test_the_settings_are_those_of_the_time() -> None:
    def g(x: torch.Tensor) -> torch.Tensor:
        return (x @ x).relu().sum(0)

    with compile_lens.watch() as program:
        compiled = torch.compile(g, options={"max_fusion_size": 1, "epilogue_fusion": False})
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            compiled(torch.rand(8, 8, requires_grad=True))
        torch._dynamo.reset()
        with torch._inductor.config.patch(max_fusion_size=1, realize_reads_threshold=1):
            torch.compile(g)(torch.rand(8, 8))
    assert torch._inductor.config.max_fusion_size != 1 and not torch.is_autocast_enabled("cpu")
    assert set(_stamps(program)) == {VERIFIED}
    cast = program.capture(0)
    assert "bfloat16" in cast.compilations[0].graphs["inference"].text
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@pytest.mark.exhaustive
def test_training_is_verified_and_changes_nothing() -> None:
    plain_result = watched.run("training")
    with compile_lens.watch() as program:
        assert watched.run("training") == plain_result
    state = torch.get_rng_state()
    made = program.capture(program.graphs[0])
    assert made.function == "forward" and made.compilations[0].graphs["backward"].calls
    assert torch.equal(torch.get_rng_state(), state)
    assert GraphLowering.save_output_code is None


@pytest.mark.exhaustive
def test_for_another_target_it_is_what_a_capture_for_that_target_is() -> None:
    def g(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = (x.sin() ** 2 + x.cos() ** 2) @ w
        return y.softmax(-1).sum()

    calls = [_inputs(rows) for rows in (4, 5)]
    with compile_lens.watch() as program:
        compiled = torch.compile(g, backend="aot_eager")
        for call in calls:
            compiled(*call)
    direct = compile_lens.capture(g, *calls[0], target="h100")
    made = program.capture(0, target="h100")

    def plain_code(capture: compile_lens.Capture) -> list[str]:
        return [k.source for k in capture.kernels]

    assert made.kernels and plain_code(made) == plain_code(direct) and made.function == "g"
    for mine, there in zip(
        made.compilations[0].graphs.values(), direct.compilations[0].graphs.values(), strict=True
    ):
        assert [(n.target, _lines(n)) for n in mine.calls] == [(n.target, _lines(n)) for n in there.calls]
    assert [s.name for s in made.sources] == ["g"]
    assert made.target is not None and made.target.tracing.startswith("when the program ran (graph 0, 0/0)")
    stamps = {code.stamp for c in made.compilations for code in c.code.values()}
    assert stamps == {"generated only"} and "verified" not in full(made)
    of_any_size = program.capture(program.graphs[1], target="h100")
    assert of_any_size.target is not None and any("= 5" in words for words in of_any_size.target.may_differ)


def cached(cache: torch.Tensor, v: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    cache[:, i] = v
    return cache.sum(1)


def set_in_a_branch(x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
    def first(a: torch.Tensor) -> torch.Tensor:
        b = a.clone()
        b[0] = 3.0
        return b

    result: torch.Tensor = torch.cond(flag > 0, first, lambda a: a.cos(), (x,))
    return result


def set_twice(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[0] = 1.0
    y[1:, ::2] += v
    return y.sin()


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (cached, lambda: (torch.zeros(4, 8), torch.ones(4, 1), torch.tensor([2]))),
        (set_in_a_branch, lambda: (torch.rand(4, 4), torch.ones(()))),
        (set_twice, lambda: (torch.rand(4, 4), torch.rand(2))),
    ],
)
@pytest.mark.parametrize("target", ["h100", "cpu:avx2"])
@pytest.mark.cases(full=2)
def test_items_that_are_set_cross_to_another_target(function: Any, inputs: Any, target: str) -> None:
    with compile_lens.watch() as program:
        torch.compile(function, backend="aot_eager")(*inputs())
    made = program.capture(0, target=target)
    direct = compile_lens.capture(function, *inputs(), target=target)
    assert [k.source for k in made.kernels] == [k.source for k in direct.kernels] and made.kernels
    one, other = ({f.line for k in c.kernels for f in c.chain.lines(k)} for c in (made, direct))
    assert one == other


def test_what_cannot_be_lowered_for_another_target_is_said() -> None:
    def g(x: torch.Tensor) -> torch.Tensor:
        return (x @ x).sum()

    with compile_lens.watch() as program, torch.autocast("cpu", dtype=torch.bfloat16):
        torch.compile(g, backend="aot_eager")(torch.rand(4, 4))
    with pytest.raises(UsageError, match=r"was compiled inside a torch\.autocast region"):
        program.capture(0, target="h100")
    with pytest.raises(UsageError, match="h1000"):
        program.capture(0, target="h1000")


def test_what_is_kept_holds_no_parameter_alive() -> None:
    model = torch.nn.Linear(4, 4)
    weight = weakref.ref(model.weight)
    with compile_lens.watch() as program:
        torch.compile(model, backend="aot_eager")(torch.rand(2, 4))
    torch._dynamo.reset()
    del model
    gc.collect()
    assert weight() is None and program.capture(0).kernels


@pytest.mark.exhaustive
def test_a_capture_has_the_compile_id_that_torch_gave_its_graph() -> None:
    told: list[str] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        told.append(str(torch._guards.CompileContext.current_compile_id()))
        return gm.forward

    compiled = torch.compile(f, backend=backend)
    with compile_lens.watch() as program:
        compiled(*_inputs(3))
        compiled(*_inputs(5))
    assert len(set(told)) == len(told) == 4
    for target in (None, "h100"):
        made = [program.capture(graph, target=target) for graph in program.graphs]
        assert [[c.id for c in one.compilations] for one in made] == [[id] for id in told]
        assert f"{told[1]} " in made[1].text("full")


@pytest.mark.parametrize("wrong", ["0/1", "x", None, 1.0, True])
def test_what_is_no_graph(wrong: Any) -> None:
    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(*_inputs(3))
    ids = ", ".join(f"{graph.number} ({graph.id})" for graph in program.graphs)
    with pytest.raises(UsageError) as error:
        program.capture(wrong)
    for said in (repr(str(wrong)), type(wrong).__name__, ids, "program.capture(program.graphs[0])"):
        assert said in str(error.value)


def test_a_graph_of_another_program() -> None:
    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(*_inputs(3))
        with compile_lens.watch() as other:
            torch.compile(lambda x: x.sin(), backend="eager")(torch.ones(3))
    with pytest.raises(UsageError, match="belongs to another program: the graphs of this one are 0 "):
        program.capture(other.graphs[0])
    with compile_lens.watch() as empty:
        pass
    with pytest.raises(UsageError, match="has no graph"):
        empty.capture(0)


def test_what_was_not_kept() -> None:
    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(*_inputs(3))
    with pytest.raises(UsageError, match="there is no graph 9; the program has 2, counted from 0"):
        program.capture(9)
    with pytest.raises(UsageError, match="graph 0 was not retained: a program that was loaded"):
        Program.from_json(program.to_json()).capture(0)


def test_a_graph_that_cannot_be_kept_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no copy")

    monkeypatch.setattr(keeping, "retain", fail)
    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(*_inputs(3))
    assert program.counts.graphs == 2
    assert [m.stage for m in program.record.missing] == ["graphs for a later capture"]
    with pytest.raises(UsageError, match="was not retained"):
        program.capture(0)
