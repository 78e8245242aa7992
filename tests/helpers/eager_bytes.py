"""Operators that plain eager PyTorch dispatches, and the bytes that each reads and writes, on real tensors.

It is an oracle and shares no code with the package. ``operand_probe.py`` checks which arguments an operator reads.
"""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

ALLOCATIONS = set(
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ resize_as_ set_ "
    "_efficientzerotensor".split()
)
METADATA = set(
    "sym_size sym_stride sym_numel sym_storage_offset size stride numel dim is_contiguous is_same_size item "
    "_local_scalar_dense _assert_async _assert_scalar _assert_tensor_metadata sym_constrain_range "
    "sym_constrain_range_for_size is_pinned result_type lift lift_fresh detach_ is_nonzero device is_complex "
    "_has_same_storage_numel _version prim_layout _unsafe_view _reshape_alias unsafe_split unsafe_chunk "
    "unsafe_split_with_sizes _conj _neg_view".split()
)

WRITES_ONLY = set(
    "full_like zeros_like ones_like rand_like randn_like randint_like new_zeros new_ones new_full fill fill_ zero_ "
    "copy_ _foreach_copy_ _foreach_zero_ uniform_ normal_ exponential_ random_ cauchy_ geometric_ log_normal_ "
    "bernoulli_".split()
)
"""Operators that read the shape of ``self`` but none of its values."""

SHAPE_ONLY: dict[str, str] = {
    **dict.fromkeys(
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward "
        "adaptive_max_pool3d_backward avg_pool2d_backward avg_pool3d_backward fractional_max_pool2d_backward "
        "fractional_max_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
        "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
        "replication_pad2d_backward replication_pad3d_backward nll_loss_backward nll_loss2d_backward "
        "rrelu_with_noise_backward".split(),
        "self",
    ),
    "native_layer_norm_backward": "bias",
}
"""Operators that read the shape of one argument but none of its values: setting it to NaN changes nothing."""

GATHERS = {
    **dict.fromkeys("index _unsafe_index gather index_select take".split(), "self"),
    **dict.fromkeys("narrow_copy diagonal_copy select_copy slice_copy as_strided_copy".split(), "self"),
    "embedding": "weight",
}
"""Operators that read as many elements of one argument as they return."""

SCATTERS = set(
    "scatter scatter_add scatter_reduce index_add index_copy index_reduce index_put _index_put_impl index_fill "
    "put _unsafe_masked_index_put_accumulate".split()
)
ADDS = set("scatter_add scatter_reduce index_add index_reduce _unsafe_masked_index_put_accumulate".split())


def base_name(func: Any) -> str:
    """Return ``add`` for ``aten.add.Tensor``."""
    return str(func.overloadpacket._qualified_op_name).split("::")[1]


def is_work(func: Any) -> bool:
    """Return True if an operator is not a view, an allocation or a metadata query."""
    name = base_name(func)
    returns = func._schema.returns
    view = torch.Tag.inplace_view in func.tags or (
        bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    )
    question = func.namespace in ("prim", "prims") and name in ("device", "layout")
    return not (view or question or name in ALLOCATIONS or name in METADATA)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a tree of values."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def arguments(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    return {**{a.name: value for a, value in zip(func._schema.arguments, args)}, **(kwargs or {})}


def _offsets(tensor: torch.Tensor) -> torch.Tensor:
    offsets = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(tensor.shape, tensor.stride()):
        offsets = offsets.unsqueeze(-1) + torch.arange(size) * stride
    return offsets.reshape(-1) + tensor.storage_offset()


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except Exception:  # a tensor without a storage counts as its own
        return id(tensor)


def distinct_bytes(group: Iterable[torch.Tensor]) -> int | None:
    """Return the bytes of the distinct elements of several tensors; None for a layout without strides."""
    by_storage: dict[int, list[torch.Tensor]] = collections.defaultdict(list)
    for tensor in group:
        by_storage[_storage(tensor)].append(tensor)
    total = 0
    for parts in by_storage.values():
        if any(t.layout != torch.strided for t in parts):
            return None
        offsets = [_offsets(t) * t.element_size() for t in parts if t.numel()]
        total += int(torch.cat(offsets).unique().numel()) * parts[0].element_size() if offsets else 0
    return total


def _whole(tensor: torch.Tensor) -> int:
    nbytes = distinct_bytes([tensor])
    assert nbytes is not None
    return nbytes


