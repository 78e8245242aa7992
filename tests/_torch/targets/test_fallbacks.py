"""Operators without a fake implementation are captured as on the device, which torch needs for their results.

From torch's source: ``grid_sample`` is cuDNN's if it is bilinear, pads with zeros and aligns corners, with four
dimensions, at most 1,024 channels, in float16, 32 or 64 (``GridSamplerUtils.h``, ``GridSampler.cpp``); a GRU cell is
one kernel on CUDA (``RNN.cpp``), which saves five numbers for each hidden one (``cuda/RNN.cu``). The kernels of each
operator are listed in ``native_functions.yaml``.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from compile_lens import capture
from compile_lens._torch.targets import accelerator, fallbacks
from compile_lens._torch.targets.device_interfaces import PHASE
from compile_lens._torch.targets.device_queries import DeviceQueries
from compile_lens._torch.targets.replacements import Replacements, marked
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture
from compile_lens.views.words import stamp

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself"),
]


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def calls(found: Capture, name: str) -> list[Any]:
    """Result strides of each call of an operator, in the graph of the only compile."""
    (compilation,) = found.compilations
    graph = compilation.graphs["joint" if "joint" in compilation.graphs else "inference"]
    return [[o.stride for o in n.outputs] for n in graph.calls if n.target.startswith(f"aten.{name}.")]


def sampled(dtype: torch.dtype = torch.float32, channels: int = 3) -> Any:
    return torch.rand(2, channels, 8, 8, dtype=dtype), torch.rand(2, 4, 5, 2, dtype=dtype)


SAMPLES: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "float32": (sampled(), {}, True),
    "float16": (sampled(torch.float16), {}, True),
    "float64": (sampled(torch.float64), {}, True),
    "1,024 channels": (sampled(channels=1024), {}, True),
    "bfloat16": (sampled(torch.bfloat16), {}, False),
    "1,025 channels": (sampled(channels=1025), {}, False),
    "corners": (sampled(), {"align_corners": False}, False),
    "border": (sampled(), {"padding_mode": "border"}, False),
    "nearest": (sampled(), {"mode": "nearest"}, False),
    "volume": ((torch.rand(2, 3, 4, 4, 4), torch.rand(2, 4, 4, 4, 3)), {}, False),
}


@pytest.mark.full
@pytest.mark.parametrize("case", SAMPLES)
@torch.no_grad()
@pytest.mark.cases(full=4)
def test_which_grid_sample_is_cudnns(case: str) -> None:
    args, options, cudnns = SAMPLES[case]
    found = here(lambda x, grid: F.grid_sample(x, grid, **{"align_corners": True, **options}), *args)
    channels = args[0].shape[1]
    assert calls(found, "cudnn_grid_sampler") == [[(channels * 20, 20, 5, 1)]] * cudnns  # 4 × 5 points
    assert found.breaks == () and found.target is not None and found.target.queries == ()


@pytest.mark.full
def test_its_backward_is_cudnns() -> None:
    x, grid = (v.requires_grad_() for v in sampled())
    found = here(lambda x, grid: F.grid_sample(x.cos(), grid.sin(), align_corners=True), x, grid)
    assert calls(found, "cudnn_grid_sampler_backward") == [[(192, 64, 8, 1), (40, 10, 2, 1)]]
    assert calls(here(torch.grid_sampler, x, grid, 0, 0, True, target="mps"), "cudnn_grid_sampler") == []


def test_a_gru_cell_is_one_graph_with_the_devices_kernel() -> None:
    cell = torch.nn.GRUCell(16, 32)
    found = capture(lambda x, h: cell(x, h).sin(), torch.rand(4, 16), torch.rand(4, 32), target="h100")
    assert found.breaks == ()
    assert calls(found, "_thnn_fused_gru_cell") == [[(32, 1), (160, 1)]]
    # 3 × 32 gates of the input and of the state, and two biases
    assert calls(found, "_thnn_fused_gru_cell_backward") == [[(96, 1), (96, 1), (32, 1), (1,), (1,)]]
    assert any(k.name.startswith("torch.ops.aten._thnn_fused_gru_cell.default") for k in found.kernels)


def test_what_has_a_kernel_for_the_cpu_too_is_run_here() -> None:
    """LAPACK returns its results column-major."""
    with torch.no_grad():
        assert calls(here(torch.geqrf, torch.rand(4, 16)), "geqrf") == [[(1, 4), (1,)]]
        assert calls(here(torch.binomial, torch.full((4,), 5.0), torch.rand(4)), "binomial") == [[(1,)]]


def test_it_leaves_random_numbers_alone() -> None:
    with Replacements() as places, places:
        accelerator.place(places, "cuda", 9)
        fallbacks.place(places, torch.device("cuda", 0), DeviceQueries())
        before = torch.get_rng_state()
        with marked(PHASE), FakeTensorMode():
            count = torch.full((64,), 5.0, device="cuda")
            found = torch.binomial(count, count / 10)
        assert found.device == torch.device("cuda", 0) and found.shape == (64,)
        assert torch.equal(torch.get_rng_state(), before)


@torch.no_grad()
def test_what_the_device_has_no_kernel_for_breaks_as_there() -> None:
    def counted(x: Any) -> Any:
        return torch.histogram(x, 5)[0]

    found = here(counted, torch.rand(40))
    (ending,) = found.breaks
    assert "aten.histogram.bin_ct at dispatch key DispatchKey.CUDA" in ending.reason
    assert found.target is not None and found.target.queries == ()
    assert calls(here(counted, torch.rand(40), target="mps"), "histogram") == [[(1,), (1,)]]


@torch.no_grad()
def test_what_only_the_device_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, align_corners=True)

    assert here(sample, *sampled()).breaks == ()
    for name in [name for name in fallbacks.RESULTS if "grid" in name]:
        monkeypatch.delitem(fallbacks.RESULTS, name)
    found = here(sample, *sampled())
    (ending,) = found.breaks
    assert "aten.cudnn_grid_sampler has no fake implementation. With the device, torch would run it" in (
        ending.reason
    )
    assert found.target is not None
    said = stamp.of_target(found.target)[-1]
    assert "called aten.cudnn_grid_sampler, which torch runs on the device to learn its outputs" in said
    assert f"{__file__.rpartition('/')[2]}:" in said


def test_a_ctc_loss_is_cudnns_by_its_types() -> None:
    """cuDNN takes 32-bit labels in one row with lengths in tensors; other results depend on data, for torch too."""
    torch.manual_seed(0)
    whole = {"dtype": torch.int32}
    probabilities = torch.rand(20, 3, 10).log_softmax(2)
    labels, lengths = torch.randint(1, 10, (15,), **whole), torch.full((3,), 20, **whole)
    of_each = torch.full((3,), 5, **whole)
    with torch.no_grad():
        found = here(F.ctc_loss, probabilities, labels, lengths, of_each)
        assert calls(found, "_cudnn_ctc_loss") == [[(1,), (30, 10, 1)]]
        (ending,) = here(F.ctc_loss, probabilities, labels.long(), lengths, of_each).breaks
    assert "`aten._ctc_loss.Tensor`'s output shape depends on input" in ending.reason


@pytest.mark.full
@torch.no_grad()
def test_what_cudnn_keeps_of_a_batch_norm_is_said_to_be_unknown() -> None:
    """cuDNN computes batch norms of three dimensions and more (``Normalization.cpp``), and saves nothing for fewer."""

    def normed(x: Any, of_each: Any) -> Any:
        kept = (of_each.clone() for _ in range(2))
        return torch.ops.aten._batch_norm_with_update(x, of_each, of_each, *kept, 0.1, 1e-5)[0]

    for _ in range(2):  # torch caches the result of a fake operator
        found = here(normed, torch.rand(4, 6, 8, 8), torch.rand(6)).target
        assert found is not None and [(q.kind, q.query) for q in found.queries] == [("called", "batch_norm")]
        assert "of a size that only cuDNN knows" in stamp.of_target(found)[-1]
    found = here(normed, torch.rand(4, 6), torch.rand(6)).target
    assert found is not None and found.queries == ()
