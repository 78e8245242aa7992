"""``diff``: pairs of real captures with one true cause each, and pairs without a difference."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import samples
import torch
import torch.nn.functional as F
from full_text import full

import compile_lens
from compile_lens import UsageError, diff
from compile_lens.measures.diff.side import Side, matched
from compile_lens.record.difference import LEVELS

pytestmark = pytest.mark.torch

RECORDS = Path(__file__).parent / "records"
X, W = torch.rand(64, 64), torch.rand(64, 64)
Program = Callable[..., Any]


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


@torch._dynamo.disable
def of_python(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def base(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    return F.gelu(y) * 2 + x.sum()


def renamed(alpha: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    # Moved, and with other names.

    beta = torch.softmax(alpha @ weight, 1)

    return F.gelu(beta) * 2 + alpha.sum()


def sorted_between(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    y = torch.sort(y)[0]
    return F.gelu(y) * 2 + x.sum()


def other_dimension(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 0)
    return F.gelu(y) * 2 + x.sum()


def broken(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    torch._dynamo.graph_break()
    return F.gelu(y) * 2 + x.sum()


def relu(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    return F.relu(y) * 2 + x.sum()


def other_number(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    return F.gelu(y) * 3 + x.sum()


def shorter(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    return F.gelu(y) * 2


def widened(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax((x @ w).double(), 1)
    return F.gelu(y) * 2 + x.sum()


def transposed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w.t(), 1)
    return F.gelu(y) * 2 + x.sum()


def detached(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1).detach()
    return F.gelu(y) * 2 + x.sum()


def both_results(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.softmax(x @ w, 1)
    return F.gelu(y) * 2 + x.sum(), y


def partly_python(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1)
    return of_python(F.gelu(y)) + x.sum()


ROW = torch.rand(64)


def plus(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x @ w + b


def partly_moved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(x @ w, 1).cpu()
    return F.gelu(y) * 2 + x.sum().cpu()


def masked(q: torch.Tensor) -> torch.Tensor:
    h = F.dropout(F.scaled_dot_product_attention(q, q, q), 0.1)
    h = F.dropout(h * 2, 0.1)
    return F.dropout(h * 3, 0.1).sum()


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / 8.0, -1) @ v


def attention_bounded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.transpose(-2, -1)).clamp(max=50.0)
    return torch.softmax(scores / 8.0, -1) @ v


def less(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.exp() - w.sin()


def less_turned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return w.exp() - x.sin()


def compiled_once(x: torch.Tensor) -> None:
    for n in (3, 3):
        torch._dynamo.graph_break()
        helper(x[:n])


def compiled_again(x: torch.Tensor) -> None:
    for n in (3, 4):
        torch._dynamo.graph_break()
        helper(x[:n])


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum()


def layers(count: int) -> torch.nn.Module:
    torch.manual_seed(0)
    parts = [torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(count)]
    return torch.nn.Sequential(*parts)


class Captures:
    def __init__(self) -> None:
        self._made: dict[Any, compile_lens.Capture] = {}

    def __call__(self, fn: Program, *args: Any, **options: Any) -> compile_lens.Capture:
        key = (fn, tuple(map(id, args)), repr(options))
        if key not in self._made:
            self._made[key] = compile_lens.capture(fn, *args, **options)
        return self._made[key]


@pytest.fixture(scope="module")
def of() -> Captures:
    return Captures()


GRAD = W.clone().requires_grad_()
LARGE = torch.rand(1_000_000)
TALL = torch.rand(128, 64)
HALF = X.half(), W.half()
QKV = tuple(torch.rand(2, 4, 16, 64) for _ in range(3))
BASE = (base, (X, W), {})

PAIRS = {
    "an operator between": (BASE, (sorted_between, (X, W), {}), "lines", "torch.sort is new", "y = torch.sort(y)[0]"),
    "an operator gone": ((sorted_between, (X, W), {}), BASE, "lines", "torch.sort is gone", "y = torch.sort(y)[0]"),
    "an operator between, trained": (
        (base, (X, GRAD), {}), (sorted_between, (X, GRAD), {}), "lines", "torch.sort is new", "torch.sort(y)",
    ),
    "an operator between, on a GPU": (
        (base, (X, W), {"target": "h100"}), (sorted_between, (X, W), {"target": "h100"}),
        "lines", "torch.sort is new", "torch.sort(y)",
    ),
    "another dimension": (BASE, (other_dimension, (X, W), {}), "lines", "torch.softmax: argument 2: 1 → 0", "x @ w, 0"),
    "a graph break": (BASE, (broken, (X, W), {}), "breaks", "a new graph break", "torch._dynamo.graph_break()"),
    "a graph break gone": ((broken, (X, W), {}), BASE, "breaks", "a graph break is gone", "graph_break()"),
    "another activation": (BASE, (relu, (X, W), {}), "lines", "relu is new", "F.relu(y)"),
    "another number": (BASE, (other_number, (X, W), {}), "lines", "operator.mul: argument 2: 2 → 3", "F.gelu(y) * 3"),
    "something left out": (BASE, (shorter, (X, W), {}), "lines", "gone", "x.sum()"),
    "another type in between": (BASE, (widened, (X, W), {}), "lines", "double is new", "double()"),
    "a transposed operand": (BASE, (transposed, (X, W), {}), "lines", "t is new", "w.t()"),
    "cut off the gradient": ((base, (X, GRAD), {}), (detached, (X, GRAD), {}), "lines", "detach is new", "detach()"),
    "a second result": (
        BASE, (both_results, (X, W), {}), "lines", "results: 1 of the graph became 2", "torch.softmax(x @ w, 1)",
    ),
    "a part left to Python": (BASE, (partly_python, (X, W), {}), "breaks", "graph break", "of_python(F.gelu(y))"),
    "inputs turned round": (
        (less, (X, W), {}), (less_turned, (X, W), {}), "lines", "x.exp() became w.exp()", "w.exp()",
    ),
    "compiled again": (
        (compiled_once, (X,), {}), (compiled_again, (X,), {}), "breaks", "helper is compiled again", "",
    ),
    "a layer more": (
        (layers(2), (torch.rand(4, 16),), {}), (layers(3), (torch.rand(4, 16),), {}), "lines", "new", "",
    ),
    "another shape": (
        BASE, (base, (TALL, W), {}), "settings", "input 1: float32[64, 64] cpu became float32[128, 64] cpu", "",
    ),
    "another type": (BASE, (base, HALF, {}), "settings", "input 1: float32[64, 64] cpu became float16[64, 64] cpu", ""),
    "a gradient": (BASE, (base, (X, GRAD), {}), "settings", "float32[64, 64] cpu requires_grad", ""),
    "an option": (
        (total, (LARGE,), {"target": "h100"}),
        (total, (LARGE,), {"target": "h100", "options": {"split_reductions": False}}),
        "settings", "option split_reductions: default became False", "",
    ),
    "fusion forbidden": (
        (base, (X, W), {"target": "h100"}),
        (base, (X, W), {"target": "h100", "options": {"max_fusion_size": 1}}),
        "settings", "option max_fusion_size: default became 1", "",
    ),
    "any size": (BASE, (base, (X, W), {"dynamic": True}), "settings", "dynamic: none became True", ""),
    "a pattern that no longer matches": (
        (attention, QKV, {}), (attention_bounded, QKV, {}), "lines", "clamp is new", "clamp(max=50.0)",
    ),
    "a target": (BASE, (base, (X, W), {"target": "h100"}), "settings", "target: none became h100", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.cases(full=6)
def test_the_cause_of_a_pair(of: Captures, name: str) -> None:
    (f, args, options), (g, others, more), level, said, line = PAIRS[name]
    found = diff(of(f, *args, **options), of(g, *others, **more))
    assert found and found.causes
    first = found.causes[0]
    assert first.level == level, found.summary
    named = [cause for cause in found.causes if cause.level == level and said in cause.text]
    assert named, found.summary
    assert any(line in place for cause in named for place in cause.lines) if line else True
    # The cause comes before its effects.
    assert said in found.summary.partition("so: ")[0]


def test_what_an_option_does_is_told_after_it(of: Captures) -> None:
    (f, args, options), (g, others, more), *_ = PAIRS["an option"]
    found = diff(of(f, *args, **options), of(g, *others, **more))
    assert found.figures["launches"] == (2, 1)
    with pytest.raises(KeyError, match=r"no figure 'nope' differs; what differs: .*launches"):
        found.figures["nope"]
    assert any("lowering" == change.level for change in found.causes[1:]), found.summary


def test_another_device_is_no_difference_of_every_operator(of: Captures) -> None:
    """A difference that affects every operator is reported once, as an option; the effects of passes follow."""
    one, two = of(*_call(BASE)), of(base, X, W, target="h100")
    found = diff(one, two)
    # Settings of torch that another test changed in between are separate differences.
    moved = set(one.environment.settings) ^ set(two.environment.settings)
    causes = [c for c in found.causes if not any(c.text.startswith(f"{name}: ") for name, _ in moved)]
    assert [(c.level, c.kind) for c in causes] == [("settings", "changed"), ("rewrites", "added")], full(
        found
    )
    assert "prepare_softmax_pattern matches once, and did not before" in causes[1].text
    assert not found.at("lines") and not any("device" in c.text for c in found.changes), full(found)
    # A tensor that stays on a CPU is on another device than the one that the code is for.
    stays = diff(of(base, X, W, target="h100"), of(partly_moved, X, W, target="h100"))
    assert any("cpu" in change.text or "to" in change.text for change in stays.at("lines")), str(stays)


@pytest.mark.full
def test_what_is_kept_is_matched_by_what_it_is() -> None:
    """Three masks of one shape are saved, and attention saves other tensors before them on each device: the backward
    of one program does the same in the same order on both, so the masks correspond."""
    q = torch.rand(2, 4, 16, 16, requires_grad=True)
    sides = [Side(compile_lens.capture(masked, q, **more)) for more in ({}, {"target": "h100"})]
    one, two = sides
    kept = [sum(i.node.op == "placeholder" for i in side.stage("backward")) for side in sides]
    assert kept[0] != kept[1]
    key = "backward.post_grad"
    found = [
        pair
        for pair in matched((one, two), (key, key)).pairs.items()
        if one.stage(key)[pair[0]].node.op == "call_function"
    ]
    assert len(found) > 6
    assert [b for _, b in found] == sorted(b for _, b in found), [
        (one.stage(key)[a].node.name, two.stage(key)[b].node.name) for a, b in found
    ]


def test_a_pattern_that_no_longer_matches_is_told(of: Captures) -> None:
    """The pattern's only match, all of attention, is gone with the library call, and the summary reports it."""
    found = diff(of(attention, *QKV), of(attention_bounded, *QKV))
    (gone,) = [c for c in found.at("rewrites") if c.kind == "removed"]
    assert gone.text == "inference: _sfdp_pattern_1_inference matched once, and no longer does"
    assert gone.text in found.summary.partition("so: ")[2]
    calls = [[k.name for k in one.kernels if "attention" in k.name] for one in found.captures]  # type: ignore[attr-defined]
    assert len(calls[0]) == 1 and not calls[1]
    assert any("attention" in c.text and c.kind == "removed" for c in found.at("kernels"))


