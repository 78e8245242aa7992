"""Registrations of a program with torch outside the function affect a capture for a target as they affect torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

import pytest
import told_programs
import torch
import torch._inductor.config
from full_text import full

from compile_lens import capture
from compile_lens._torch.operators import registrations
from compile_lens.engine import remote

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def printed(*command: str) -> list[dict[str, Any]]:
    """JSON lines of another process with its own cache: a killed compiler leaves half a file in a shared cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        made = [sys.executable, *command]
        ran = subprocess.run(made, env=env, capture_output=True, text=True, check=True, timeout=600)
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    """The results of plain torch, in its own process."""
    (found,) = printed(told_programs.__file__, "plain")
    assert {
        "substituted": [["cos"]],
        "no pass": [["sin"]],
        "kept, not met": [["sin"]],
    }.items() <= found.items()
    assert [len(found[f"{name} of kept"][0]) for name in ("some", "others")] == [2, 3], (
        "all of them were called"
    )
    return found


@pytest.mark.exhaustive
def test_of_a_script(truth: dict[str, Any]) -> None:
    for found in printed(told_programs.__file__, "h100", "cpu:avx2"):
        assert found == truth


@pytest.mark.exhaustive
def test_of_a_module(truth: dict[str, Any]) -> None:
    """Every third program is tested."""
    folder = told_programs.__file__.rpartition("/")[0]
    code = (
        f"import sys; sys.path.insert(0, {folder!r}); import told_programs; told_programs.main(['h100'], 3)"
    )
    (found,) = printed("-c", code)
    assert len(found) >= 7 and found.items() <= truth.items()


def test_what_cannot_be_sent_is_said_with_its_line() -> None:
    lock = threading.Lock()

    def locked(graph: Any) -> None:
        with lock:
            told_programs.to_cosine(graph)

    with torch._inductor.config.patch(post_grad_custom_pre_pass=locked):
        found = capture(told_programs.sine, torch.ones(8), target="h100")
    assert found.target is not None
    (said,) = found.target.queries
    assert said.kind == "not transferred" and said.query == "torch._inductor.config.post_grad_custom_pre_pass"
    assert said.frame.file == __file__ and said.frame.line == locked.__code__.co_firstlineno
    assert "math.sin(" in str(found.kernels[0].source)
    assert said.query in " ".join(full(found).split())


@torch.library.custom_op("lens_told::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_what_torch_itself_adds_later_is_not_the_programs() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        torch.compile(net)(torch.rand(2, 8))
    torch.compile(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q))(torch.rand(1, 1, 8, 8))
    with torch._inductor.config.patch(
        force_disable_caches=True
    ):  # the test lowers it, whatever was compiled before
        torch.compile(lambda x: twice(x) + 1)(torch.rand(4))
    lowering = torch._inductor.lowering
    assert any("twice" in str(op) for op in lowering.lowerings), "an entry that torch made"
    assert [*registrations.collect({}, (), remote.tables())] == []
    operator, layouts = torch.ops.lens_told.twice.default, lowering._maybe_layout_constraints
    assert layouts[operator] is lowering.constrain_to_fake_tensors, "as its tags ask"
    own_lowering = {operator: lowering.lowerings[torch.ops.aten.exp.default]}
    for of, change, name in (
        (layouts, {operator: lowering.require_contiguous}, "_maybe_layout_constraints"),
        (lowering.lowerings, own_lowering, "lowerings"),  # torch then adds no layout entry
    ):
        before = dict(of)
        of.update(change)  # an entry is not taken for torch's because of an earlier one
        told = [one.where for one in registrations.collect({}, (), remote.tables())]
        of.update(before)
        assert f"torch._inductor.lowering.{name}[lens_told.twice.default]" in told
        assert "torch._inductor.lowering._maybe_layout_constraints[lens_told.twice.default]" in told