def _triangle(name: str, matrix: torch.Tensor, diagonal: int) -> int:
    """Return the number of elements of the last two dimensions that ``triu`` or ``tril`` keeps."""
    ones = torch.ones(matrix.shape, dtype=torch.bool)
    return int((torch.triu if name == "triu" else torch.tril)(ones, diagonal).sum())


def _searched(named: dict[str, Any]) -> tuple[str, int]:
    """Return the name of the sorted argument, and how many of its elements a binary search for each value reads."""
    sorted_name = "boundaries" if "boundaries" in named else "sorted_sequence"
    sorted_values, values = named[sorted_name], named["self"]
    length = sorted_values.shape[-1]
    count = values.numel() if isinstance(values, torch.Tensor) else 1
    rows = sorted_values.numel() // length if length else 0
    per_row = count // rows if rows > 1 else count
    return sorted_name, min(per_row * length.bit_length(), length) * rows


def _interpolated(func: Any, args: Any, kwargs: Any) -> int:
    """Return the number of elements of an image that an interpolation reads, by putting NaN into each row of each
    dimension."""
    named = arguments(func, args, kwargs)
    image = named["input"] if "input" in named else named["self"]
    others = {name: value for name, value in named.items() if value is not image}
    dtype = image.dtype if image.dtype.is_floating_point else torch.float32
    count = math.prod(image.shape[:2])
    for axis in range(2, image.dim()):
        rows = 0
        for row in range(image.shape[axis]):
            probe = torch.zeros(1, 1, *image.shape[2:], dtype=dtype)
            probe.select(axis, row).fill_(float("nan"))
            rows += bool(func(probe, **others).isnan().any())
        count *= rows
    return count


def _unpadded(func: Any, named: dict[str, Any]) -> int:
    """Return the number of elements of a tensor that the padded one contains."""
    numbers = torch.arange(1.0, named["self"].numel() + 1, dtype=torch.float64).reshape(named["self"].shape)
    result = func(numbers, named["pad"] if "pad" in named else named["padding"])
    return int(result.unique().count_nonzero())


def _sampled(named: dict[str, Any], result: torch.Tensor) -> int:
    """Return the number of elements that a grid sampler reads: the neighbours of each point."""
    neighbours = {0: 2, 1: 1, 2: 4}[int(named["interpolation_mode"])]
    return int(result.numel()) * neighbours ** (result.dim() - 2)


def _each(value: Any, dims: int) -> list[int]:
    listed = [value] if isinstance(value, int) else list(value)
    return listed * dims if len(listed) == 1 else listed


def _in_windows(name: str, named: dict[str, Any], results: list[torch.Tensor]) -> tuple[Any, int] | None:
    """Return the argument that an operator with windows reads partially, and the number of its elements read: each
    position of each window is listed, in each dimension."""
    pool = re.fullmatch(r"(?:avg|max)_pool(\d)d(?:_with_indices)?", name)
    if pool:
        read = named["self"]
        dims = int(pool[1])
        image, grid, kernel = read.shape[-dims:], results[0].shape[-dims:], _each(named["kernel_size"], dims)
    elif name in ("im2col", "col2im"):
        read, dims, kernel = named["self"], 2, _each(named["kernel_size"], 2)
        image = (read if name == "im2col" else results[0]).shape[-2:]
        grid = None
    elif name == "convolution":
        read, kernel = named["input"], list(named["weight"].shape[2:])
        dims = len(kernel)
        image, grid = read.shape[2:], results[0].shape[2:]
        if named["transposed"]:
            image, grid = grid, image
    elif name == "convolution_backward":
        transposed, kernel = named["transposed"], list(named["weight"].shape[2:])
        dims = len(kernel)
        read, other = (named[key] for key in ("grad_output", "input")[:: 1 if transposed else -1])
        image, grid = read.shape[2:], other.shape[2:]
        if named["output_mask"][2] if transposed else not named["output_mask"][1]:
            return None
    else:
        return None
    stride = _each(named.get("stride") or kernel, dims)
    padding, dilation = _each(named.get("padding", 0), dims), _each(named.get("dilation", 1), dims)
    count = math.prod(read.shape[:-dims])
    if name == "col2im":
        count = (
            count // math.prod(kernel)
            if read.dim() == 2
            else read.shape[0] * read.shape[1] // math.prod(kernel)
        )
    for axis, size in enumerate(image):
        span = dilation[axis] * (kernel[axis] - 1) + 1
        windows = grid[axis] if grid is not None else (size + 2 * padding[axis] - span) // stride[axis] + 1
        places = [
            (window, window * stride[axis] + tap * dilation[axis] - padding[axis])
            for window in range(windows)
            for tap in range(kernel[axis])
        ]
        inside = [(window, place) for window, place in places if 0 <= place < size]
        if name == "col2im":
            count *= len(inside)
        else:
            count *= len({pair[0 if name == "convolution" and named["transposed"] else 1] for pair in inside})
    return read, count


