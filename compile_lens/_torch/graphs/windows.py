"""Elements that the windows of an operator cover: a pool, a convolution, ``im2col`` and their backwards.

Windows lie on a grid of their own in each dimension. A stride that is longer than the kernel leaves gaps between them,
dilation leaves gaps inside them, and a window may be cut off at the end. An element counts once, however many windows
it is in.
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
    """The windows along one dimension: ``total`` of them over ``size`` elements."""

    size: int
    total: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    def taps(self) -> list[range]:
        """Return, for each position in a window, the windows that have an element there and not padding."""
        firsts = [self.padding - tap * self.dilation for tap in range(self.kernel)]
        return [
            range(max(0, -(-first // self.stride)), min(self.total, -(-(self.size + first) // self.stride)))
            for first in firsts
        ]


@functools.lru_cache(maxsize=1024)
def elements(windows: Windows) -> int:
    """Return how many elements are in a window."""
    by_offset: dict[int, list[range]] = {}
    for tap, inside in enumerate(windows.taps()):
        step, offset = divmod(tap * windows.dilation - windows.padding, windows.stride)
        by_offset.setdefault(offset, []).append(range(inside.start + step, inside.stop + step))
    return sum(map(union, by_offset.values()))


@functools.lru_cache(maxsize=1024)
def occupied(windows: Windows) -> int:
    """Return how many windows have an element that is not padding."""
    return union(windows.taps())


@functools.lru_cache(maxsize=1024)
def places(windows: Windows) -> int:
    """Return how many places of all windows together are elements and not padding."""
    return sum(map(len, windows.taps()))


def union(ranges: Iterable[range]) -> int:
    """Return how many numbers are in one of several ranges."""
    covered = end = 0
    for one in sorted(filter(None, ranges), key=lambda one: one.start):
        covered += max(0, one.stop - max(end, one.start))
        end = max(end, one.stop)
    return covered


def of_pool(dims: int, named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of ``self`` a pool over the last ``dims`` dimensions reads."""
    image = named["self"].shape
    sizes = {**named, "stride": named.get("stride") or named["kernel_size"]}
    return _covered(elements, image[:-dims], image[-dims:], results[0].shape[-dims:], sizes)


def of_low_memory_pool(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of ``self`` the pool reads that Inductor has in place of one with indices."""
    return of_pool(len(named["kernel_size"]), named, results)


def of_fractional_pool(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of ``self`` a pool reads at most whose windows lie where random numbers place them."""
    dims = len(named["output_size"])
    image = named["self"].shape
    return _covered(_without_overlap, image[:-dims], image[-dims:], results[0].shape[-dims:], named)


def _without_overlap(windows: Windows) -> int:
    return min(windows.size, windows.kernel * windows.total)


def of_columns(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of an image ``im2col`` reads."""
    image = named["self"].shape
    return _covered(elements, image[:-2], image[-2:], _grid(image[-2:], named), named)


def of_image(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of columns ``col2im`` reads: those that are not in the padding."""
    image = results[0].shape
    return _covered(places, image[:-2], image[-2:], _grid(image[-2:], named), named)


def of_convolution(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of its input a convolution reads. The windows of a transposed one are over its result:
    an input is read unless its whole window is outside of that."""
    return _convolved(named, results[0], "input")


def of_transposed_convolution(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of its input a convolution reads that is transposed by its name."""
    return of_convolution({**named, "transposed": True}, results)


def of_library_convolution(
    transposed: bool, named: dict[str, Any], results: Sequence[torch.Tensor]
) -> int | None:
    """Return how many elements of its input a convolution of oneDNN reads, whatever operators it has after it."""
    image, weight = named["X"], named["W"]
    kernel = weight.shape[2 - image.dim() :]  # a packed weight may have one dimension more
    return of_convolution({**named, "input": image, "kernel": kernel, "transposed": transposed}, results)


def of_convolved_input(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of the input the backward of a convolution reads: the gradient of the weight alone
    needs it, and multiplies the padding as well."""
    if not named["output_mask"][1]:
        return 0
    whole = named["transposed"]
    return _product(named["input"].shape) if whole else _convolved(named, named["grad_output"], "input")


def of_convolved_gradient(named: dict[str, Any], results: Sequence[torch.Tensor]) -> int | None:
    """Return how many elements of the gradient the backward of a convolution reads."""
    into_input, into_weight, into_bias = named["output_mask"]
    if into_bias or (into_weight and not named["transposed"]):
        return _product(named["grad_output"].shape)
    needed = into_input or into_weight
    return _convolved(named, named["grad_output"], "grad_output") if needed else 0


def _convolved(named: dict[str, Any], result: torch.Tensor, read: str) -> int | None:
    """Return how many elements of the input, or of the gradient of the result, are connected to the other one."""
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
    """Return the product over the dimensions of windows, times that of the ``outer`` sizes; None if a size is not
    known."""
    outside = _product(outer)
    sizes = [image, grid, *_arguments(named, len(image))]
    hints = [[fx_values.hint(n) for n in along] for along in zip(*sizes)]
    if outside is None or any(n is None for along in hints for n in along):
        return None
    return outside * math.prod(measure(Windows(*(int(n or 0) for n in along))) for along in hints)


def _grid(image: Any, named: dict[str, Any]) -> list[Any]:
    """Return how many windows ``im2col`` has in each dimension."""
    return [
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, padding, dilation in zip(image, *_arguments(named, len(image)))
    ]


def _arguments(named: dict[str, Any], dims: int) -> list[list[Any]]:
    """Return kernel, stride, padding and dilation for each dimension: one number may stand for all."""
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
"""Functions of ``torch`` whose arguments are, in the same order, those of this operator of ATen."""


def overload(target: Any, name: str) -> Any:
    """Return ATen's operator for a function with windows, whose name is this, or oneDNN's that Inductor fuses with
    others when it lowers them; None for any other."""
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
