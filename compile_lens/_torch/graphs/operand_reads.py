"""Table of the arguments that operators read in part: the shape alone, a gather, a diagonal, a prefix, windows (counted
by ``windows``), the neighbours of points (``interpolation``).

Arguments that are not in the table are read whole. ``tests/helpers/operand_probe.py`` checks this: it changes an
argument, or one of its elements, and compares the results.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx

from . import fx_values, interpolation, operator_kinds, windows

Named = dict[str, Any]
"""Arguments of a call by name."""
Reads = Callable[[Named, Sequence[torch.Tensor]], "int | None"]
"""A function of a call's arguments and results that returns the number of elements read of one argument; None if a size
is unknown."""


def elements(shape: Iterable[Any]) -> int | None:
    """Return the product of sizes; None if one is unknown."""
    sizes = [fx_values.hint(s) for s in shape]
    return None if None in sizes else math.prod(s for s in sizes if s is not None)


def product(*factors: int | None) -> int | None:
    """Return the product of ``factors``; None if one is unknown."""
    known = [factor for factor in factors if factor is not None]
    return math.prod(known) if len(known) == len(factors) else None


def of_call(name: str, target: Any, named: Named, results: Sequence[torch.Tensor]) -> dict[str, int | None]:
    """Return the number of elements that a call reads of each argument that it does not read whole."""
    rules = _rules(name, target)
    return {a: rule(named, results) for a, rule in rules.items() if results or rule is _nothing}


def looked_at(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the nodes whose data an operator reads, without those used for their shape alone."""
    schema = getattr(node.target, "_schema", None)
    rules = _rules(operator_kinds.base_name(node.target), node.target) if schema is not None else {}
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    shape_only = [arg for name, arg in zip(names, node.args) if rules.get(name) is _nothing]
    return [one for one in node.all_input_nodes if one not in shape_only]


def in_part(name: str, target: Any) -> bool:
    """Return True if an operator of this base name reads an argument in part."""
    return bool(_rules(name, target))


def written(name: str, named: Named) -> int | None:
    """Return the number of elements that an in-place call writes; None if it writes all."""
    if name not in WRITES:
        return None
    return WRITES[name](named, ())


def _rules(name: str, target: Any) -> dict[str, Reads]:
    schema = getattr(target, "_schema", None)
    if schema is None:
        return _table(name, target)
    if name == "bernoulli" and schema.overload_name.startswith("p"):
        return {"self": _nothing}  # one probability for all elements
    outs = [argument.name for argument in schema.arguments if argument.is_out]
    return _table(name, target) | dict.fromkeys(outs, _nothing)


def _table(name: str, target: Any) -> dict[str, Reads]:
    rules = READS.get(name) or READS.get(name.removesuffix("_"))
    if rules is None and name in ("as_strided_copy", "unfold_copy"):
        return {"self": _of_windows}
    if rules is None and torch.Tag.view_copy in getattr(target, "tags", ()):
        return {"self": _of_results}
    return rules or {}


