"""Pickling of a function and its inputs for the child process.

Functions of modules cross by name; ``reachability.py`` finds what they reach. Notebook cells, scripts, lambdas and
closures have no name to import and cross by value, with cloudpickle. Large floating-point tensors cross as shapes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import cloudpickle
import torch

from ..errors import LensError, UsageError
from . import placement
from .context import own_modules
from .imports import SCRIPT
from .reachability import Piece, ReachableObjects
from .tensors import Storage, Tensors, is_fake


class CannotCross(LensError):
    """An object cannot be sent to another process; the message names it, and with ``said_how`` a remedy."""

    def __init__(self, said: str, said_how: bool = False) -> None:
        super().__init__(said)
        self.said_how = said_how


class Sender(Protocol):
    """Sender of the objects that another module knows how to send.

    Attributes:
        registered: what the program registered with torch, by importing modules that the other process imports too.
        kinds: types of what it knows how to send.
    """

    registered: frozenset[str]
    kinds: tuple[type, ...]

    def reduced(self, value: Any) -> Any:
        """Return the pickle reduction of ``value``, also of functions and code; None if it is not known here."""

    def named_there(self, code: types.CodeType) -> None:
        """Take note of code that the other process finds by the name of its function."""

    def places(self) -> list[Any]:
        """Return the program's registrations with torch that have to be put in place."""

    def mark(self) -> Any:
        """Return a mark of how much was sent so far, for ``back``."""

    def back(self, mark: Any) -> None:
        """Forget what was sent since the mark: it does not arrive."""

    def rest(self) -> Any:
        """Return what follows all that was sent so far, for the other process to load; None if nothing does."""


@dataclasses.dataclass(frozen=True)
class SendingRules:
    """Exceptions to the usual way of sending, for objects that the child process could not take that way.

    Attributes:
        by_value: functions that are not there at their names (``"module:path"``).
        left: names that keep there what importing their module gives them.
    """

    by_value: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Parcel:
    """A request on its way.

    Attributes:
        data: its bytes.
        shapes_only: how many tensors went without their values.
        left: what did not go along: it is there as importing its module makes it. The watch of a piece went along.
        parts: what each pickle after the first one puts in place.
        registered: as of ``Sender``.
    """

    data: bytes = b""
    shapes_only: int = 0
    left: tuple[Piece, ...] = ()
    parts: tuple[tuple[Piece, ...], ...] = ()
    registered: frozenset[str] = frozenset()


def pack(
    payload: Any,
    along: Callable[[Callable[[str], bool], dict[str, Any]], Sender] | None = None,
    apart: SendingRules = SendingRules(),
) -> Parcel:
    """The bytes of a request. Raises ``CannotCross`` for what cannot be pickled, even by value.

    ``along`` is given what says of a module's name whether the other process finds it, and the program's own modules.
    """
    buffer = io.BytesIO()
    with_script = own_modules(script=True)
    own = {name: module for name, module in with_script.items() if name not in SCRIPT}
    try:
        script = [with_script[name] for name in SCRIPT[1:] if name in with_script]
        with _by_value([*_without_a_place(own), *script]):
            beside = None if along is None else along(_importable, with_script)
            pickler = _Pickler(buffer, beside, apart, own)
            pickler.dump(payload)
            pickler.follow_up()
    except UsageError as error:
        raise CannotCross(str(error), said_how=True) from error
    except Exception as error:  # each object that cannot be pickled has an error of its own for it
        lines = str(error).splitlines()
        raise CannotCross(lines[0] if lines else type(error).__name__) from error
    registered = frozenset[str]() if beside is None else beside.registered
    placed = tuple(pickler.left), tuple(pickler.parts)
    return Parcel(buffer.getvalue(), pickler.tensors.shapes_only, *placed, registered)


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


def _without_a_place(own: dict[str, Any]) -> list[Any]:
    """Modules of the program that another process would not find by their name: loaded from a file under another."""
    return [m for name, m in own.items() if m.__name__ == name and not _found_by(name, str(m.__file__))]


def _importable(name: str) -> bool:
    """Return True if objects of this module cross by name. cloudpickle asks this to decide what crosses by value."""
    by_value = cloudpickle.list_registry_pickle_by_value()
    return name in sys.modules and name not in SCRIPT and name not in by_value


