"""The layout of a convolution's result is that of the device's library.

From torch's source (``aten/src/ATen/native/Convolution.cpp`` and ``ConvUtils.h``): cuDNN and Metal return channels
last if the input or the weight has it, except cuDNN for float64; cuDNN takes bfloat16 from capability 8 on; depthwise
convolutions of contiguous tensors, and those that cuDNN refuses, run torch's own kernel with contiguous results; a
1-D convolution runs as a 2-D one, contiguous. Strides are counted by hand.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from compile_lens import CaptureError, capture
from compile_lens._torch.targets import accelerator, cudnn, device_interfaces
from compile_lens._torch.targets.replacements import Replacements
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself"),
]

LAST, LAST_3D = torch.channels_last, torch.channels_last_3d
FLAT = (49152, 4096, 64, 1)  # 12 × 64 × 64, 64 × 64, 64, 1
CHANNELS_LAST = (49152, 1, 768, 12)  # 64 × 64 × 12, 1, 64 × 12, 12


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def strides(found: Capture, graph: str = "joint", name: str = "convolution") -> list[Any]:
    graphs = found.compilations[0].graphs
    calls = graphs[graph if graph in graphs else "inference"].calls
    return [[o.stride for o in n.outputs] for n in calls if n.target.startswith(f"aten.{name}.")]


def of_2d(dtype: torch.dtype = torch.float32, x: Any = LAST, w: Any = None, groups: int = 1) -> Any:
    contiguous = torch.contiguous_format
    made = torch.rand(2, 6, 64, 64, dtype=dtype).to(memory_format=x or contiguous)
    weight = torch.rand(12, 6 // groups, 3, 3, dtype=dtype).to(memory_format=w or contiguous)
    return made, weight


CASES_2D = {
    "input": (of_2d(), {}, CHANNELS_LAST, CHANNELS_LAST),
    "weight": (of_2d(x=None, w=LAST), {}, CHANNELS_LAST, CHANNELS_LAST),
    "both": (of_2d(w=LAST), {}, CHANNELS_LAST, CHANNELS_LAST),
    "neither": (of_2d(x=None), {}, FLAT, FLAT),
    "groups": (of_2d(groups=2), {"groups": 2}, CHANNELS_LAST, CHANNELS_LAST),
    "depthwise, contiguous": (of_2d(x=None, groups=6), {"groups": 6}, FLAT, FLAT),
    "depthwise": (of_2d(groups=6), {"groups": 6}, CHANNELS_LAST, CHANNELS_LAST),
    "float16": (of_2d(torch.float16), {}, CHANNELS_LAST, CHANNELS_LAST),
    "bfloat16": (of_2d(torch.bfloat16), {}, CHANNELS_LAST, CHANNELS_LAST),
    "float64": (of_2d(torch.float64), {}, FLAT, None),
}
"""Inputs, options, and strides on an H100 and on an Apple M1 (which has no float64)."""


@pytest.mark.parametrize("target", ["h100", "m1"])
@pytest.mark.parametrize("case", CASES_2D)
@torch.no_grad()
def test_two_dimensions(case: str, target: str) -> None:
    args, options, *expected = CASES_2D[case]
    stride = expected[target == "m1"]
    if stride is None:
        pytest.skip("Metal has no float64")
    found = here(lambda x, w: F.conv2d(x, w, padding=1, **options), *args, target=target)
    assert strides(found) == [[stride]]
    assert found.target is not None and found.target.queries == ()


@pytest.mark.parametrize(("major", "stride"), [(7, FLAT), (8, CHANNELS_LAST), (9, CHANNELS_LAST)])
def test_bfloat16_is_cudnns_from_capability_8_on(major: int, stride: Any) -> None:
    x, w = of_2d(torch.bfloat16)
    with Replacements() as places, places:
        accelerator.place(places, "cuda", major)
        device_interfaces.clear_caches(places)
        cudnn.place(places, "cuda")
        with FakeTensorMode(allow_non_fake_inputs=True):
            x, w = (torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device="cuda") for v in (x, w))
            assert F.conv2d(x, w, padding=1).stride() == stride


@torch.no_grad()
def test_other_dimensions() -> None:
    """1-D results are contiguous; 2 × 4 × 5 × 5 × 5 in three dimensions has its own kind of channels last."""
    line = torch.rand(2, 9, 3).transpose(1, 2)
    assert strides(here(F.conv1d, line, torch.rand(4, 3, 3))) == [[(28, 7, 1)]]
    x, w = torch.rand(2, 3, 7, 7, 7), torch.rand(4, 3, 3, 3, 3)
    assert strides(here(F.conv3d, x.to(memory_format=LAST_3D), w)) == [[(500, 1, 100, 20, 4)]]
    assert strides(here(F.conv3d, x, w)) == [[(500, 125, 25, 5, 1)]]


@torch.no_grad()
def test_transposed() -> None:
    """2 × 4 × 10 × 10: (8 - 1) × 1 + 3. cuDNN refuses an output padding as large as the stride."""
    x, w = torch.rand(2, 6, 8, 8).to(memory_format=LAST), torch.rand(6, 4, 3, 3)
    assert strides(here(F.conv_transpose2d, x, w)) == [[(400, 1, 40, 4)]]

    def padded(x: Any, w: Any) -> Any:
        return F.conv_transpose2d(x, w, dilation=2, output_padding=1)  # not smaller than the stride

    assert strides(here(padded, x, w)) == [[(4 * 13 * 13, 13 * 13, 13, 1)]]


def test_the_backward_is_laid_out_so() -> None:
    x, w = of_2d()
    found = here(lambda x, w: F.conv2d(x, w, padding=1), x.requires_grad_(), w.requires_grad_())
    assert strides(found) == [[CHANNELS_LAST]]
    # 6 × 64 × 64 of the input, 6 × 3 × 3 of the weight, channels last
    assert strides(found, name="convolution_backward") == [[(24576, 1, 384, 6), (54, 1, 18, 6)]]


@pytest.mark.full
def test_a_branch_on_the_layout_and_a_view_of_it() -> None:
    convolution = torch.nn.Conv2d(6, 12, 3, padding=1)
    x = torch.rand(2, 6, 64, 64).to(memory_format=LAST)

    def branch(x: Any) -> Any:
        y = convolution(x)
        return y.sin() if y.is_contiguous(memory_format=LAST) else y.cos()

    def view(x: Any) -> Any:
        return convolution(x).permute(0, 2, 3, 1).view(-1, 12)

    for target in ("h100", "mps"):
        names = [n.target for n in here(branch, x, target=target).compilations[0].graphs["dynamo"].calls]
        assert any("sin" in name for name in names) and not any("cos" in name for name in names)
        assert here(view, x, target=target).breaks == ()
    flat = x.contiguous()
    with pytest.raises(CaptureError, match=r"\.view\(-1, 12\)(?s:.*)Cannot view a tensor"):
        here(view, flat)


@torch.no_grad()
def test_what_inductor_makes_channels_last_comes_so() -> None:
    """Inductor sets this layout for the operands of a large convolution; users read the library's result in place."""
    x = torch.rand(8, 64, 56, 56)
    found = here(torch.nn.Conv2d(64, 128, 3, padding=1), x)
    (code,) = found.compilations[0].code.values()
    # Inductor's check of the library's result: torch 2.15 calls another function for it.
    assert "(buf2, (8, 128, 56, 56), (401408, 1, 7168, 128)" in str(code.text)
    last = here(torch.nn.Conv2d(64, 128, 3, padding=1).to(memory_format=LAST), x.to(memory_format=LAST))
    assert [k.language for k in last.kernels] == ["extern", "triton"]  # nothing is transposed before the call


def test_after_a_break_a_result_is_laid_out_as_on_the_device() -> None:
    """The CPU's own convolution of float64 returns channels last, cuDNN's a contiguous result."""
    x, w = of_2d(torch.float64)
    assert F.conv2d(x, w, padding=1).stride() == CHANNELS_LAST

    def broken(x: Any, w: Any) -> Any:
        y = F.conv2d(x, w, padding=1)
        torch._dynamo.graph_break()
        return y.sin() if y.is_contiguous() else y.cos()

    with torch.no_grad():
        found = here(broken, x, w)
    assert "sin" in found.compilations[1].graphs["dynamo"].calls[0].target


@pytest.mark.full
@torch.no_grad()
def test_a_program_that_switches_cudnn_off_is_taken_at_its_word() -> None:
    x, w = of_2d()
    with torch.backends.cudnn.flags(enabled=False):
        assert strides(capture(F.conv2d, x, w, target="h100")) == [[(12 * 62 * 62, 62 * 62, 62, 1)]]
    assert strides(capture(F.conv2d, x, w, target="h100")) == [[(12 * 62 * 62, 1, 12 * 62, 12)]]