def _nothing(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    return 0


def _of_results(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return as many bytes as the results have, in elements of ``self``; the parts of complex numbers are separate
    results."""
    counts = [product(elements(result.shape), result.dtype.itemsize) for result in results]
    known = [count for count in counts if count is not None]
    return sum(known) // named["self"].dtype.itemsize if len(known) == len(counts) else None


def _of_windows(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of distinct elements in the copied windows."""
    source = named["self"]
    if "dimension" in named:
        if source.dim() == 0:
            return 1
        strides = list(source.stride())
        strides.append(strides[named["dimension"]])
        strides[named["dimension"]] *= named["step"]
    else:
        strides = named["stride"]
    return fx_values.nbytes(results[0].shape, strides, 1)


def _of_result(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    return elements(results[0].shape)


def _of_target(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    return elements(named["target"].shape)


def _rows(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return the elements in a row of the table for each index."""
    return product(elements(named["indices"].shape), elements(named["weight"].shape[1:]))


def _neighbours(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return the number of neighbours of a grid's points. A backward reads them for the grid's gradient, which torch
    always computes."""
    sampled = named.get("grad_output", results[0])
    side = {0: 2, 1: 1, 2: 4}[int(named["interpolation_mode"])]  # bilinear, nearest, bicubic
    return product(elements(sampled.shape), side ** (sampled.dim() - 2))


def _diagonal(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    sizes = [fx_values.hint(n) for n in named["self"].shape]
    return None if None in sizes else min(n for n in sizes if n is not None)


def triangle(upper: bool, matrix: torch.Tensor, diagonal: Any) -> int | None:
    """Return the number of elements of matrices that ``triu`` or ``tril`` keeps."""
    rows, columns, batch = *map(fx_values.hint, matrix.shape[-2:]), elements(matrix.shape[:-2])
    first = fx_values.hint(diagonal)
    if rows is None or columns is None or first is None:
        return None
    below = sum(min(max(row + first + (not upper), 0), columns) for row in range(rows))
    return product(batch, rows * columns - below if upper else below)


def _upper(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    return triangle(True, named["self"], named.get("diagonal", 0))


def _lower(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    return triangle(False, named["self"], named.get("diagonal", 0))


def _outside(kept: Reads) -> Reads:
    def zeroed(named: Named, results: Sequence[torch.Tensor]) -> int | None:
        whole, part = elements(named["self"].shape), kept(named, results)
        return None if whole is None or part is None else whole - part

    return zeroed


def _filled(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    shape = [fx_values.hint(n) for n in named["self"].shape]
    if len(shape) == 2 and named.get("wrap") and None not in shape:
        rows, columns = (int(n or 0) for n in shape)
        return -(-rows * columns // (columns + 1))
    return _diagonal(named, results)


def _searched(sorted_name: str) -> Reads:
    """Return the rule for a binary search of each value in a sorted row."""

    def steps(named: Named, results: Sequence[torch.Tensor]) -> int | None:
        shape = named[sorted_name].shape
        length, rows = fx_values.hint(shape[-1]), elements(shape[:-1])
        count = elements(results[0].shape)
        if length is None or rows is None or count is None or not length:
            return 0 if length == 0 else None
        return min(count // max(rows, 1) * length.bit_length(), length) * rows

    return steps


def _padded(reads: Callable[[int, int, int], int]) -> Reads:
    """Return the rule for padding, as the product over dimensions of ``reads(size, before, after)``."""

    def inside(named: Named, results: Sequence[torch.Tensor]) -> int | None:
        pad = list(named["pad"] if "pad" in named else named["padding"])
        sizes = list(named["self"].shape)
        for at, both in enumerate(zip(pad[::2], pad[1::2]), 1):
            size, before, after = (fx_values.hint(n) for n in (sizes[-at], *both))
            if size is None or before is None or after is None:
                return None
            sizes[-at] = reads(size, before, after) if size + before + after > 0 else 0
        return elements(sizes)

    return inside


def _elements_left(size: int, before: int, after: int) -> int:
    """Return the number of elements that negative padding does not cut off."""
    return max(0, size + min(before, 0) + min(after, 0))


def _replicated(size: int, before: int, after: int) -> int:
    """Return the number of kept elements; if none is kept, the border element is still read."""
    return max(min(size, 1), _elements_left(size, before, after))


def _mirrored(size: int, before: int, after: int) -> int:
    """Return the number of elements that are kept or mirrored, where the padding may cut off either side."""
    kept = range(max(0, -before), min(size, size + after))
    return windows.union([kept, range(1, before + 1), range(size - 1 - after, size - 1)])


def _convolved_weight(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return the elements of the weight if the input's gradient is computed, which alone needs it, else 0."""
    return elements(named["weight"].shape) if named["output_mask"][0] else 0


def _running(argument: str) -> Reads:
    """Return the rule for a running statistic, which a batch norm's backward reads in evaluation mode only."""

    def evaluated(named: Named, results: Sequence[torch.Tensor]) -> int | None:
        trains = named["train"] if "train" in named else named["update"]
        return 0 if trains or named[argument] is None else elements(named[argument].shape)

    return evaluated


def _added(named: Named, results: Sequence[torch.Tensor]) -> int | None:
    """Return the elements of the tensor added to a product, 0 for ``beta=0``, with which torch does not read it."""
    return 0 if named.get("beta", 1) == 0 else elements(named["self"].shape)


def _with(argument: str, rule: Reads, names: str) -> dict[str, dict[str, Reads]]:
    return {name: {argument: rule} for name in names.split()}


READS: dict[str, dict[str, Reads]] = {
    # Shape and dtype alone, in place or not.
    **_with("self", _nothing,
        "full_like zeros_like ones_like rand_like randn_like randint_like new_zeros new_ones new_full fill zero copy "
        "_foreach_copy _foreach_zero "
        "uniform normal exponential random cauchy geometric log_normal bernoulli_ fill_diagonal_ triu_ tril_ "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward "
        "adaptive_max_pool3d_backward avg_pool2d_backward avg_pool3d_backward fractional_max_pool2d_backward "
        "fractional_max_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
        "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
        "replication_pad2d_backward replication_pad3d_backward rrelu_with_noise_backward"),
    **_with("bias", _nothing, "native_layer_norm_backward"),
    **{
        name: {argument: _running(argument) for argument in ("running_mean", "running_var")}
        for name in ("native_batch_norm_backward", "batch_norm_backward")
    },
    # The union of windows; windows of adaptive pools leave no gap, and a pool's backward reads every gradient.
    **{
        f"{kind}_pool{dims}d{suffix}": {"self": functools.partial(windows.of_pool, dims)}
        for kind, suffix in (("avg", ""), ("max", ""), ("max", "_with_indices"))
        for dims in (1, 2, 3)
    },
    **_with("self", windows.of_low_memory_pool, "_low_memory_max_pool_with_offsets"),
    **_with("self", windows.of_fractional_pool, "fractional_max_pool2d fractional_max_pool3d"),
    **_with("self", windows.of_columns, "im2col"),
    **_with("self", windows.of_image, "col2im"),
    **_with("input", windows.of_convolution,
        "convolution _convolution convolution_overrideable conv1d conv2d conv3d"),
    **_with("input", windows.of_transposed_convolution, "conv_transpose1d conv_transpose2d conv_transpose3d"),
    **_with("X", functools.partial(windows.of_library_convolution, False), "_convolution_pointwise"),
    **_with("X", functools.partial(windows.of_library_convolution, True), "_convolution_transpose_pointwise"),
    **_with("MKL_W", _nothing, "_mkl_linear"),  # the packed weight; ``ORI_W`` is the original
    **{
        name: {
            "weight": _convolved_weight,
            "input": windows.of_convolved_input,
            "grad_output": windows.of_convolved_gradient,
        }
        for name in ("convolution_backward", "convolution_backward_overrideable")
    },
    # Gathers: as many elements as results, as targets, a row for each index, the neighbours of each point.
    **_with("self", _of_result,
        "index _unsafe_index _unsafe_masked_index gather index_select take"),
    **_with("self", _padded(_elements_left), "constant_pad_nd"),
    **_with("self", _padded(_replicated), "replication_pad1d replication_pad2d replication_pad3d"),
    **_with("self", _padded(_mirrored), "reflection_pad1d reflection_pad2d reflection_pad3d"),
    **_with("self", _of_results, "narrow_copy"),
    **_with("weight", _of_result, "embedding"),
    **_with("weight", _rows,
        "embedding_bag _embedding_bag _embedding_bag_forward_only _embedding_bag_per_sample_weights_backward"),
    **_with("input", _neighbours, "grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback "
        "grid_sampler_2d_backward grid_sampler_3d_backward"),
    **{name: {"self": _of_target, "weight": _of_target} for name in ("nll_loss_forward", "nll_loss2d_forward")},
    **{name: {"self": _nothing, "weight": _of_target} for name in ("nll_loss_backward", "nll_loss2d_backward")},
    **_with("weight", _of_target, "multi_margin_loss multi_margin_loss_backward"),
    **_with("self", _added, "addmm addmv addbmm baddbmm addr"),
    # A diagonal, a triangle, the steps of a search, the neighbours of an interpolation's points.
    **_with("self", _diagonal, "trace"),
    **_with("self", _upper, "triu"),
    **_with("self", _lower, "tril"),
    "bucketize": {"boundaries": _searched("boundaries")},
    "searchsorted": {name: _searched("sorted_sequence") for name in ("sorted_sequence", "sorter")},
    **{
        name: {argument: functools.partial(interpolation.elements, kind) for argument in ("self", "input")}
        for kind, names in (
            ("nearest", "upsample_nearest1d upsample_nearest2d upsample_nearest3d"),
            ("nearest_exact", "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d"),
            ("linear", "upsample_linear1d upsample_bilinear2d upsample_trilinear3d"),
            ("cubic", "upsample_bicubic2d"),
        )
        for name in names.split()
    },
}  # fmt: skip
"""Arguments that are not read whole, by the operator's base name. A name with a final ``_`` is for the in-place variant
alone, another name for both variants. View copies, which torch tags, read what they copy."""

WRITES: dict[str, Reads] = {"fill_diagonal_": _filled, "triu_": _outside(_upper), "tril_": _outside(_lower)}
"""Operators that write part of ``self``, with the number of elements written."""
