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
    """An object cannot be sent to another process. The message names the object and, if ``has_advice``, a remedy."""

    def __init__(self, message: str, has_advice: bool = False) -> None:
        super().__init__(message)
        self.has_advice = has_advice


class Sender(Protocol):
    """Sender of kinds of objects that this module does not handle.

    Attributes:
        registered: registrations with torch made by modules that the child imports too.
        kinds: types that it can send.
    """

    registered: frozenset[str]
    kinds: tuple[type, ...]

    def reduced(self, value: Any) -> Any:
        """Return the pickle reduction of ``value``, also of functions and code; None if it is of another kind."""

    def named_there(self, code: types.CodeType) -> None:
        """Record code that the child finds by its function's name."""

    def places(self) -> list[Any]:
        """Return the program's registrations with torch that the child must repeat."""

    def mark(self) -> Any:
        """Return a position to which ``back`` can return."""

    def back(self, mark: Any) -> None:
        """Forget what was sent since ``mark``, which was dropped."""

    def rest(self) -> Any:
        """Return what the child must load after all that was sent so far; None if nothing."""


@dataclasses.dataclass(frozen=True)
class SendingRules:
    """Exceptions for objects that the child process could not load in the usual way.

    Attributes:
        by_value: functions (``"module:path"``) sent by value, as the child has others at their names.
        left: names that are not sent; in the child they stay as imported.
    """

    by_value: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Parcel:
    """A packed request.

    Attributes:
        data: its bytes.
        shapes_only: number of storages sent without values.
        left: pieces not sent, whose names stay as imported in the child; each keeps its watch if that was sent.
        parts: the pieces in each pickle after the first one.
        registered: as in ``Sender``.
    """

    data: bytes = b""
    shapes_only: int = 0
    left: tuple[Piece, ...] = ()
    parts: tuple[tuple[Piece, ...], ...] = ()
    registered: frozenset[str] = frozenset()


def pack(
    payload: Any,
    make_sender: Callable[[Callable[[str], bool], dict[str, Any]], Sender] | None = None,
    rules: SendingRules = SendingRules(),
) -> Parcel:
    """Return the packed request. Raises ``CannotCross`` if an object cannot be pickled, even by value.

    ``make_sender`` takes a predicate for names of importable modules, and the program's own modules by name.
    """
    buffer = io.BytesIO()
    with_script = own_modules(script=True)
    own = {name: module for name, module in with_script.items() if name not in SCRIPT}
    try:
        script = [with_script[name] for name in SCRIPT[1:] if name in with_script]
        with _by_value([*_without_a_place(own), *script]):
            sender = None if make_sender is None else make_sender(_importable, with_script)
            pickler = _Pickler(buffer, sender, rules, own)
            pickler.dump(payload)
            pickler.follow_up()
    except UsageError as error:
        raise CannotCross(str(error), has_advice=True) from error
    except Exception as error:  # each object that cannot be pickled has an error of its own for it
        lines = str(error).splitlines()
        raise CannotCross(lines[0] if lines else type(error).__name__) from error
    registered = frozenset[str]() if sender is None else sender.registered
    placed = tuple(pickler.left), tuple(pickler.parts)
    return Parcel(buffer.getvalue(), pickler.tensors.shapes_only, *placed, registered)


@contextlib.contextmanager
def _by_value(modules: list[Any]) -> Iterator[None]:
    """Have cloudpickle send objects of these modules by value, not by name, for the duration."""
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
    """Return the program's modules that no import by name finds, such as one loaded from a path under another name."""
    return [m for name, m in own.items() if m.__name__ == name and not _found_by(name, str(m.__file__))]


def _importable(name: str) -> bool:
    """Return True if objects of this module cross by name."""
    by_value = cloudpickle.list_registry_pickle_by_value()
    return name in sys.modules and name not in SCRIPT and name not in by_value


