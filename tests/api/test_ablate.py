"""Ablations run real code for each step, from the graphs of one call, and change nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from lost_hooks import without
from state import diff, snapshot, unchanged
from torch import nn
from torch.nn import functional
from zoo import seeded

import compile_lens
from compile_lens import Capture, CaptureError, UsageError, ablate, capture
from compile_lens._torch import ablation
from compile_lens.measures.steps import at_step, steps
from compile_lens.record.capture import ABLATIONS

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

NOTHING, INLINED, FUSED = ABLATIONS
N = 2**20


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def leaf(*shape: int) -> torch.Tensor:
    size = shape or (64,)
    return torch.linspace(-1, 1, int(torch.Size(size).numel())).reshape(size).requires_grad_()


def figures(made: Capture, what: str) -> list[int | None]:
    return [getattr(step, what) for step in steps(made)]


# Facts.
def test_sin2_cos2() -> None:
    made = ablate(wave, torch.empty(N))
    assert figures(made, "loops") == [5, 1, 1]
    assert figures(made, "groups") == [5, 1, 1]
    assert figures(made, "launches") == [5, 1, 1]
    assert figures(made, "nbytes") == [11 * N * 4, 2 * N * 4, 2 * N * 4]


def test_three_readers_of_one_input() -> None:
    made = ablate(lambda x: (torch.sin(x), torch.cos(x), torch.exp(x)), torch.empty(N))
    assert figures(made, "launches") == [3, 3, 1]
    assert figures(made, "nbytes") == [6 * N * 4, 6 * N * 4, 4 * N * 4]


def test_forward_and_backward() -> None:
    made = ablate(wave, leaf())
    assert figures(made, "launches") == [5 + 12, 2, 2]
    nothing = at_step(made, NOTHING).ledger
    assert (nothing.forward.loops, nothing.backward.loops) == (5, 12)
    assert nothing.forward.bytes_after == nothing.forward.bytes_before


def test_softmax() -> None:
    made = ablate(lambda x: torch.softmax(x, -1), torch.empty(512, 512))
    assert figures(made, "launches") == [5, 4, 1]
    assert figures(made, "loops") == [5, 4, 4]
    assert figures(made, "nbytes")[2] == 2 * 512 * 512 * 4


# Equal and different steps.
def _mlp() -> nn.Module:
    with seeded():
        return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8))


def _scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.tanh(q @ k.transpose(-1, -2)), -1) @ v


def _rows(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return functional.embedding(i, w).index_add(0, i % 3, torch.ones(6, 4))


def _foreach(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch._foreach_exp(torch._foreach_mul(torch._foreach_add([a, b], [b, a]), 2.0))


def _sorted(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(torch.cos(torch.sort(torch.sin(x)).values), 0)


FUNCTIONS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("layer norm, GELU", lambda x: functional.gelu(functional.layer_norm(x, (8,))), (leaf(4, 8),)),
    ("mlp", _mlp(), (torch.ones(3, 8),)),
    ("attention", _scores, (torch.ones(2, 4, 8), torch.ones(2, 4, 8), torch.ones(2, 4, 8))),
    ("embedding", _rows, (leaf(5, 4), torch.tensor([0, 1, 2, 3, 4, 0]))),
    ("sort and scan", _sorted, (torch.linspace(0, 9, 40),)),
    ("dropout", lambda x: functional.dropout(x, 0.5) * 2 + torch.rand_like(x), (leaf(),)),
    ("foreach", _foreach, (torch.ones(9), torch.ones(9))),
    ("mm and relu", lambda a, b: torch.relu(a @ b), (torch.ones(8, 8), torch.ones(8, 8))),
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "fn", "args"), FUNCTIONS, ids=[n for n, *_ in FUNCTIONS])
@pytest.mark.cases(full=4)
def test_steps_fuse_nothing_and_the_capture_is_the_usual_one(
    name: str, fn: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    plain = capture(fn, *args)
    made = ablate(fn, *args)
    assert [(k.name, k.source, k.launches) for k in made.kernels] == [
        (k.name, k.source, k.launches) for k in plain.kernels
    ]
    assert made.ledger == plain.ledger
    assert [a.step for a in made.ablations] == list(ABLATIONS)
    for step in (NOTHING, INLINED):
        alone = at_step(made, step)
        assert [c.id for c in alone.compilations] == [c.id for c in made.compilations]
        assert {m.stage for m in alone.missing} == {m.stage for m in made.missing}
        for compilation in alone.compilations:
            for phase in compilation.phases:
                groups = [g for g in compilation.graphs[f"{phase}.groups"].nodes if g.compute]
                launches = sum(k.launches for k in compilation.code[phase].kernels)
                assert all(len(g.members) == 1 for g in groups)
                assert launches == len(groups)
        share = alone.coverage().total.line_share
        assert share is None or share >= 0.9
    loops, nbytes = figures(made, "loops"), figures(made, "nbytes")
    assert None not in (*loops, *nbytes)
    assert loops == sorted(loops, reverse=True) and nbytes == sorted(nbytes, reverse=True)  # type: ignore[type-var]


def test_what_is_fused_all_the_same_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "ONE_LOOP_EACH", {})
    found = ablate(lambda x: (torch.sin(x), torch.cos(x)), torch.ones(9)).ablations[1]
    assert [n for n in found.notes if n.startswith("inference: ") and n.endswith("still has 2 loops")]
    monkeypatch.undo()
    assert ablate(lambda x: (torch.sin(x), torch.cos(x)), torch.ones(9)).ablations[1].notes == ()


def test_kernels_of_a_step_lead_to_the_python_line() -> None:
    alone = at_step(ablate(wave, leaf()), NOTHING)
    line = wave.__code__.co_firstlineno + 1
    assert len(alone.kernels) >= 5
    for kernel in alone.kernels:
        assert {frame.line for frame in alone.chain.lines(kernel)} == {line}, kernel.name


def test_each_graph_of_a_program() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x) * 2
        torch._dynamo.graph_break()
        return torch.cos(y) + 1

    made = ablate(broken, torch.ones(8))
    ids = [c.id for c in made.compilations if c.code]
    assert len(ids) == 2
    assert [c.id for c in made.ablations[0].compilations if c.code] == ids
    assert figures(made, "launches") == [4, 2, 2]


@pytest.mark.full
def test_dynamic_sizes_and_their_guards_are_those_of_a_capture() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x * x.shape[0]).sum(0) + 1

    plain, made = (f(fn, torch.ones(12, 7), dynamic=True) for f in (capture, ablate))
    assert [c.dynamic for c in made.compilations] == [c.dynamic for c in plain.compilations]
    assert len(made.compilations[0].dynamic) == 2
    assert [g.text for g in made.guards] == [g.text for g in plain.guards]
    assert re.search(r"\bk?s\d+\b", at_step(made, NOTHING).code["inference"])


def test_sizes_that_depend_on_data() -> None:
    made = ablate(lambda x: torch.sin(x[x > 0]) + 1, torch.linspace(-1, 1, 9))
    assert figures(made, "launches")[0] > figures(made, "launches")[1]  # type: ignore[operator]


def test_no_reason_is_given_for_what_inductor_did_not_decide() -> None:
    made = ablate(wave, torch.ones(9))
    nothing, inlined, _ = made.ablations
    assert all(c.lowered == () for c in nothing.compilations)
    assert at_step(made, NOTHING).compilations[0].lowered == ()
    assert [c.lowered for c in inlined.compilations] == [c.lowered for c in made.compilations]


# Options.
def test_options_of_the_user_stay() -> None:
    made = ablate(wave, torch.ones(64), options={"cpp.simdlen": 1})
    for step in ABLATIONS:
        assert "at::vec" not in at_step(made, step).code["inference"]


def test_an_option_that_a_step_overrides_is_said() -> None:
    made = ablate(wave, torch.ones(64), options={"max_fusion_size": 7})
    assert [n for n in made.ablations[1].notes if "max_fusion_size=7 is not used in this step" in n]


def test_backward_can_be_declined() -> None:
    made = ablate(wave, leaf(), backward=False)
    assert set(at_step(made, NOTHING).code) == {"forward"}
    with pytest.raises(UsageError, match=r"nothing in .* is differentiable"):
        ablate(wave, torch.ones(4), backward=True)


def test_usage_errors_are_those_of_capture() -> None:
    with pytest.raises(UsageError, match="needs a callable"):
        ablate(torch.ones(2))
    with pytest.raises(UsageError, match="mode='fast'"):
        ablate(wave, torch.ones(2), mode="fast")


# One call.
@pytest.mark.full
@unchanged
def test_the_function_runs_once() -> None:
    norm, calls = nn.BatchNorm1d(4), []

    @torch.compiler.disable
    def note() -> None:
        calls.append(1)

    def fn(x: torch.Tensor) -> torch.Tensor:
        note()
        return norm(x).add_(1)

    x = torch.arange(12.0).reshape(3, 4)
    ablate(fn, x)
    assert calls == [1]
    assert int(norm.num_batches_tracked) == 1
    assert torch.equal(x, torch.arange(12.0).reshape(3, 4))


@unchanged
def test_a_change_in_place_happens_once() -> None:
    x = torch.ones(4)
    made = ablate(lambda x: x.add_(1), x)
    assert x.tolist() == [2.0] * 4 and x._version == 1
    assert figures(made, "launches") == [2, 2, 1]  # the sum, and its copy into the input


@unchanged
def test_gradients_of_the_user_are_untouched() -> None:
    x = leaf()
    x.grad = torch.full_like(x, 3.0)
    ablate(wave, x)
    assert x.grad.eq(3).all() and x._version == 0


@pytest.mark.full
def test_no_entry_is_left_beside_a_compiled_copy() -> None:
    compiles: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        compiles.append(1)
        return graph.forward

    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    mine = torch.compile(fn, backend=backend)
    mine(leaf())
    ablate(fn, leaf())
    before = snapshot([fn])
    for _ in range(3):
        ablate(fn, leaf())
    assert diff(before, snapshot([fn])) == []
    mine(leaf())
    assert compiles == [1]


@pytest.mark.exhaustive
def test_nothing_of_torchs_stays_alive(child: Callable[..., str]) -> None:
    assert child(ALIVE).split() == ["True"]


ALIVE = """
import gc
import torch
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensor
from compile_lens import ablate

