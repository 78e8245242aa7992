"""Pickling of tensors for the child process: shared memory stays shared, large tensors cross as shapes."""

from __future__ import annotations

import ctypes
import pickle
import sys
from typing import Any

import torch

VALUES_BUDGET = 16 << 20
"""Total bytes of floating-point storages sent with values in one request; the rest cross as shapes."""

ALWAYS_WHOLE_BYTES = 1 << 14
"""Size in bytes up to which a storage is sent with values while any budget is left."""


class Tensors:
    """Tensors of one request.

    Attributes:
        shapes_only: number of storages sent without values.
    """

    def __init__(self) -> None:
        self.shapes_only = 0
        self._budget = VALUES_BUDGET
        self._storages: dict[int, tuple[Storage, Any]] = {}

    def tensor(self, tensor: torch.Tensor) -> Any:
        """Return the pickle reduction of a tensor. Raises ``PicklingError`` if it is not dense or has hooks."""
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            raise pickle.PicklingError(f"a tensor of layout {tensor.layout} cannot cross")
        if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
            raise pickle.PicklingError("a tensor with hooks of its own cannot cross")
        plain = tensor.detach()
        facts = (
            tuple(plain.shape),
            plain.stride(),
            plain.storage_offset(),
            plain.dtype,
            tensor.requires_grad,
            type(tensor) is torch.nn.Parameter,
            tensor.grad if tensor.is_leaf else None,  # for non-leaves torch keeps none and warns
            {name: value for name, value in vars(tensor).items() if name.startswith(_MARKS)},
            _is_result(tensor),
        )
        return _tensor, (self._shared(plain), *facts)

    def fake(self, tensor: Any) -> Any:
        """Return the pickle reduction of a fake tensor as a meta tensor, which has no data either."""
        with tensor.fake_mode, torch.no_grad():
            sizes = [*map(int, tensor.shape)], [*map(int, tensor.stride())], int(tensor.storage_offset())
            nbytes = int(tensor.untyped_storage().nbytes())
            key = tensor.untyped_storage()._cdata
        known = self._storages.get(key)
        if known is None:
            known = self._storages[key] = (Storage(nbytes, tensor.dtype, None, meta=True), tensor)
        facts = (tensor.dtype, tensor.requires_grad, isinstance(tensor, torch.nn.Parameter))
        return _tensor, (known[0], *sizes, *facts)

    def _shared(self, tensor: torch.Tensor) -> Storage:
        """Return the storage of a tensor, the same one for all tensors that share memory."""
        storage = tensor.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is not None:
            return known[0]
        nbytes = storage.nbytes()
        if tensor.is_meta:
            entry = Storage(nbytes, tensor.dtype, None, meta=True)
            self._storages[storage._cdata] = (entry, storage)
            return entry
        exact = not (tensor.is_floating_point() or tensor.is_complex())
        data = None
        if exact or nbytes <= min(ALWAYS_WHOLE_BYTES, max(self._budget, 0)) or nbytes <= self._budget:
            self._budget -= 0 if exact else nbytes
            data = bytes(nbytes) if tensor._is_zerotensor() else _raw(storage)  # all zeros, without memory
        else:
            self.shapes_only += 1
        entry = Storage(nbytes, tensor.dtype, data)
        self._storages[storage._cdata] = (entry, storage)
        return entry


class Storage:
    """A tensor storage to send: its bytes; or only size and dtype if ``data`` is None."""

    def __init__(self, nbytes: int, dtype: torch.dtype, data: bytes | None, meta: bool = False) -> None:
        self._given = nbytes, dtype, data, meta

    def reduced(self) -> Any:
        """Return the pickle reduction."""
        return _storage, self._given


def is_fake(tensor: Any) -> bool:
    """Return True for a ``FakeTensor``, as torch uses for tracing."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and isinstance(tensor, fake.FakeTensor)


def _is_result(tensor: torch.Tensor) -> bool:
    """Return True for a non-leaf tensor that is not a view of a leaf."""
    base = tensor._base if not tensor.is_leaf and tensor._is_view() else None
    return not tensor.is_leaf and (base is None or not base.is_leaf)


def _raw(storage: Any) -> bytes:
    here = storage.cpu()
    return ctypes.string_at(here.data_ptr(), here.nbytes())


class Result(torch.autograd.Function):  # type: ignore[misc]  # torch gives it no type
    """Autograd function that turns a tensor into a non-leaf in place, with a leaf of its shape to receive its
    gradient."""

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return *gradients, None


def as_result(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, no longer a leaf: torch refuses to write in place to a leaf that requires grad."""
    leaf = torch.zeros((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)
    with torch.enable_grad():
        result: torch.Tensor = Result.apply(leaf.requires_grad_(), tensor)
    return result


# In the child ----------------------------------------------------------------------------------------------


def _storage(nbytes: int, dtype: torch.dtype, data: bytes | None, meta: bool) -> Any:
    if meta:
        return torch.UntypedStorage(nbytes, device="meta")
    if data is not None:
        return (
            torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage()
            if data
            else torch.empty(0).untyped_storage()
        )
    generator = torch.Generator().manual_seed(nbytes)
    real = torch.float32 if dtype.is_complex or dtype.itemsize < 2 else dtype
    count = nbytes // real.itemsize
    return torch.rand(count, dtype=real, generator=generator).untyped_storage()


def _tensor(
    storage: Any,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    dtype: torch.dtype,
    requires_grad: bool,
    parameter: bool,
    grad: torch.Tensor | None = None,
    marks: dict[str, Any] | None = None,
    result: bool = False,
) -> torch.Tensor:
    tensor = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, shape, stride)
    if parameter:
        tensor = torch.nn.Parameter(tensor, requires_grad)
    else:
        tensor = as_result(tensor) if result else tensor.requires_grad_(requires_grad)
    if grad is not None:
        tensor.grad = grad
    for name, value in (marks or {}).items():
        setattr(tensor, name, value)
    return tensor


_MARKS = ("_dynamo_", "_has_dynamo_dim_marking", "_specialize_on")
"""Prefixes of torch's attributes on a tensor: dynamic (``mark_dynamic``), static or unbacked sizes, and a static
address, which in-place writes under CUDA graphs need."""
