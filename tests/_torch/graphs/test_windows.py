"""Elements that an operator reads from windows, at points or inside padding, against the same operator with NaN in one
element after the other."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compile_lens import capture
from compile_lens._torch.graphs import accesses
from compile_lens.record.graph import Graph

pytestmark = [pytest.mark.torch]

aten = torch.ops.aten
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""An operator with its arguments."""


def results(call: Call) -> list[torch.Tensor]:
    """Return the results of an operator, without the gradients that were not requested."""
    func, args, kwargs = call
    with torch.no_grad():
        out = func(*args, **kwargs)
    if "backward" in str(func):
        return [one for one, wanted in zip(out, args[-1]) if wanted]
    return list(out) if isinstance(out, tuple) else [out]


def read(call: Call) -> list[int]:
    """Return, for each tensor argument, the number of elements that change a result if they are NaN.

    A weight counts fully or not at all: a library may skip the part of it that only meets padding, and some do.
    """
    func, args, kwargs = call
    reference = [one.nan_to_num(nan=9e9) for one in results(call)]
    counts = []
    for at, tensor in enumerate(args):
        if not isinstance(tensor, torch.Tensor):
            continue
        count = 0
        for element in range(tensor.numel()):
            other = tensor.clone()
            other.view(-1)[element] = float("nan")
            changed = results((func, (*args[:at], other, *args[at + 1 :]), kwargs))
            count += not all(torch.equal(a, b.nan_to_num(nan=9e9)) for a, b in zip(reference, changed))
        weight = "convolution" in str(func) and tensor is args[2 if "backward" in str(func) else 1]
        counts.append(tensor.numel() if weight and count else count)
    return counts