def _found_by(name: str, file: str) -> bool:
    place = name.replace(".", os.sep)
    for ending in (f"{place}.py", os.path.join(place, "__init__.py")):
        if file.endswith(os.sep + ending) and file[: -len(ending) - 1] in map(os.path.abspath, sys.path):
            return True
    parent = sys.modules.get(name.rpartition(".")[0])
    # Ask the finders as a first import would; editable installs have their own.
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, getattr(parent, "__path__", None), None) if find is not None else None
        if spec is not None:
            return bool(spec.origin == file)
    return False


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle is not typed
    def __init__(
        self, file: io.BytesIO, sender: Sender | None, rules: SendingRules, own: dict[str, Any]
    ) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.sender = sender
        self.left: list[Piece] = []
        self.parts: list[tuple[Piece, ...]] = []
        self.tensors = Tensors()
        self._file = file
        self._rules = rules
        self._reached = ReachableObjects(
            _importable, own, rules.by_value, None if sender is None else sender.named_there
        )
        self._current_piece: Piece | None = None
        self._reducers: dict[type, Callable[[Any], Any]] = {
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
        """Append what the request reaches: operators named in code, and changed globals of modules."""
        more = True
        while more:
            more = False
            pieces = self._reached.pieces()
            while self.sender is not None and (rest := self.sender.rest()) is not None:
                self.dump(rest)
                self.parts.append(())
                more = True
            if self.sender is not None:
                pieces += self._reached.registered(self.sender.places())
            whole = [piece for piece in pieces if piece.where not in self._rules.left]
            self.left += [piece for piece in pieces if piece.where in self._rules.left]
            more = more or bool(whole)
            for some in [[one] for one in whole] if self._rules.left else [whole]:
                self._put(some)
        for piece in [*self.left]:
            watch, piece.watch = piece.watch, None
            if watch is not None and watch.where not in self._rules.left:
                count = len(self.left)
                self._put([watch])
                piece.watch = watch if len(self.left) == count else None
                del self.left[count:]

    def _put(self, pieces: list[Piece]) -> None:
        """Append these pieces, and move those that cannot be pickled to ``left``."""
        while pieces:
            size, met = self._file.tell(), self._reached.mark()
            sent = None if self.sender is None else self.sender.mark()
            self._current_piece = None
            try:
                self.dump(pieces)
            except Exception:  # each object that cannot be pickled has an error of its own for it
                self._file.seek(size)
                self._file.truncate()
                self._forget(pieces)
                self._reached.back(met)
                if self.sender is not None:
                    self.sender.back(sent)
                at = next((n for n, piece in enumerate(pieces) if piece is self._current_piece), 0)
                self.left.append(pieces[at])
                self._put(pieces[:at])
                pieces = pieces[at + 1 :]
            else:
                self.parts.append(tuple(pieces))
                return

    def _forget(self, first: Any) -> None:
        """Remove this object and everything pickled after it from the memo."""
        noted = self.memo.copy()  # type: ignore[has-type]
        if id(first) in noted:
            count = noted[id(first)][0]
            self.memo = {key: value for key, value in noted.items() if value[0] < count}

    def _piece(self, piece: Piece) -> Any:
        self._current_piece = piece
        return piece.__reduce__()

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        reducer = self._reducers.get(kind)
        if reducer is not None:
            return reducer(obj)
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
        special = (*special, *(() if self.sender is None else self.sender.kinds))
        return not issubclass(kind, special) and not _is_parametrized(kind)

    def _reduced(self, obj: Any) -> Any:
        if is_fake(obj):
            return self.tensors.fake(obj)
        if _is_parametrized(type(obj)):
            return _parametrized(obj)
        known = self.sender.reduced(obj) if self.sender is not None else None
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
            return importlib.import_module, (name,)  # torch.backends and others are instances of subclasses
        named = _renamed(obj) if isinstance(obj, type) else None
        return super().reducer_override(obj) if named is None else named

    def _code(self, code: types.CodeType) -> Any:
        if self.sender is not None:
            self.sender.reduced(code)
        return _code, (self.dispatch_table[types.CodeType](code), code.co_filename)

    def _function_getnewargs(self, func: Any) -> Any:
        # Functions sent by value use the globals of the child's module, where Dynamo looks for them.
        name = func.__globals__.get("__name__")
        there = vars(sys.modules[name]) if name in sys.modules else None
        # multiprocessing's module of the script is a copy of the globals of the script's functions.
        if there is func.__globals__ or (there and name in SCRIPT[1:]):
            self.globals_ref.setdefault(id(func.__globals__), _Globals(name))
        return super()._function_getnewargs(func)

    def _dynamic_function_reduce(self, func: Any) -> Any:
        if (known := _disabled(func)) is not None:
            return known
        reduction = super()._dynamic_function_reduce(func)
        globals = self.globals_ref.get(id(func.__globals__))
        if isinstance(globals, _Globals) and self._reached.kept_there(globals.name):
            reduction[2][1]["__globals__"] = {}  # the child's module has them; sent ones would replace them
        return reduction


class _Globals(dict[str, Any]):
    """Reference to a module's globals by the module's name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def _ordered(held: Any) -> Any:
    """Return the reduction of an OrderedDict; of an empty one, as each ``nn.Module`` has for hooks, a short one."""
    return NotImplemented if held or vars(held) else (collections.OrderedDict, ())


def _as_it_is(value: Any) -> Any:
    return NotImplemented


def _bound(method: Any) -> Any:
    """Reduce a bound method, object first: an optimizer wraps its class's methods in hooks when unpickled."""
    held, function, name = method.__self__, method.__func__, getattr(method, "__name__", "")
    return _method, (held, function, name if getattr(type(held), name, None) is function else "")


def _kernels() -> tuple[Any, ...]:
    """Return Triton's class of ``@triton.jit`` functions, whose locks and compiled code cannot be pickled."""
    jit = sys.modules.get("triton.runtime.jit")
    return () if jit is None else (jit.JITCallable,)


def _by_name(kernel: Any) -> Any:
    """Return the pickle reduction by name of a kernel in an importable module; None for others."""
    name = kernel.fn.__module__
    value: Any = sys.modules.get(name)
    for part in kernel.fn.__qualname__.split("."):
        value = getattr(value, part, None)
    if value is not kernel or not _importable(name):
        return None
    return placement.named, (name, kernel.fn.__qualname__)


def _renamed(copy: type) -> Any:
    """Return the reduction of a class whose module has it under another name (torch's ``SDPBackend``); None for
    others."""
    module = sys.modules.get(copy.__module__)
    if module is None or getattr(module, copy.__qualname__.partition(".")[0], None) is not None:
        return None
    name = next((name for name, value in vars(module).items() if value is copy), "")
    return (placement.named, (copy.__module__, name)) if name and _importable(copy.__module__) else None


def _disabled(func: Any) -> Any:
    """Return the reduction of a result of ``torch.compiler.disable``, which the child makes again from the wrapped
    function: torch recognizes it by identity and by its code, which a copy lacks. None for others."""
    own = vars(func)
    # A program's wrapper around such a function copies its attributes, but not its identity.
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
    """Return True for a class that torch created for one module with parametrized tensors (``weight_norm``)."""
    return getattr(vars(kind).get("__getstate__"), "__module__", "") == "torch.nn.utils.parametrize"


def _parametrized(module: Any) -> Any:
    """Return the reduction of a parametrized module, whose class the child creates again."""
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
    """Return the code with its original file name, which cloudpickle (from 3.1.3) drops and source lookup needs."""
    kind, arguments = reduced
    return kind(*arguments).replace(co_filename=file)


def _method(held: Any, function: Any, name: str) -> Any:
    """Return a method of ``held``: the class's function at ``name`` if that wraps ``function``, else ``function``."""
    now = layer = getattr(type(held), name, function)
    while layer is not None and layer is not function:
        layer = getattr(layer, "__wrapped__", None)
    return types.MethodType(now if layer is function else function, held)


def _kernel(kind: type, fn: Any, options: dict[str, Any]) -> Any:
    return kind(fn, **options)


def _globals_of(name: str) -> dict[str, Any]:
    try:
        return importlib.import_module(name).__dict__
    except ImportError:  # a module that was created, not imported
        module = sys.modules[name] = types.ModuleType(name)
        return module.__dict__
