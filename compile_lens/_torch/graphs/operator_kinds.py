"""Kinds of operators, which of them count as work in the ledger, and a mode that fills uninitialized memory."""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..ground import values
from ..operators import native_functions

ALLOCATIONS = frozenset(
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ resize_as_ set_ "
    "_efficientzerotensor".split()
)
METADATA = frozenset(
    "sym_size sym_stride sym_numel sym_storage_offset size stride numel dim is_contiguous is_same_size "
    "sym_is_contiguous is_non_overlapping_and_dense is_strides_like_format prim_layout item "
    "_local_scalar_dense _assert_async _assert_scalar _assert_tensor_metadata sym_constrain_range "
    "sym_constrain_range_for_size _version is_pinned result_type lift lift_fresh detach_ "
    "requires_grad_ retain_grad is_nonzero device is_complex _has_same_storage_numel".split()
)
VIEWS = frozenset(
    "_unsafe_view reshape _reshape_alias _reshape_copy contiguous flatten ravel unflatten movedim moveaxis "
    "swapaxes swapdims view_as reshape_as expand_as detach split chunk tensor_split split_with_sizes "
    "unsafe_split unsafe_chunk unsafe_split_with_sizes "
    "broadcast_to getitem T mT H mH narrow unbind view permute transpose t squeeze unsqueeze select slice "
    "as_strided diagonal expand alias view_as_real view_as_complex inductor_force_stride_order "
    "_reinterpret_tensor squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_".split()
)
MATMULS = frozenset(
    "mm bmm addmm baddbmm matmul addmv mv dot vdot linear einsum _scaled_mm _int_mm convolution "
    "convolution_backward linear_backward conv1d conv2d conv3d _convolution mkldnn_rnn_layer mul_mm addbmm bilinear "
    "scaled_dot_product_attention".split()
)
REDUCTIONS = frozenset(
    "sum mean amax amin max min argmax argmin any all prod norm linalg_vector_norm var var_mean std std_mean "
    "logsumexp nansum _softmax _log_softmax softmax log_softmax native_layer_norm layer_norm native_batch_norm "
    "_native_batch_norm_legit_functional _native_batch_norm_legit native_group_norm batch_norm group_norm "
    "count_nonzero aminmax median mse_loss l1_loss nll_loss nll_loss_forward cross_entropy cross_entropy_loss "
    "_softmax_backward_data _log_softmax_backward_data native_layer_norm_backward rms_norm "
    "_fused_rms_norm _fused_rms_norm_backward trace _batch_norm_with_update native_batch_norm_backward "
    "prepare_softmax_online".split()
)
SCANS = frozenset("cumsum cumprod cummax cummin logcumsumexp _associative_scan associative_scan".split())
RANDOM = frozenset(
    "rand randn rand_like randn_like randint randint_like bernoulli bernoulli_ uniform_ normal_ exponential_ "
    "dropout native_dropout randperm multinomial philox_rand inductor_random inductor_randint inductor_seeds "
    "inductor_seed inductor_lookup_seed normal uniform".split()
)
CONTROL = frozenset(
    "cond while_loop map_impl map scan checkpoint tag_activation_checkpoint wrap invoke_subgraph flex_attention "
    "flex_attention_backward wrap_with_set_grad_enabled wrap_with_autocast _enter_autocast _exit_autocast "
    "_set_grad_enabled run_and_save_rng_state run_with_rng_state autograd_function_apply "
    "triton_kernel_wrapper_mutation triton_kernel_wrapper_functional auto_functionalized "
    "auto_functionalized_v2".split()
)
NO_WORK = frozenset(("view", "metadata", "allocation", "symbol", "input", "output", "constant", "nop"))
"""Kinds that are not work: views, metadata and allocation (DESIGN's *less views, metadata, allocation*)."""


_OPERATORS = torch._ops.OpOverload, torch._ops.OpOverloadPacket


def _full_name(operator: Any) -> str:
    packet = getattr(operator, "overloadpacket", operator)
    return str(packet._qualified_op_name)


def base_name(target: Any) -> str:
    """Return the bare name of an operator: ``sin`` for ``aten.sin.default``, ``gelu`` for ``torch.nn.functional.gelu``.

    For an operator that is not torch's, it is the whole name, ``lib::sin``.
    """
    if isinstance(target, _OPERATORS):
        full = _full_name(target)
        namespace, _, bare = full.partition("::")
        return bare if namespace in native_functions.BARE_NAMESPACES else full
    if isinstance(target, str):
        return target.rpartition(".")[2]
    return str(getattr(target, "__name__", target))


