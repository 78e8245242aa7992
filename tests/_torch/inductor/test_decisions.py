"""Every fusion decision is observed when it is made, with a reliable reason and without side effects."""

from __future__ import annotations

import ast
import gc
import inspect
import itertools
import logging
import re
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from full_text import full
from reasons import without
from running import run
from zoo_tensors import chain, naive_attention, sin2_cos2

from compile_lens import UsageError, capture, versions
from compile_lens._torch.ground import hook_points, hooks, source_places
from compile_lens._torch.inductor import fusion, fusion_reasons, pipeline
from compile_lens.record.decision import REASONS, Decision
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

N = 2**20


def ramp(*shape: int, grad: bool = False) -> torch.Tensor:
    size = torch.Size(shape).numel()
    return torch.linspace(-3.0, 3.0, size).reshape(shape).requires_grad_(grad)


@torch.library.custom_op("lens_decisions::plus", mutates_args=())
def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


plus.register_fake(lambda x, y: torch.empty_like(x))


def three(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.sin(x), torch.cos(x), torch.exp(x)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(torch.cumsum(torch.sin(x), 0))


def sort(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(torch.sort(torch.sin(x)).values)


def custom(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cos(plus(torch.sin(x), y))


def normalise(x: torch.Tensor) -> torch.Tensor:
    return x / x.sum()


def slices(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin(), x[:100].cos()


def transposed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin() + 1, x.t().contiguous().cos()


def scatter(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.zeros(10).index_add(0, i, x.sin()) + 1


def updated(total: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    total.mul_(x)
    return total.amax()


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.tanh(q @ k.transpose(-2, -1) / 32**0.5), dim=-1) @ v


def branches(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.cond(p, lambda x: x.sin().sum() * x, lambda x: x.cos() + 1, (x,))  # type: ignore[no-any-return]


Q = ramp(2, 4, 64, 32)
INDEX = torch.arange(100) % 10

# torch 2.11 also lowers the tanh into the loops of the softmax, and fuses them.
ATTENTION = ("fused", "") if versions.torch_version() < (2, 13) else ("not fused", "different loops")


# The well-known cases, by kind.
@pytest.mark.parametrize(
    ("fn", "args", "options", "pair", "verdict", "reason"),
    [
        (three, (ramp(N),), {}, ("sin", "cos"), "fused", ""),
        (three, (ramp(N),), {"max_fusion_size": 1}, ("sin", "cos"), "not fused", "too large"),
        (sin2_cos2, (ramp(N),), {}, ("sin", "add"), "inlined", ""),
        (cumsum, (ramp(N),), {}, ("sin", "cos"), "not fused", "extern"),
        (sort, (ramp(N),), {}, ("sin", "cos"), "not fused", "extern"),
        (custom, (ramp(N), ramp(N)), {}, ("sin", "cos"), "not fused", "extern"),
        (custom, (ramp(N), ramp(N)), {}, ("sin", "plus"), "not fused", "extern"),
        (lambda x: torch.softmax(x, -1), (ramp(512, 512),), {}, ("amax", "sub"), "fused", ""),
        (lambda x: torch.softmax(x, 0), (ramp(512, 512),), {}, ("amax", "sub"), "not fused", "reduction barrier"),
        (lambda x: torch.softmax(x, 0), (ramp(512, 512),), {}, ("sum_1", "div"), "not fused", "reduction barrier"),
        (normalise, (ramp(N),), {}, ("sum_1", "div"), "not fused", "reduction barrier"),
        (slices, (ramp(N),), {}, ("sin", "cos"), "not fused", "different sizes"),
        (transposed, (ramp(64, 32),), {}, ("sin", "cos"), "not fused", "different indices"),
        (scatter, (ramp(100), INDEX), {}, ("index_put", "add"), "not fused", "mutation"),
        (updated, (ramp(64, 32), ramp(64, 32)), {}, ("amax", "copy_"), "not fused", "mutation"),
        (attention, (Q, Q + 1, Q + 2), {}, ("tanh", "div_1"), *ATTENTION),
        (lambda a, b: torch.relu(a @ b), (ramp(64, 32), ramp(32, 16)), {}, ("mm", "relu"), "not fused", "extern"),
    ],
    ids=[
        "readers", "limit", "inlined", "cumsum", "sort", "custom between", "custom", "softmax -1", "softmax 0",
        "softmax 0 end", "normalise", "slices", "transposed", "scatter", "updated", "attention", "mm relu",
    ],
)  # fmt: skip
def test_known_reasons(fn: Any, args: Any, options: Any, pair: Any, verdict: str, reason: str) -> None:
    found = capture(fn, *args, options=options).why(*pair)
    assert (found.verdict, found.reason) == (verdict, reason), full(found)


def test_fused_attention_is_one_library_call() -> None:
    found = capture(naive_attention, Q, Q + 1, Q + 2)
    assert len(found.kernels) == 1 and not found.decisions


@pytest.mark.exhaustive
def test_long_chains_are_fused_again() -> None:
    found = capture(chain, ramp(N), 100)
    assert found.decisions and any(d.fused for d in found.decisions)
    assert len({g for k in found.kernels for g in k.groups}) == 1


def test_a_decision_is_complete() -> None:
    refused = [d for d in capture(lambda x: torch.softmax(x, 0), ramp(512, 512)).decisions if not d.fused]
    assert refused
    for d in refused:
        assert re.fullmatch(r"torch/_inductor/[\w/]+\.py:\d+ in \w+", d.where)
        assert d.reason in REASONS and d.sentence and d.round >= 1
    (barrier,) = [d for d in refused if (d.a, d.b) == (("op0",), ("op1",))]
    assert barrier.torch_message == "no shared data" and barrier.shared_bytes == 0
    assert barrier.evidence == "512 reductions over 512 against 512 × 512"
    fused = [d for d in capture(three, ramp(N)).decisions if d.fused]
    assert fused and all(d.shared_bytes == N * 4 and not d.torch_message for d in fused)
    assert all(d.score[2] == N * 4 for d in fused if len(d.loops) == 2)


def test_what_the_cpp_backend_does_not_say_is_shown_by_its_conditions() -> None:
    (d,) = capture(normalise, ramp(N)).decisions
    assert not d.torch_message and d.reason == "reduction barrier"
    assert d.evidence == f"one reduction over {N} against {N}"
    assert re.fullmatch(r"torch/_inductor/codegen/cpp\.py:\d+ in can_fuse_vertical", d.where)


def test_the_horizontal_limit_of_the_cpp_backend_is_named() -> None:
    options = {"cpp.max_horizontal_fusion_size": 2}
    found = [d for d in capture(three, ramp(N), options=options).decisions if d.reason == "too large"]
    assert found and all(
        "cpp.max_horizontal_fusion_size is 2" in d.evidence and not d.torch_message for d in found
    )


def said_by_torch() -> Iterator[str]:
    """Every reason that this torch can give, read from its source."""
    import torch._inductor.choices as choices
    import torch._inductor.codegen.simd as simd
    import torch._inductor.scheduler as scheduler

    for module in (choices, simd, scheduler):
        for item in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(item, ast.Call) or not item.args:
                continue
            name = item.func.id if isinstance(item.func, ast.Name) else ""
            made = isinstance(item.func, ast.Call) and getattr(item.func.func, "id", "") == "WhyNoFuse"
            first = item.args[0]
            if (name == "why" or made) and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_every_word_of_inductors_is_known() -> None:
    words = set(said_by_torch())
    assert len(words) > 35
    assert {w: fusion_reasons.kind(w) for w in words if fusion_reasons.kind(w) == "other"} == {}
    assert {reason for _, reason in fusion_reasons.TORCH_REASONS} <= set(REASONS)


FUNCTIONS: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda x: F.layer_norm(x.sin(), (64,)), (ramp(32, 64, grad=True),)),
    (lambda x: torch.softmax(x, 0), (ramp(512, 512, grad=True),)),
    (attention, (Q.clone().requires_grad_(), Q + 1, Q + 2)),
    (lambda x: F.gelu(x @ x.t()).sum(0).softmax(-1), (ramp(16, 16, grad=True),)),
    (transposed, (ramp(64, 32),)),
    (scatter, (ramp(100), INDEX)),
    (lambda x: (x.mean(0), x.var(1), x.amax()), (ramp(64, 48),)),
    (lambda x: F.conv2d(x, x[:, :, :3, :3]).relu().mean(), (ramp(2, 3, 9, 9),)),
    (branches, (torch.tensor(True), ramp(40))),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "args"), FUNCTIONS)
def test_every_pair_of_groups_that_shares_a_buffer_is_explained(fn: Any, args: Any) -> None:
    found = capture(fn, *args)
    pairs = several = 0
    for compilation in found.compilations:
        for phase in compilation.phases:
            graph = compilation.graphs.get(f"{phase}.groups")
            groups = [n for n in graph.nodes if n.members] if graph is not None else []
            several += len(groups) > 1
            for one, two in itertools.combinations(groups, 2):
                if one.name in two.inputs or two.name in one.inputs or set(one.inputs) & set(two.inputs):
                    answer = found.why(one.name, two.name, phase=f"{compilation.id} {phase}")
                    pairs += 1
                    assert answer.verdict == "not fused"
                    assert answer.reason in REASONS, str(answer)
                    assert answer.reason not in ("backend", "unsaid", "other"), str(answer)
    assert bool(pairs) == bool(several)


@pytest.mark.parametrize(("fn", "args"), FUNCTIONS)
def test_decisions_agree_with_the_groups(fn: Any, args: Any) -> None:
    found = capture(fn, *args)
    for compilation in found.compilations:
        for phase, made in compilation.decisions:
            loops = {n.name for n in compilation.graphs[f"{phase}.loops"].nodes}
            of = {m: n.name for n in compilation.graphs[f"{phase}.groups"].nodes for m in n.members}
            assert len({(d.a, d.b) for d in made}) == len(made)
            for d in made:
                assert d.phase == phase and set(d.loops) <= loops
                assert d.fused == (len({of[loop] for loop in d.loops}) == 1)
            joined = {d.loops for d in made if d.fused}
            for group, members in itertools.groupby(sorted(of, key=lambda m: of[m]), key=lambda m: of[m]):
                whole = set(members)
                assert len(whole) == 1 or any(set(j) == whole for j in joined), group


def test_a_nested_body_has_decisions_of_its_own() -> None:
    fn, args = FUNCTIONS[-1]
    found = capture(fn, *args)
    assert any("true_graph_0" in loop for d in found.decisions for loop in d.loops)


def test_decisions_survive_json() -> None:
    found = capture(lambda x: torch.softmax(x, 0), ramp(512, 512))
    again = Capture.from_json(found.to_json())
    assert again.decisions == found.decisions and again.why("amax", "sub") == found.why("amax", "sub")


def test_words_of_a_torch_to_come() -> None:
    assert fusion_reasons.kind("the moon is full") == "other"
    assert fusion_reasons.formatted("%s and %s", ("a",)) == "%s and %s"
    assert fusion_reasons.formatted("%s and %s", ("a", 1)) == "a and 1"


def test_places_outside_of_torch_show_no_path() -> None:
    code = test_places_outside_of_torch_show_no_path.__code__
    assert source_places.place_in_torch(code, 3) == f"test_decisions.py:3 in {code.co_name}"


# Listening changes nothing and retains nothing.
def code(found: Capture) -> list[str]:
    return [re.sub(r"# AOT ID: .*", "", text) for text in found.code.values()]


def groups(found: Capture) -> list[tuple[str, ...]]:
    stages = [g for c in found.compilations for key, g in c.graphs.items() if key.endswith(".groups")]
    return [n.members for g in stages for n in g.nodes]


@pytest.mark.cases(full=3)
@pytest.mark.parametrize(("fn", "args"), FUNCTIONS)
def test_fusion_and_code_are_the_same_without_listening(fn: Any, args: Any) -> None:
    heard = capture(fn, *args)
    with without(fusion):
        assert fusion.CAN_FUSE not in hooks._registry
        unheard = capture(fn, *args)
    assert fusion.CAN_FUSE in hooks._registry
    assert code(heard) == code(unheard) and groups(heard) == groups(unheard)
    assert any(made for c in heard.compilations for _, made in c.decisions)
    assert not unheard.decisions


def test_results_are_the_same() -> None:
    x = ramp(64, 64)
    _, result = run(lambda x: torch.softmax(x, 0), x)
    assert torch.equal(result, torch.softmax(x, 0))


def test_nothing_of_the_listening_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []

    class Watch(fusion.FusionWatch):
        def __init__(self) -> None:
            super().__init__()
            made.append(weakref.ref(self))

    monkeypatch.setattr(fusion, "FusionWatch", Watch)
    found = capture(three, ramp(16, grad=True))
    gc.collect()
    assert len(made) == 2 and found.decisions
    assert [ref() is None for ref in made] == [True, True]


def test_the_users_own_log_of_fusion_is_as_it_was() -> None:
    log = logging.getLogger("torch._inductor.scheduler.__fusion")
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    before = (log.level, log.disabled, list(log.handlers), log.propagate)
    capture(normalise, ramp(N))
    assert (log.level, log.disabled, list(log.handlers), log.propagate) == before
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        capture(lambda x: torch.softmax(x, 0), ramp(512, 512))
    finally:
        log.setLevel(before[0])
        log.removeHandler(handler)
    assert any("no shared data" in text for text in texts)


@pytest.mark.parametrize(
    "path", [fusion.ROUNDS, fusion.CAN_FUSE, "torch._inductor.scheduler:WhyNoFuse.__call__"]
)
def test_without_a_hook_there_are_no_decisions(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))
    found = capture(lambda x: torch.softmax(x, 0), ramp(512, 512))
    assert found.kernels and not found.decisions
    assert found.missing == () and [m.stage for m in found.not_applicable] == ["joint"]
    assert any("lacks the hook" in note for note in found.notes)
    why = found.why("amax", "sub")
    assert why.reason == "not seen" and "lacks the hook" in str(why) and "propose" not in str(why)


@pytest.mark.parametrize("phase", ["", "inference", "0/0 inference"])
def test_without_the_loops_a_phase_is_not_seen(monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == pipeline.BEFORE_FUSION else real(p))
    found = capture(lambda x: torch.softmax(x, 0), ramp(512, 512))
    assert "inference.loops" in {m.stage for m in found.missing}
    assert found.why("amax", "sub", phase=phase).verdict == "not seen"
    with pytest.raises(UsageError, match="phase 'backward' is not in this capture"):
        found.why("amax", "sub", phase="backward")


def test_a_user_who_chooses_for_himself_is_listened_to() -> None:
    from torch._inductor.choices import InductorChoices
    from torch._inductor.virtualized import V

    class Mine(InductorChoices):
        @staticmethod
        def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
            return False

    with V.set_choices_handler(Mine()):
        found = capture(three, ramp(N)).decisions
    assert found and {d.reason for d in found} == {"unsaid"}
    assert all(not d.torch_message and "scheduler.py" in d.where for d in found)


def test_a_decision_reads_well() -> None:
    d = Decision(
        "forward", ("op0",), ("op1", "op2"), False, 2, "cycle", "will create cycle", where="torch/x.py:1 in f"
    )
    assert full(d).startswith("round 2: op0 and op1 + op2: not fused (cycle). Fused, each would have to wait")


TOGETHER: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda x: F.layer_norm(x.sin(), (64,)), (ramp(32, 64, grad=True),)),
    (lambda x: torch.softmax(x * 2, -1) + x.sum(-1, keepdim=True), (ramp(32, 64, grad=True),)),
    (lambda x: (x.mean(0), x.var(1), x.amax()), (ramp(64, 48),)),
]


