"""Rewrites by passes: each with its pattern, its nodes before and after, and the reason why a near miss failed."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from zoo_tensors import naive_attention, sin2_cos2

from compile_lens import capture
from compile_lens._torch.graphs import node_changes, patterns
from compile_lens._torch.graphs import passes as rewrites
from compile_lens._torch.ground import hook_points
from compile_lens.record import claims
from compile_lens.record.graph import Ref
from compile_lens.record.lowering import UNNAMED, Pass, Rewrite
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def ramp(*shape: int, grad: bool = False) -> torch.Tensor:
    size = torch.Size(shape).numel()
    return torch.linspace(-3.0, 3.0, size).reshape(shape).requires_grad_(grad)


def heads(grad: bool = False) -> list[torch.Tensor]:
    return [ramp(2, 4, 8, 16, grad=grad) for _ in range(3)]


def with_tanh(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.tanh(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5), dim=-1) @ v


def passes(seen: Capture, stage: str = "") -> list[Pass]:
    (compilation,) = seen.compilations
    return [p for p in compilation.passes if p.stage == stage or not stage]


def found(seen: Capture, stage: str = "") -> list[Rewrite]:
    return [r for p in passes(seen, stage) for r in p.rewrites]


def by_pattern(seen: Capture, start: str, stage: str = "") -> list[Rewrite]:
    return [r for r in found(seen, stage) if r.pattern.startswith(start)]


def by_pass(seen: Capture, name: str, stage: str) -> list[Rewrite]:
    return [r for p in passes(seen, stage) if p.name == name for r in p.rewrites]


@pytest.mark.parametrize(
    ("grad", "stage", "ending"), [(False, "inference", "inference"), (True, "forward", "training")]
)
def test_attention_becomes_one_call(grad: bool, stage: str, ending: str) -> None:
    seen = capture(naive_attention, *heads(grad))
    (rewrite,) = by_pattern(seen, "_sfdp_pattern")
    assert rewrite.pattern == f"_sfdp_pattern_1_{ending}"
    assert [rewrite] == [r for p in passes(seen, stage) if p.name == "pass_pattern_0" for r in p.rewrites]
    (fused,) = [p for p in passes(seen, stage) if rewrite in p.rewrites]
    assert fused.nodes_before - len(rewrite.before) + len(rewrite.after) == fused.nodes_after
    assert rewrite.where.startswith("torch/_inductor/fx_passes/fuse_attention.py:")
    assert rewrite.where.endswith(" in _sfdp_pattern_1")
    assert sum("aten.bmm.default(" in line for line in rewrite.before_text.splitlines()) == (6 if grad else 2)
    assert (
        sum("flash_attention" in line and " = aten." in line for line in rewrite.after_text.splitlines())
        == 1 + grad
    )
    before = seen.compilations[0].graphs["joint" if grad else "pre_grad"]
    assert set(rewrite.origins) <= {n.name for n in before.nodes}
    softmax = "exp" if grad else "softmax"
    assert softmax in rewrite.origins
    assert not [m for p in passes(seen) for m in p.near_misses if "_sfdp" in m]


def test_a_tanh_breaks_the_match_and_one_is_told_so() -> None:
    seen = capture(with_tanh, *heads())
    assert not by_pattern(seen, "_sfdp_pattern")
    (miss,) = [m for p in passes(seen, "inference") for m in p.near_misses if "_sfdp" in m]
    assert miss.startswith(
        "_sfdp_pattern_1_inference at %view_5: it wants aten.div.Tensor and finds %tanh = "
    )
    assert "whose input %div is one" in miss
    assert miss.endswith("without %tanh all 19 nodes would fit")


def test_the_other_scale_is_another_pattern() -> None:
    def scaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.tanh((q @ k.transpose(-2, -1)) * 0.25), dim=-1) @ v

    seen = capture(scaled, *heads())
    (miss,) = [m for p in passes(seen, "inference") for m in p.near_misses if "_sfdp" in m]
    assert miss.startswith("_sfdp_pattern_2_inference at ") and "aten.mul.Tensor" in miss


def test_with_a_backward_no_more_is_claimed_than_was_seen() -> None:
    seen = capture(with_tanh, *heads(grad=True))
    assert not by_pattern(seen, "_sfdp_pattern")
    (miss,) = [m for p in passes(seen, "forward") for m in p.near_misses if "_sfdp" in m]
    assert "_training at " in miss and "%tanh = aten.tanh.default(%div)" in miss
    assert " of " in miss and "would fit" not in miss  # the backward of tanh also prevents a match


@pytest.mark.parametrize(
    "function",
    [
        sin2_cos2,
        lambda x: torch.relu(x @ x),
        lambda x: torch.relu(x[None] @ x[None]) @ x[None],
        lambda x: F.gelu(F.layer_norm(x, (16,))),
        lambda x: torch.sort(torch.sin(x)).values.cumsum(0),
    ],
)
def test_what_is_no_attention_is_no_near_attention(function: Callable[..., Any]) -> None:
    seen = capture(function, ramp(16, 16))
    assert not [m for p in passes(seen) for m in p.near_misses if "_sfdp" in m]


def test_a_pattern_that_fits_but_may_not_be_applied() -> None:
    seen = capture(lambda x: torch.softmax(x, -1), ramp(8, 16))
    told = [m for p in passes(seen) for m in p.near_misses]
    assert told and all("nodes fit at %amax, but it was not applied" in m for m in told)


@pytest.mark.full
def test_what_only_a_cpu_has_is_not_near_elsewhere() -> None:
    """``gelu`` after a product nearly matches oneDNN's pattern of a convolution and ``gelu``."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x.bfloat16() @ x.bfloat16())

    near = {
        target: [
            m
            for p in passes(capture(fn, ramp(16, 16), target=target))
            for m in p.near_misses
            if "mkldnn" in m
        ]
        for target in (None, "h100")
    }
    assert near[None] and not near["h100"]


