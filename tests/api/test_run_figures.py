"""Switches of ``what_if`` with a figure that is measured in a run, and the budgets of the partitioner.

The oracle is plain torch: results of a compiled function, torch's refusal of a recompile, and its saved tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import what_if
from compile_lens.record.what_if import Trial
from compile_lens.results.comparison import WhatIf
from compile_lens.trials.switches import SWITCHES

pytestmark = [pytest.mark.torch, pytest.mark.full]

ISOLATES = "isolate_recompiles" in inspect.signature(torch.compile).parameters


def trial_of(outcome: WhatIf, name: str) -> Trial:
    (trial,) = [t for t in outcome.trials if t.name == name]
    return trial


def rounded(x: torch.Tensor) -> torch.Tensor:
    return (x.exp() + 1).log() * 3


def rounded_twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.nn.functional.gelu(x * 1.7) + x
    return y, y.exp() * 0.3


@pytest.mark.parametrize(("fn", "dtype"), [(rounded, torch.bfloat16), (rounded_twice, torch.float16)])
@pytest.mark.cases(full=1)
def test_disagreement_is_that_of_plain_torch(fn: Callable[[torch.Tensor], Any], dtype: torch.dtype) -> None:
    x = torch.rand(64, 100).to(dtype)

    def apart(emulated: bool) -> float:
        torch._dynamo.reset()
        compiled = torch.compile(fn, options={"emulate_precision_casts": emulated})(x)
        pairs = zip(compiled, fn(x)) if isinstance(compiled, tuple) else [(compiled, fn(x))]
        return max((one.double() - other.double()).abs().max().item() for one, other in pairs)

    want = apart(False), apart(True)
    torch._dynamo.reset()
    outcome = what_if(fn, x, switches=["emulate_precision_casts"])
    trial = trial_of(outcome, "emulate_precision_casts")
    assert dict(trial.figures)["disagreement"] == pytest.approx(want) and want[1] < want[0]
    assert outcome.helpful == (trial,) and "disagreement" in full(outcome)
    assert trial.to_apply.endswith('options={"emulate_precision_casts": True})')


def test_disagreement_for_an_absent_device_is_of_its_code() -> None:
    pytest.importorskip("triton")
    outcome = what_if(
        rounded, torch.rand(8, 16).bfloat16(), switches=["emulate_precision_casts"], target="h100"
    )
    before, after = dict(outcome.helpful[0].figures)["disagreement"]
    assert before and after == 0


def test_disagreement_that_is_not_known_is_no_figure() -> None:
    def unwritten(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x) * x.exp()

    outcome = what_if(unwritten, torch.rand(8).bfloat16(), switches=["emulate_precision_casts"])
    assert not trial_of(outcome, "emulate_precision_casts").figures
    (reason,) = (why for name, why in _not_tried(outcome) if name == "emulate_precision_casts")
    assert reason.startswith("its agreement with eager is not known")


def _not_tried(outcome: WhatIf) -> list[tuple[str, str]]:
    return [*outcome.not_tried, *((t.name, t.failure) for t in outcome.trials if t.failure)]


def test_nothing_of_half_precision_is_not_tried_for_its_rounding() -> None:
    outcome = what_if(lambda x: x.sin() + 1, torch.rand(8), pairs=False)
    assert dict(outcome.not_tried)["emulate_precision_casts"] == "nothing is computed in float16 or bfloat16"


def closure(text: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def inner(x: torch.Tensor) -> torch.Tensor:
        calls.append(text)
        return x.sin() if text == "a" else x.cos() + len(text)

    return inner


class Scaled(torch.nn.Module):
    def __init__(self, by: str) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * len(self.by) if self.by != "b" else x.sin()


calls: list[str] = []


def plain(fn: Any, x: torch.Tensor, isolated: bool) -> int:
    """Return 1 if plain torch, by its own error, recompiles at the first call of a function or compiles nothing."""
    graphs: list[Any] = []

    def counting(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    with torch._dynamo.config.patch(error_on_recompile=True):
        try:
            torch.compile(fn, backend=counting, isolate_recompiles=isolated)(x)
        except torch._dynamo.exc.RecompileError:
            return 1
    return int(not graphs)


@pytest.mark.skipif(not ISOLATES, reason="this torch cannot isolate recompiles")
@pytest.mark.parametrize("make", [closure, Scaled])
@pytest.mark.parametrize("others", [(), ("b", "ccc"), tuple("d" * n for n in range(1, 13))])
@pytest.mark.cases(full=2)
def test_recompiles_beside_other_functions_are_those_of_plain_torch(
    make: Any, others: tuple[str, ...]
) -> None:
    x = torch.rand(8)
    torch._dynamo.reset()
    compiled = [torch.compile(make(text), backend="eager") for text in others]
    for one in compiled:
        one(x)
    fn = make("zzzz")
    code = (fn.forward if isinstance(fn, torch.nn.Module) else fn).__code__
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list
    backends = torch._dynamo.eval_frame.cached_backends
    what_if(fn, x, switches=["isolate_recompiles"])
    before = len(entries(code)), set(backends)
    calls.clear()
    outcome = what_if(fn, x, switches=["isolate_recompiles", "combo_kernels"])
    assert len(calls) <= 2, "each capture runs it once, and the figure does not"
    assert (len(entries(code)), set(backends)) == before
    trial = trial_of(outcome, "isolate_recompiles")
    assert not trial.failure
    want = plain(fn, x, False), plain(fn, x, True)
    assert dict(trial.figures).get("recompiles", (0, 0)) == want == (int(bool(others)), 0)
    assert (trial in outcome.helpful) == bool(others)
    assert trial.to_apply.endswith(", isolate_recompiles=True)") and trial.arguments is None
    torch._dynamo.reset()


@pytest.mark.skipif(not ISOLATES, reason="this torch cannot isolate recompiles")
def test_an_entry_that_fits_is_no_recompile() -> None:
    fn, x = Scaled("fits"), torch.rand(8)
    torch._dynamo.reset()
    torch.compile(fn, fullgraph=False, dynamic=False)(x)
    outcome = what_if(fn, x, switches=["isolate_recompiles"], dynamic=False)
    trial = trial_of(outcome, "isolate_recompiles")
    assert not trial.failure and not trial.figures
    torch._dynamo.reset()


@pytest.mark.skipif(ISOLATES, reason="this torch isolates recompiles")
def test_a_torch_that_cannot_isolate_is_named() -> None:
    outcome = what_if(closure("x"), torch.rand(8), switches=["isolate_recompiles"])
    assert "this torch does not have it" in dict(outcome.not_tried)["isolate_recompiles"]


def mlp(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    for w in weights:
        x = torch.tanh(x @ w)
    return x.sum()


def saved(budget: float, args: tuple[torch.Tensor, ...]) -> int:
    """Return the bytes that plain torch saves in addition to the inputs."""
    torch._dynamo.reset()
    with torch._functorch.config.patch(activation_memory_budget=budget):
        node = torch.compile(mlp, backend="aot_eager_decomp_partition")(*args).grad_fn
    own = {a.data_ptr() for a in args}
    assert node is not None
    tensors = {t.data_ptr(): t for t in node.saved_tensors}
    return sum(t.numel() * t.element_size() for at, t in tensors.items() if at not in own)


@pytest.mark.exhaustive
def test_each_budget_saves_what_it_does_in_plain_torch() -> None:
    args = tuple(torch.rand(64, 64, requires_grad=True) for _ in range(7))
    budgets = {
        s.name: s.partitioner["activation_memory_budget"] for s in SWITCHES if "memory_budget" in s.name
    }
    assert len(budgets) > 2 and 0 in budgets.values()
    outcome = what_if(mlp, *args, switches=[*budgets, "pattern_matcher", "reorder_for_peak_memory"])
    base = saved(1.0, args)
    for name, budget in budgets.items():
        pair = dict(trial_of(outcome, name).figures).get("saved", (base, base))
        assert pair == (base, saved(budget, args)), name
    pairs = [t.switches for t in outcome.trials if t.switches]
    assert all(sum(name in budgets for name in pair) < 2 for pair in pairs)
    torch._dynamo.reset()