def test_what_was_asked_for_accounts_for_guards_and_sizes(of: Captures) -> None:
    found = diff(of(plus, X, W, ROW), of(plus, X, W, X))
    assert {c.level for c in found.changes} == {"settings", "guards", "figures"}, full(found)
    assert [c.text for c in found.causes] == ["input 3: float32[64] cpu became float32[64, 64] cpu"]


def test_what_stands_between_is_told(of: Captures) -> None:
    found = diff(of(*_call(BASE)), of(sorted_between, X, W))
    (apart,) = found.at("fusion")[:1]
    assert "was one group, and is several" in apart.text
    assert any("stands between them: all of it has to run after one" in fact for fact in apart.facts)
    before, after = found.figures["launches"]
    assert (before, after) == (
        of(*_call(BASE)).ledger.total.launches, of(sorted_between, X, W).ledger.total.launches,
    )  # fmt: skip


def _call(one: tuple[Program, tuple[Any, ...], dict[str, Any]]) -> tuple[Any, ...]:
    return (one[0], *one[1])


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100", "mps"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.cases(full=2)
def test_nothing_differs_between_two_captures_of_one_program(target: str | None, grad: bool) -> None:
    w = GRAD if grad else W
    options = {"target": target} if target else {}
    one, again = (compile_lens.capture(base, X, w, **options) for _ in range(2))
    found = diff(one, again)
    assert not found and found.changes == () and found.causes == ()
    assert "Nothing differs" in found.summary
    other = diff(one, compile_lens.capture(renamed, X, w, **options))
    assert not other, str(other)


