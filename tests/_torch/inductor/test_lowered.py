"""Inlining by lowering and its reasons, against the loop bodies, torch's limits and known functions."""

from __future__ import annotations

import gc
import inspect
import linecache
import re
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from soundness import loops, lowering_faults
from zoo_tensors import chain, naive_attention, sin2_cos2

from compile_lens import capture
from compile_lens._torch.ground import hook_points, hooks
from compile_lens._torch.inductor import lowered_nodes, realize_reasons
from compile_lens.measures.unfused_pairs import all_unfused_pairs
from compile_lens.record import claims
from compile_lens.record.lowering import Lowered
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def slowly(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


def ramp(*shape: int, grad: bool = False) -> torch.Tensor:
    size = torch.Size(shape).numel()
    return torch.linspace(-3.0, 3.0, size).reshape(shape).requires_grad_(grad)


def inputs(count: int) -> list[torch.Tensor]:
    return [ramp(64) + i for i in range(count)]


def only(found: Capture, phase: str = "") -> dict[str, Lowered]:
    (compilation,) = found.compilations
    return {entry.node: entry for entry in compilation.lowered if phase in ("", entry.phase)}


def reasons(found: Capture, phase: str = "") -> dict[str, str]:
    return {name: entry.reason for name, entry in only(found, phase).items()}


def figures(text: str) -> tuple[int, int]:
    """Numbers in a text such as ``5 buffers, limit 4``."""
    match = re.search(r"(\d+) (?:buffers|operations), limit (\d+)", text)
    assert match is not None, text
    return int(match[1]), int(match[2])


def many(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, e: torch.Tensor) -> Any:
    s = a + b + c + d + e
    return s.sin().sum(), s.cos().sum(), s * 2


def twice(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z = x + y
    return z.sin(), z.cos()


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def normalised(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, (64,), torch.ones(64), torch.zeros(64)))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.tanh(q @ k.transpose(-2, -1) / 32**0.5), dim=-1) @ v


def pieces(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.sin(), y.cos(), x.exp(), y + 1, x + 2]).sum()


