"""Copies of a call: its function, arguments and modules, with copied tensors.

Copies keep the relations of the originals: identity, shared memory, strides and offsets. Objects that cannot be copied
(a lock, an open file) are used themselves; ``restoration.SavedState`` restores their contents.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

from .._torch.ground.storage import is_zero
from .._torch.ground.values import ATOMS
from ..child.tensors import Result, as_result
from .snapshot import has_own_dispatch, is_wrapper, unreadable

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def copied(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, wide: bool = False) -> Call:
    """Return a copy of the call. With ``wide`` floating-point tensors are float64, complex ones complex128.

    Modules, containers, objects with tensors and closures are copied too; globals are not.
    """
    copier = _Copier(wide)
    return (
        copier.copy(fn),
        tuple(copier.copy(a) for a in args),
        {k: copier.copy(v) for k, v in kwargs.items()},
    )


class _Copier:
    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.memo: dict[Any, Any] = {}  # as for ``copy.deepcopy``; a user's ``__deepcopy__`` receives it
        self.originals: list[Any] = []  # kept alive, so that the ids in ``memo`` stay valid
        self.storages: dict[tuple[int, torch.dtype | None], Any] = {}

    def copy(self, value: Any) -> Any:
        if isinstance(value, (torch.Tensor, torch.Generator)):
            pass
        elif isinstance(value, ATOMS):
            return value
        if id(value) in self.memo:
            return self.memo[id(value)]
        self.originals.append(value)
        if isinstance(value, torch.Tensor):
            duplicate = self._tensor(value)
        elif isinstance(value, torch.Generator):
            duplicate = torch.Generator(value.device)
            duplicate.set_state(value.get_state())
        else:
            duplicate = self._other(value)
        self.memo[id(value)] = duplicate
        return duplicate

    def _other(self, value: Any) -> Any:
        kind = type(value)
        duplicate: Any
        if kind in (list, deque):
            duplicate = kind() if kind is list else deque(maxlen=value.maxlen)
            self.memo[id(value)] = duplicate
            duplicate.extend(self.copy(v) for v in value)
            return duplicate
        if kind in (dict, OrderedDict, defaultdict):
            duplicate = defaultdict(value.default_factory) if kind is defaultdict else kind()
            self.memo[id(value)] = duplicate
            duplicate.update((self.copy(k), self.copy(v)) for k, v in value.items())
            return duplicate
        if kind in (tuple, set, frozenset):
            return kind([self.copy(v) for v in value])
        if kind is types.MethodType:
            return types.MethodType(value.__func__, self.copy(value.__self__))
        if kind is functools.partial:
            return functools.partial(
                self.copy(value.func),
                *(self.copy(a) for a in value.args),
                **{k: self.copy(v) for k, v in value.keywords.items()},
            )
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.CellType:
            duplicate = types.CellType()
            self.memo[id(value)] = duplicate
            try:
                duplicate.cell_contents = self.copy(value.cell_contents)
            except ValueError:  # a name that is not bound yet
                pass
            return duplicate
        return self._object(value)

    def _function(self, function: types.FunctionType) -> Any:
        if not function.__closure__ or (function.__module__ or "").partition(".")[0] == "torch":
            return function
        duplicate = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(self.copy(cell) for cell in function.__closure__),
        )
        self.memo[id(function)] = duplicate
        duplicate.__kwdefaults__ = function.__kwdefaults__
        duplicate.__dict__.update(function.__dict__)
        duplicate.__qualname__, duplicate.__module__, duplicate.__doc__ = (
            function.__qualname__,
            function.__module__,
            function.__doc__,
        )
        return duplicate

    def _object(self, value: Any) -> Any:
        try:
            own = getattr(value, "__deepcopy__", None)
            return own(self.memo) if own is not None else self._reduced(value)
        except Exception:  # a lock, a file, a class that refuses: the original is used
            return value

    def _reduced(self, value: Any) -> Any:
        """Return a copy by pickle's reduction protocol, as ``copy.deepcopy`` makes it."""
        table = copyreg.dispatch_table.get(type(value))
        reduced = table(value) if table is not None else value.__reduce_ex__(4)
        if isinstance(reduced, str):  # the name of a global, which is not copied
            return value
        make, arguments, state, items, pairs, setter = (*reduced, None, None, None, None)[:6]
        duplicate = make(*(self.copy(a) for a in arguments))
        self.memo[id(value)] = duplicate
        if state is not None:
            self._set(duplicate, self.copy(state), setter)
        for item in items or ():
            duplicate.append(self.copy(item))
        for key, item in pairs or ():
            duplicate[self.copy(key)] = self.copy(item)
        return duplicate

    def _set(self, made: Any, state: Any, setter: Any) -> None:
        if setter is not None:
            setter(made, state)
        elif hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            plain, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            if plain:
                made.__dict__.update(plain)
            for name, item in (slots or {}).items():
                setattr(made, name, item)

    # Tensors.
    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if torch.nn.parameter.is_lazy(tensor):  # it has no size yet
            return copy.deepcopy(tensor, self.memo)
        with torch.inference_mode(tensor.is_inference()):
            base = tensor._base if not tensor.is_inference() and tensor._is_view() else None
            if base is not None and _plain(tensor) and _plain(base) and type(tensor) is torch.Tensor:
                return self._view(tensor, self.copy(base if (leaf := _parent(tensor)) is None else leaf))
            if has_own_dispatch(tensor) and not is_wrapper(tensor):
                return self._foreign(tensor)
            with torch.no_grad():
                duplicate = self._over_own_memory(tensor) if _plain(tensor) else self._clone(tensor)
            duplicate = self._typed(tensor, duplicate)
            self.memo[id(tensor)] = duplicate
            if _plain(tensor) and (own := getattr(tensor, "__dict__", None)):
                duplicate.__dict__.update({k: self.copy(v) for k, v in own.items()})
            if tensor.is_leaf and tensor.grad is not None and duplicate.is_leaf and duplicate.requires_grad:
                duplicate.grad = self.copy(tensor.grad)
        return duplicate

    def _view(self, tensor: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
        """Return a view of the copy of the base, so that autograd tracks in-place writes to either."""
        size, stride, offset = tensor.size(), tensor.stride(), tensor.storage_offset()
        other = (
            tensor._base is None or tensor._base.dtype != tensor.dtype
        )  # ``view(dtype)``, ``view_as_real``
        if other or unreadable(tensor):  # torch makes no view of freed memory
            return self._typed(tensor, self._over_own_memory(tensor))
        with torch.set_grad_enabled(tensor.requires_grad):
            view = base.as_strided(size, stride, offset)
        if tensor.requires_grad and not view.requires_grad:
            view.requires_grad_()
        return view

    def _over_own_memory(self, tensor: torch.Tensor) -> torch.Tensor:
        kind = tensor.dtype
        if self.wide and (tensor.is_floating_point() or tensor.is_complex()):
            kind = torch.complex128 if tensor.is_complex() else torch.float64
        storage = tensor.untyped_storage()
        key = (storage._cdata, None if kind == tensor.dtype else tensor.dtype)
        if key not in self.storages:
            if kind == tensor.dtype:
                self.storages[key] = storage.clone()
                self.memo.setdefault("torch", {})[storage._cdata] = self.storages[key]
            else:
                whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
                self.storages[key] = whole.to(kind).untyped_storage()
            self.originals.append(storage)
        duplicate = torch.empty(0, dtype=kind, device=tensor.device)
        memory, size = self.storages[key], self.storages[key].nbytes()
        duplicate.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())
        if memory.nbytes() != size:  # freed by the program; ``set_`` enlarged it to the tensor's size
            memory.resize_(size)
        return duplicate

    def _clone(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a clone of a tensor without plain strided memory: sparse, quantized, conjugated, or a wrapper
        class."""
        if is_wrapper(tensor):
            return self._wrapper(tensor)
        clone = tensor.detach().clone()
        if self.wide and tensor.is_floating_point():
            return clone.double()
        return clone.to(torch.complex128) if self.wide and tensor.is_complex() else clone

    def _foreign(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a clone of a tensor whose class runs operators in Python; the tensor itself if that fails."""
        try:
            return self._typed(tensor, self._clone(tensor))
        except Exception:  # each class raises its own exception type
            return tensor

    def _wrapper(self, tensor: Any) -> torch.Tensor:
        """Return a copy of a wrapper tensor, rebuilt from copies of its inner tensors; its class may lack ``clone``."""
        names, context = tensor.__tensor_flatten__()
        inner = {n: self.copy(getattr(tensor, n)) for n in names}
        duplicate: torch.Tensor = type(tensor).__tensor_unflatten__(
            inner, context, tensor.size(), tensor.stride()
        )
        return duplicate

    def _typed(self, tensor: torch.Tensor, duplicate: torch.Tensor) -> torch.Tensor:
        if tensor.requires_grad and not tensor.is_leaf and _plain(tensor):
            duplicate = as_result(duplicate)
        if type(tensor) is torch.nn.Parameter:
            duplicate = torch.nn.Parameter(duplicate, tensor.requires_grad)
        elif type(duplicate) is not type(tensor):
            with torch.set_grad_enabled(duplicate.requires_grad):
                duplicate = duplicate.as_subclass(type(tensor))
        if duplicate.requires_grad == tensor.requires_grad:
            return duplicate
        return duplicate.requires_grad_(tensor.requires_grad)


def leaf_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the leaf that receives the gradient of a copied non-leaf tensor; None for other tensors."""
    function = tensor.grad_fn
    if function is None or getattr(function, "_forward_cls", None) is not Result:
        return None
    leaf: torch.Tensor = function.next_functions[0][0].variable
    return leaf


def _parent(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the leaf (perhaps a view itself) of which autograd records this tensor as a view; None if there is
    none."""
    function = tensor.grad_fn
    while function is not None:
        leaf = getattr(function, "variable", None)
        if isinstance(leaf, torch.Tensor):
            mine, its = tensor.untyped_storage(), leaf.untyped_storage()
            return leaf if mine._cdata == its._cdata and leaf.dtype == tensor.dtype else None
        if len(function.next_functions) != 1:
            return None
        function = function.next_functions[0][0]
    return None


def _plain(tensor: torch.Tensor) -> bool:
    """Return True for a tensor that is nothing but sizes and strides over memory."""
    return (
        tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and not (tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())
        and not is_zero(tensor)
        and not is_wrapper(tensor)
        and not has_own_dispatch(tensor)
    )