@pytest.mark.full
@pytest.mark.parametrize("entry", ["encoder", "dynamic", "cond", "vmap", "jvp"])
@pytest.mark.cases(full=2)
def test_nothing_differs_for_larger_ones(entry: str) -> None:
    torch.manual_seed(0)
    encoder = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    programs: dict[str, tuple[Any, ...]] = {
        "encoder": (encoder, torch.rand(2, 8, 32, requires_grad=True)),
        "dynamic": (lambda x: x.sin().sum(0) @ x.t(), torch.rand(5, 7)),
        "cond": (lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), X),
        "vmap": (lambda x: torch.func.vmap(torch.sin)(x), X),
        "jvp": (lambda x: torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1], X),
    }
    options = {"dynamic": True} if entry == "dynamic" else {}
    # The first of three differs: torch adds a guard right after it loads the modules for a cond or vmap.
    _, one, again = (compile_lens.capture(*programs[entry], **options) for _ in range(3))
    assert not diff(one, again), str(diff(one, again))


def test_turned_round_it_says_the_opposite(of: Captures) -> None:
    one, two = of(*_call(BASE)), of(sorted_between, X, W)
    forth, back = diff(one, two), diff(two, one)
    assert {name: (b, a) for name, (a, b) in back.figures.items()} == forth.figures
    assert {c.kind for c in forth.at("lines")} == {"added"} and {c.kind for c in back.at("lines")} == {
        "removed"
    }