def window(draw: random.Random, dims: int) -> dict[str, list[int]]:
    """Draw a kernel, a stride that is often longer, a padding that a pool may have, and a dilation."""
    kernel = [draw.randint(1, 3) for _ in range(dims)]
    return {
        "size": [draw.randint(4, 7 if dims < 3 else 5) for _ in range(dims)],
        "kernel": kernel,
        "stride": [draw.randint(1, 5) for _ in range(dims)],
        "padding": [draw.randint(0, n // 2) for n in kernel],
        "dilation": [draw.randint(1, 2) for _ in range(dims)],
    }


def max_pool(draw: random.Random, dims: int) -> Call:
    sizes = window(draw, dims)
    func = getattr(aten, f"max_pool{dims}d_with_indices").default
    args = (sizes["kernel"], sizes["stride"], sizes["padding"], sizes["dilation"], draw.random() < 0.5)
    return func, (torch.randn(1, 2, *sizes["size"]), *args), {}


def avg_pool(draw: random.Random, dims: int) -> Call:
    sizes = window(draw, dims)
    func = getattr(aten, f"avg_pool{dims}d").default
    stride = draw.choice([sizes["stride"], []])
    given = {"ceil_mode": draw.random() < 0.5, "count_include_pad": draw.random() < 0.5}
    batch = [2, 1][: draw.randint(1, 2)]  # an image without a batch too
    return func, (torch.randn(*batch, *sizes["size"]), sizes["kernel"], stride, sizes["padding"]), given


def adaptive_pool(draw: random.Random, dims: int) -> Call:
    size = window(draw, dims)["size"]
    name = draw.choice([f"_adaptive_avg_pool{dims}d", f"adaptive_max_pool{dims}d"])
    return getattr(aten, name).default, (torch.randn(1, 2, *size), [draw.randint(2, 7) for _ in size]), {}


def fractional_pool(draw: random.Random, dims: int) -> Call:
    """Windows with a gap between any two, so that their positions do not change how many elements they cover."""
    kernel = [draw.randint(1, 2) for _ in range(dims)]
    size = [draw.randint(9, 10) if dims < 3 else 7 for _ in range(dims)]
    args = (kernel, [2] * dims, torch.rand(1, 2, dims))
    return getattr(aten, f"fractional_max_pool{dims}d").default, (torch.randn(1, 2, *size), *args), {}


def columns(draw: random.Random, dims: int) -> Call:
    sizes = window(draw, 2)
    args = (sizes["kernel"], sizes["dilation"], [draw.randint(0, 2) for _ in range(2)], sizes["stride"])
    return aten.im2col.default, (torch.randn(1, 2, *sizes["size"]), *args), {}


def image(draw: random.Random, dims: int) -> Call:
    call = columns(draw, dims)
    _, (source, *args), _ = call
    return aten.col2im.default, (results(call)[0], source.shape[2:], *args), {}


def convolution(draw: random.Random, dims: int) -> Call:
    sizes, groups, transposed = window(draw, dims), draw.choice([1, 2]), draw.random() < 0.4
    padding = [draw.randint(0, n) for n in sizes["kernel"]]
    weight = torch.randn(2, 2 // groups, *sizes["kernel"])
    rest = (None, sizes["stride"], padding, sizes["dilation"], transposed, [0] * dims, groups)
    return aten.convolution.default, (torch.randn(1, 2, *sizes["size"]), weight, *rest), {}


def convolution_backward(draw: random.Random, dims: int) -> Call:
    call = convolution(draw, dims)
    _, (source, weight, _, *rest), _ = call
    mask = draw.choice([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)])
    gradient = results(call)[0]
    args = (torch.randn_like(gradient), source, weight, [gradient.shape[1]], *rest, list(map(bool, mask)))
    return aten.convolution_backward.default, args, {}


INTERPOLATIONS = {
    1: ["upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_linear1d"],
    2: ["upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_bilinear2d", "upsample_bicubic2d"],
    3: ["upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_trilinear3d"],
}


def interpolation(draw: random.Random, dims: int) -> Call:
    """An image that shrinks or grows, often by a scale that differs from the ratio of its sizes."""
    name = draw.choice(INTERPOLATIONS[dims])
    size = [draw.randint(1, 12 if dims < 3 else 5) for _ in range(dims)]
    total = [draw.randint(1, 9 if dims < 3 else 5) for _ in range(dims)]
    corners = [] if "nearest" in name else [draw.random() < 0.5]
    scales = [draw.choice([None, m / n, draw.uniform(0.2, 2.0)]) for n, m in zip(size, total)]
    dtype = draw.choice([torch.float32, torch.float64])
    return getattr(aten, name).default, (torch.randn(1, 2, *size, dtype=dtype), total, *corners, *scales), {}


def padding(draw: random.Random, dims: int) -> Call:
    """Padding that is negative on some sides: the cropped elements are not read, however large the result is."""
    size = [draw.randint(3, 6) for _ in range(dims)]
    kind = draw.choice(["constant_pad_nd", f"replication_pad{dims}d", f"reflection_pad{dims}d"])
    cut = 2 if kind == "constant_pad_nd" else max(size)
    pad = [draw.randint(-min(cut, n), min(4, n - 1)) for n in reversed(size) for _ in range(2)]
    value = [1.5] if kind == "constant_pad_nd" else []
    return getattr(aten, kind).default, (torch.randn(1, 2, *size), pad, *value), {}


Draw = Callable[[random.Random, int], Call]
DRAWN: list[tuple[Draw, int]] = [
    (max_pool, 2), (max_pool, 3), (avg_pool, 2), (avg_pool, 3), (adaptive_pool, 2), (adaptive_pool, 3),
    (fractional_pool, 2), (columns, 2), (image, 2),
    (convolution, 1), (convolution, 2), (convolution_backward, 1), (convolution_backward, 2),
    (interpolation, 1), (interpolation, 2), (interpolation, 3), (padding, 1), (padding, 2), (padding, 3),
]  # fmt: skip


def wrong(draw: Draw, dims: int, seed: int) -> str:
    """Return the call if the counted elements are not those that change a result, and ``""`` otherwise."""
    torch.manual_seed(seed)
    try:
        call = draw(random.Random(seed), dims)
        out = results(call)
    except RuntimeError:  # the window is larger than the image
        return ""
    func, args, kwargs = call
    tensors = [one for one in args if isinstance(one, torch.Tensor)]
    counts = read(call)
    if draw is fractional_pool:
        counts[1] = tensors[1].numel()  # a NaN position is rejected only by chance
    expected = sum(count * one.element_size() for count, one in zip(counts, tensors))
    reads, _ = accesses.moved(func, args, kwargs, out)
    shapes = [tuple(one.shape) if isinstance(one, torch.Tensor) else one for one in args]
    return f"{func}{shapes} {kwargs}: {reads}, and {expected} B are read" if reads != expected else ""


@pytest.mark.cases(quick=len(DRAWN))
@pytest.mark.parametrize(("draw", "dims"), DRAWN, ids=[f"{draw.__name__}{dims}d" for draw, dims in DRAWN])
def test_the_elements_that_are_counted_are_those_that_change_a_result(draw: Draw, dims: int) -> None:
    assert [text for seed in range(4 - dims) if (text := wrong(draw, dims, seed))] == []


@pytest.mark.full
@pytest.mark.parametrize(("draw", "dims"), DRAWN, ids=[f"{draw.__name__}{dims}d" for draw, dims in DRAWN])
@pytest.mark.cases(full=8)
def test_on_many_shapes_as_well(draw: Draw, dims: int) -> None:
    seeds = range(100, 115 if dims < 3 else 105)
    assert [text for seed in seeds if (text := wrong(draw, dims, seed))] == []


def x(*shape: int) -> torch.Tensor:
    return torch.linspace(-3.0, 3.0, int(torch.tensor(shape).prod())).reshape(shape)


def trained(shape: torch.Tensor) -> torch.Tensor:
    return shape.requires_grad_()


CAPTURED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int, int]] = {
    # A program, its inputs, the bytes of all eager operators, and the bytes that the program's first call reads.
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 1, 2) + 0, (x(2, 3, 16, 16),), 6144, 1536),
    "max_pool2d": (lambda x: F.max_pool2d(x, 1, 2).relu(), (x(2, 3, 16, 16),), 9216, 1536),
    "max_pool2d and its backward": (lambda x: F.max_pool2d(x, 2, 4), (trained(x(2, 3, 16, 16)),), 9984, 1536),
    "unfold": (lambda x: F.unfold(x, 2, stride=4), (x(1, 3, 16, 16),), 1536, 768),
    "fold": (lambda x: F.fold(x, (4, 4), 2, padding=1, stride=2), (x(1, 12, 9),), 2 * 192, 192),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2, 5), (x(2, 3, 20),), 192 + 96, 192),
    "conv1d of one image": (lambda x, w: F.conv1d(x, w, stride=3), (x(2, 9), x(2, 2, 1)), 24 + 16 + 24, 40),
    "conv2d, same": (
        lambda x, w: F.conv2d(x, w, padding="same"), (x(1, 1, 4, 4), x(1, 1, 3, 3)), 2 * 64 + 36, 100
    ),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), (x(1, 1, 5, 5), x(1, 1, 1, 1)),
        9 * 4 + 4 + 49 * 4, 40
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", CAPTURED)
def test_a_capture_counts_what_the_windows_cover(name: str) -> None:
    fn, args, eager, called = CAPTURED[name]
    (compilation,) = capture(fn, *args).compilations
    assert sum(op.nbytes or 0 for op in compilation.eager or ()) == eager
    traced = next(stage for stage in compilation.stages if stage.key == "dynamo")
    assert isinstance(traced, Graph)
    assert next(node.reads for node in traced.nodes if node.compute) == called


@pytest.mark.full
def test_a_convolution_of_a_target_reads_no_bias_that_another_kernel_adds() -> None:
    args = x(1, 3, 16, 16), x(4, 3, 1, 1), x(4)
    record = capture(lambda x, w, b: F.conv2d(x, w, b, stride=2), *args, target="h100")
    (call,) = (
        kernel for kernel in record.kernels if "convolution" in kernel.name and "fused" not in kernel.name
    )
    assert (call.reads, call.writes) == (768 + 48, 1024)
