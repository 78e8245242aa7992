"""How a function and its inputs cross to the child process, and what of them does not.

Functions of modules cross by name: the child imports the module, and plain values among its globals are set to what
they are here. What has no name to import it by (notebook cells, scripts, lambdas, closures) crosses by value, with
cloudpickle. Large floating-point tensors cross as shapes.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import cloudpickle
import torch

from ..errors import LensError, UsageError
from .surroundings import own_modules

VALUES = 16 << 20
"""Bytes of floating-point tensors that cross with their values; the rest as shapes."""

WHOLE = 1 << 14
"""Bytes up to which a floating-point tensor always crosses with its values."""


class CannotCross(LensError):
    """Something that the function or its inputs hold cannot be sent to another process; the message names it.

    Attributes:
        said_how: whether the message also says what to do about it.
    """

    def __init__(self, said: str, said_how: bool = False) -> None:
        super().__init__(said)
        self.said_how = said_how


class Along(Protocol):
    """What of a request is known elsewhere how to send."""

    def reduced(self, value: Any) -> Any:
        """How pickle takes ``value``; ``None`` where it is not known here."""

    def rest(self) -> Any:
        """What goes after all that was sent so far, for the other process to load; ``None`` for no more."""


class Parcel:
    """A request on its way: its bytes, and how many tensors went without their values."""

    def __init__(self, data: bytes, shapes_only: int) -> None:
        self.data = data
        self.shapes_only = shapes_only


def packed(payload: Any, along: Callable[[Callable[[str], bool]], Along] | None = None) -> Parcel:
    """The bytes of a request. Raises ``CannotCross`` for what cannot be pickled, even by value.

    ``along`` is given what says of a module's name whether the other process finds it.
    """
    buffer = io.BytesIO()
    try:
        with _by_value(_without_a_place()):
            pickler = _Pickler(buffer, None if along is None else along(_importable))
            pickler.dump(payload)
            while pickler.along is not None and (rest := pickler.along.rest()) is not None:
                pickler.dump(rest)
    except UsageError as error:
        raise CannotCross(str(error), said_how=True) from error
    except Exception as error:  # each object that cannot be pickled has an error of its own for it
        said = str(error).splitlines()
        raise CannotCross(said[0] if said else type(error).__name__) from error
    return Parcel(buffer.getvalue(), pickler.shapes_only)


@contextlib.contextmanager
def _by_value(modules: list[Any]) -> Iterator[None]:
    """For the duration, cloudpickle takes what is of these modules along, instead of their names."""
    known = cloudpickle.list_registry_pickle_by_value()
    ours = [module for module in modules if module.__name__ not in known]
    for module in ours:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in ours:
            cloudpickle.unregister_pickle_by_value(module)


def _without_a_place() -> list[Any]:
    """Modules of the program that another process would not find by their name: loaded from a file under another."""
    return [
        m for name, m in own_modules().items() if m.__name__ == name and not _found_by(name, str(m.__file__))
    ]


def _importable(name: str) -> bool:
    """Whether what is of this module crosses by name, while it is asked what crosses by value."""
    return (
        name in sys.modules and name != "__main__" and name not in cloudpickle.list_registry_pickle_by_value()
    )


def _found_by(name: str, file: str) -> bool:
    place = name.replace(".", os.sep)
    for ending in (f"{place}.py", os.path.join(place, "__init__.py")):
        if file.endswith(os.sep + ending) and file[: -len(ending) - 1] in map(os.path.abspath, sys.path):
            return True
    parent = sys.modules.get(name.rpartition(".")[0])
    for (
        finder
    ) in sys.meta_path:  # as importing it for the first time would: those of editable installs are here
        find = getattr(finder, "find_spec", None)
        spec = find(name, getattr(parent, "__path__", None), None) if find is not None else None
        if spec is not None:
            return bool(spec.origin == file)
    return False


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle is not typed
    def __init__(self, file: io.BytesIO, along: Along | None) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.along = along
        self.shapes_only = 0
        self._left = VALUES
        self._storages: dict[int, tuple[_Storage, Any]] = {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            if type(obj) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                return self._tensor(obj)
            if is_fake(obj):
                return self._fake(obj)
        known = self.along.reduced(obj) if self.along is not None else None
        if known is not None:
            return known
        if isinstance(obj, types.CodeType):
            return _code, (self.dispatch_table[types.CodeType](obj), obj.co_filename)
        if isinstance(obj, _Globals):
            return _globals_of, (obj.name,)
        if isinstance(obj, _Storage):
            return _storage, (obj.nbytes, obj.dtype, obj.data, obj.meta)
        if _is_a_kernel(obj):
            return _by_name(obj) or (_kernel, (type(obj), obj.fn, _options(obj)))
        name = getattr(obj, "__name__", None) if isinstance(obj, types.ModuleType) else None
        if name is not None and type(obj) is not types.ModuleType and sys.modules.get(name) is obj:
            return importlib.import_module, (
                name,
            )  # torch.backends and such: modules of a class of their own
        return super().reducer_override(obj)

    def _function_getnewargs(self, func: Any) -> Any:
        # Functions that cross by value find the globals of their module there, where Dynamo looks for them.
        name = func.__globals__.get("__name__")
        if isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is func.__globals__:
            self.globals_ref.setdefault(id(func.__globals__), _Globals(name))
        return super()._function_getnewargs(func)

    def _dynamic_function_reduce(self, func: Any) -> Any:
        return _disabled(func) or super()._dynamic_function_reduce(func)

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            raise CannotCross(f"a tensor of layout {tensor.layout} cannot cross")
        if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
            raise CannotCross("a tensor with hooks of its own cannot cross")
        plain = tensor.detach()
        facts = (
            tuple(plain.shape),
            plain.stride(),
            plain.storage_offset(),
            plain.dtype,
            tensor.requires_grad,
            type(tensor) is torch.nn.Parameter,
            tensor.grad if tensor.is_leaf else None,  # of others torch keeps none, and warns of the question
            {name: value for name, value in vars(tensor).items() if name.startswith(_MARKS)},
        )
        return _tensor, (self._shared(plain), *facts)

    def _fake(self, tensor: Any) -> Any:
        """A fake tensor crosses as one on meta: it has no data either."""
        with tensor.fake_mode, torch.no_grad():
            sizes = [*map(int, tensor.shape)], [*map(int, tensor.stride())], int(tensor.storage_offset())
            nbytes = int(tensor.untyped_storage().nbytes())
            key = tensor.untyped_storage()._cdata
        known = self._storages.get(key)
        if known is None:
            known = self._storages[key] = (_Storage(nbytes, tensor.dtype, None, meta=True), tensor)
        facts = (tensor.dtype, tensor.requires_grad, isinstance(tensor, torch.nn.Parameter))
        return _tensor, (known[0], *sizes, *facts)

    def _shared(self, tensor: torch.Tensor) -> _Storage:
        """One for all tensors that share their memory, so that they still do."""
        storage = tensor.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is not None:
            return known[0]
        nbytes = storage.nbytes()
        if tensor.is_meta:
            made = _Storage(nbytes, tensor.dtype, None, meta=True)
            self._storages[storage._cdata] = (made, storage)
            return made
        exact = not (tensor.is_floating_point() or tensor.is_complex())
        data = None
        if exact or nbytes <= min(WHOLE, max(self._left, 0)) or nbytes <= self._left:
            self._left -= 0 if exact else nbytes
            data = _raw(storage)
        else:
            self.shapes_only += 1
        made = _Storage(nbytes, tensor.dtype, data)
        self._storages[storage._cdata] = (made, storage)
        return made


class _Storage:
    """The memory of tensors: its values, or their type where only the size crosses; on ``meta`` there are none."""

    def __init__(self, nbytes: int, dtype: torch.dtype, data: bytes | None, meta: bool = False) -> None:
        self.nbytes, self.dtype, self.data, self.meta = nbytes, dtype, data, meta


class _Globals(dict[str, Any]):
    """The globals of a module, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def is_fake(tensor: Any) -> bool:
    """Whether it is one of the fake tensors that torch traces with."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and isinstance(tensor, fake.FakeTensor)


def _is_a_kernel(value: Any) -> bool:
    """Whether it is a function that Triton compiles (``@triton.jit``): it holds a lock, and what it compiled."""
    jit = sys.modules.get("triton.runtime.jit")
    return jit is not None and isinstance(value, jit.JITCallable)


def _by_name(kernel: Any) -> Any:
    """A kernel of a module that the child can import, by its name there; ``None`` for another."""
    name = kernel.fn.__module__
    found: Any = sys.modules.get(name)
    for part in kernel.fn.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kernel or not _importable(name):
        return None
    return _named, (name, kernel.fn.__qualname__)


def _disabled(func: Any) -> Any:
    """A function that ``torch.compiler.disable`` made crosses as what it was made of: torch knows it again by its
    identity, and by code of its own, which no copy has. ``None`` for another."""
    own = vars(func)
    # A wrapper of the program around such a function has its attributes too, but not its identity.
    if not own.get("_torchdynamo_disable") or own.get("_torchdynamo_wrapper_id") != id(func):
        return None
    inside, recursive = own["_torchdynamo_orig_callable"], own.get("_torchdynamo_disable_recursive", True)
    kept = {name: value for name, value in own.items() if not name.startswith("_torchdynamo")}
    return _disable, (inside, recursive, own.get("_torchdynamo_disable_msg")), kept


def _options(kernel: Any) -> dict[str, Any]:
    """What its decorator was given."""
    takes = inspect.signature(type(kernel).__init__).parameters
    held = {name.removeprefix("_"): value for name, value in vars(kernel).items()}
    return {name: held[name] for name in [*takes][2:] if name in held}


def _raw(storage: Any) -> bytes:
    flat = torch.empty(0, dtype=torch.uint8).set_(storage.cpu())
    return bytes(flat.numpy().tobytes())


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


def _disable(inside: Any, recursive: bool, reason: str | None) -> Any:
    return torch.compiler.disable(inside, recursive=recursive, reason=reason)


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
) -> torch.Tensor:
    made = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, shape, stride)
    made = torch.nn.Parameter(made, requires_grad) if parameter else made.requires_grad_(requires_grad)
    if grad is not None:
        made.grad = grad
    for name, value in (marks or {}).items():
        setattr(made, name, value)
    return made


_MARKS = ("_dynamo_", "_has_dynamo_dim_marking", "_specialize_on")
"""How torch's marks of a tensor begin: which sizes are dynamic (``mark_dynamic``), static or unknown, and whether its
address stays, by which CUDA graphs may be written into it."""


def _code(made: tuple[type[types.CodeType], tuple[Any, ...]], file: str) -> types.CodeType:
    """Code with the file that it was written in, by which its lines are found: cloudpickle (from 3.1.3) drops it."""
    kind, arguments = made
    return kind(*arguments).replace(co_filename=file)


def _kernel(kind: type, fn: Any, options: dict[str, Any]) -> Any:
    return kind(fn, **options)


def _named(module: str, path: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _globals_of(name: str) -> dict[str, Any]:
    if name == "__main__":
        return sys.modules["__main__"].__dict__
    try:
        return importlib.import_module(name).__dict__
    except ImportError:  # a module that was made, not imported
        made = types.ModuleType(name)
        sys.modules[name] = made
        return made.__dict__