def test_a_product_and_a_sum_are_one_addmm() -> None:
    seen = capture(lambda a, b, c: F.relu(a @ b + c), ramp(4, 5), ramp(5, 6), ramp(6))
    (rewrite,) = by_pattern(seen, "addmm", "inference.post_grad")
    assert rewrite.before == ("mm", "add") == rewrite.origins
    assert rewrite.before_text == (
        "%mm = aten.mm.default(%arg0_1, %arg1_1)\n%add = aten.add.Tensor(%mm, %arg2_1)"
    )
    assert rewrite.after_text == f"%{rewrite.after[0]} = aten.addmm.default(%arg2_1, %arg0_1, %arg1_1)"
    graph = seen.compilations[0].graphs["inference.post_grad"]
    assert rewrite.after[0] in {n.name for n in graph.nodes}


@pytest.mark.parametrize(
    ("function", "pattern", "left"),
    [
        (lambda x: torch.sin(x).permute(1, 0).permute(1, 0), "pointless_permute_pair", "sin"),
        (lambda x: torch.sin(x).view(-1).view(x.shape), "pointless_view_pair", "sin"),
        (lambda x: torch.sin(x).to(torch.float64).to(torch.float32), "pointless_convert", None),
        (lambda x: torch.ones(8, 8).cumsum(0) + x, "pointless_cumsum_replacement", None),
        (lambda x: F.dropout(x, 0.5, True), "replace_random", None),
    ],
)
def test_what_patterns_take_out(function: Callable[..., Any], pattern: str, left: str | None) -> None:
    seen = capture(function, ramp(8, 8))
    (rewrite,) = by_pattern(seen, pattern)
    assert rewrite.before and rewrite.origins and rewrite.where.endswith(f" in {pattern}")
    if left is not None:  # no new node: users read the original input directly
        assert rewrite.after == (left,)


def test_what_passes_without_patterns_take_out() -> None:
    def idle(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x[:] + torch.zeros_like(x))

    seen = capture(idle, ramp(4, 6))
    (slices,) = by_pass(seen, "remove_noop_ops", "inference")
    assert (
        slices.pattern == "" and slices.after == ("arg0_1",) and slices.where.endswith(" in remove_noop_ops")
    )
    added = [r for r in by_pass(seen, "constant_fold_uniform_value", "inference") if "add" in r.before]
    assert len(added) == 1 and added[0].after == ("arg0_1",)


