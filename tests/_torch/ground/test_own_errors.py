"""Our own errors in the backend, outside hooks: a stage is missing, and the call returns its normal result."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compile_lens._torch import backend
from compile_lens._torch.frames import dynamo, graph_breaks
from compile_lens._torch.graphs import eager_count, fx
from compile_lens._torch.inductor import scheduler_nodes
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + x.cos()


def fails(*args: Any, **kwargs: Any) -> Any:
    raise AttributeError("this torch has another name for it")


@pytest.mark.parametrize(
    ("module", "name", "unknown"),
    [
        (dynamo, "dynamic_dims", "sizes"),
        (graph_breaks, "ending", "why the graph ends"),
        (fx, "aliases_inputs", "aliases of inputs"),
        (eager_count, "count", "eager operators"),
    ],
)
def test_an_error_of_ours_costs_its_fact_alone(
    module: Any, name: str, unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fails)
    x = torch.rand(8, requires_grad=True)
    made, outcome = perform(Call.read(wave, (x,), None, CaptureOptions()))
    assert torch.equal(outcome.result, wave(x))
    assert any(f"{unknown}: compile_lens failed to record it" in note for note in made.notes), made.notes
    assert [k.launches for k in made.kernels] == [1, 1]


@pytest.mark.parametrize(
    ("module", "name", "claim"), [(scheduler_nodes, "loop", "loops"), (dynamo, "guards", "guards")]
)
def test_an_error_of_ours_in_a_callback_of_torch_costs_its_claim_alone(
    module: Any, name: str, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fails)
    x = torch.rand(8, requires_grad=True)
    made, outcome = perform(Call.read(wave, (x,), None, CaptureOptions()))
    assert torch.equal(outcome.result, wave(x))
    missing = {one.stage.rpartition(".")[2]: one.reason for one in made.compilations[0].missing}
    assert "AttributeError: this torch has another name" in missing.get(claim, made.lacks(claim))
    assert [k.launches for k in made.kernels] == [1, 1] and str(made)


@pytest.mark.parametrize("stage", ["dynamo", "inference", "forward", "backward"])
def test_a_graph_that_we_cannot_read_is_missing(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = fx.convert

    def some(gm: Any, stage: str, *args: Any, **kwargs: Any) -> Any:
        return fails() if stage == lost else convert(gm, *args, stage=stage, **kwargs)

    lost = stage
    monkeypatch.setattr(backend.fx, "convert", some)
    x = torch.rand(8, requires_grad=stage != "inference")
    made, outcome = perform(Call.read(wave, (x,), None, CaptureOptions()))
    assert torch.equal(outcome.result, wave(x))
    (compilation,) = made.compilations
    reasons = {missing.stage: missing.reason for missing in compilation.missing}
    assert "another name" in reasons[stage] and stage not in compilation.graphs
    assert made.kernels, "its code was seen all the same"
    assert str(made) and made.to_json()
