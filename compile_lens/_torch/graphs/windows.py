"""Number of elements covered by the windows of a pool, a convolution, ``im2col`` and their backwards.

Windows form a grid in each dimension. A stride longer than the kernel leaves gaps between them, dilation leaves gaps
inside them, and a window may be cut off at the end. An element counts once, however many windows it is in.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from . import fx_values

Along = Callable[["Windows"], int]
"""A count along one dimension."""


class Windows(NamedTuple):
    """The windows along one dimension: ``total`` windows over ``size`` elements."""

    size: int
    total: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    def taps(self) -> list[range]:
        """Return, for each position in a window, the range of windows with an element, not padding, at it."""
        firsts = [self.padding - tap * self.dilation for tap in range(self.kernel)]
        return [
            range(max(0, -(-first // self.stride)), min(self.total, -(-(self.size + first) // self.stride)))
            for first in firsts
        ]


@functools.lru_cache(maxsize=1024)
def elements(windows: Windows) -> int:
    """Return the number of elements that are in a window."""
    by_offset: dict[int, list[range]] = {}
    for tap, inside in enumerate(windows.taps()):
        step, offset = divmod(tap * windows.dilation - windows.padding, windows.stride)
        by_offset.setdefault(offset, []).append(range(inside.start + step, inside.stop + step))
    return sum(map(union, by_offset.values()))


@functools.lru_cache(maxsize=1024)
def occupied(windows: Windows) -> int:
    """Return the number of windows with an element that is not padding."""
    return union(windows.taps())


@functools.lru_cache(maxsize=1024)
def places(windows: Windows) -> int:
    """Return the number of positions in all windows that are elements, not padding."""
    return sum(map(len, windows.taps()))


def union(ranges: Iterable[range]) -> int:
    """Return the number of integers in the union of ranges."""
    covered = end = 0
    for one in sorted(filter(None, ranges), key=lambda one: one.start):
        covered += max(0, one.stop - max(end, one.start))
        end = max(end, one.stop)
    return covered


def of_pool(dims: int, named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of ``self`` that a pool over the last ``dims`` dimensions reads."""
    image = named["self"].shape
    sizes = {**named, "stride": named.get("stride") or named["kernel_size"]}
    return _covered(elements, image[:-dims], image[-dims:], results[0].shape[-dims:], sizes)


