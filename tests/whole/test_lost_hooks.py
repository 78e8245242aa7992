"""Torch without one of our hooks, and with failing hooks: a claim may become unknown, and never a different claim."""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import Any

import lost_hooks
import mutating_operators
import pytest
import samples
import torch
from full_text import full
from lost_hooks import FAILS, FAILS_AFTER, LOST, PROGRAMS, WAYS, Claims, other_claims, without

import compile_lens
from compile_lens import ExpectationError, UsageError, expect
from compile_lens._torch.inductor import line_origins, lowered_nodes, pipeline
from compile_lens._torch.targets import target_inputs

pytestmark = [pytest.mark.torch, pytest.mark.full]

CASES = [
    (program, way, path)
    for program in PROGRAMS
    for path in lost_hooks.paths(program)
    for way in (WAYS if lost_hooks.can_fail(path) else (LOST,))
]


STRIDES = "torch._inductor.ir:ExternKernel.require_strides"


@functools.cache
def whole(program: str) -> Claims:
    PROGRAMS[program]()  # the first call warms up torch's caches
    return Claims(PROGRAMS[program]())


@pytest.mark.cases(full=3)
@pytest.mark.parametrize(("program", "way", "path"), CASES)
def test_a_claim_becomes_unknown_or_stays(program: str, way: str, path: str) -> None:
    expected = whole(program)
    with without(path, way, child=program == "target"):
        try:
            claims = Claims(PROGRAMS[program]())
        except UsageError as error:
            assert program == "target" and path in (*target_inputs.FAKERS, target_inputs.COMPILES)
            assert path.replace(":", ".") in str(error), "refused, since it would be the CPU's code"
            return
    assert other_claims(expected, claims) == []


@pytest.mark.parametrize(
    ("program", "path"),
    [
        ("target", STRIDES),
        ("forward and backward", line_origins.LOOPS_INIT),
        ("forward and backward", lowered_nodes.REGISTER),
    ],
)
@pytest.mark.cases(full=1)
def test_origins_of_loops_that_were_not_observed_are_no_shares(program: str, path: str) -> None:
    """Lines get no definite share of a kernel whose computation is not known."""
    expected = whole(program)
    with without(path, child=program == "target"):
        capture = PROGRAMS[program]()
    assert other_claims(expected, Claims(capture)) == []
    lines, modules = capture.cost("line"), capture.cost("module")
    (unknown,) = (row for row in lines.rows if not row.name)
    assert unknown.amount and path.replace(":", ".") in unknown.note
    assert all(row.at_least for row in (*lines.rows, *modules.rows) if row.name)
    assert "in no submodule" not in {row.note for row in modules.rows}


def test_fusing_saves_no_fewer_bytes_where_lowering_was_not_observed() -> None:
    """A bound that depends on a hook may rise without it, and never fall."""
    with torch.random.fork_rng(devices=[]):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3))
    saved = []
    for lost in (contextlib.nullcontext(), without(STRIDES)):
        with lost:
            capture = compile_lens.capture(model, torch.ones(1, 3, 16, 16))
        names = [node.name for node in capture.compilations[0].graphs["forward.groups"].calls]
        saved.append([capture.why(a, b).saved or 0 for a, b in itertools.combinations(names, 2)])
    assert any(saved[0]) and all(a <= b for a, b in zip(*saved, strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_breaks_that_were_not_seen_hold_no_test(way: str) -> None:
    with without("torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break", way):
        capture = PROGRAMS["breaks"]()
    with pytest.raises(ExpectationError, match="at least"):
        expect(capture).graph_breaks(at_most=1)
    assert "✓" not in full(capture)
    # The number decides a branch: the setting that takes numbers into graphs would not help.
    assert "capture_scalar_outputs = True" not in full(capture)


def test_a_kernel_of_which_no_group_was_seen_has_no_kind() -> None:
    with without("torch._inductor.codegen.cpp:set_kernel_post_grad_provenance_tracing"):
        capture = PROGRAMS["breaks"]()
    assert {kernel.kind for kernel in capture.kernels} == {"unknown"}


def test_a_target_whose_tensors_would_be_on_the_cpu_is_refused() -> None:
    for path in target_inputs.FAKERS:
        with without(path, child=True), pytest.raises(UsageError, match="lacks the hook"):
            PROGRAMS["target"]()


def test_a_target_without_a_way_to_stop_lacks_its_code() -> None:
    with without("torch._inductor.graph:GraphLowering._compile_to_module_lines", child=True):
        capture = PROGRAMS["target"]()
    assert {one.stage for one in capture.missing} == {"forward.code", "backward.code"}


@pytest.mark.parametrize("way", [FAILS, FAILS_AFTER])
def test_a_hook_that_fails_says_so(way: str) -> None:
    with without("torch._inductor.scheduler:Scheduler.can_fuse", way):
        capture = PROGRAMS["forward and backward"]()
    assert "Ours: an attribute is missing" in capture.lacks("decisions on fusion")
    assert any("an observer of compile_lens failed" in note for note in capture.notes)


def test_a_loaded_record_knows_what_was_not_observed() -> None:
    import dataclasses

    from compile_lens.record import claims
    from compile_lens.record.missing import Missing

    gaps = (Missing(claims.BREAKS, "torch 9.9 lacks the hook x"),)
    saved = dataclasses.replace(samples.sample(), not_observed=gaps).to_json()
    loaded: Any = compile_lens.Capture.from_json(saved)
    assert loaded.lacks(claims.BREAKS) == "torch 9.9 lacks the hook x" and not loaded.lacks(claims.SKIPS)
    with pytest.raises(ExpectationError):
        expect(loaded).graph_breaks(0)


def stored(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    total, kept = x.sin(), out.clone()
    mutating_operators.add_to(kept, total)
    return kept.exp()


@pytest.mark.parametrize(
    "path",
    [
        "",
        lowered_nodes.EXCEEDED_READS,
        lowered_nodes.REGISTER,
        lowered_nodes.RUN_NODE,
        pipeline.BEFORE_FUSION,
    ],
)
def test_a_store_is_not_linked_to_the_call_that_needs_it(path: str) -> None:
    """The call is a separate launch, and no line of another kernel computes it."""
    with without(path) if path else contextlib.nullcontext():
        capture = compile_lens.capture(stored, torch.ones(4, 8), torch.ones(4, 8))
    nodes = capture.compilations[0].graphs["inference.post_grad"].calls
    (call,) = (node.name for node in nodes if "add_to" in node.target)
    generated = [kernel for kernel in capture.kernels if kernel.source]
    assert generated and not any(call in kernel.origins for kernel in generated)
    assert all(kernel.origins or "not observed" in kernel.no_origin for kernel in capture.kernels)
    assert not [line for kernel in generated for line in kernel.lines if call in line.origins]
