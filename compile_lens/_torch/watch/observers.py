"""The wrappers of a watch: in place while one is open, and never in the way.

An observer runs before or after what it wraps. An error in it is noted as something that could not be seen; the
program goes on as if it were not there.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from torch._dynamo.eval_frame import skip_code

from ..ground import hook_points, placement
from ..ground.placement import as_convert_frame as passing
from ..ground.undo import Undo
from .scopes import Scope

Wrap = Callable[..., Any]
_F = TypeVar("_F", bound=Any)

_late: dict[str, Wrap] = {}
"""Those of modules that are not imported before the program does."""
_registry: dict[str, tuple[Wrap, str]] = {}
_placement = placement.Placement()


def observe(path: str, what: str) -> Callable[[Wrap], Wrap]:
    """Register ``wrap(real, *args, **kwargs)`` for ``"module:Class.attribute"``; ``what`` is not seen without it."""

    def register(wrap: Wrap) -> Wrap:
        _registry[path] = unnoticed(wrap), what
        return wrap

    return register


def observe_late(path: str) -> Callable[[Wrap], Wrap]:
    """Register ``wrap(real, *args, **kwargs)`` to be placed by ``place_late``; ``real`` may be None."""

    def register(wrap: Wrap) -> Wrap:
        _late[path] = unnoticed(wrap)
        return wrap

    return register


def place_late(path: str) -> None:
    """Put an observer of ``observe_late`` in place, once its module is imported; it goes with the others."""
    wrap = _late[path]
    found = hook_points.find(path)
    with placement.lock:
        if (
            found is not None
            and _placement.in_use
            and not _placement.has(placement.defining(*found), found[1])
        ):
            owner = placement.defining(*found)
            if isinstance(vars(owner).get(found[1]), staticmethod):
                _placement.put(
                    owner, found[1], lambda real: staticmethod(functools.partial(wrap, _function(real)))
                )
            else:
                _placement.put(owner, found[1], functools.partial(_around, wrap))


def _function(real: Any) -> Any:
    return real.__func__ if isinstance(real, staticmethod) else real


@contextlib.contextmanager
def noting(scopes: tuple[Scope, ...], what: str) -> Iterator[None]:
    """The work of an observer: its time is counted, its errors are noted."""
    began = time.perf_counter_ns()
    try:
        yield
    except Exception as error:
        for scope in scopes:
            scope.failed[what, f"{type(error).__name__}: {error}"] += 1
    finally:
        spent = time.perf_counter_ns() - began
        for scope in scopes:
            scope.spent += spent


_OURS = f"{__name__.partition('.')[0]}."
_PROGRAMS = (f"{_OURS}course.", f"{_OURS}cli.")
"""Where ours has programs to be compiled: exercises' and the demo's."""
_marked: set[str] = set()
"""Modules of ours whose functions Dynamo was told not to look at."""


def ours(names: Mapping[str, Any]) -> bool:
    """Whether these are globals of a module of ours that takes part in a watch."""
    name = str(names.get("__name__"))
    return name.startswith(_OURS) and (name == f"{_OURS}cli.run" or not name.startswith(_PROGRAMS))


def _out_of_sight() -> None:
    """Dynamo must not look at what the observers call: torch compiles backwards, and says so, while the program's own
    frames are looked at."""
    for name, module in list(sys.modules.items()):
        if module is None or name in _marked or not name.startswith(_OURS):
            continue
        if not name.startswith(_PROGRAMS):
            _marked.add(name)
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == name:
                    for function in vars(value).values() if isinstance(value, type) else (value,):
                        _skip(function)


def _skip(function: Any) -> None:
    for part in (function, *(getattr(function, of, None) for of in ("__wrapped__", "__func__", "fget"))):
        codes = [code] if isinstance(code := getattr(part, "__code__", None), types.CodeType) else []
        while codes:
            one = codes.pop()
            skip_code(one)
            codes += [inner for inner in one.co_consts if isinstance(inner, types.CodeType)]


def place(undo: Undo) -> None:
    """Keep every observer in place until ``undo``."""
    _out_of_sight()
    _placement.keep(undo, _fill)


def _fill() -> None:
    for path, (wrap, _) in _registry.items():
        found = hook_points.find(path)
        if found is not None:
            _placement.put(placement.defining(*found), found[1], functools.partial(_around, wrap))


def _around(wrap: Wrap, real: Any) -> Any:
    """What stands in the place of a function. No frame of Python's of its own: torch walks the stack for each break and
    node, and each frame that stands in a compile costs it there."""
    if "." in getattr(real, "__qualname__", ""):
        return _Method(wrap, real)
    return functools.update_wrapper(functools.partial(wrap, real), real)


class _Method:
    """A method with an observer around it: bound to its object when it is looked up, as functions are."""

    def __init__(self, wrap: Wrap, real: Any) -> None:
        self._wrap, self._real = wrap, real
        functools.update_wrapper(self, real)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return functools.partial(self._wrap, self._real)
        return functools.partial(self._wrap, self._real, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrap(self._real, *args, **kwargs)


def unnoticed(function: _F) -> _F:
    """``function``, whose frames torch takes for its own; what runs in the program is not looked at by Dynamo."""
    passing(function)
    skip_code(function.__code__)
    return function


def absent() -> list[tuple[str, str]]:
    """What cannot be seen on the running torch, and for which hook that it lacks."""
    return [
        (what, hook_points.lacks(path))
        for path, (_, what) in _registry.items()
        if hook_points.find(path) is None
    ]