def put(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return x.cos().index_put((i,), v, accumulate=True) + 1


def turned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin().t(), torch.var(x.cos(), -1)


def one_half(x: torch.Tensor) -> torch.Tensor:
    def yes(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    def no(x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    return torch.cond(x.sum() > 0, yes, no, (x,))


# Known functions.
def test_sin2_cos2_is_four_inlined_and_one_result() -> None:
    record = capture(sin2_cos2, ramp(2**20, grad=True))
    forward, backward = only(record, "forward"), only(record, "backward")
    assert len(forward) == 5 and len(backward) == 12
    for entries_, result in ((forward, "output"), (backward, "output")):
        assert Counter(e.reason for e in entries_.values()) == {"": len(entries_) - 1, result: 1}
        assert {e.loops for e in entries_.values()} == {next(iter(entries_.values())).loops}
    assert [e.buffer for e in forward.values()] == ["", "", "", "", forward["sin"].loops[0]]
    assert "was inlined into" in forward["sin"].sentence and "no buffer" in forward["sin"].sentence


@pytest.mark.parametrize(("pairs", "expected"), [(10, 1), (40, 2), slowly(100, 3), slowly(200, 6)])
@pytest.mark.cases(full=2)
def test_a_long_chain_is_cut_where_it_has_too_many_operations(pairs: int, expected: int) -> None:
    record = capture(lambda x: chain(x, pairs), ramp(64))
    entries_ = only(record).values()
    written = [e for e in entries_ if e.buffer]
    assert len(loops(record.compilations[0], "inference")) == expected == len(written)
    assert [e.reason for e in written] == ["many operations"] * (expected - 1) + ["output"]
    for entry in written[:-1]:
        count, limit = figures(entry.evidence)
        assert count > limit == 100 and "opcount_threshold can only raise it" in entry.evidence
    assert all(len(e.loops) == 1 for e in entries_)


def test_softmax_keeps_what_is_reduced_and_what_is_costly() -> None:
    found = only(capture(softmax, ramp(64, 64)))
    assert {n: e.reason for n, e in found.items()} == {
        "amax": "reduction",
        "sub": "",
        "exp": "heavy",
        "sum_1": "reduction",
        "div": "output",
    }
    assert "2 operations read it" in found["exp"].evidence and "exp" in found["exp"].evidence
    assert found["sub"].loops == found["exp"].loops == (found["exp"].buffer,)


def test_a_value_that_is_read_again_is_kept_if_it_reads_many_buffers() -> None:
    found = only(capture(many, *inputs(5)))
    assert found["add_3"].reason == "many readers" and found["add_3"].buffer
    assert figures(found["add_3"].evidence) == (5, 4)
    assert (
        "3 operations read it" in found["add_3"].evidence
        and "realize_reads_threshold" in found["add_3"].evidence
    )
    assert all(found[n].loops == (found["add_3"].buffer,) and not found[n].buffer for n in ("add", "add_1"))


def test_the_users_limit_decides() -> None:
    loose = only(capture(many, *inputs(5), options={"realize_reads_threshold": 5}))
    assert loose["add_3"].buffer == loose["add_3"].reason == ""
    assert len(loose["add_3"].loops) == 3 == len(loose["add"].loops)
    tight = only(capture(twice, *inputs(2), options={"realize_reads_threshold": 1}))
    kept = [e for e in tight.values() if e.reason == "many readers"]
    assert [figures(e.evidence) for e in kept] == [(2, 1)] * len(kept) and len(kept) == 1


def test_reading_again_and_growing_too_large_are_told_apart() -> None:
    def again(x: torch.Tensor) -> Any:
        y = chain(x, 8)
        return y.sum(), y.abs()

    def grows(*xs: torch.Tensor) -> torch.Tensor:
        return chain(sum(xs[1:], xs[0]), 8)

    few = {"realize_opcount_threshold": 10}
    kept = [e for e in only(capture(again, ramp(64), options=few)).values() if e.reason == "many readers"]
    assert len(kept) == 1 and kept[0].evidence.startswith("2 operations read it")
    assert figures(kept[0].evidence)[0] > 10 == figures(kept[0].evidence)[1]
    grown = [e for e in only(capture(grows, *inputs(3), options=few)).values() if e.buffer]
    assert [e.reason for e in grown][-1] == "output" and "many operations" in [e.reason for e in grown]
    assert not any("read it" in e.evidence for e in grown)
    assert figures(grown[0].evidence)[0] > 10 == figures(grown[0].evidence)[1]


def test_an_expression_that_reads_too_many_buffers_is_cut() -> None:
    found = only(
        capture(lambda *xs: sum(xs[1:], xs[0]).sin(), *inputs(20), options={"realize_acc_reads_threshold": 3})
    )
    cut = [e for e in found.values() if e.reason == "many reads"]
    assert len(cut) == 6 and {figures(e.evidence) for e in cut} == {(4, 3)}
    assert all("realize_acc_reads_threshold" in e.evidence for e in cut)
    default = [e for e in only(capture(lambda *xs: sum(xs[1:], xs[0]), *inputs(20))).values() if e.reason]
    count, limit = figures(default[0].evidence)
    assert default[0].reason == "many reads" and count == limit + 1


def test_what_a_library_reads_or_writes_is_in_memory() -> None:
    found = only(capture(lambda x: torch.cos(torch.sort(torch.sin(x)).values), ramp(4096)))
    assert {n: e.reason for n, e in found.items()} == {"sin": "extern", "sort": "extern", "cos": "output"}
    assert found["sin"].evidence == "requested by sort" and len(found["sort"].loops) == 1
    heads = [ramp(2, 2, 16, 32) for _ in range(3)]
    found = only(capture(attention, *heads))
    assert found["bmm"].reason == found["bmm_1"].reason == found["div_1"].reason == "extern"
    assert found["div_1"].evidence == "requested by bmm_1"


def test_a_mean_is_kept_in_part() -> None:
    found = only(capture(lambda x: x - x.mean(-1, keepdim=True), ramp(64, 64)))
    mean, sub = found["mean"], found["sub"]
    assert mean.buffer == "" and mean.reason == "reduction" and len(mean.parts) == 1
    assert mean.inlined == (sub.buffer,) and mean.loops == (*mean.parts, sub.buffer)
    assert mean.sentence.startswith("A part of it has a buffer") and "The rest was inlined" in mean.sentence


def test_pieces_of_a_concatenation_and_what_overwrites() -> None:
    found = reasons(capture(pieces, *inputs(2)))
    assert Counter(found.values()) == {"concat": 6, "reduction": 1}
    overwritten = only(capture(put, ramp(16), torch.arange(4), ramp(4)))
    assert {n: e.reason for n, e in overwritten.items()} == {
        "cos": "hint",
        "index_put": "mutation",
        "add": "output",
    }
    assert overwritten["cos"].evidence == "requested by index_put"
    in_place = only(capture(lambda x: x.sin_().add_(1).cos(), ramp(64)))
    assert in_place["copy_"].reason == "mutation"
    assert (
        in_place["add"].reason == "mutation" and in_place["add"].evidence == "copy_ overwrites what it reads"
    )
    assert len(in_place["sin"].loops) == 2  # once for the result, once for the write to the input


def test_a_value_that_is_returned_in_another_layout() -> None:
    found = only(capture(turned, ramp(8, 16)))
    assert found["sin"].reason == "output" and found["sin"].buffer
    assert all(e.loops for e in found.values())


def test_a_repeated_value_is_read_more_than_once() -> None:
    found = only(capture(lambda x: (x.exp()[:, None].expand(64, 64) + 1).cos(), ramp(64)))
    assert found["exp"].reason == "heavy" and "reads each element 64 times" in found["exp"].evidence


def test_bodies_of_a_condition_have_their_own_entries() -> None:
    found = only(capture(one_half, ramp(64)))
    inside = {n: e for n, e in found.items() if "/" in n}
    assert {n.rpartition("/")[2] for n in inside} == {"sin", "add", "cos"}
    assert all(loop.startswith(n.rpartition("/")[0]) for n, e in inside.items() for loop in e.loops)


def test_what_nothing_needs_and_views_have_no_entry() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(64) + x.sin().reshape(8, 8).t().reshape(64)

    found = only(capture(fn, ramp(64)))
    assert "sin" in found and not any(n.startswith(("view", "permute", "full", "reshape")) for n in found)


# Ground truth: the bodies of the loops.
FUNCTIONS = [
    (sin2_cos2, (ramp(64, grad=True),)),
    (softmax, (ramp(64, 64, grad=True),)),
    (normalised, (ramp(8, 64, grad=True),)),
    (attention, tuple(ramp(2, 2, 16, 32) for _ in range(3))),
    (naive_attention, tuple(ramp(2, 2, 16, 32) for _ in range(3))),
    (many, tuple(inputs(5))),
    (pieces, tuple(inputs(2))),
    (put, (ramp(16), torch.arange(4), ramp(4))),
    (turned, (ramp(8, 16),)),
    (torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)), (ramp(8, 16),)),
    (F.cross_entropy, (ramp(8, 16, grad=True), torch.arange(8))),
]


@pytest.mark.parametrize(("fn", "args"), FUNCTIONS, ids=lambda v: getattr(v, "__name__", None))
def test_entries_agree_with_the_loops(fn: Any, args: Any) -> None:
    record = capture(fn, *args)
    assert record.compilations[0].lowered
    assert list(lowering_faults(record)) == []


def test_the_place_is_in_torch() -> None:
    entries_ = [e for e in only(capture(softmax, ramp(64, 64))).values() if e.where]
    assert entries_
    root = torch.__file__.rpartition("torch/__init__.py")[0]
    for entry in entries_:
        match = re.fullmatch(r"(torch/_inductor/\S+\.py):(\d+) in (\w+)", entry.where)
        assert match is not None, entry.where
        lines = linecache.getlines(root + match[1])[: int(match[2])]
        assert any(re.match(rf"\s*def {match[3]}\(", line) for line in lines)


def test_the_last_limit_is_torchs() -> None:
    source = inspect.getsource(inspect.unwrap(torch._inductor.graph.GraphLowering.run_node))
    assert f"has_large_inner_fn(threshold={realize_reasons._MAX_OPERATIONS})" in source


@pytest.mark.parametrize("path", sorted(realize_reasons.SITES))
def test_sites_are_there(path: str) -> None:
    assert hook_points.find(path) is not None


def test_costly_operations_are_torchs() -> None:
    assert {"exp", "sigmoid"} <= realize_reasons.Sites().heavy


# Reasons, losses without a hook, and retained data.
def test_why_says_what_was_inlined() -> None:
    record = capture(lambda x: torch.softmax(x.sin(), -1), ramp(64, 64))
    entries_ = only(record)
    text = str(record.why("sub", "exp"))
    assert f"sub was inlined into {entries_['exp'].buffer}: its value has no buffer" in text
    assert f"{entries_['exp'].buffer} is the loop of exp, whose value has a buffer (heavy)" in text
    text = str(record.why("exp", "div"))
    assert (
        f"exp was not inlined into {entries_['div'].buffer}, the loop of " in text
        and "(heavy)" in text
        and "2 operations read it" in text
    )
    text = str(capture(lambda x: x - x.mean(), ramp(64)).why("mean", "sub"))
    assert "a part of mean has a buffer" in text and "the rest was inlined" in text


@pytest.mark.parametrize("path", [lowered_nodes.RUN_NODE, *realize_reasons.SITES])
def test_without_a_hook_nothing_is_said(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))
    record = capture(softmax, ramp(8, 8))
    assert record.compilations[0].lowered == () and record.kernels
    assert path.rpartition(".")[2] in record.lacks(claims.LOWERING)
    assert any("what lowering inlined" in n and path.rpartition(".")[2] in n for n in record.notes)