@functools.lru_cache(maxsize=4096)
def kind_of(target: Any) -> str:
    """Return the kind of a called function, operator or method name (see ``graph.Node.kind``)."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return "control"
    name = base_name(target)
    if target is operator.getitem:
        return "view"
    if isinstance(target, _OPERATORS) and "::" in name:
        return "custom"
    if isinstance(target, torch._ops.OpOverload):
        if name not in RANDOM | METADATA | ALLOCATIONS and _is_view(target):
            return "view"
    for names, kind in _TABLES:
        if name in names:
            return kind
    if name.startswith(("_fft", "fft_")):
        return "extern"
    if name.startswith(("_scaled_dot_product", "_flash", "_efficient")):
        return "matmul"
    if name.startswith("sym_") or getattr(target, "__module__", "") == "torch.fx.experimental.sym_node":
        return "symbol"
    stem = name.rstrip("_")
    if stem.startswith("__") and stem.endswith("__"):
        stem = stem.strip("_")
    if _is_pointwise(target, stem):
        return "mutation" if name.endswith("_") and not name.startswith("_") else "pointwise"
    return "mutation" if name in ("copy_", "fill_", "zero_", "index_put_", "scatter_") else "other"


_TABLES = (
    (ALLOCATIONS, "allocation"),
    (METADATA, "symbol"),
    (VIEWS, "view"),
    (MATMULS, "matmul"),
    (REDUCTIONS, "reduction"),
    (SCANS, "scan"),
    (RANDOM, "random"),
    (CONTROL, "control"),
)


def _is_view(op: torch._ops.OpOverload) -> bool:
    if torch.Tag.inplace_view in op.tags:  # ``squeeze_`` changes the shape, not the data
        return True
    returns = op._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _is_pointwise(target: Any, name: str) -> bool:
    if isinstance(target, torch._ops.OpOverload):
        if torch.Tag.pointwise in target.tags:
            return True
        if target.namespace == "prims":
            return name not in ("iota", "fft_r2c", "fft_c2c", "fft_c2r", "svd")
        return name in (
            "full",
            "full_like",
            "zeros",
            "ones",
            "arange",
            "iota",
            "clone",
            "_to_copy",
            "copy",
            "fill",
        )
    packet = getattr(torch.ops.aten, name, None)
    if packet is None or not hasattr(packet, "overloads"):
        return name in (
            "pow",
            "truediv",
            "floordiv",
            "pos",
            "and",
            "or",
            "xor",
            "matmul",
            "iadd",
            "imul",
            "clone",
            "float",
        )
    return any(torch.Tag.pointwise in getattr(packet, o).tags for o in packet.overloads())


OWN = frozenset(
    "triton_kernel_wrapper_mutation triton_kernel_wrapper_functional auto_functionalized auto_functionalized_v2".split()
)
"""Higher-order operators that run an operator or a Triton kernel of the program."""


def is_own(target: Any) -> bool:
    """Return True for an operator of the program or a library, whose accesses are unknown.

    The same applies to operators on quantized tensors, whose fake tensors are float32.
    """
    return (
        kind_of(target) == "custom"
        or base_name(target).startswith(QUANTIZED)
        or (isinstance(target, torch._ops.HigherOrderOperator) and base_name(target) in OWN)
    )


QUANTIZED = ("quantize_per_", "dequantize", "int_repr")
"""Prefixes of operators that create or read quantized tensors."""


def is_opened(func: Any) -> bool:
    """Return True for a ``torch.library.triton_op``, of whose operators and kernels AOTAutograd makes the graph: they
    count, not it."""
    from torch._library.simple_registry import find_torch_dispatch_rule
    from torch._subclasses.functional_tensor import FunctionalTensorMode

    return find_torch_dispatch_rule(func, FunctionalTensorMode) is not None


def is_work(kind: str) -> bool:
    """Return True if a kind counts as work in the ledger."""
    return kind not in NO_WORK


UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that return uninitialized memory."""


class FilledMemory(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """A mode in which uninitialized memory is filled with ``number``; results that change with the number depend on
    it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if base_name(func) in UNINITIALIZED:
            for tensor in values.tensors(out):
                with torch.no_grad():
                    tensor.fill_(self.number)
        return out
