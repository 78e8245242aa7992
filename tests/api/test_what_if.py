"""``what_if`` finds a planted switch, and reports if none helps."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from full_text import full
from short_programs import one

import compile_lens
from compile_lens import UsageError, capture, what_if
from compile_lens.api import what_if as module
from compile_lens.trials.switches import SWITCHES, CaptureContents, Switch, only_run

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def three_sizes(x: torch.Tensor) -> torch.Tensor:
    for n in (3, 4, 5):
        torch._dynamo.graph_break()
        helper(x[:n])
    return x


def chain(x: torch.Tensor, length: int) -> list[torch.Tensor]:
    found = []
    for i in range(length):
        x = x * 1.01 + i
        found.append(x.sum(1))
    return found


def deep(x: torch.Tensor) -> Any:
    for _ in range(20):
        x = x * 1.01 + 1
    return x.sum(0), x.sum(1)


def read_twice(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor) -> Any:
    y = a * b + c * d + e
    return y.sum(0), y.sum(1), y + 1


def scattered(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(100, device=x.device).scatter_reduce(0, i, x, "sum") + 1


def mlp(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    for w in weights:
        x = torch.tanh(x @ w)
    return x.sum()


FIVE = tuple(torch.rand(64, 64) for _ in range(5))

PLANTED: dict[str, tuple[Any, tuple[Any, ...], str | None, str]] = {
    "split_reductions": (lambda x: x.sum(), (torch.rand(1_000_000),), "h100", "launches"),
    "combo_kernels": (
        lambda *xs: [x.sin() for x in xs], tuple(torch.rand(100 * n) for n in range(1, 6)), "h100", "launches",
    ),
    "score_fusion_memory_threshold": (
        lambda a, b, s: (a * s, b * s), (torch.rand(1000), torch.rand(1000), torch.rand(1)), "h100", "launches",
    ),
    "max_fusion_size": (chain, (torch.rand(64, 64), 66), "h100", "launches"),
    "realize_reads_threshold": (read_twice, FIVE, "h100", "peak"),
    "realize_opcount_threshold": (deep, (torch.rand(64, 64),), "h100", "bytes"),
    "force_pointwise_cat": (
        lambda *xs: torch.cat([x * 2 for x in xs]), tuple(torch.rand(50, 9) for _ in range(12)), "h100", "launches",
    ),
    "layout_optimization": (
        lambda x, w: torch.relu(F.conv2d(torch.relu(x), w)), (torch.rand(2, 8, 16, 16), torch.rand(8, 8, 3, 3)),
        "h100", "launches",
    ),
    "cpp.fallback_scatter_reduce_sum": (
        scattered, (torch.randint(0, 100, (1000,)), torch.rand(1000)), None, "launches",
    ),
    "dynamic": (three_sizes, (torch.rand(64, 64),), None, "launches"),
    "activation_memory_budget": (
        mlp, tuple(torch.rand(64, 64, requires_grad=True) for _ in range(4)), None, "saved",
    ),
}  # fmt: skip

DECOYS = ("aggressive_fusion", "reorder_for_peak_memory", "pattern_matcher")
"""What the planted one stands among in programs of many loops, of which all that may matter would take minutes."""

LARGE = ("max_fusion_size", "realize_opcount_threshold")


@pytest.mark.cases(full=1)
@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_switch_is_found(name: str) -> None:
    fn, args, target, figure = PLANTED[name]
    switches = (*DECOYS, name) if name in LARGE else None
    found = what_if(fn, *args, target=target, pairs=False, switches=switches)
    assert len(found.trials) > 1, "others were tried as well"
    (trial,) = [t for t in found.trials if t.name == name]
    assert figure in trial.lower, full(found)
    assert name in {t.name for t in found.helpful[:3]}, full(found)
    assert trial.settings[0] in full(found) and "None of them" not in full(found)
    (switch,) = [s for s in SWITCHES if s.name == name]
    first = found.diff(name).causes[0]
    if switch.partitioner:  # it is not an option of the capture: its effect is the cause
        made = [c.text for c in found.diff(name).causes if (c.level, c.kind) == ("operators", "added")]
        assert any(t.startswith("backward: ") and "aten.tanh" in t for t in made), found.diff(name).summary
    else:
        assert first.level == "settings"
    # The figures are those of a capture with that switch.
    assert (trial.arguments is None) == bool(switch.partitioner)
    with torch._functorch.config.patch(**switch.partitioner):
        again = compile_lens.capture(fn, *args, target=target, **(trial.arguments or {}))
    after = dict(trial.figures).get("launches", (None, found.base.ledger.total.launches))[1]
    assert again.ledger.total.launches == after


@pytest.mark.parametrize(
    ("fn", "args"),
    [(one, (torch.rand(64, 64),)), (lambda x, w: x @ w, (torch.rand(64, 64), torch.rand(64, 64)))],
)
def test_that_none_helps_is_said(fn: Any, args: tuple[Any, ...]) -> None:
    found = what_if(fn, *args, target="h100")
    assert not found.helpful and "None of them helps" in full(found)
    assert found.trials, "something was tried"
    assert dict(found.not_tried)["max_fusion_size"].startswith("there ")
    assert "timing on the device" in dict(found.not_tried)["mode='max-autotune'"]


def test_pairs_of_those_that_matter() -> None:
    fn, args, target, _ = PLANTED["combo_kernels"]
    found = what_if(
        fn, *args, target=target, switches=["combo_kernels", "split_reductions", "aggressive_fusion"]
    )
    names = [t.name for t in found.trials]
    assert names[:3] == ["combo_kernels", "split_reductions", "aggressive_fusion"]
    mattering = [t.name for t in found.trials[:3] if t.changes_figures]
    assert len(names) == 3 + len(mattering) * (len(mattering) - 1) // 2
    assert found.helpful[0].name == "combo_kernels"


@pytest.mark.exhaustive
def test_so_many_pairs_as_are_asked_for() -> None:
    def f(x: torch.Tensor, *ys: torch.Tensor) -> Any:
        return x.sum(), [y.sin() for y in ys]

    x, *ys = (torch.rand(n) for n in (1_000_000, 100, 200, 300))
    three = ["combo_kernels", "split_reductions", "score_fusion_memory_threshold"]
    found = what_if(f, x, *ys, target="h100", switches=three, pairs=1)
    assert [t.name for t in found.trials if t.changes_figures] == [*three[:2], pair := " + ".join(three[:2])]
    assert found.helpful[0].name == pair, "it is better than each of them"
    given = 'options={"combo_kernels": True, "split_reductions": False}'
    assert found.helpful[0].to_apply == f"torch.compile(f, {given})" and given in full(found)
    first, second, both = (dict(t.figures)["launches"][1] for t in found.trials if t.changes_figures)
    assert both < min(first, second)
    for asked in ("x", -1, 1.5, None):
        with pytest.raises(
            UsageError, match=rf"pairs={asked!r} is neither True nor False nor a whole number"
        ):
            what_if(f, x, pairs=asked)


@pytest.mark.exhaustive
def test_the_page_has_the_difference_of_each_switch(tmp_path: Path) -> None:
    fn, args, *_ = PLANTED["activation_memory_budget"]
    found = what_if(
        fn, *args, switches=["activation_memory_budget", "pattern_matcher", "combo_kernels"], pairs=False
    )
    by_name = {t.name: t for t in found.trials}
    # The second leaves the code unchanged: each kernel of a capture with it has the same source.
    same = [[k.source for k in one.kernels] for one in (found.base, by_name["combo_kernels"].capture)]
    assert by_name["combo_kernels"].code_changed is (same[0] != same[1])
    page = found.save(tmp_path / "found.html").read_text(encoding="utf-8")
    assert page.count('class="cl-trial"') == len([t for t in found.trials if t.changes_figures])
    row = page.partition('class="cl-trial"')[2].partition("</summary>")[0]
    assert "activation_memory_budget=0.5" in row and "saved " in row
    beside = tmp_path / "found-activation_memory_budget.html"
    assert f'href="{beside.name}"' in page and "<script" not in page
    assert "cl-data" in beside.read_text(encoding="utf-8"), "the living page of the difference"
    # The cell shows the same as the difference itself.
    words = re.sub(r"<[^>]+>", "", html.unescape(found._repr_mimebundle_()["text/html"]))
    told = found.diff("activation_memory_budget").at("saved")[0].text
    assert told in words and "href" not in found._repr_mimebundle_()["text/html"]
    for ending in (".md", ".txt", ".json"):
        text = found.save(tmp_path / f"found{ending}").read_text(encoding="utf-8")
        assert "activation" in text and "combo" in text
    assert json.loads(found.to_json())["trials"][0]["code_changed"] is True
    with pytest.raises(UsageError, match=r"\.html"):
        found.save(tmp_path / "found.pdf")


def test_a_setting_that_this_torch_lacks_is_told() -> None:
    lacking = Switch("budget", "…", partitioner={"memory_budget_of_another_torch": 0.5})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SWITCHES", (lacking,))
        found = what_if(one, torch.rand(8))
    assert found.trials == () and "this torch does not have it" in dict(found.not_tried)["budget"]


def test_an_interrupt_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, count = module.capture, 0

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, "capture", interrupted)
    x = torch.rand(64, 64)
    found = what_if(lambda x: x.sum(0) + x.sum(1), x, switches=[s.name for s in SWITCHES[:4]])
    assert found.interrupted and len(found.trials) == 1 and "interrupted" in full(found)
    reached, *others = SWITCHES[:4]
    assert [name for name, why in found.not_tried if why.startswith("not reached")] == [
        s.name for s in others
    ]
    assert reached.name not in dict(found.not_tried)
    assert "None of them helps" not in full(found) and "None of what was tried helps" in full(found)


def test_a_trial_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module.capture

    def picky(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("options"):
            raise UsageError("options={…}: there is no such option")
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, "capture", picky)
    found = what_if(one, torch.rand(8), switches=["pattern_matcher"])
    assert found.trials == () and "this torch does not have it" in dict(found.not_tried)["pattern_matcher"]


def test_what_the_caller_set_stays() -> None:
    found = what_if(one, torch.rand(8), options={"pattern_matcher": False}, switches=["pattern_matcher"])
    assert dict(found.not_tried)["pattern_matcher"] == "you set pattern_matcher=False"
    with pytest.raises(UsageError, match="no switch 'speed'; there are split_reductions"):
        what_if(one, torch.rand(8), switches=["speed"])
    with pytest.raises(UsageError, match="names none to try; there are split_reductions"):
        what_if(one, torch.rand(8), switches=[])
    with pytest.raises(UsageError, match="not a list of names"):
        what_if(one, torch.rand(8), switches="combo_kernels")
    with pytest.raises(
        UsageError, match=r"^what_if needs a callable first, got 3 of type int: .* what_if\(f, x\)"
    ):
        what_if(3)
    with pytest.raises(UsageError, match=r"^what_if has no argument 'swiches' .*; did you mean 'switches'"):
        what_if(one, torch.rand(8), swiches=["dynamic"])
    with pytest.raises(UsageError, match="show_progress='x' is not one of None, True, False"):
        what_if(one, torch.rand(8), show_progress="x")
    with pytest.raises(UsageError, match="switches=3 is not a list of names; there are split_reductions"):
        what_if(one, torch.rand(8), switches=3)
    with pytest.raises(UsageError, match="was not captured"):
        found.diff("combo_kernels")
    assert found.to_dict()["not_tried"] == [["pattern_matcher", "you set pattern_matcher=False"]]


def test_the_default_of_each_switch_is_another() -> None:
    """A switch that sets the value already in force would be tried in vain."""
    from torch._inductor import config

    for switch in SWITCHES:
        for name, value in (*switch.options.items(), *switch.partitioner.items()):
            place: Any = config if name in switch.options else torch._functorch.config
            for part in name.split("."):
                place = getattr(place, part, None)
            assert place != value, name


@pytest.mark.parametrize(
    ("fn", "target", "told"),
    [
        (lambda x: x + 1, None, {"cpp.simdlen": True, "TF32": False}),
        (lambda x: x @ x, None, {"cpp.simdlen": True, "TF32": True}),
        (lambda x: x @ x, "h100", {"cpp.simdlen": False, "TF32": True}),
        (lambda x: x @ x, "mps", {"cpp.simdlen": False, "TF32": False}),
        (lambda x: x @ x, "t4", {"cpp.simdlen": False, "TF32": False}),  # no tensor cores for it before sm_80
        (lambda x: x.bfloat16() @ x.bfloat16(), "h100", {"cpp.simdlen": False, "TF32": False}),
    ],
)
def test_what_only_a_run_tells_is_told_where_it_applies(
    fn: Any, target: str | None, told: dict[str, bool]
) -> None:
    names = [name for name, _ in only_run(CaptureContents(capture(fn, torch.rand(16, 16), target=target)))]
    assert {part: any(part in name for name in names) for part in told} == told


@pytest.mark.parametrize(
    ("dtype", "target", "said"),
    [
        (torch.float32, "h100", "it chooses by timing on the device"),
        (torch.float64, "h100", "no template of it for float64: it chooses only launch configurations"),
        (torch.float32, "t4", "NVIDIA T4 has 40: it chooses only launch configurations"),
        (torch.float32, "mps", "no templates for Metal, nor launch configurations"),
        (
            torch.float32,
            None,
            "nothing to time: on a CPU Inductor has templates only for weights that are constants",
        ),
    ],
)
def test_max_autotune_is_told_as_what_it_would_do(dtype: torch.dtype, target: str | None, said: str) -> None:
    x = torch.ones(16, 16, dtype=dtype)
    found = dict(only_run(CaptureContents(capture(lambda x: x @ x, x, target=target))))
    assert said in found["mode='max-autotune'"]


class Growing:
    """Grows by one row in each call: its cache, and a module's buffer."""

    def __init__(self) -> None:
        self.rows: list[torch.Tensor] = []
        self.all = torch.zeros(0, 6)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.rows.append(x)
        self.all = torch.cat([self.all, x])
        return torch.stack(self.rows).sum(0) + self.all.sum(0)