def _found_by(name: str, file: str) -> bool:
    place = name.replace(".", os.sep)
    for ending in (f"{place}.py", os.path.join(place, "__init__.py")):
        if file.endswith(os.sep + ending) and file[: -len(ending) - 1] in map(os.path.abspath, sys.path):
            return True
    parent = sys.modules.get(name.rpartition(".")[0])
    # As importing it for the first time would: finders of editable installs are here.
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, getattr(parent, "__path__", None), None) if find is not None else None
        if spec is not None:
            return bool(spec.origin == file)
    return False


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle is not typed
    def __init__(
        self, file: io.BytesIO, along: Sender | None, apart: SendingRules, own: dict[str, Any]
    ) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.along = along
        self.left: list[Piece] = []
        self.parts: list[tuple[Piece, ...]] = []
        self.tensors = Tensors()
        self._file = file
        self._apart = apart
        self._reached = ReachableObjects(
            _importable, own, apart.by_value, None if along is None else along.named_there
        )
        self._begun: Piece | None = None
        self._ways: dict[type, Callable[[Any], Any]] = {
            collections.OrderedDict: _ordered,
            Storage: Storage.reduced,
            Piece: self._piece,
            _Globals: lambda globals: (_globals_of, (globals.name,)),
            types.CodeType: self._code,
            types.MethodType: _bound,
            **dict.fromkeys((torch.Tensor, torch.nn.Parameter, torch.nn.Buffer), self.tensors.tensor),
            **dict.fromkeys((torch.dtype, torch.device, torch.Size), _as_it_is),
        }
        self._names: dict[type, Mapping[int, str]] = {}

    def follow_up(self) -> None:
        """After the request, what it reaches: operators that code names, and what modules hold."""
        more = True
        while more:
            more = False
            pieces = self._reached.pieces()
            while self.along is not None and (rest := self.along.rest()) is not None:
                self.dump(rest)
                self.parts.append(())
                more = True
            if self.along is not None:
                pieces += self._reached.registered(self.along.places())
            whole = [piece for piece in pieces if piece.where not in self._apart.left]
            self.left += [piece for piece in pieces if piece.where in self._apart.left]
            more = more or bool(whole)
            for some in [[one] for one in whole] if self._apart.left else [whole]:
                self._put(some)
        for piece in [*self.left]:
            watch, piece.watch = piece.watch, None
            if watch is not None and watch.where not in self._apart.left:
                count = len(self.left)
                self._put([watch])
                piece.watch = watch if len(self.left) == count else None
                del self.left[count:]

    def _put(self, pieces: list[Piece]) -> None:
        """Send these, without those that cannot be sent."""
        while pieces:
            size, met = self._file.tell(), self._reached.mark()
            sent = None if self.along is None else self.along.mark()
            self._begun = None
            try:
                self.dump(pieces)
            except Exception:  # each object that cannot be pickled has an error of its own for it
                self._file.seek(size)
                self._file.truncate()
                self._forget(pieces)
                self._reached.back(met)
                if self.along is not None:
                    self.along.back(sent)
                at = next((n for n, piece in enumerate(pieces) if piece is self._begun), 0)
                self.left.append(pieces[at])
                self._put(pieces[:at])
                pieces = pieces[at + 1 :]
            else:
                self.parts.append(tuple(pieces))
                return

    def _forget(self, first: Any) -> None:
        """Forget the notes about everything sent since this object, itself included: it does not arrive."""
        noted = self.memo.copy()  # type: ignore[has-type]
        if id(first) in noted:
            count = noted[id(first)][0]
            self.memo = {key: value for key, value in noted.items() if value[0] < count}

    def _piece(self, piece: Piece) -> Any:
        self._begun = piece
        return piece.__reduce__()

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        way = self._ways.get(kind)
        if way is not None:
            return way(obj)
        names = self._names.get(kind)
        if names is None:
            if not self._ordinary(kind):
                return self._reduced(obj)
            names = self._names[kind] = (
                {} if kind in self.dispatch_table else self._reached.names(kind.__module__)
            )
        if "__wrapped__" in (getattr(obj, "__dict__", None) or ()):
            self._reached.follow(obj)
        return self._reached.named(obj) if names and id(obj) in names else NotImplemented

    def _ordinary(self, kind: type) -> bool:
        """Return True if pickle can handle objects of this type, other than those that cross by name."""
        special = (torch.Tensor, types.FunctionType, types.ModuleType, type, _kernels())
        special = (*special, *(() if self.along is None else self.along.kinds))
        return not issubclass(kind, special) and not _is_parametrized(kind)

    def _reduced(self, obj: Any) -> Any:
        if is_fake(obj):
            return self.tensors.fake(obj)
        if _is_parametrized(type(obj)):
            return _parametrized(obj)
        known = self.along.reduced(obj) if self.along is not None else None
        if known is None and isinstance(obj, (types.FunctionType, type)):
            known = self._reached.reduced(obj)
            if known is None and (self._reached.by_value(obj) or placement.is_disabled(obj)):
                known = self._dynamic_function_reduce(obj)
        if known is not None:
            return known
        if isinstance(obj, _kernels()):
            self._reached.follow(obj.fn)
            return _by_name(obj) or (_kernel, (type(obj), obj.fn, _options(obj)))
        name = getattr(obj, "__name__", None) if isinstance(obj, types.ModuleType) else None
        if name is not None and type(obj) is not types.ModuleType and sys.modules.get(name) is obj:
            return importlib.import_module, (name,)  # torch.backends and such, of a class of their own
        named = _renamed(obj) if isinstance(obj, type) else None
        return super().reducer_override(obj) if named is None else named

    def _code(self, code: types.CodeType) -> Any:
        if self.along is not None:
            self.along.reduced(code)
        return _code, (self.dispatch_table[types.CodeType](code), code.co_filename)

    def _function_getnewargs(self, func: Any) -> Any:
        # Functions that cross by value find the globals of their module there, where Dynamo looks for them.
        name = func.__globals__.get("__name__")
        there = vars(sys.modules[name]) if name in sys.modules else None
        # multiprocessing's module of a script has a copy of the globals that its functions have.
        if there is func.__globals__ or (there and name in SCRIPT[1:]):
            self.globals_ref.setdefault(id(func.__globals__), _Globals(name))
        return super()._function_getnewargs(func)

    def _dynamic_function_reduce(self, func: Any) -> Any:
        if (known := _disabled(func)) is not None:
            return known
        reduction = super()._dynamic_function_reduce(func)
        globals = self.globals_ref.get(id(func.__globals__))
        if isinstance(globals, _Globals) and self._reached.kept_there(globals.name):
            reduction[2][1]["__globals__"] = {}  # its module has them: what it holds there would be replaced
        return reduction