@pytest.mark.parametrize(("fn", "args"), TOGETHER)
def test_fused_says_whether_two_ended_in_one_node(fn: Any, args: Any) -> None:
    """Torch's own hook after fusion lists the loops of each node; a third loop may have brought two together."""
    ended: list[set[str]] = []

    def collect(nodes: list[Any]) -> list[Any]:
        ended.extend({part.get_name() for part in node.get_nodes()} for node in nodes)
        return nodes

    with torch._inductor.config.patch(_post_fusion_custom_pass=collect):
        found = capture(fn, *args, backward=False)
    assert found.decisions
    for d in found.decisions:
        assert d.fused == any(set(d.loops) <= node for node in ended), full(d)
        assert not d.through_others or d.fused
        assert d.fused or d.reason in REASONS
    through = [d for d in found.decisions if d.through_others]
    if versions.torch_version() >= (2, 13) or fn is not TOGETHER[-1][0]:  # earlier versions use another order
        assert through, "a program of which a third brings two together"
    assert all("fused through others" in full(d) for d in through)
    # A node of two loops results from exactly this pair; no other pair is reported as fused directly.
    pairs = [d for d in found.decisions if d.fused and not d.through_others]
    assert len(pairs) == sum(len(node) - 1 for node in ended), "n loops take n - 1 fusions"


def test_why_does_not_call_a_refused_pair_the_one_that_was_fused() -> None:
    found = capture(lambda x: F.layer_norm(x, (64,)), ramp(32, 64))
    through = [d for d in found.decisions if d.through_others and len(d.loops) == 2]
    assert through
    for d in through:
        told = " ".join(found.why(d.a[0], d.b[0]).facts)
        assert f"fused {d.a[0]} with {d.b[0]};" not in told
        sides = [
            side.split(", ") for side in re.search(r"round \d fused (.+?) with (.+?);|$", told).groups("")
        ]
        joined = any(d.a[0] in a and d.b[0] in b for a, b in (sides, sides[::-1]))
        assert joined or "a third was fused with both" in told, told


def test_what_decides_which_graph_runs_is_no_call_of_a_library() -> None:
    def fn(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(p, lambda y: y.cos() * 2, lambda y: y.exp() + 1, (x.sin().sum(-1),))  # type: ignore[no-any-return]

    found = capture(fn, torch.tensor(True), ramp(8, 8))
    why = found.why("sum_1", "cond")
    assert why.reason == "steering" and "library" not in str(why)
    assert "decide" in str(why) and "library" not in str(found.story()).partition("were not fused")[2]