def test_operators_that_change_for_others_are_one_change() -> None:
    seen = capture(lambda x: torch.sin(x).view(4, 16).view(16, 4, 1).relu().view(2, 32), ramp(8, 8))
    (rewrite,) = by_pass(seen, "view_to_reshape", "inference.post_grad")
    assert rewrite.before == rewrite.after and len(rewrite.before) == 3
    assert rewrite.before_text.replace("aten.view.", "aten.reshape.") == rewrite.after_text


def test_a_seed_for_all_random_operators() -> None:
    seen = capture(lambda x: F.dropout(x, 0.5, True) + torch.rand_like(x), ramp(8, 8))
    (rewrite,) = by_pass(seen, "fuse_seed_creation_pass", "inference")
    assert len(rewrite.before) == 2 and "inductor_seeds" in rewrite.after_text


@pytest.mark.parametrize("grad", [False, True])
def test_the_passes_account_for_every_change(grad: bool) -> None:
    """The names that passes remove and add account exactly for the step from each recorded stage to the next."""

    def busy(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.dropout(torch.relu(x @ w + b), 0.25, True).view(-1).view(8, 8)
        return torch.softmax(y.permute(1, 0).permute(1, 0) + torch.ones(8, 8).cumsum(0), -1)

    seen = capture(busy, ramp(8, 8, grad=grad), ramp(8, 8, grad=grad), ramp(8, grad=grad))
    graphs = seen.compilations[0].graphs
    for phase in ("forward", "backward") if grad else ("inference",):
        names = {n.name: n for n in graphs[phase].nodes}
        here, count = set(names), len(names)
        for ran in passes(seen, f"{phase}.post_grad"):
            assert ran.nodes_before == count
            for rewrite in ran.rewrites:
                there = {line.partition(" = ")[0][1:] for line in rewrite.after_text.splitlines()}
                assert set(rewrite.after) == there
                here |= set(rewrite.after)
            count = ran.nodes_after
        after = graphs[f"{phase}.post_grad"].nodes
        assert count == len(after)
        assert {n.name for n in after} <= here
        gone = {name for r in found(seen, f"{phase}.post_grad") for name in r.before}
        assert set(names) - {n.name for n in after} <= gone
        same = [n for n in after if n.name in names and n.name not in gone]
        assert [n.target for n in same] == [names[n.name].target for n in same]


def test_stages_come_in_order_and_idle_passes_are_kept() -> None:
    seen = capture(sin2_cos2, ramp(64, grad=True))
    stages = [stage for stage, _ in itertools.groupby(p.stage for p in passes(seen))]
    assert stages == ["pre_grad", "forward", "forward.post_grad", "backward.post_grad"]
    assert found(seen) == by_pass(seen, "fx_graph_cse", "forward"), "only the partitioner's merges"
    assert UNNAMED not in {p.name for p in passes(seen)}
    assert {"remove_noop_ops", "pass_pattern_0"} <= {p.name for p in passes(seen, "forward")}
    assert (
        len(
            {len(seen.compilations[0].graphs[s].nodes) for s in ("joint",)}
            | {p.nodes_before for p in passes(seen, "forward")}
        )
        == 1
    )


def test_bodies_of_higher_order_operators_have_passes_of_their_own() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.view(-1).view(8, 8) * 2, lambda y: y.cos(), (x,))

    seen = capture(branch, ramp(8, 8))
    bodies = {p.body for p in passes(seen, "inference")}
    assert "" in bodies and len(bodies) == 3
    (rewrite,) = by_pattern(seen, "pointless_view_pair")
    assert [bool(p.body) for p in passes(seen) if rewrite in p.rewrites] == [True]


def test_a_pass_of_the_users_is_a_pass() -> None:
    def swap(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default

    seen = capture(lambda x: torch.sin(x) + 1, ramp(8), options={"post_grad_custom_post_pass": swap})
    (rewrite,) = by_pass(seen, "post_grad_custom_post_pass", "inference.post_grad")
    assert rewrite.before_text == "%sin = aten.sin.default(%arg0_1)"
    assert rewrite.after_text == "%sin = aten.cos.default(%arg0_1)"
    assert rewrite.where.endswith(" in swap") and rewrite.origins == ("sin",)


def test_the_record_survives_json() -> None:
    seen = capture(with_tanh, *heads())
    again = Capture.from_json(seen.to_json())
    assert again.compilations[0].passes == seen.compilations[0].passes


@pytest.mark.parametrize(
    "path",
    [f"{rewrites.OBSERVER}.__enter__", "torch._inductor.pattern_matcher:PatternMatcherPass.apply"],
)
def test_without_a_hook_a_detail_is_lost_and_the_call_succeeds(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))
    seen = capture(naive_attention, *heads())
    assert seen.kernels and seen.lacks(claims.REWRITES)
    assert not by_pattern(seen, "_sfdp_pattern_1"), "of passes of which one cannot be seen, none is told"