class _Globals(dict[str, Any]):
    """The globals of a module, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def _ordered(held: Any) -> Any:
    """An empty one, as every module has of hooks, is not asked what it holds."""
    return NotImplemented if held or vars(held) else (collections.OrderedDict, ())


def _as_it_is(value: Any) -> Any:
    return NotImplemented


def _bound(method: Any) -> Any:
    """The object goes first: an optimizer that arrives puts hooks around what its class has at the function's name."""
    held, function, name = method.__self__, method.__func__, getattr(method, "__name__", "")
    return _method, (held, function, name if getattr(type(held), name, None) is function else "")


def _kernels() -> tuple[Any, ...]:
    """The class of functions that Triton compiles (``@triton.jit``): they hold a lock, and what was compiled."""
    jit = sys.modules.get("triton.runtime.jit")
    return () if jit is None else (jit.JITCallable,)


def _by_name(kernel: Any) -> Any:
    """A kernel of a module that the child can import, by its name there; ``None`` for another."""
    name = kernel.fn.__module__
    value: Any = sys.modules.get(name)
    for part in kernel.fn.__qualname__.split("."):
        value = getattr(value, part, None)
    if value is not kernel or not _importable(name):
        return None
    return placement.named, (name, kernel.fn.__qualname__)


def _renamed(copy: type) -> Any:
    """A class of torch's C++ by the name that its module has for it, where it calls itself by another (``SDPBackend``
    is ``_SDPBackend`` to itself); ``None`` for the rest."""
    module = sys.modules.get(copy.__module__)
    if module is None or getattr(module, copy.__qualname__.partition(".")[0], None) is not None:
        return None
    name = next((name for name, value in vars(module).items() if value is copy), "")
    return (placement.named, (copy.__module__, name)) if name and _importable(copy.__module__) else None


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
    """Return the arguments of the kernel's decorator."""
    takes = inspect.signature(type(kernel).__init__).parameters
    held = {name.removeprefix("_"): value for name, value in vars(kernel).items()}
    return {name: held[name] for name in [*takes][2:] if name in held}


def _is_parametrized(kind: type) -> bool:
    """Return True if torch made the class for a single module, some of whose tensors are computed (``weight_norm``)."""
    return getattr(vars(kind).get("__getstate__"), "__module__", "") == "torch.nn.utils.parametrize"


def _parametrized(module: Any) -> Any:
    """Its class is made anew; what is computed, and from what, are modules and parameters as others are."""
    kind: Any = type(module).__base__
    if sys.modules["torch.nn.utils.parametrize"]._cache_enabled:
        raise UsageError(
            f"what was computed of the parametrized {kind.__name__} is kept by a `with "
            "parametrize.cached()` around: capture outside of it, or enter it in the function"
        )
    names = [name for name, value in vars(type(module)).items() if isinstance(value, property)]
    return _with_parametrizations, (kind, names), vars(module)


# In the child ----------------------------------------------------------------------------------------------


def _with_parametrizations(kind: Any, names: list[str]) -> Any:
    parametrize: Any = importlib.import_module("torch.nn.utils.parametrize")
    module = kind.__new__(kind)
    parametrize._inject_new_class(module)
    for name in names:
        parametrize._inject_property(module, name)
    return module


def _disable(inside: Any, recursive: bool, reason: str | None) -> Any:
    return torch.compiler.disable(inside, recursive=recursive, reason=reason)


def _code(reduced: tuple[type[types.CodeType], tuple[Any, ...]], file: str) -> types.CodeType:
    """Code with the file that it was written in, by which its lines are found: cloudpickle (from 3.1.3) drops it."""
    kind, arguments = reduced
    return kind(*arguments).replace(co_filename=file)


def _method(held: Any, function: Any, name: str) -> Any:
    """The method: of what the class of ``held`` has now at ``name``, where that is hooked around the function."""
    now = layer = getattr(type(held), name, function)
    while layer is not None and layer is not function:
        layer = getattr(layer, "__wrapped__", None)
    return types.MethodType(now if layer is function else function, held)


def _kernel(kind: type, fn: Any, options: dict[str, Any]) -> Any:
    return kind(fn, **options)


def _globals_of(name: str) -> dict[str, Any]:
    try:
        return importlib.import_module(name).__dict__
    except ImportError:  # a module that was made, not imported
        module = sys.modules[name] = types.ModuleType(name)
        return module.__dict__
