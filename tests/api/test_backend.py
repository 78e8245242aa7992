"""The inspect backend by name, verification of built code, and the reported outcome of a capture."""

from __future__ import annotations

import gc
import logging

import pytest
import torch
from full_text import full

import compile_lens
from compile_lens import UsageError, capture
from compile_lens.api.program import backend as inspect_backend
from compile_lens.views.words import outcome

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def broken(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def test_by_name() -> None:
    assert "compile_lens" in torch._dynamo.list_backends(exclude_tags=())


@pytest.mark.parametrize("backend", ["compile_lens", inspect_backend], ids=["name", "callable"])
def test_results_are_eagers_and_the_record_has_every_stage(backend: object) -> None:
    x = torch.linspace(0, 1, 100).requires_grad_()
    compiled = torch.compile(wave, backend=backend)
    assert torch.equal(compiled(x), wave(x))
    last = compile_lens.last()
    assert last is not None and last.function == "wave"
    (compilation,) = last.compilations
    assert not compilation.missing
    assert compilation.phases == ("forward", "backward")
    assert [k.launches for k in last.kernels] == [1, 1]
    assert any("named backend" in note for note in last.notes)


def train(model: torch.nn.Module, x: torch.Tensor, step: torch.optim.Optimizer) -> None:
    for _ in range(2):
        step.zero_grad()
        model(x).pow(2).mean().backward()
        step.step()


def test_what_the_named_backend_cannot_see_is_not_claimed_to_be_compiled() -> None:
    """Torch skips ``train``, whose loop has a graph break, and hands the backend the graphs of its callees."""
    model = torch.nn.Linear(4, 4)
    torch.compile(train, backend="compile_lens")(model, torch.ones(2, 4), torch.optim.SGD(model.parameters()))
    last = compile_lens.last()
    assert last is not None and last.not_observed
    assert outcome.state(last) == "partial"
    assert outcome.verdict(last).endswith("What ran eagerly was not seen")
    assert "✓" not in last.text("full") and "◐" in last.text("full")
    assert not capture(wave, torch.ones(4)).not_observed


def test_breaks_of_the_named_backend_are_a_lower_bound() -> None:
    torch.compile(broken, backend="compile_lens")(torch.ones(4))
    last = compile_lens.last()
    assert last is not None and "at least 1 graph break" in outcome.verdict(last)


def test_guards_of_a_compile_are_read_before_torch_lets_go_of_them() -> None:
    compiled = torch.compile(wave, backend="compile_lens")
    compiled(torch.ones(4))
    compiled(torch.ones(5))
    torch._dynamo.reset()  # drops both
    last = compile_lens.last()
    assert last is not None
    assert ["0/1" in note for note in last.notes if "ask of tensors is not known" in note] == [True]


def test_the_named_backend_tells_the_inputs_of_the_first_graph() -> None:
    model = torch.nn.Linear(4, 4)
    torch.compile(model, backend="compile_lens")(torch.ones(2, 4))
    last = compile_lens.last()
    assert last is not None and last.inputs == ("input: float32[2, 4] cpu",)
    torch.compile(broken, backend="compile_lens")(torch.ones(4, requires_grad=True))
    last = compile_lens.last()
    assert last is not None and last.inputs == ("x: float32[4] cpu requires_grad",)


def test_backward_through_the_named_backend() -> None:
    x = torch.linspace(0, 1, 100).requires_grad_()
    torch.compile(broken, backend="compile_lens")(x).sum().backward()
    twin = x.detach().clone().requires_grad_()
    broken(twin).sum().backward()
    assert torch.equal(x.grad, twin.grad)  # type: ignore[arg-type]


def test_a_graph_break_stays_one_program() -> None:
    torch.compile(broken, backend="compile_lens")(torch.ones(4))
    last = compile_lens.last()
    assert last is not None and last.function == "broken"
    assert [c.id for c in last.compilations] == ["0/0", "1/0"]
    torch.compile(wave, backend="compile_lens")(torch.ones(4))
    again = compile_lens.last()
    assert again is not None and again.function == "wave" and len(again.compilations) == 1


@pytest.mark.exhaustive
def test_every_compilation_is_kept_with_its_guards_and_why_it_was_made() -> None:
    def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
        y = x.sin() * n
        print(end="")
        return y.cos()

    calls = [(torch.ones(3), 2), (torch.ones(4), 2), (torch.ones(4), 3)]
    logged = logging.getLogger("torch._dynamo.guards.__recompiles")
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logged.addHandler(handler)
    torch._logging.set_logs(recompiles=True)
    try:
        compiled = torch.compile(scaled, backend="compile_lens")
        for call in calls:
            assert torch.equal(compiled(*call), scaled(*call))
    finally:
        torch._logging.set_logs()
        logged.removeHandler(handler)
    torch.compile(wave, backend="compile_lens")(torch.ones(4))  # another program
    other = compile_lens.last()
    assert other is not None and len(other.compilations) == 1
    compiled(torch.ones(4, dtype=torch.float64), 3)
    last = compile_lens.last()
    assert last is not None and last.function == "scaled"
    torch._dynamo.reset()
    at_once = capture(scaled, calls=[*calls, (torch.ones(4, dtype=torch.float64), 3)])
    assert [c.id for c in last.compilations] == [c.id for c in at_once.compilations]
    for mine, there in zip(last.compilations, at_once.compilations, strict=True):
        # The only difference is the frame number in names of objects that Dynamo created.
        assert len(mine.guards) == len(there.guards) and mine.dynamic == there.dynamic
        checked = [[g.text for g in c.guards if g.kind == "TENSOR_MATCH"] for c in (mine, there)]
        assert checked[0] == checked[1] and all("check_tensor(" in text for text in checked[0])
        assert mine.recompile_reasons == there.recompile_reasons[:1]
    reasons = [r.guards[0].partition(": ")[2] for r in last.recompiles]
    assert len(reasons) == len(said) + 2  # the last call was not logged
    for reason in reasons[: len(said)]:
        assert any(reason.partition(" # ")[0] in text for text in said), (reason, said)


def test_guards_that_torch_let_go_are_said_to_be_unknown() -> None:
    torch.compile(wave, backend="compile_lens")(torch.ones(4))
    torch._dynamo.reset()
    last = compile_lens.last()
    assert last is not None and last.guards
    assert "what the guards of 0/0 ask of tensors is not known: torch let it go" in last.notes


@pytest.mark.slow
def test_named_backend_builds_when_asked() -> None:
    x = torch.linspace(0, 1, 100)
    compiled = torch.compile(wave, backend="compile_lens", options={"build": True})
    torch.testing.assert_close(compiled(x), wave(x))
    last = compile_lens.last()
    assert last is not None
    assert {c.stamp for comp in last.compilations for c in comp.code.values()} == {"built"}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_verify_compares_forward_and_gradients() -> None:
    x = torch.linspace(0, 1, 100).requires_grad_()
    record = capture(wave, x)
    report = record.verify()
    assert report and report.ok and report.same_code
    names = {c.name for c in report.comparisons}
    assert names == {"result", "gradient of input 0"}
    assert all(c.eager_abs is not None and c.max_abs < 1e-5 for c in report.comparisons)
    assert x.grad is None
    assert "agrees with eager" in full(report)


def test_verify_says_when_the_inputs_are_gone() -> None:
    record = capture(wave, torch.ones(4))
    gc.collect()
    with pytest.raises(UsageError, match=r"pass them, capture\.verify\(wave"):
        record.verify()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stamps() -> None:
    x = torch.ones(8).requires_grad_()
    assert {c.stamp for comp in capture(wave, x).compilations for c in comp.code.values()} == {
        "generated only"
    }
    built = capture(wave, x, build=True)
    assert {c.stamp for comp in built.compilations for c in comp.code.values()} == {"ran"}


def test_device_is_one_that_is_there() -> None:
    device = compile_lens.device()
    if torch.cuda.is_available():
        assert device.type == "cuda"
    elif torch.backends.mps.is_available():
        assert device.type == "mps"
    else:
        assert device.type == "cpu"


def test_named_backend_is_registered_without_import() -> None:
    from importlib.metadata import entry_points

    names = {e.name for e in entry_points(group="torch_dynamo_backends")}
    if not names:
        pytest.skip("reason: the package is not installed, only on the path")
    assert "compile_lens" in names