def of_low_memory_pool(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of ``self`` read by Inductor's replacement for a pool with indices."""
    return of_pool(len(named["kernel_size"]), named, results)


def of_fractional_pool(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the maximal number of elements of ``self`` read by a pool with randomly placed windows."""
    dims = len(named["output_size"])
    image = named["self"].shape
    return _covered(_without_overlap, image[:-dims], image[-dims:], results[0].shape[-dims:], named)


def _without_overlap(windows: Windows) -> int:
    return min(windows.size, windows.kernel * windows.total)


def of_columns(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of an image that ``im2col`` reads."""
    image = named["self"].shape
    return _covered(elements, image[:-2], image[-2:], _grid(image[-2:], named), named)


def of_image(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of columns that ``col2im`` reads, which are those outside the padding."""
    image = results[0].shape
    return _covered(places, image[:-2], image[-2:], _grid(image[-2:], named), named)


def of_convolution(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of input elements that a convolution reads. The windows of a transposed one are over its
    result, and an input element is read unless its window is wholly outside the result."""
    return _convolved(named, results[0], "input")


def of_transposed_convolution(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of input elements that a ``conv_transpose`` operator reads."""
    return of_convolution({**named, "transposed": True}, results)


def of_library_convolution(
    transposed: bool, named: dict[str, Any], results: Sequence[torch.Tensor]
) -> int | None:
    """Return the number of input elements that a oneDNN convolution reads, with or without fused operators."""
    image, weight = named["X"], named["W"]
    kernel = weight.shape[2 - image.dim() :]  # a packed weight may have one dimension more
    return of_convolution({**named, "input": image, "kernel": kernel, "transposed": transposed}, results)


def of_convolved_input(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of input elements that a convolution's backward reads, for the weight's gradient only."""
    if not named["output_mask"][1]:
        return 0
    whole = named["transposed"]
    return _product(named["input"].shape) if whole else _convolved(named, named["grad_output"], "input")


def of_convolved_gradient(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of elements of the gradient that a convolution's backward reads."""
    into_input, into_weight, into_bias = named["output_mask"]
    if into_bias or (into_weight and not named["transposed"]):
        return _product(named["grad_output"].shape)
    needed = into_input or into_weight
    return _convolved(named, named["grad_output"], "grad_output") if needed else 0


def _convolved(named: dict[str, Any], result: torch.Tensor, read: str) -> int | None:
    """Return the number of elements of the input, or of the result's gradient, that are connected to the other."""
    kernel = named["kernel"] if "kernel" in named else named["weight"].shape[2:]
    shapes = [named["input"].shape, result.shape]
    transposed = bool(named.get("transposed"))
    image, grid = (shape[-len(kernel) :] for shape in (reversed(shapes) if transposed else shapes))
    outer = shapes[read != "input"][: -len(kernel)]
    over_image = (read == "input") is not transposed
    padding = named.get("padding", 0)
    if isinstance(padding, str):
        steps = _arguments({"dilation": named.get("dilation", 1)}, len(kernel))[-1]
        padding = [(size - 1) * step // 2 if padding == "same" else 0 for size, step in zip(kernel, steps)]
    sizes = {**named, "kernel_size": kernel, "padding": padding}
    return _covered(elements if over_image else occupied, outer, image, grid, sizes)


def _covered(measure: Along, outer: Any, image: Any, grid: Any, named: dict[str, Any]) -> int | None:
    """Return the product of ``measure`` over the dimensions and of the ``outer`` sizes; None if a size is unknown."""
    outside = _product(outer)
    sizes = [image, grid, *_arguments(named, len(image))]
    hints = [[fx_values.hint(n) for n in along] for along in zip(*sizes)]
    if outside is None or any(n is None for along in hints for n in along):
        return None
    return outside * math.prod(measure(Windows(*(int(n or 0) for n in along))) for along in hints)


def _grid(image: Any, named: dict[str, Any]) -> list[Any]:
    """Return the number of windows of ``im2col`` in each dimension."""
    return [
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, padding, dilation in zip(image, *_arguments(named, len(image)))
    ]


def _arguments(named: dict[str, Any], dims: int) -> list[list[Any]]:
    """Return kernel, stride, padding and dilation for each dimension; a single number applies to all."""
    defaults = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}
    given = [named.get(name, default) for name, default in defaults.items()]
    listed = [list(one) if isinstance(one, (list, tuple)) else [one] for one in given]
    return [one * dims if len(one) == 1 else one for one in listed]


def _product(sizes: Iterable[Any]) -> int | None:
    hints = [fx_values.hint(n) for n in sizes]
    return None if None in hints else math.prod(n for n in hints if n is not None)


FUNCTIONS = {
    **{f"{kind}_pool{dims}d": f"{kind}_pool{dims}d" for kind in ("avg", "max") for dims in (1, 2, 3)},
    **{f"conv{kind}{dims}d": f"conv{kind}{dims}d" for kind in ("", "_transpose") for dims in (1, 2, 3)},
    **{f"max_pool{dims}d_with_indices": f"max_pool{dims}d_with_indices" for dims in (1, 2, 3)},
    "unfold": "im2col",
    "fold": "col2im",
}
"""ATen operators for functions of ``torch`` with the same order of arguments."""


def overload(target: Any, name: str) -> Any:
    """Return the ATen operator for a torch function with windows, or the oneDNN convolution that Inductor fuses with
    other operators when it lowers them; None for others."""
    if isinstance(target, torch._ops.OpOverloadPacket) and len(target.overloads()) == 1:
        return getattr(target, target.overloads()[0])
    if isinstance(target, functools.partial):
        nodes = getattr(target.args[0], "nodes", ()) if target.args else ()
        known = (node.target for node in nodes if getattr(node.target, "namespace", "") == "mkldnn")
        return next((one for one in known if "_convolution" in str(one)), None)
    of_torch = str(getattr(target, "__module__", "")).partition(".")[0] == "torch"
    if name not in FUNCTIONS or not of_torch or isinstance(target, torch._ops.OpOverload):
        return None
    packet = getattr(torch.ops.aten, FUNCTIONS[name])
    return getattr(packet, packet.overloads()[0])
