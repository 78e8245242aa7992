"""Snapshots of tensor values, read defensively: the memory may be freed, and the class may lack any operator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .._torch.ground.program_hooks import without_torch_function
from .._torch.ground.storage import settled

OWN_CLASSES = (torch.Tensor, torch.nn.Parameter)

PIECE_ELEMENTS = 2**15
"""Elements compared at a time: few enough to fit a cache in double precision and to stay on one thread."""


@dataclass(frozen=True)
class Snapshot:
    """A tensor's properties and values at one moment.

    Attributes:
        kind: name of its class.
        shape, dtype, device, layout, stride, requires_grad: as torch reports them; ``()`` for a layout without strides.
        parts: the plain tensors with its values, each with its attribute path (``""`` for the tensor itself).
        unreadable: why the values could not be read; ``""`` if they could.
        empty: True if there are no values: the memory is freed, or never existed.
        nbytes: size of its storage in bytes; None if it has no storage of its own.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    stride: tuple[int, ...]
    requires_grad: bool
    parts: tuple[tuple[str, torch.Tensor], ...]
    unreadable: str = ""
    empty: bool = False
    nbytes: int | None = None

    @classmethod
    def of(cls, tensor: torch.Tensor, values: Snapshot | None = None, keep: bool = False) -> Snapshot:
        """Return the snapshot of a tensor of any class.

        ``values`` is a snapshot with perhaps the same numbers, whose memory is then shared. With ``keep`` the tensor's
        memory is used without a copy, for a tensor that is no longer written to.
        """
        if values is not None and not (values.unreadable or unreadable(tensor)):
            shared = cls._of_parts(tensor, values.parts, "")
            if shared.is_of(tensor):
                return shared
        return cls._of_parts(tensor, *_copies(tensor, keep))

    @classmethod
    def _of_parts(
        cls, tensor: torch.Tensor, parts: tuple[tuple[str, torch.Tensor], ...], reason: str
    ) -> Snapshot:
        return cls(
            type(settled(tensor)).__name__,
            *_facts(tensor),
            requires_grad=tensor.requires_grad,
            parts=parts,
            unreadable=reason,
            empty=bool(unreadable(tensor)),
            nbytes=storage_bytes(tensor),
        )

    def is_of(self, tensor: torch.Tensor) -> bool | None:
        """Return True if the tensor has these properties and equal values (NaN equals NaN); None if the values cannot
        be compared."""
        if _facts(tensor) != (self.shape, self.dtype, self.device, self.layout, self.stride):
            return False
        if storage_bytes(tensor) != self.nbytes or bool(unreadable(tensor)) != self.empty:
            return False
        if self.unreadable:
            return True if self.empty else None
        try:
            parts = plain_parts(tensor)
            return [name for name, _ in parts] == [name for name, _ in self.parts] and all(
                equal(now, first, widened=self.dtype != first.dtype)
                for (_, now), (_, first) in zip(parts, self.parts)
            )
        except Exception:  # each unsupported feature raises its own exception type
            return None


def _copies(tensor: torch.Tensor, keep: bool = False) -> tuple[tuple[tuple[str, torch.Tensor], ...], str]:
    reason = unreadable(tensor)
    if reason:
        return (), reason
    try:
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            parts = [(name, part.detach()) for name, part in plain_parts(tensor)]
            return tuple((name, part if keep else part.clone()) for name, part in parts), ""
    except Exception as error:  # each unsupported feature raises its own exception type
        return (), f"its values could not be read ({_one_line(error)})"


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def _facts(
    tensor: torch.Tensor,
) -> tuple[tuple[int, ...], torch.dtype, torch.device, torch.layout, tuple[int, ...]]:
    try:
        # The size of a ragged dimension is a symbol that differs in each copy.
        shape = tuple(size if type(size) is int else -1 for size in tensor.shape)
    except Exception:  # a nested tensor with torch's older layout
        shape = ()
    return shape, tensor.dtype, tensor.device, tensor.layout, strides(tensor)


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the strides of a tensor; ``()`` for a layout without strides."""
    if tensor.layout != torch.strided or tensor.is_nested:
        return ()
    return tuple(step if type(step) is int else -1 for step in tensor.stride())


def has_own_dispatch(tensor: torch.Tensor) -> bool:
    """Return True for a class that runs operators in Python; it may lack operators or its own memory."""
    own = getattr(type(tensor), "__torch_dispatch__", None)
    return type(tensor) not in OWN_CLASSES and own is not getattr(torch.Tensor, "__torch_dispatch__", None)


def is_wrapper(tensor: torch.Tensor) -> bool:
    """Return True for a class that declares its inner tensors (``__tensor_flatten__``)."""
    return hasattr(type(tensor), "__tensor_flatten__")


def wrapped(tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the inner tensors of a wrapper, each with its attribute path."""
    names, _ = tensor.__tensor_flatten__()
    for name in names:
        inner = getattr(tensor, name)
        if isinstance(inner, torch.Tensor):
            yield f".{name}", inner


