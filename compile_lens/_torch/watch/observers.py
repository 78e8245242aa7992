"""The wrappers of a watch, which are in place while one is open and do not affect the program.

An observer runs before or after the wrapped function. If it fails, its claims are recorded as not observed and the
program continues.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ..ground import hook_points, placement
from ..ground.hook_calls import call, skip_in_dynamo
from ..ground.placement import as_convert_frame as passing
from ..ground.undo import Undo
from .scopes import Scope, current, owners

Wrap = Callable[..., Any]
_F = TypeVar("_F", bound=Any)

_late_registry: dict[str, Wrap] = {}
"""Observers for modules that are observed only once the program imports them."""
_registry: dict[str, Wrap] = {}
_claims: dict[str, tuple[str, ...]] = {}
"""The claims (``record.claims``) that rest on each observer."""
_placement = placement.Placement()


def hidden_from_dynamo(function: _F) -> _F:
    """Return ``function``, changed so that torch takes its frames for its own and Dynamo does not evaluate them."""
    passing(function)
    _skip(function)
    return function


def observe(path: str, *claims: str) -> Callable[[Wrap], Wrap]:
    """Register ``wrap(real, *args, **kwargs)`` for ``"module:Class.attribute"``; ``claims`` rest on it."""

    def register(wrap: Wrap) -> Wrap:
        _registry[path] = hidden_from_dynamo(wrap)
        _claims[path] = claims
        return wrap

    return register


def observe_late(path: str, *claims: str) -> Callable[[Wrap], Wrap]:
    """Register ``wrap(real, *args, **kwargs)``, to be installed by ``place_late``; ``claims`` rest on it."""

    def register(wrap: Wrap) -> Wrap:
        _claims[path] = claims
        _late_registry[path] = hidden_from_dynamo(wrap)
        return wrap

    return register


def place_late(path: str, scopes: Iterable[Scope] = ()) -> None:
    """Install an observer of ``observe_late`` after its module is imported; it is removed with the others. If this
    torch lacks the function, its claims are recorded as lost in ``scopes``."""
    wrap = _late_registry[path]
    target = hook_points.find(path)
    for scope in scopes if target is None else ():
        for claim in _claims[path]:
            scope.lost.setdefault(claim, hook_points.lacks(path))
    with placement.lock:
        if (
            target is not None
            and _placement.in_use
            and not _placement.has(placement.defining(*target), target[1])
        ):
            owner = placement.defining(*target)
            if isinstance(vars(owner).get(target[1]), staticmethod):
                _placement.put(
                    owner, target[1], lambda real: staticmethod(_around(path, wrap, _function(real)))
                )
            else:
                _placement.put(owner, target[1], functools.partial(_around, path, wrap))


def _function(real: Any) -> Any:
    return real.__func__ if isinstance(real, staticmethod) else real


@contextlib.contextmanager
def observing(scopes: tuple[Scope, ...], *claims: str) -> Iterator[None]:
    """Add an observer's time to the overhead, and record its errors, for which ``claims`` are lost."""
    began = time.perf_counter_ns()
    try:
        yield
    except Exception as error:
        _note(scopes, claims, error)
    finally:
        spent = time.perf_counter_ns() - began
        for scope in scopes:
            scope.spent += spent


def _note(scopes: tuple[Scope, ...], claims: tuple[str, ...], error: Exception) -> None:
    for scope in scopes:
        for claim in claims:
            scope.failed[claim, f"{type(error).__name__}: {error}"] += 1


def _failed(path: str, error: Exception) -> None:
    """Record in the watches of this thread that an observer failed."""
    evaluation = current()
    _note(evaluation.scopes if evaluation is not None else owners(), _claims[path], error)


_PACKAGE = f"{__name__.partition('.')[0]}."
_PROGRAMS = (f"{_PACKAGE}course.", f"{_PACKAGE}cli.")
"""Modules of ours with programs to compile: exercises and the demo."""
_marked: set[str] = set()
"""Modules of ours whose functions Dynamo already skips."""


def is_ours(names: Mapping[str, Any]) -> bool:
    """Return True for the globals of a module of ours other than programs to compile."""
    name = str(names.get("__name__"))
    return name.startswith(_PACKAGE) and (name == f"{_PACKAGE}cli.run" or not name.startswith(_PROGRAMS))


def _skip_our_functions() -> None:
    """Make Dynamo skip the functions that observers call: while it evaluates the program's frames, torch also compiles
    backwards and logs that."""
    for name, module in list(sys.modules.items()):
        if module is None or name in _marked or not name.startswith(_PACKAGE):
            continue
        if not name.startswith(_PROGRAMS):
            _marked.add(name)
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == name:
                    for function in vars(value).values() if isinstance(value, type) else (value,):
                        _skip(function)


def _skip(function: Any) -> None:
    for part in (function, *(getattr(function, of, None) for of in ("__wrapped__", "__func__", "fget"))):
        skip_in_dynamo(part)


def place(undo: Undo) -> None:
    """Keep every observer in place until ``undo``."""
    _skip_our_functions()
    _placement.keep(undo, _fill)


def _fill() -> None:
    for path, wrap in _registry.items():
        target = hook_points.find(path)
        if target is not None:
            _placement.put(placement.defining(*target), target[1], functools.partial(_around, path, wrap))


def _around(path: str, wrap: Wrap, real: Any) -> Any:
    """Return the wrapper of a function, or of None, which means a function that does nothing."""
    real = _nothing if real is None else real
    failed = functools.partial(_failed, path)
    if "." in getattr(real, "__qualname__", ""):
        return _Method(functools.partial(_call, failed, wrap), real)
    return functools.update_wrapper(functools.partial(_call, failed, wrap, real), real)


class _Method:
    """A method wrapped by an observer, which binds to its object on lookup as functions do."""

    def __init__(self, wrap: Wrap, real: Any) -> None:
        self._wrap, self._real = wrap, real
        functools.update_wrapper(self, real)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return functools.partial(self._wrap, self._real)
        return functools.partial(self._wrap, self._real, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrap(self._real, *args, **kwargs)


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


@hidden_from_dynamo
def _call(failed: Callable[[Exception], None], wrap: Wrap, real: Any, *args: Any, **kwargs: Any) -> Any:
    return call(failed, wrap, (), real, args, kwargs)


def lost_claims() -> dict[str, str]:
    """Return the claims that rest on functions which this torch lacks, each with the reason."""
    lost: dict[str, str] = {}
    for path in _registry:
        if hook_points.find(path) is None:
            for claim in _claims[path]:
                lost.setdefault(claim, hook_points.lacks(path))
    return lost
