"""Objects that a function reaches beyond its arguments: names of modules, classes, closures, defaults.

A module's function crosses by name, and the child imports the module itself. What the program changed after import (a
patched function, ``net.eval()``, a configuration field) is sent after it as pieces that the child puts in place. The
search follows the names in the code of the program's own functions. From installed packages it takes only what may be
the program's: its functions placed there, ``torch.nn`` modules, tensors and plain values.
"""

from __future__ import annotations

import builtins
import dis
import enum
import marshal
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from . import context, placement
from .code_names import codes, names_in
from .imports import SCRIPT


class Piece:
    """One object for the child to put in place.

    Attributes:
        where: its dotted name (``"model.net"``).
        kind: the name of its type.
        line: file, line number and function that reach it.
        is_registration: True for a registration with torch, False for the value of a name.
        watch: piece sent if this one cannot cross; it records if the child used the place. May be None.
    """

    def __init__(
        self,
        where: str,
        put: Callable[..., Any],
        owner: tuple[Any, ...],
        value: Any,
        by: Any,
        kind: str = "",
    ) -> None:
        self.where, self.kind = where, kind or type(value).__name__
        self.is_registration = put is placement.registered
        self._given = (put, (*owner, value))
        self.by = by
        self.watch: Piece | None = None

    def __reduce__(self) -> Any:
        return self._given

    @property
    def line(self) -> tuple[str, int, str]:
        """File, line number and function that reach the object; an empty file if no program function does."""
        if self.by is None:
            return "", 0, ""
        name = self.where.rpartition(".")[2]
        for code in codes(self.by.__code__):
            line, starts = code.co_firstlineno, dict(dis.findlinestarts(code))
            for step in dis.get_instructions(code):
                line = starts.get(step.offset) or line
                if step.argval == name:
                    return code.co_filename, line, code.co_name
        code = self.by.__code__
        return code.co_filename, code.co_firstlineno, code.co_name