def plain_parts(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Return the plain tensors that hold the values, each with its attribute path."""
    tensor = settled(tensor)
    if is_wrapper(tensor):
        return [
            (f"{name}{path}", part) for name, inner in wrapped(tensor) for path, part in plain_parts(inner)
        ]
    if type(tensor) in OWN_CLASSES or has_own_dispatch(tensor):
        return [("", tensor)]
    return [("", _as_plain(tensor))]


@without_torch_function
def _as_plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(torch.Tensor)


def storage_bytes(tensor: torch.Tensor) -> int | None:
    """Return the size of the tensor's own storage in bytes; None if it has none."""
    if not _has_storage(tensor):
        return None
    return int(tensor.untyped_storage().nbytes())


def _has_storage(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and not is_wrapper(tensor)
        and not has_own_dispatch(tensor)
    )


def unreadable(tensor: torch.Tensor) -> str:
    """Return why an operator must not read this tensor; ``""`` if it may.

    Torch does not check this: an operator on freed memory (``untyped_storage().resize_(0)``) crashes the process.
    """
    if tensor.device.type == "meta":
        return "it is on device 'meta' and holds no data"
    if torch.nn.parameter.is_lazy(tensor):
        return "it is not initialized yet"
    if is_wrapper(tensor):
        try:
            return next((r for _, inner in wrapped(tensor) if (r := unreadable(inner))), "")
        except Exception:  # a class may raise anything
            return ""
    if tensor.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        return _freed_values(tensor)
    if not _has_storage(tensor):
        return ""
    storage = tensor.untyped_storage()
    needed = _needed_bytes(tensor)
    if needed > storage.nbytes():
        size = "" if storage.nbytes() == 0 else f" but for {storage.nbytes():,} bytes"
        return f"its memory is freed{size} (the program resized its storage)"
    return ""


def _freed_values(tensor: torch.Tensor) -> str:
    with torch.no_grad():
        values = tensor.detach()
        return unreadable(values._values() if tensor.layout == torch.sparse_coo else values.values())


def _needed_bytes(tensor: torch.Tensor) -> int:
    if tensor.is_nested:
        return int(tensor.numel() * tensor.element_size())
    if not tensor.numel():
        return 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    return int((tensor.storage_offset() + last + 1) * tensor.element_size())


def equal(now: torch.Tensor, first: torch.Tensor, widened: bool = False) -> bool:
    """Return True if two readable tensors hold equal values (NaN equals NaN). With ``widened``, ``now`` may be the
    double-precision version of ``first``."""
    if now.layout != first.layout or now.is_nested != first.is_nested:
        return False
    if now.dtype != first.dtype and not (widened and now.dtype == double(first.dtype)):
        return False
    now, first = dense(now), dense(first)
    if now.shape != first.shape or now.device != first.device:
        return False
    try:
        if now.dtype == first.dtype and torch.equal(now, first):
            return True
        if not (now.is_floating_point() or now.is_complex()):
            return False
        return all(bool(alike(widest(a), widest(b)).all()) for a, b in pieces(now, first))
    except (RuntimeError, TypeError):  # a dtype with few operators: compare bytes
        return bool(torch.equal(*(x.contiguous().view(torch.uint8) for x in (now, first))))


def dense(x: torch.Tensor) -> torch.Tensor:
    """Return a plain, strided tensor with the same numbers."""
    x = x.detach()
    if x.is_nested:
        return torch.cat([part.reshape(-1) for part in x.unbind()])
    if x.is_quantized:
        return x.dequantize()
    return x.to_dense() if x.layout != torch.strided else x


def alike(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a mask of the elements that are equal, or NaN, in both."""
    return (a == b) | (a.isnan() & b.isnan())


def double(dtype: torch.dtype) -> torch.dtype:
    """Return the double-precision dtype for a dtype."""
    return torch.complex128 if dtype.is_complex else torch.float64


def widest(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor in double precision."""
    return x.detach().to(double(x.dtype))


def pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield corresponding parts of tensors of one shape, at most ``PIECE_ELEMENTS`` elements each, in element order."""
    count, shape = tensors[0].numel(), tensors[0].shape
    if count <= PIECE_ELEMENTS:
        yield tensors
        return
    dim = next(at for at, size in enumerate(shape) if size > 1)
    step = max(1, PIECE_ELEMENTS * shape[dim] // count)
    for start in range(0, shape[dim], step):
        size = min(step, shape[dim] - start)
        yield from pieces(*(x.narrow(dim, start, size) for x in tensors))


def write(tensor: torch.Tensor, first: Snapshot) -> None:
    """Restore a tensor's values and the size of its storage from a snapshot."""
    if first.nbytes is not None and _has_storage(tensor):
        storage = tensor.untyped_storage()
        if storage.nbytes() != first.nbytes:
            storage.resize_(first.nbytes)
    if first.unreadable:
        return
    with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
        parts = dict(plain_parts(tensor))
        for name, values in first.parts:
            now = parts.get(name)
            if now is None:
                continue
            if now.shape != values.shape or now.dtype != values.dtype or unreadable(now):
                target: Any = tensor if not name else now
                target.data = values.clone()
            elif not has_own_dispatch(now):
                _fill(now, values)
            else:
                with contextlib.suppress(Exception):  # its class may lack the operator
                    now.copy_(values)


def _fill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    if any(size > 1 and step == 0 for size, step in zip(values.shape, strides(tensor))):
        at = tuple(slice(1) if step == 0 else slice(None) for step in tensor.stride())
        tensor[at].copy_(values[at])  # an expanded dimension: write it once
    else:
        tensor.copy_(values)


def version_of(tensor: torch.Tensor) -> int:
    """Return a tensor's version counter; 0 for an inference tensor, which has none."""
    return 0 if tensor.is_inference() else tensor._version
