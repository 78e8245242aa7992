"""The cause of a difference between compiled code and eager: operation, line and kind of errors planted in torch."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import math
from pathlib import Path
from typing import Any

import miscompiles
import pytest
import torch
from full_text import full
from miscompiles import MISCOMPILES, Miscompile, wave, wrong
from more_miscompiles import MORE
from reported_miscompiles import REPORTED

import compile_lens
from compile_lens import ExpectationError, UsageError
from compile_lens._torch.ground.limit import Limit
from compile_lens.record.divergence import LOWERING, RootCause, Transformation
from compile_lens.trials import divergence as causes

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

PLANTED = MISCOMPILES | MORE


def plain(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return True if plain torch.compile with options agrees with eager, gradients included."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        outputs = []
        for call in (function, torch.compile(function, options=options)):
            given = [a.detach().clone().requires_grad_(a.requires_grad) for a in args]
            result = call(*given)
            if result.requires_grad:
                result.sum().backward()
            outputs.append((result, [a.grad for a in given]))
    torch._dynamo.reset()
    try:
        torch.testing.assert_close(outputs[1], outputs[0])
    except AssertionError:
        return False
    return True


def accused(error: Miscompile, cause: Any) -> None:
    """Check that a cause has the kind, the lines and the operator of an error."""
    assert cause is not None and cause.kind == error.kind and cause.transformation is not None
    assert {(Path(frame.file).name, frame.line) for frame in cause.transformation.frames} == error.lines
    operators = cause.transformation.operators
    assert not error.operator or any(operator.startswith(error.operator) for operator in operators)


@pytest.mark.slow
@pytest.mark.cases(quick=0, full=1)
@pytest.mark.parametrize("name", PLANTED)
def test_operation_line_and_cause_are_named(name: str) -> None:
    error = PLANTED[name]
    args = error.inputs()
    with error.patch():
        assert wrong(error.function, error.inputs, **error.options)
        divergence = compile_lens.divergence(error.function, *args, **error.options)
        if divergence.switch is not None:
            setting, _, value = divergence.switch.name.partition("=")
            options = {setting: ast.literal_eval(value)}
            assert not wrong(error.function, error.inputs, options=options, **error.options)
    assert divergence.agrees is False and not divergence
    cause = divergence.cause
    assert len(divergence.attempts) <= 16
    if error.kind == "capture by Dynamo":  # every later stage is right
        assert cause is not None and cause.kind == error.kind and cause.transformation is None
        return
    accused(error, cause)
    if error.kind in ("lowering", "fusion"):
        assert cause is not None and cause.kernels


@pytest.mark.exhaustive
def test_code_of_one_operator_is_wrong(tmp_path: Path) -> None:
    error = MISCOMPILES["code of one operator"]
    args = error.inputs()
    with error.patch():
        divergence = compile_lens.divergence(wave, *args)
        report = compile_lens.capture(wave, *args, keep_inputs=True).verify()
        assert "  the operation and the cause: capture.divergence()" in full(report).splitlines()
        with pytest.raises(ExpectationError, match=r"aten.sin.default: sin\n(.*\n)*.*torch.sin\(y\)"):
            compile_lens.expect(wave, *args).agrees()
    text = str(divergence)
    assert "the compiled values are wrong" in text and "torch.sin(y)" in text
    assert "lowering: aten.sin.default" in divergence.to_markdown()
    saved = json.loads(divergence.save(tmp_path / "d.json").read_text())
    assert saved["agrees"] is False and saved["cause"]["kind"] == "lowering"
    assert "torch.sin(y)" in divergence.save(tmp_path / "d.html").read_text()
    assert 'href="d-code.html"' in (tmp_path / "d.html").read_text()
    code = (tmp_path / "d-code.html").read_text()
    assert 'href="d.html"' in code and code.count("<main>") == 1 and "cl-data" in code


@pytest.mark.full
def test_equal_values_have_no_cause() -> None:
    divergence = compile_lens.divergence(lambda x: x + 1, torch.rand(8))
    assert divergence and divergence.cause is None and divergence.attempts == ()
    assert "compiled and eager values are equal" in str(divergence)


@pytest.mark.full
def test_inputs_are_compared_as_they_are_given() -> None:
    """The capture also runs the call, and leaves inputs that have no Cholesky factor."""
    module = torch.nn.BatchNorm1d(4)

    def f(x: torch.Tensor) -> torch.Tensor:
        factor = torch.linalg.cholesky(x) + module(torch.ones(4, 4))
        x.sub_(1.5 * torch.eye(4))
        return factor

    for calls in (None, [(torch.eye(4),)]):
        x = torch.eye(4)
        given = (x,) if calls is None else ()
        assert compile_lens.divergence(f, *given, calls=calls)
        assert torch.equal(x if calls is None else calls[0][0], torch.eye(4))
    assert module.num_batches_tracked == 0 and torch.equal(module.running_mean, torch.zeros(4))


@pytest.mark.full
def test_half_precision_that_compiled_code_keeps_is_no_error() -> None:
    def score(x: torch.Tensor) -> torch.Tensor:
        y = x * torch.sigmoid(x)
        return torch.tanh(y / 3) * x

    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(3)).bfloat16()
    divergence = compile_lens.divergence(score, x)
    assert divergence.agrees and divergence.cause is not None and "both are equally good" in str(divergence)
    if divergence.attempts[0].difference == divergence.difference:  # torch 2.11 has no such code for CPUs
        assert divergence.cause.kind == "rounding"
        return
    assert divergence.cause.kind == "precision kept"
    assert divergence.switch is not None and divergence.switch.name == "emulate_precision_casts=True"
    assert not plain(score, (x,), {}) or divergence.difference


@pytest.mark.full
def test_another_order_of_a_sum_is_rounding() -> None:
    x = torch.rand(64, 1000, generator=torch.Generator().manual_seed(3))
    divergence = compile_lens.divergence(lambda x: (x.sin() * x).sum(1), x)
    assert divergence.agrees and divergence.cause is not None and divergence.cause.kind == "rounding"
    assert divergence.switch is None and divergence.attempts == ()


def shifted_wave(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.sin(3 * (x + b))  # here


def _long() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(2**14, 64, generator=generator), torch.randn(64, generator=generator).requires_grad_()


@pytest.mark.exhaustive
def test_a_long_sum_of_what_cancels_is_no_error() -> None:
    """A loop over rows adds sequentially: the error is ten times that of eager, which sums in a tree."""
    x, b = _long()
    want = torch.autograd.grad(shifted_wave(x, b).sum(), b)[0]
    rows = torch.zeros(64)
    for row in torch.cos(3 * (x + b)).detach() * 3:
        rows += row
    exact = (torch.cos(3 * (x.double() + b.double())) * 3).sum(0)
    assert (rows - exact).abs().max() > 3 * (want - exact).abs().max()
    divergence = compile_lens.divergence(shifted_wave, x, b)
    assert divergence.agrees, str(divergence)
    assert divergence.cause is not None and divergence.cause.kind == "rounding"
    assert not any(graph.count("differs", "follows") for graph in divergence.graphs), "nor is it at a kernel"


@pytest.mark.exhaustive
def test_a_long_sum_that_is_wrong_is_no_rounding() -> None:
    with miscompiles.slightly_larger_sums():
        verification = compile_lens.capture(shifted_wave, *_long(), build=True, keep_inputs=True).verify()
    assert verification.ok is False
    (check,) = (one for one in verification.comparisons if not one.ok)
    assert check.name == "gradient of input 1"


@pytest.mark.full
def test_a_saved_record_says_why_it_cannot(tmp_path: Path) -> None:
    x = torch.rand(8)
    capture = compile_lens.capture(wave, x)
    loaded = compile_lens.load(capture.save(tmp_path / "c.json"))
    with pytest.raises(UsageError, match="holds neither function nor inputs"):
        loaded.divergence()
    with pytest.raises(UsageError, match="holds neither function nor inputs"):
        compile_lens.expect(loaded).agrees()
    assert loaded.divergence(wave, x)


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="no argument 'build'"):
        compile_lens.divergence(wave, torch.rand(8), build=True)
    with pytest.raises(UsageError, match="divergence needs a callable first"):
        compile_lens.capture(wave, torch.rand(8)).divergence(3)


@pytest.mark.full
def test_an_expectation_of_agreement_keeps_its_inputs() -> None:
    compile_lens.expect(lambda x: x.sin() + 1, torch.rand(8)).agrees()


@pytest.mark.exhaustive
def test_an_attempt_that_cannot_be_compiled_accuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from compile_lens._torch import ablation

    def refused(*args: Any) -> Any:
        raise RuntimeError("no call of this operator can be lowered")

    error = MISCOMPILES["code of one operator"]
    args = error.inputs()
    monkeypatch.setattr(ablation, "_as_operator", refused)
    with error.patch():
        divergence = compile_lens.divergence(wave, *args)
    assert (
        divergence.agrees is False and divergence.cause is not None and divergence.cause.kind == "not found"
    )
    (attempt,) = (one for one in divergence.attempts if one.name == "without lowerings")
    assert attempt.agrees is None and "no call of this operator" in attempt.reason
    one = divergence.cause.transformation
    assert one is not None and one.kind == "operator" and one.operators == ("torch.sin",)


@pytest.mark.exhaustive
def test_the_code_of_a_setting_stands_without_the_mode() -> None:
    error = MISCOMPILES["pass over the joint graph"]
    args = error.inputs()
    with error.patch():
        divergence = compile_lens.divergence(error.function, *args, mode="max-autotune-no-cudagraphs")
        assert divergence.switch is not None and "mode" not in divergence.switch.to_apply
        options = ast.literal_eval(divergence.switch.to_apply.partition("options=")[2].rstrip(")"))
        assert options["max_autotune"] is True and options["joint_graph_constant_folding"] is False
        assert plain(error.function, args, options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", REPORTED)
def test_errors_of_torch_that_were_reported(name: str) -> None:
    error = REPORTED[name]
    if not wrong(error.function, error.inputs):
        pytest.skip("this torch compiles it rightly")
    divergence = compile_lens.divergence(error.function, *error.inputs())
    assert divergence.agrees is False
    accused(error, divergence.cause)
    assert len(divergence.attempts) <= 16


@pytest.mark.exhaustive
def test_compiled_is_nearer_to_the_exact_result_where_eager_overflows() -> None:
    def square(x: torch.Tensor) -> torch.Tensor:
        y = x.to(torch.float16)
        return (y * y).to(torch.float32)

    divergence = compile_lens.divergence(square, torch.tensor([5000.0, 3.0]))
    assert divergence.cause is not None and divergence.cause.kind in ("precision kept", "rounding")
    text = " ".join(str(divergence).split())
    assert "compiled is the nearer one: off float64 by 0, eager by inf" in text and "wrong" not in text


def tripled(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() * 3  # here
    z = y.cos() * 3  # here
    return z.exp()


@pytest.mark.exhaustive
def test_a_pass_is_of_every_line_that_it_changed() -> None:
    with MISCOMPILES["pass over the joint graph"].patch():
        divergence = compile_lens.divergence(tripled, torch.rand(8))
    cause = divergence.cause
    assert cause is not None and cause.kind == "pass" and cause.transformation is not None
    first = inspect.getsourcelines(tripled)[1]
    assert {frame.line for frame in cause.transformation.frames} == {first + 1, first + 2}
    assert cause.before.count("aten.mul.Tensor") == cause.after.count("aten.mul.Tensor") == 2
    assert cause.transformation.operators == ("aten.mul.Tensor",)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps.add_(1.0)
        return x * 2


def scaled(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    total.mul_(2.0)
    return x.cos()


def stored(x: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    last.copy_(x.sum())
    return x.cos() * last


def _last_graph_of_dynamo(function: Any, args: tuple[Any, ...]) -> Any:
    """Compile by plain torch with AOTAutograd, and return the last graph that Dynamo handed over."""
    from torch._dynamo.backends.common import aot_autograd

    graphs: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        graphs.append(str(gm.graph))
        return aot_autograd(fw_compiler=lambda traced, _: traced.forward)(gm, inputs)

    torch._dynamo.reset()
    torch.compile(function, backend=backend)(*args)
    torch._dynamo.reset()
    return graphs[-1]


@pytest.mark.slow
@pytest.mark.cases(quick=0, full=1)
@pytest.mark.parametrize("name", ["buffer", "mul_", "copy_"])
def test_a_write_that_dynamo_loses_when_autograd_restarts_it(name: str) -> None:
    """AOTAutograd makes Dynamo trace again, and that graph lacks the write; the backend eager gets the first one."""
    number = torch.tensor(5.0, dtype=torch.float64)
    function, args = {
        "buffer": (Counter(), (torch.ones(3),)),
        "mul_": (scaled, (torch.ones(3), number)),
        "copy_": (stored, (torch.ones(3), number)),
    }[name]
    graph = _last_graph_of_dynamo(copy.deepcopy(function), copy.deepcopy(args))
    divergence = compile_lens.divergence(function, *args)
    if any(write in graph for write in ("add_", "mul_", "copy_")):  # this torch does not lose it
        assert divergence.agrees
        return
    assert divergence.agrees is False and divergence.cause is not None
    assert divergence.cause.kind == "capture by Dynamo"
    assert [(one.name, one.agrees) for one in divergence.attempts][-2:] == [
        ("backend='eager'", True),
        ("graph of Dynamo, compiled and run eagerly", False),
    ]


def _attempts(total: int, culprit: int) -> tuple[int, list[str]]:
    """Return the position at which a search among transformations ends, and its attempts."""
    search: Any = object.__new__(causes._Search)
    search.counted = Limit()
    search.counted.counts[LOWERING] = total
    names: list[str] = []

    def attempt(name: str, limit: Limit, **how: Any) -> bool:
        names.append(name)
        limit.last[LOWERING] = Transformation(LOWERING, str(limit.most))
        return limit.most < culprit

    search._attempt = attempt
    decisive = search._transformation(LOWERING)
    return (0 if decisive is None else int(decisive.name)), names


@pytest.mark.parametrize("total", [2, 7, 30, 1000, 4096])
def test_attempts_grow_with_the_logarithm_of_the_transformations(total: int) -> None:
    for culprit in {2, total // 3 + 2, total - 1, total} & {*range(2, total + 1)}:
        place, names = _attempts(total, culprit)
        assert place == culprit or culprit == total, names
        assert len(names) <= 1 + math.ceil(math.log2(total))


@pytest.mark.parametrize("wrong", range(1, 5))
def test_levels_of_the_compiler_take_at_most_three_attempts(wrong: int) -> None:
    cause, levels = _levels(wrong, True)
    backends = list(causes.LEVELS)
    assert cause == (causes.LEVELS["eager"] if wrong == 4 else backends[wrong - 1])
    assert len(levels) == len(set(levels)) <= 3 + (wrong == 3)


@pytest.mark.parametrize("handed_over, kind", [(False, "capture by Dynamo"), (None, "not found")])
def test_autograd_is_blamed_only_if_its_input_is_right(handed_over: bool | None, kind: str) -> None:
    assert _levels(3, handed_over)[0] == kind


def _levels(wrong: int, handed_over: bool | None) -> tuple[str, list[str]]:
    """Return the cause if the lowest levels give the other value, and the attempts; ``handed_over`` tells if the graph
    for AOTAutograd is right."""
    search: Any = object.__new__(causes._Search)
    levels: list[str] = []

    def attempt(name: str, backend: str, limit: Limit | None = None) -> bool | None:
        levels.append(backend)
        return handed_over if backend not in causes.LEVELS else list(causes.LEVELS).index(backend) >= wrong

    search._attempt, search._level_cause = attempt, lambda backend, counted: RootCause(backend)
    search._with_operators = lambda cause, backend: cause
    return search._cause_above_inductor().kind, levels


def test_values_that_agree_without_inductor_take_one_attempt_at_the_levels() -> None:
    search: Any = object.__new__(causes._Search)
    for known in (True, None):
        attempts: list[str] = []
        search._attempt = lambda name, known=known, attempts=attempts, **how: attempts.append(name) or known
        assert search._cause_above_inductor() is None and len(attempts) == 1


def test_what_was_not_compiled_was_not_compared() -> None:
    def written(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        y = x * 3
        y[i] = x.sum()
        return y

    inputs = torch.ones(5), torch.tensor(4)
    divergence = compile_lens.capture(written, *inputs).divergence(written, *inputs)
    assert divergence.agrees is None and not divergence.verification.comparisons
    ((function, reason),) = divergence.verification.not_run
    assert function.endswith("written") and "Backend compiler exception" in reason