@pytest.mark.full
def test_nothing_of_torchs_is_kept() -> None:
    made: list[weakref.ref[Any]] = []

    def note(graph: torch.fx.Graph) -> None:
        made.append(weakref.ref(graph))

    capture(with_tanh, *heads(), options={"joint_custom_post_pass": note, "post_grad_custom_post_pass": note})
    gc.collect()
    assert len(made) == 2 and [ref() for ref in made] == [None, None]


def test_a_long_text_says_what_is_left_out() -> None:
    lines = [(f"n{i}", f"%n{i} = aten.sin.default(%x)") for i in range(node_changes.MAX_LINES + 7)]
    assert node_changes.text(lines).splitlines()[-1] == "… and 7 more"
    assert len(node_changes.text(lines).splitlines()) == node_changes.MAX_LINES + 1


def test_a_graph_is_compared_without_being_told() -> None:
    gm = torch.fx.symbolic_trace(lambda x, y: torch.cos(torch.sin(x) + y))
    tracked = node_changes.Tracked(gm, "")
    assert not tracked.settle()[0] and tracked.settle()[1] == 0
    x, y, sin, add, cos, output = gm.graph.nodes
    with gm.graph.inserting_before(add):
        exp = gm.graph.call_function(torch.exp, (x,))
    sin.replace_all_uses_with(exp)
    gm.graph.erase_node(sin)
    (group,) = tracked.settle()[0].groups()
    assert (group.before, group.after) == (
        (("sin", "%sin = torch.sin(%x)"),),
        (("exp", "%exp = torch.exp(%x)"),),
    )
    cos.args = (x,)  # the sum has no reader left, and no pass accounts for it
    (group,) = tracked.settle()[0].groups()
    assert [name for name, _ in group.before] == ["add"] and [name for name, _ in group.after] == ["x"]
    y.append(exp)
    add.append(exp)
    assert tracked.settle()[1] == 1
    assert output.args == (cos,)


def test_patterns_as_text() -> None:
    from torch._inductor.pattern_matcher import CallFunction, Ignored, KeywordArg

    aten = torch.ops.aten
    pattern = CallFunction(aten.mul.Tensor, CallFunction(aten.sin, KeywordArg("x")), Ignored())
    assert patterns.text_of(pattern) == "aten.mul.Tensor(aten.sin(x), *)"
    assert patterns.size(pattern) == 2


def test_names_in_texts_are_names_of_arguments() -> None:
    seen = capture(lambda a, b, c: a @ b + c, ramp(4, 5), ramp(5, 6), ramp(6))
    graph = seen.compilations[0].graphs["inference.post_grad"]
    (node,) = [n for n in graph.nodes if n.target == "aten.addmm.default"]
    (rewrite,) = by_pattern(seen, "addmm")
    given = ", ".join(f"%{a.name}" for a in node.args if isinstance(a, Ref))
    assert rewrite.after_text == f"%{node.name} = {node.target}({given})"


def test_an_operator_that_torch_moves_before_a_cat_keeps_its_line() -> None:
    def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        both = torch.cat([x, y], 1)
        positive = both.relu()
        more = torch.cat([positive, x], 1)
        flat = more.view(-1)
        return torch.tanh(flat)

    record = capture(joined, ramp(4, 3), ramp(4, 5))
    moved = [n for n in record.compilations[0].graphs["pre_grad"].nodes if n.target in ("relu", "torch.tanh")]
    assert [n.target for n in moved] == ["relu", "relu", "torch.tanh", "torch.tanh"]  # one for each chunk
    assert [n.origins for n in moved] == [("positive",)] * 2 + [("tanh",)] * 2
    first = joined.__code__.co_firstlineno
    lines = {frame.line - first for kernel in record.kernels for frame in record.chain.lines(kernel)}
    assert {2, 5} <= lines
