"""With CUDA graphs Inductor compiles other kernels: CPU tensors of the program are created on the device, even if it
returns them. Code for an absent device is generated without CUDA graphs, and still has these kernels.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch._inductor.config as config
from torch._inductor.fx_passes import post_grad
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself"),
]


def made_and_returned(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i = torch.arange(4)
    return x[i] * 2, i


def by_torch(monkeypatch: pytest.MonkeyPatch, recorded: bool) -> str:
    """The device on which torch's own pass creates ``i``, in a separate graph."""
    monkeypatch.setattr(post_grad, "get_gpu_type", lambda: "cuda")
    graph, mode = torch.fx.Graph(), FakeTensorMode(allow_non_fake_inputs=True)

    def on(device: str, *shape: int, dtype: torch.dtype = torch.float32) -> FakeTensor:
        with mode:
            return FakeTensor(mode, torch.empty(shape, dtype=dtype, device="meta"), torch.device(device))

    x = graph.placeholder("x")
    asked = {"dtype": torch.int64, "device": torch.device("cpu"), "requires_grad": False}
    i = graph.call_function(torch.ops.prims.iota.default, (4,), {"start": 0, "step": 1, **asked})
    y = graph.call_function(torch.ops.aten.index.Tensor, (x, [i]))
    x.meta["val"], y.meta["val"] = on("cuda:0", 10), on("cuda:0", 4)
    i.meta["val"] = on("cpu", 4, dtype=torch.int64)
    graph.output((y, i))
    with config.patch({"triton.cudagraphs": recorded}), mode:
        post_grad.move_constructors_to_gpu(graph)
    (made,) = (n for n in graph.nodes if n.target is torch.ops.prims.iota.default)
    return str(torch.device(made.kwargs["device"]).type)


@pytest.mark.parametrize(
    ("how", "recorded"),
    [
        ({}, False),
        ({"mode": "reduce-overhead"}, True),
        ({"options": {"triton.cudagraphs": True}}, True),
        ({"options": {"triton.cudagraphs": False}}, False),
    ],
)
def test_what_is_made_on_the_cpu_is_made_where_torch_makes_it(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], recorded: bool
) -> None:
    found = perform(
        Call.read(
            made_and_returned,
            (torch.rand(10),),
            None,
            CaptureOptions(target="h100", **how),
            model=resolve("h100"),
        )
    )[0]
    (made,) = (n for n in found.compilations[0].graphs["inference.post_grad"].nodes if n.name == "iota")
    assert made.outputs[0].device.partition(":")[0] == by_torch(monkeypatch, recorded)
    assert found.target is not None
    assert (
        any("CUDA graphs are recorded by the device" in said for said in found.target.may_differ) == recorded
    )


@pytest.mark.full
def test_as_set_for_the_whole_process() -> None:
    with config.patch({"triton.cudagraphs": True}):
        found = perform(
            Call.read(
                made_and_returned,
                (torch.rand(10),),
                None,
                CaptureOptions(target="h100"),
                model=resolve("h100"),
            )
        )[0]
    assert {k.language for k in found.kernels} == {"triton"} and found.target is not None
    assert any("CUDA graphs are recorded by the device" in said for said in found.target.may_differ)
