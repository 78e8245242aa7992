"""A capture in which everything was observed lacks nothing, whatever its kind; stages that do not apply are listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import StageMissing, capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def leaf() -> torch.Tensor:
    return torch.linspace(0.1, 1, 8).reshape(2, 2, 2).requires_grad_()


def flat() -> torch.Tensor:
    return torch.linspace(0.1, 1, 8)


GOOD: dict[str, tuple[Callable[..., Any], Callable[[], torch.Tensor], dict[str, Any], set[str]]] = {
    "inference": (lambda x: x.sin(), flat, {}, {"joint"}),
    "training": (lambda x: x.sin(), leaf, {}, set()),
    "declined": (lambda x: x.sin(), leaf, {"backward": False}, {"backward"}),
    "empty backward": (
        lambda x: x + 1,
        leaf,
        {},
        {"backward.post_grad", "backward.loops", "backward.groups", "backward.code"},
    ),
    "views": (lambda x: torch.dsplit(x, 2), leaf, {}, {"joint", "backward"}),
    "strides": (lambda x: x.as_strided((2, 2), (1, 2)), leaf, {}, {"joint", "backward"}),
    "detached": (lambda x: x.detach() * 2, leaf, {}, {"joint"}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_missing(name: str) -> None:
    fn, make, options, wanted = GOOD[name]
    record = capture(fn, make(), **options)
    assert record.missing == ()
    named = {m.stage for m in record.not_applicable}
    assert wanted <= named
    assert all(m.reason for m in record.not_applicable)
    for stage in wanted:
        with pytest.raises(StageMissing, match="there is no stage"):
            record.compilations[0].graphs[stage]
    page = full(record)
    assert "missing:" not in page
    assert ("none:" in page) == bool(named)


@pytest.mark.parametrize("name", ["views", "strides"])
def test_outputs_that_alias_an_input_are_called_that(name: str) -> None:
    fn, make, options, _ = GOOD[name]
    record = capture(fn, make(), **options)
    assert any(y.requires_grad for y in torch.utils._pytree.tree_leaves(fn(make())))  # a gradient is needed
    reasons = {m.reason for m in record.not_applicable if m.stage in ("joint", "backward")}
    assert all("alias an input" in reason for reason in reasons)
    assert "nothing in this graph needs a gradient" not in full(record)


@pytest.mark.parametrize(("name", "ops"), [("views", 3), ("strides", 2)])
def test_a_backward_of_views_alone_is_no_part_of_the_sums(name: str, ops: int) -> None:
    """Autograd runs it directly: two writes into slices and their sum; zeros and a write into them."""
    fn, make, options, _ = GOOD[name]
    record = capture(fn, make(), **options)
    assert record.ledger.total.figures == (0,) * 7 and not record.ledger.backward.exists
    assert "0 launches" in full(record) and "≥" not in full(record)
    (note,) = record.ledger.total.notes
    assert note.startswith(f"backward: {ops} eager ops, not compiled: the outputs that need a gradient alias")


def grown(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.nn.functional.interpolate(x[None, None], scale_factor=factor)


@pytest.mark.full
def test_a_frame_that_was_begun_again_is_one_compilation() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        for factor in (2.0, 2.5, 3.0):
            print(end="")
            y = grown(x, factor)
        return y

    ids: list[str] = []

    def noting(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        ids.append(str(torch._guards.CompileContext.current_compile_id()))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(fn, backend=noting)(torch.ones(4))
    record = capture(fn, torch.ones(4))
    assert ids and [c.id for c in record.compilations if "dynamo" in c.graphs] == ids
    assert record.failure is None and record.missing == ()
    assert "failed" not in full(record)