def test_what_a_call_leaves_behind_is_no_effect_of_a_switch() -> None:
    """By hand: one call stacks one row; a second one would stack two, and move more bytes whatever is set."""
    growing, x = Growing(), torch.rand(1, 6)
    names = ["split_reductions", "reorder_for_peak_memory", "pattern_matcher"]
    tried = what_if(growing, x, switches=names, pairs=False)
    assert [trial.figures for trial in tried.trials] == [()] * 3
    assert len(growing.rows) == 1 and growing.all.shape == (1, 6), "as after one plain call"
    twice = Growing()
    twice(x)
    assert capture(twice, x).ledger.total.bytes_after != tried.base.ledger.total.bytes_after


def test_a_config_that_the_program_has_set_is_in_force() -> None:
    """Two reductions of one tensor share a kernel, unless the config prevents loops from fusing."""

    def two(x: torch.Tensor) -> Any:
        return x.sum(0), x.sin().sum(1)

    x = torch.rand(64, 32)
    with torch._inductor.config.patch(max_fusion_size=1, pattern_matcher=False):
        result = what_if(two, x, switches=["max_fusion_size", "pattern_matcher"])
        every = what_if(two, x, target="h100", pairs=False)
    reasons = dict(result.not_tried)
    assert reasons == {"pattern_matcher": "it is set already: torch._inductor.config.pattern_matcher = False"}
    assert "max_fusion_size" in {trial.name for trial in every.trials}
    assert dict(every.not_tried)["pattern_matcher"] == reasons["pattern_matcher"]