class ReachableObjects:
    """Objects that one request has reached, and those still to be sent. ``own`` maps names to the program's own
    modules; ``on_code`` is called with the code of each function that is followed."""

    def __init__(
        self,
        importable: Callable[[str], bool],
        own: Mapping[str, Any],
        by_value: frozenset[str] = frozenset(),
        on_code: Callable[[types.CodeType], None] | None = None,
    ) -> None:
        self._on_code = on_code
        self._importable = importable
        self._by_value = by_value
        self._own = own
        self._reached: dict[int, Any] = {}
        self._functions: list[Any] = []
        self._classes: list[type] = []
        self._names: set[str] = set()
        self._names_checked: dict[int, int] = {}
        self._sent: set[tuple[int, str]] = set()
        self._last: Any = None
        self._module_names: dict[str, dict[int, str]] = {}
        self._of_torch()

    def mark(self) -> Any:
        """Return a position to which ``back`` can return."""
        return len(self._reached), len(self._functions), len(self._classes)

    def back(self, mark: Any) -> None:
        """Forget objects reached since ``mark``."""
        met, functions, classes = mark
        for key in [*self._reached][met:]:
            del self._reached[key]
        del self._functions[functions:], self._classes[classes:]

    def reduced(self, value: Any) -> Any:
        """Follow a function or class. Return the pickle reduction of a function that crosses by name, else None."""
        if isinstance(value, type):
            self._class(value)
            return None
        self.follow(value)
        place = self._place(value)
        if place is None or self.by_value(value):
            return None
        code = value.__code__
        return placement.function, (*place, marshal.dumps(code), not self._wraps(value))

    def by_value(self, function: Any) -> bool:
        """Return True if the child has another function at this name, so that code and closure must be sent."""
        place = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', '')}"
        return place in self._by_value and self._wraps(function)

    def kept_there(self, module: str) -> bool:
        """Return True if the child's module stays as imported: torch, and others that are not followed."""
        return not (module in SCRIPT or module in self._own or followed(module))

    def _wraps(self, function: Any) -> bool:
        return not isinstance(function, type) and function.__code__.co_filename.startswith(context.INSTALLED)

    def follow(self, value: Any) -> None:
        """Queue the functions in a value for the search."""
        for function in placement.functions_in(value):
            name = str(function.__globals__.get("__name__"))
            if id(function) not in self._reached and (name in SCRIPT or name in self._own or followed(name)):
                self._reached[id(function)] = function
                self._functions.append(function)

    def names(self, module: str) -> Mapping[int, str]:
        """Return the names of an installed module's instances of its own classes, by the ``id`` of each."""
        if module not in self._module_names:
            there = sys.modules.get(module) if module not in ("builtins", *SCRIPT, *self._own) else None
            named = [] if there is None else list(vars(there).items())
            self._module_names[module] = {
                id(one): key for key, one in named if type(one).__module__ == module
            }
        return self._module_names[module]

    def named(self, value: Any) -> Any:
        """Return the pickle reduction of such an object: the child's instance, compared by identity, with this one's
        state."""
        module = type(value).__module__
        name = self.names(module)[id(value)]
        held = getattr(value, "__dict__", None)
        if type(held) is dict and held and followed(module):
            return placement.named, (module, name), held, None, None, placement.fields
        return placement.named, (module, name)

    def pieces(self) -> list[Piece]:
        """Return the pieces for objects reached since the last call."""
        pieces: list[Piece] = []
        for owner, name, value in self._replaced:
            if isinstance(owner, type):
                where = f"{owner.__module__}.{owner.__qualname__}.{name}"
                pieces.append(Piece(where, placement.attribute, (owner, name), value, value))
            else:
                pieces.append(
                    Piece(f"{owner.__name__}.{name}", placement.value, (owner.__name__, name), value, value)
                )
            self._first_time(owner, name)
        self._replaced.clear()
        while self._functions:
            function = self._last = self._functions.pop()
            pieces += self._of_function(function)
        for kind in list(self._classes):
            if self._names_checked.get(id(kind)) != len(self._names):  # otherwise no new name could match
                self._names_checked[id(kind)] = len(self._names)
                pieces += self._of_class(kind)
        return pieces

    def registered(self, places: list[Any]) -> list[Piece]:
        """Return the pieces for the program's registrations with torch."""
        pieces = []
        for one in places:
            if (one.of is None or id(one.of) in self._reached) and self._first_time(
                one.of or one.put, one.where
            ):
                piece = Piece(one.where, placement.registered, (one.put,), one.value, one.by, one.kind)
                if one.watch is not None:
                    put, given = one.watch
                    piece.watch = Piece(f"{one.where}, watched", placement.registered, (put,), given, None)
                pieces.append(piece)
        return pieces

    def _class(self, kind: type) -> None:
        for one in kind.__mro__:
            if id(one) not in self._reached:
                self._reached[id(one)] = one
                self._classes.append(one)

    def _is_own_module(self, name: Any) -> bool:
        """Return True for a module of the program that the child imports."""
        return isinstance(name, str) and name in self._own and self._importable(name)

    def _is_program_function(self, value: Any) -> bool:
        """Return True for a function that the program wrote, or disabled for torch."""
        if not isinstance(value, types.FunctionType):
            return False
        name = value.__globals__.get("__name__")
        return name in SCRIPT or name in self._own or placement.is_disabled(value)

    def _place(self, function: Any) -> tuple[str, str] | None:
        """Return the module and path at which the child finds a function; None if it crosses by value."""
        name, path = str(getattr(function, "__module__", None)), function.__qualname__
        if not self._is_own_module(name) or "<" in path:
            return None
        there = placement.at(sys.modules[name], path)
        return (name, path) if any(one is function for one in placement.functions_in(there)) else None

    def _first_time(self, owner: Any, name: str) -> bool:
        key = (id(owner), name)
        new = key not in self._sent
        self._sent.add(key)
        return new

    # Functions ---------------------------------------------------------------------------------------------

    def _of_function(self, function: Any) -> Iterator[Piece]:
        code, space = function.__code__, function.__globals__
        names, used, imported, owners = names_in(code)
        self._names |= names
        if self._on_code is not None:
            for inner in codes(code):
                self._on_code(inner)
        name = space.get("__name__")
        module = sys.modules.get(name) if isinstance(name, str) else None
        named = module is not None and getattr(module, "__dict__", None) is space
        mine = named and self._is_own_module(name)
        for one in sorted(used):
            value = space.get(one, placement.NOTHING)
            if (
                mine
                and (value is not placement.NOTHING or not hasattr(builtins, one))
                and self._first_time(module, one)
            ):
                if value is placement.NOTHING:
                    yield Piece(f"{name}.{one}", placement.absent, (name,), one, function)
                else:
                    yield Piece(f"{name}.{one}", placement.value, (name, one), value, function)
            elif named and not mine and followed(str(name)):
                yield from self._of_package(module, one, function)
            if isinstance(value, types.ModuleType):
                more = {*vars(value)} if one in owners and self._is_own_module(value.__name__) else set()
                yield from self._of_module(value, names | more, function, set())
        for one in sorted(imported):
            yield from self._of_module(sys.modules.get(one), names, function, set())
        if mine and "globals" in used:
            yield from self._of_module(module, {*vars(module)}, function, set())
        cells = _cells(function)
        for value in cells.values():
            if isinstance(value, types.ModuleType):
                yield from self._of_module(value, names, function, set())
        if self._place(function) is not None and self._is_program_function(function):
            yield from self._held(function, cells)

    def _held(self, function: Any, cells: dict[str, Any]) -> Iterator[Piece]:
        """Yield the closure, the defaults and the attributes of a function."""
        where = f"{function.__module__}.{function.__qualname__}"
        for name, value in cells.items():
            if name != "__class__":
                yield Piece(f"{where}.{name}", placement.closed, (function, name), value, function)
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                yield Piece(
                    f"{where}.{name}",
                    placement.attribute,
                    (function, name),
                    getattr(function, name),
                    function,
                )
        for name, value in list(vars(function).items()):
            if name in self._names and not name.startswith(("__", "_torchdynamo")):
                yield Piece(f"{where}.{name}", placement.attribute, (function, name), value, function)

    # Modules ------------------------------------------------------------------------------------------------

    def _of_module(self, module: Any, names: set[str], by: Any, seen: set[int]) -> Iterator[Piece]:
        """Yield the pieces of a module that code may look up by these names."""
        if not isinstance(module, types.ModuleType) or id(module) in seen:
            return
        seen.add(id(module))
        name = module.__name__
        mine = self._is_own_module(name)
        for one in sorted(names & vars(module).keys()):
            value = vars(module).get(one)
            if isinstance(value, types.ModuleType):
                yield from self._of_module(value, names, by, seen)
            if mine:
                if not one.startswith("__") and self._first_time(module, one):
                    yield Piece(f"{name}.{one}", placement.value, (name, one), value, by)
            else:
                yield from self._of_package(module, one, by)
        if mine:
            for one in sorted(names - vars(module).keys()):
                if self._first_time(module, one):
                    yield Piece(f"{name}.{one}", placement.absent, (name,), one, by)

    def _of_package(self, module: Any, name: str, by: Any) -> Iterator[Piece]:
        """Yield the piece for a name of an installed module if the program may have set its value."""
        value = vars(module).get(name, placement.NOTHING)
        package = module.__name__
        if self._is_program_function(value):
            put = True
        elif not followed(package) or name.startswith("__"):
            return
        elif isinstance(value, type):
            self._class(value)
            return
        elif isinstance(value, types.FunctionType):
            self.follow(value)
            return
        else:
            put = (
                isinstance(value, (torch.nn.Module, torch.Tensor))
                or context.plain(value)
                or _holds_plain_values(value)
            )
        if put and self._first_time(module, name):
            yield Piece(f"{package}.{name}", placement.value, (package, name), value, by)

    def _of_torch(self) -> None:
        """Collect the functions that the program put into torch's namespaces."""
        self._replaced = []
        for owner in placement.TORCH_NAMESPACES:
            held = vars(owner).copy()
            known = _torch_contents.get(owner, ())
            if len(held) == len(known) and all(map(operator.is_, held.values(), known)):
                continue
            others = [(name, value) for name, value in held.items() if _not_of_torch(value)]
            self._replaced += [
                (owner, name, value) for name, value in others if self._is_program_function(value)
            ]
            if not others:
                _torch_contents[owner] = [*held.values()]

    # Classes ------------------------------------------------------------------------------------------------

    def _of_class(self, kind: type) -> Iterator[Piece]:
        name = kind.__module__
        if (
            isinstance(kind, enum.EnumMeta)
            or placement.at(sys.modules.get(name), kind.__qualname__) is not kind
        ):
            return
        mine = self._is_own_module(name)
        called = any(
            not self._is_own_module(one.__module__) and one not in _KNOWN_BASES for one in kind.__mro__
        )
        for attribute, value in list(vars(kind).items()):
            if attribute in _PYTHON_ATTRIBUTES or (id(kind), attribute) in self._sent:
                continue
            functions = [*placement.functions_in(value)] if mine and not context.plain(value) else []
            if not mine:
                sent = self._is_program_function(value) or (
                    followed(name) and context.plain(value) and not attribute.startswith("__")
                )
            elif context.plain(value):
                sent = not attribute.startswith("__")
            elif isinstance(value, _METHODS):
                reachable = (
                    called
                    or attribute in self._names
                    or attribute in _CALLED_BY_TORCH
                    or attribute[:2] == "__"
                )
                sent = reachable and any(map(self._is_program_function, functions))
                sent = sent and not any(one.__code__.co_filename.startswith("<string>") for one in functions)
            elif functions or hasattr(
                value, "__get__"
            ):  # another descriptor stays; its functions are followed
                if attribute in self._names:
                    self.follow(value)
                sent = False
            else:
                sent = attribute in self._names and not attribute.startswith("__")
            if sent and self._first_time(kind, attribute):
                by = functions[0] if functions else value if self._is_program_function(value) else self._last
                where = f"{name}.{kind.__qualname__}.{attribute}"
                yield Piece(where, placement.attribute, (kind, attribute), value, by)