def test_an_unknown_place_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realize_reasons, "SITES", {})
    found = only(capture(softmax, ramp(8, 8)))
    assert found["exp"].reason == "other" and found["exp"].buffer and found["amax"].reason == "reduction"


@pytest.mark.exhaustive
def test_nothing_is_kept() -> None:
    capture(softmax, ramp(8, 8))
    gc.collect()
    kept = [
        o
        for o in gc.get_objects()
        if type(o)
        in (lowered_nodes.LoweringWatch, lowered_nodes.RegisteredOperation, realize_reasons.Queries)
    ]
    assert kept == []


def test_code_is_the_same_without_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {p for p, w in hooks._registry.items() if w.__module__ == lowered_nodes.__name__}
    assert lowered_nodes.RUN_NODE in mine

    def code(found: Capture) -> list[str]:
        return [re.sub(r"# AOT ID: .*", "", text) for text in found.code.values()]

    with_ = code(capture(normalised, ramp(8, 64, grad=True)))
    monkeypatch.setattr(hooks, "_registry", {p: w for p, w in hooks._registry.items() if p not in mine})
    without = capture(normalised, ramp(8, 64, grad=True))
    assert code(without) == with_ and without.compilations[0].lowered == ()


def test_the_record_holds_it() -> None:
    record = capture(softmax, ramp(8, 8))
    assert Capture.from_json(record.to_json()).compilations[0].lowered == record.compilations[0].lowered != ()


