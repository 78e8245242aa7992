"""A model of GPT-2's shape, forward and backward, tests captures of large graphs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from full_text import full
from gpt2 import TINY, Size, example
from running import run
from soundness import whole_coverage

from compile_lens import capture
from compile_lens.record.compilation import LOWERED_STAGES
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

LIMIT_HTML = 3 * 1000**2
"""Maximum bytes of the page of 12 layers, forward and backward."""

SHARE = 0.25
"""Maximum CPU time of a page as a share of its capture's, with Graphviz included."""


def spent() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def check(found: Capture, size: Size) -> None:
    """Check facts that hold for any number of layers."""
    (compilation,) = found.compilations
    assert found.missing == ()
    for phase in ("forward", "backward"):
        assert phase in compilation.graphs and phase in compilation.code
        for stage in LOWERED_STAGES[:-1]:
            assert f"{phase}.{stage}" in compilation.graphs
    ledger = found.ledger
    for row in (ledger.forward, ledger.backward):
        assert row.notes == ()
        assert row.eager_ops >= row.launches
        assert row.bytes_before > row.bytes_after
        assert row.loops >= row.groups
    externs = [k for k in found.kernels if k.phase == "forward" and k.language == "extern"]
    matmuls = sum(k.launches for k in externs if "mm" in k.name)
    assert matmuls == 4 * size.layers + 1  # qkv, out, up, down of each block, and the head
    attention = sum(k.launches for k in externs if "attention" in k.name)
    assert attention == size.layers
    reached = [bool(found.chain.lines(k)) for k in found.kernels]
    assert all(reached)
    modules = {n.module for n in compilation.graphs["dynamo"].calls}
    assert any(f"blocks.{size.layers - 1}" in m or f"blocks[{size.layers - 1}]" in m for m in modules)


@pytest.mark.full
def test_two_layers(tmp_path: Path) -> None:
    model, inputs = example(TINY)
    record, loss = run(model, *inputs)
    assert torch.equal(loss, model(*inputs))
    assert all(p.grad is None for p in model.parameters())
    check(record, TINY)
    assert Capture.from_json(record.to_json()) == record
    assert "GPT2" in full(record)
    assert record.save(tmp_path / "two.html").stat().st_size < LIMIT_HTML


@pytest.mark.slow
@pytest.mark.exhaustive
def test_twelve_layers(tmp_path: Path) -> None:
    size = Size()
    model, inputs = example(size)
    start = spent()
    record = capture(model, *inputs)
    captured = spent()
    page = record.save(tmp_path / "twelve.html")
    assert spent() - captured <= SHARE * (captured - start)
    assert page.stat().st_size < LIMIT_HTML
    check(record, size)
    whole_coverage(record)
