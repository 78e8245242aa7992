"""Eager PyTorch in double precision, even where the program requests less."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

_WIDE = {False: torch.float64, True: torch.complex128}


class NotInDoubleError(RuntimeError):
    """Raised if a program cannot run in double precision, with the reason."""


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Run eager PyTorch in double precision on this thread for the duration.

    Raises NotInDoubleError for an operator that cannot be converted, and if the program sets the size of a storage,
    since that size in bytes of its own dtypes would be too small.
    """
    mine, resize = threading.get_ident(), torch.UntypedStorage.resize_

    def resized(storage: torch.UntypedStorage, size: int) -> Any:
        if threading.get_ident() == mine:
            raise NotInDoubleError("the program sets the size of a storage in bytes")
        return resize(storage, size)

    own = vars(torch.UntypedStorage).get("resize_")
    torch.UntypedStorage.resize_ = resized
    try:
        with DoublePrecision():
            yield
    finally:
        if own is None:
            del torch.UntypedStorage.resize_
        else:
            torch.UntypedStorage.resize_ = own


class DoublePrecision(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """A mode in which operators take and return float64 instead of narrower floats, and complex128 instead of narrower
    complex dtypes, so that a cast to bfloat16 keeps its values.

    Raises NotInDoubleError for the program's own operators, which may cast inside, and for views as another dtype,
    which depend on the bits.
    """

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return True, so that torch's own functions that compile (``flex_attention``) do so under this mode too."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.ops.higher_order.flex_attention, torch.ops.higher_order.flex_attention_backward):
            return func(*args, **kwargs)  # in the precision of its inputs
        if (
            not isinstance(func, torch._ops.OpOverload)
            or func.namespace not in ("aten", "prims", "prim")
            or func is torch.ops.aten.view.dtype
        ):
            raise NotInDoubleError(f"{func} may depend on the precision of its arguments")
        writes = func._schema.is_mutable
        args, kwargs = _pytree.tree_map(lambda v: _dtype(v) if writes else _wide(v), (args, kwargs))
        if func is torch.ops.prims.convert_element_type.default and args[0].dtype == args[1]:
            return args[0]  # only in graphs, which do not write to it in place
        result = func(*args, **kwargs)
        return result if writes else _pytree.tree_map(_wide, result)


def _dtype(value: Any) -> Any:
    if isinstance(value, torch.dtype) and (value.is_floating_point or value.is_complex):
        return _WIDE[value.is_complex]
    return value


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        kind = _WIDE[value.is_complex()]
        return value if value.dtype == kind else value.to(kind)
    return _dtype(value)