def test_two_versions_of_torch() -> None:
    """The records are of one program, by torch 2.11 and 2.13."""
    found = diff(RECORDS / "torch-2.11.json", RECORDS / "torch-2.13.json")
    assert found.causes[0].text == "torch: 2.11.0+cu130 became 2.13.0+cpu"
    assert found.causes[2].level == "lowering" and "aten.var_mean.correction" in found.causes[2].text
    assert found.figures == {}  # the launches and the traffic are the same
    assert any("inductor_cpu_integer_div_error" in line for c in found.at("code") for line in c.facts)


def test_a_version_of_torch_that_changes_nothing() -> None:
    """Torch 2.13 and 2.15 generate the same code for the program, so the cause gets no invented effect."""
    found = diff(RECORDS / "torch-2.13.json", RECORDS / "torch-2.15.json")
    assert found.causes[0].text == "torch: 2.13.0+cpu became 2.15.0+cu132"
    assert {change.level for change in found.changes} == {"settings"}
    kernels = [[k.source for k in one.kernels] for one in found.captures]  # type: ignore[attr-defined]
    assert kernels[0] == kernels[1] and len(kernels[0]) > 2


def test_what_was_not_seen_is_not_compared() -> None:
    found = diff(samples.sample(), samples.missing())
    assert any("backward.code" in reason and "cache hit" in reason for reason in found.unknown)
    assert found.figures["launches"][1] is None


def test_a_failure_differs_from_what_compiled(of: Captures) -> None:
    with pytest.raises(compile_lens.CaptureError) as caught:
        compile_lens.capture(lambda x, w: x @ torch.rand(3), X, W)
    found = diff(of(*_call(BASE)), caught.value.capture)
    assert found.causes[0].level == "breaks" and "outcome: compiled became" in found.causes[0].text
    assert {change.level for change in found.changes} <= {"settings", "breaks", "figures"}, (
        "the rest was not reached"
    )
    assert any("failed in stage dynamo" in reason for reason in found.unknown)


def test_forms(of: Captures, tmp_path: Path) -> None:
    found = diff(of(*_call(BASE)), of(sorted_between, X, W))
    for ending in (".html", ".md", ".txt", ".json"):
        text = found.save(tmp_path / f"d{ending}").read_text(encoding="utf-8")
        assert "torch.sort is new" in text and "launches" in text
    body = json.loads(found.to_json())
    assert body["differs"] and list(body["changes"]) == [level for level in LEVELS if found.at(level)]
    assert body["causes"][0]["text"] == "torch.sort is new"
    static = (tmp_path / "d.html").read_text(encoding="utf-8").partition('<script type="application/json"')[0]
    assert "torch.sort is new" in static and "<script" not in static
    assert set(found._repr_mimebundle_()) == {"text/plain", "text/html"}
    with pytest.raises(UsageError, match=r"\.html"):
        found.save(tmp_path / "d.pdf")


@pytest.mark.parametrize("hostile", samples.HOSTILE)
def test_texts_of_the_program_stay_text(hostile: str) -> None:
    capture = samples.sample()
    other = dataclasses.replace(
        capture, function=hostile, inputs=(f"x: {hostile}",), nothing_compiled=hostile
    )
    found = diff(capture, other)
    page = found._repr_mimebundle_()["text/html"]
    # Except for the page's own two scripts, its data is packed, so that HTML cannot misread it.
    assert page.count("<script") == page.count("</script") == 2
    assert "<img" not in page and "\x1b" not in page
    assert "\x1b" not in full(found) and "<img" not in found.to_markdown()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_cost_grows_linearly() -> None:
    """Records with four times the layers take about four times as long."""

    def seconds(count: int) -> float:
        x = torch.rand(4, 16, requires_grad=True)
        one, two = compile_lens.capture(layers(count), x), compile_lens.capture(layers(count + 1), x)
        best = 1e9
        for _ in range(3):
            started = time.process_time()
            assert diff(one, two)
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(6), seconds(24)
    assert large < 4 * small * 2.5 + 0.2, (small, large)


def test_what_it_takes() -> None:
    with pytest.raises(UsageError, match="b is int"):
        diff(samples.sample(), 3)
    with pytest.raises(UsageError, match="there is no file"):
        diff(samples.sample(), "nowhere.json")
    with pytest.raises(KeyError, match="no level 'speed'"):
        diff(samples.sample(), samples.sample()).at("speed")


@pytest.mark.parametrize("name", ["sample", "missing", "graph_break", "failed", "skipped", "nothing"])
def test_nothing_differs_between_a_record_and_itself(name: str) -> None:
    capture = getattr(samples, name)()
    assert not diff(capture, compile_lens.Capture.from_json(capture.to_json()))
