"""Attention under a checkpoint: a higher-order operator runs it, and keeps or sets the generator's state."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from suite import rand
from torch.utils.checkpoint import checkpoint

from compile_lens import versions
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.record.graph import Graph, Node, Ref
from compile_lens.results.capture import Capture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(
        versions.torch_version() >= (2, 15), reason="knows that attention without dropout draws nothing"
    ),
]

CPU = ("torch.ops.higher_order.run_and_save_rng_state", "torch.ops.higher_order.run_with_rng_state")
GPU = ("torch.ops.higher_order.graphsafe_run_with_rng_state",) * 2


def first(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q)


def second(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q.sin(), q, q)


def both(q: torch.Tensor) -> Any:
    return checkpoint(second, checkpoint(first, q, use_reentrant=False), use_reentrant=False).sum()


def here(target: str | None) -> Capture:
    q = rand(1, 2, 16, 16).requires_grad_()
    return perform(
        Call.read(both, (q,), None, CaptureOptions(target=target), model=target and resolve(target))
    )[0]  # type: ignore[arg-type]


def at(found: Capture, fn: Any) -> str:
    line = inspect.getsourcelines(fn)[1] + 1
    file = __file__.rpartition("/")[2]
    assert "scaled_dot_product" in inspect.getsource(fn)
    return f"{file}:{line}"


def runs(graph: Graph) -> list[Node]:
    return [n for n in graph.calls if n.target.partition("(")[0].endswith("_rng_state")]


@pytest.mark.full
@pytest.mark.parametrize(("target", "names"), [(None, CPU), ("h100", GPU)])
def test_the_line_of_attention_leads_to_where_it_runs(target: str | None, names: tuple[str, ...]) -> None:
    found = here(target)
    for number, fn in enumerate((first, second)):
        of_line = found.chain.kernels(at(found, fn))
        ran = [(k.phase, k.name.partition("#")[0]) for k in of_line if "_rng_state" in k.name]
        assert ran == [("forward", names[0]), ("backward", names[1])]
        joint = [n for n in found.compilations[0].graphs["joint"].nodes if n.kind == "matmul"][number]
        assert not found.chain.why_not(("0/0", "joint", joint.name))


@pytest.mark.parametrize("target", [None, "h100"])
def test_it_is_told_as_the_attention_that_it_runs(target: str | None) -> None:
    """The node matches that of the joint graph: the same operator with its inputs and its results."""
    found = here(target)
    graphs = found.compilations[0].graphs
    joint = graphs["joint"]
    for phase in ("forward", "backward", "forward.post_grad", "backward.post_grad"):
        ran = runs(graphs[phase])
        assert len(ran) == 2
        for node in ran:
            operator = next(a for a in node.args if getattr(a, "text", "").startswith("aten."))
            inner = getattr(operator, "text", "")
            assert node.target.endswith(f"({inner})") and node.kind == "matmul" and node.compute
            taken = node.args[node.args.index(operator) + 1 :]
            if "." in phase:
                continue
            (origin,) = node.origins
            assert joint[origin].target == inner and joint[origin].args[:3] == taken[:3]
            made = [t.shape for t in joint[origin].outputs]
            assert [t.shape for t in node.outputs][-len(made) :] == made
    # Two products of 16 × 16 by 16 × 16 numbers in each of two heads: 2 · 2 · (2 · 16 · 16 · 16).
    counted = [b.kernel.flops for b in found.roofline().bounds if "_rng_state" in b.kernel.name]
    assert counted == [32768] * 4


def test_a_new_node_is_not_that_of_the_joint_graph_which_has_its_name() -> None:
    """The partitioner names a node that it adds to the forward ``getitem_2``, like a gradient in the joint graph."""
    graphs = here(None).compilations[0].graphs
    joint, checked = graphs["joint"], 0
    for phase in ("forward", "backward"):
        for node in graphs[phase].nodes:
            (source,) = [a for a in node.args if isinstance(a, Ref)] if "getitem" in node.name else (None,)
            if source is None:
                continue
            (origin,) = node.origins
            before = joint[origin]
            read = before.args[0].name if before.target == "operator.getitem" else before.name  # type: ignore[union-attr]
            holder = graphs[phase][source.name]
            assert read in (holder.name, *holder.origins)
            checked += 1
    assert checked >= 8