def test_a_call_under_another_name_is_of_its_own_node_alone() -> None:
    """By hand: Inductor calls ``scatter_reduce_`` for ``scatter_add``; its inputs come from other loops."""

    def scattered(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        y = torch.gather(x, 1, i)
        return torch.zeros_like(x).scatter_add(1, i, y.sqrt())

    record = capture(scattered, ramp(8, 16), torch.arange(32).reshape(8, 4) % 16)
    graph = record.compilations[0].graphs["inference.loops"]
    (call,) = (node for node in graph.nodes if node.op == "extern")
    assert call.target.startswith("aten.scatter_reduce_") and call.origins == ("scatter_add",)
    answer = record.why("gather", "scatter_add")
    assert answer.reason == "extern" and answer.saved == 2 * 8 * 4 * 4 + 8 * 4 * 8


def test_what_reads_one_result_of_a_call_is_a_pair_with_it() -> None:
    """By hand: three kernels in a row, so two pairs; a node between the call and its reader selects the result."""
    record = capture(lambda x: torch.cumsum(x.exp(), 0) / 16, ramp(16, 16))
    pairs = all_unfused_pairs(record)
    assert [(pair.follows, pair.why.reason, pair.why.saved) for pair in pairs] == [(True, "extern", 2048)] * 2


def test_readers_of_different_results_of_a_call_share_no_data() -> None:
    """By hand: one kernel reads the values of ``topk``, the other its indices; each forms a pair with the call only."""

    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = torch.topk(x, 3)
        return values.sin(), places.view(-1)[:5] + 1

    pairs = all_unfused_pairs(capture(both, ramp(16, 16)))
    assert [pair.follows for pair in pairs] == [True, True] and len({pair.first for pair in pairs}) == 1


def test_memory_that_a_library_call_fills_is_no_part_of_the_value() -> None:
    """The code has ``empty_strided_cpu``, then one ``copy_`` from the real parts."""
    record = capture(lambda x: torch.fft.ifft2(x).imag, torch.rand(4, 8))
    (code,) = record.code.values()
    assert code.count(".copy_(") == 1
    (copied,) = (one for one in record.compilations[0].lowered if one.node == "convert_element_type")
    assert copied.parts == () and copied.loops == (copied.buffer,)
    assert "is computed in" not in str(record.story())