_METHODS = (types.FunctionType, staticmethod, classmethod, property)

_CALLED_BY_TORCH = frozenset(("forward", "backward", "setup_context", "vmap", "jvp", "step", "extra_repr"))
"""Methods that torch calls, so that their names need not occur in the program's code."""

_KNOWN_BASES = (
    object,
    torch.nn.Module,
    torch.optim.Optimizer,
    torch.autograd.Function,
    *(torch.autograd.Function.__mro__),
)
"""Base classes whose calls of methods are known."""

_PYTHON_ATTRIBUTES = frozenset(
    "__dict__ __weakref__ __module__ __qualname__ __doc__ __annotations__ __slots__ __abstractmethods__ _abc_impl "
    "__static_attributes__ __firstlineno__ __parameters__ __orig_bases__ __annotate__ __annotate_func__ "
    "__annotations_cache__ __match_args__ __classcell__ __init_subclass__ _backward_cls".split()
)

_STANDARD = frozenset(sys.stdlib_module_names)

_LIBRARIES = frozenset(
    "torch torchgen functorch triton numpy sympy mpmath networkx jinja2 cloudpickle compile_lens pytest _pytest pluggy "
    "typing_extensions filelock fsspec setuptools".split()
)
"""Libraries whose code is not followed: torch, and what it is built on."""


def followed(module: str) -> bool:
    """Return True if the code of an installed package's module is followed."""
    top = module.partition(".")[0]
    return top not in _STANDARD and top not in _LIBRARIES and top not in SCRIPT


_torch_contents: dict[Any, list[Any]] = {}
"""Contents of each torch namespace when last found unchanged: a fast check, since there are thousands of names."""


def _not_of_torch(value: Any) -> bool:
    if type(value) is not types.FunctionType:
        return False
    name = str(value.__globals__.get("__name__"))
    return name in SCRIPT or followed(name) or placement.is_disabled(value)


def _holds_plain_values(value: Any) -> bool:
    """Return True for an object whose attributes are all plain values."""
    held = getattr(value, "__dict__", None)
    return type(held) is dict and not callable(value) and all(map(context.plain, held.values()))


def _cells(function: Any) -> dict[str, Any]:
    held = zip(function.__code__.co_freevars, map(placement.contents, function.__closure__ or ()))
    return {name: value for name, value in held if value is not placement.NOTHING}