def _placed(bare: str, named: dict[str, Any]) -> int:
    """Return the number of elements that a scatter places. A mask may select any of them."""
    base = named["self"]
    if bare in ("scatter", "scatter_add", "scatter_reduce", "put"):
        return int(named["index"].numel())
    if bare == "index_fill":
        rows = max(base.shape[named["dim"]], 1) if base.dim() else 1
        return int(named["index"].numel() * (base.numel() // rows))
    if bare in ("index_add", "index_copy", "index_reduce"):
        return int(named["source"].numel())
    if bare == "_unsafe_masked_index_put_accumulate":
        return int(named["values"].numel())
    indices = [i for i in named["indices"] if i is not None]
    if any(i.dtype in (torch.bool, torch.uint8) for i in indices):
        return int(base.numel())
    kept = [n for d, n in enumerate(base.shape) if d >= len(named["indices"]) or named["indices"][d] is None]
    picked = torch.broadcast_shapes(*[i.shape for i in indices]) if indices else ()
    return math.prod(picked) * math.prod(kept)


def _is_no_copy(tensor: torch.Tensor, source: torch.Tensor) -> bool:
    """Return True for a copy of a tensor onto itself, as in ``x[0] += 1``: torch moves nothing, as its time shows
    (0.2 ms for 200 MB)."""
    same_memory = tensor.is_set_to(source) if tensor.dtype == source.dtype else False
    return bool(same_memory) and (tensor.is_conj(), tensor.is_neg()) == (source.is_conj(), source.is_neg())


def nbytes_of(func: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """Return the bytes of the elements that a call reads and writes, each once; None for a sparse layout."""
    name = base_name(func)
    bare = name.rstrip("_")
    named = arguments(func, args, kwargs)
    if name == "copy_" and _is_no_copy(named["self"], named["src"]):
        return 0
    given, results = tensors((args, kwargs)), tensors(out)
    storages = {_storage(t) for t in given}
    changed = [
        t
        for a in func._schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
        for t in tensors(named.get(a.name))
    ]
    writes = distinct_bytes([t for t in results if _storage(t) not in storages] + changed)
    parts: list[tuple[Any, int]] = []  # arguments that are read in part, with the number of elements
    extra = 0
    if name in WRITES_ONLY and named.get("src") is not named["self"]:
        parts += [(tensor, 0) for tensor in tensors(named["self"])]
    if name == "bernoulli" and "p" in named:
        parts.append((named["self"], 0))
    inputs = tensors([named.get(a.name) for a in func._schema.arguments if not a.is_out])
    for a in func._schema.arguments:  # the earlier contents are not used, unless it is an operand as well
        if a.is_out:
            parts += [(t, 0) for t in tensors(named.get(a.name)) if not any(t is other for other in inputs)]
    if name in SHAPE_ONLY:
        parts.append((named.get(SHAPE_ONLY[name]), 0))
    if bare in ("native_batch_norm_backward", "batch_norm_backward") and named.get(
        "train", named.get("update")
    ):
        parts += [(named["running_mean"], 0), (named["running_var"], 0)]
    if bare in GATHERS and results:
        parts.append((named[GATHERS[bare]], results[0].numel()))
    elif bare.startswith(("upsample_", "_upsample_")) and "backward" not in bare:
        parts.append((named.get("input", named.get("self")), _interpolated(func, args, kwargs)))
    elif re.fullmatch("constant_pad_nd|(reflection|replication)_pad[123]d", bare):
        parts.append((named["self"], _unpadded(func, named)))
    elif bare in ("bucketize", "searchsorted"):
        sorted_name, count = _searched(named)
        parts += [(named[sorted_name], count), (named.get("sorter"), count)]
    elif bare in ("grid_sampler_2d_backward", "grid_sampler_3d_backward"):
        parts.append((named["input"], _sampled(named, named["grad_output"])))
    elif bare.startswith(("grid_sampler_2d", "grid_sampler_3d", "_grid_sampler_2d_cpu")):
        parts.append((named["input"], _sampled(named, results[0])))
    elif (windows := _in_windows(name, named, results)) is not None:
        parts.append(windows)
    elif bare.startswith("fractional_max_pool") and "backward" not in bare:
        image, grid = named["self"], list(named["output_size"])
        sizes = zip(image.shape[-len(grid) :], _each(named["kernel_size"], len(grid)), grid)
        parts.append(
            (image, math.prod(image.shape[: -len(grid)]) * math.prod(min(n, k * m) for n, k, m in sizes))
        )
    elif bare == "trace":
        parts.append((named["self"], min(named["self"].shape)))
    elif bare in ("addmm", "addmv", "addbmm", "baddbmm", "addr"):
        if named.get("beta", 1) == 0:  # its documentation: NaN and infinities in it are not propagated
            parts.append((named["self"], 0))
    elif bare in ("triu", "tril"):
        kept = _triangle(bare, named["self"], named.get("diagonal", 0))
        parts.append((named["self"], 0 if name.endswith("_") else kept))
        if name.endswith("_"):
            writes = (named["self"].numel() - kept) * named["self"].element_size()
    elif bare.startswith("_embedding_bag") and bare != "_embedding_bag_backward":
        parts.append((named["weight"], named["indices"].numel() * math.prod(named["weight"].shape[1:])))
    elif bare.startswith("nll_loss"):
        if bare.endswith("forward"):
            parts.append((named["self"], named["target"].numel()))
        parts.append((named.get("weight"), named["target"].numel()))
    elif bare.startswith("multi_margin_loss"):
        parts.append((named.get("weight"), named["target"].numel()))
    elif bare in SCATTERS:
        base = named["self"]
        placed = min(_placed(bare, named) * base.element_size(), _whole(base))
        adds = bare in ADDS or named.get("accumulate") is True or named.get("reduce") is not None
        extra = placed if adds else 0
        if isinstance(named.get("src"), torch.Tensor):
            parts.append((named["src"], _placed(bare, named)))
        if name.endswith("_") or bare == "_index_put_impl":
            parts.append((base, 0))
            writes = placed
        else:
            writes = _whole(results[0]) + placed
    elif bare == "embedding_dense_backward":
        gradient = named["grad_output"]  # it may be expanded: each of its elements is placed
        extra = min(gradient.numel() * gradient.element_size(), _whole(results[0]))
        writes = _whole(results[0]) + extra
    limited = [tensor for tensor, _ in parts]
    reads = distinct_bytes([t for t in given if not any(t is tensor for tensor in limited)])
    for tensor, count in parts:
        if isinstance(tensor, torch.Tensor):
            extra += min(_whole(tensor), count * tensor.element_size())
    return None if reads is None or writes is None else reads + extra + writes


class Counted(TorchDispatchMode):
    """Counts each dispatched operator: ``counts`` and ``nbytes`` by name, and ``calls`` with their arguments
    if ``keep``."""

    def __init__(self, keep: bool = False) -> None:
        super().__init__()
        self.counts: collections.Counter[str] = collections.Counter()
        self.nbytes: dict[str, int | None] = {}
        self.calls: list[tuple[Any, Any]] = []
        self.keep = keep

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = _copy((args, kwargs or {})) if self.keep and is_work(func) else None
        out = func(*args, **(kwargs or {}))
        results = tensors(out)
        shapes_only = bool(results) and all(one.is_meta for one in results)  # for example the tangent is zero
        if is_work(func) and not shapes_only:
            name = str(func)
            self.counts[name] += 1
            moved = nbytes_of(func, args, kwargs, out)
            known = self.nbytes.get(name, 0)
            self.nbytes[name] = None if moved is None or known is None else known + moved
            if self.keep:
                self.calls.append((func, before))
        return out


def _copy(tree: Any) -> Any:
    def copied(value: Any) -> Any:
        plain = isinstance(value, torch.Tensor) and value.layout == torch.strided
        return value.detach().clone(memory_format=torch.preserve_format) if plain else value

    return pytree.tree_map(copied, tree)


def eager(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    parameters: Iterable[torch.Tensor] = (),
    keep: bool = False,
) -> Counted:
    """Run a function and its backward in eager PyTorch, and return the dispatched operators."""
    leaves = [t for t in (*tensors((args, kwargs)), *parameters) if t.requires_grad]
    mode = Counted(keep)
    with mode:
        out = fn(*args, **kwargs)
    roots = list({id(t): t for t in tensors(out) if t.requires_grad and t.grad_fn is not None}.values())
    if roots and leaves:
        gradients = [torch.ones_like(root) for root in roots]
        with mode:
            torch.autograd.grad(roots, leaves, gradients, allow_unused=True)
    return mode