def alive():
    gc.collect()
    kept = (FakeTensor, GraphLowering, torch.fx.GraphModule)
    return sum(1 for item in gc.get_objects() if issubclass(type(item), kept))

def count():
    made = ablate(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.ones(64, requires_grad=True))
    return alive() if made.ablations else None

count()
print(count() == count() == count())
"""


# Failures.
def test_a_step_that_fails_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("put in by a test")

    monkeypatch.setattr(ablation, "_realise", broken)
    made = ablate(wave, leaf())
    nothing, inlined, _ = made.ablations
    assert any("could not be made" in n and "put in by a test" in n for n in nothing.notes)
    assert "forward.code" not in {s.key for c in nothing.compilations for s in c.stages if hasattr(s, "text")}
    assert at_step(made, INLINED).ledger.forward.launches == 1 and inlined.notes == ()
    assert at_step(made, NOTHING).ledger.forward.launches is None
    assert made.ledger.forward.launches == 1


@pytest.mark.parametrize(
    "path",
    [
        "torch._inductor.graph:GraphLowering.call_function",
        "torch._inductor.codegen.cpp:CppScheduling.ready_to_flush",
    ],
)
def test_steps_that_could_not_be_held_apart_have_no_figures(path: str) -> None:
    """Without the hook, "nothing inlined" compiles the code of "inlined", or one function has several loops."""
    with without(path):
        made = ablate(wave, leaf())
    for step in made.ablations[:-1]:
        assert any("could not be made" in note for note in step.notes), step.step
        assert at_step(made, step.step).ledger.forward.launches is None, step.step
    assert made.ledger.forward.launches == 1


def test_an_error_of_the_function_is_a_capture_error() -> None:
    def raises(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(CaptureError) as caught:
        ablate(raises, leaf())
    assert type(caught.value.__cause__) is KeyError


# The record.
def test_json() -> None:
    made = ablate(wave, leaf())
    again = Capture.from_json(made.to_json())
    assert again == made
    assert steps(again) == steps(made)


def test_the_capture_can_still_be_verified() -> None:
    x = leaf()
    made = compile_lens.ablate(wave, x)
    assert made._live.call() is not None  # type: ignore[attr-defined]


def test_the_record_holds_each_stage_once() -> None:
    made = ablate(wave, leaf())
    keys = {s.key for a in made.ablations for c in a.compilations for s in c.stages}
    assert "forward.code" in keys and not {"dynamo", "joint", "forward", "backward"} & keys
    assert made.ablations[2].compilations == ()
