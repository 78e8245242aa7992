"""The wrappers of a watch: in place while one is open, and never in the way.

An observer runs before or after the wrapped function. An error in it is noted as something not observed; the program
goes on as if it were not there.
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
"""Observers of modules that are not imported before the program does."""
_registry: dict[str, Wrap] = {}
_claims: dict[str, tuple[str, ...]] = {}
"""The claims (``record.claims``) that rest on each observer."""
_placement = placement.Placement()


def hidden_from_dynamo(function: _F) -> _F:
    """``function``, whose frames torch takes for its own; Dynamo does not evaluate it within the program."""
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
    """Register ``wrap(real, *args, **kwargs)`` to be placed by ``place_late``; ``claims`` rest on it."""

    def register(wrap: Wrap) -> Wrap:
        _claims[path] = claims
        _late_registry[path] = hidden_from_dynamo(wrap)
        return wrap

    return register


def place_late(path: str, scopes: Iterable[Scope] = ()) -> None:
    """Place an observer of ``observe_late``, once its module is imported; it goes with the others. If the running
    torch lacks it, ``scopes`` note what rests on it."""
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
    """Count the time of an observer's work, and note its errors: ``claims`` rest on it."""
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
    """Note that an observer failed in the watches that see this thread."""
    evaluation = current()
    _note(evaluation.scopes if evaluation is not None else owners(), _claims[path], error)


_PACKAGE = f"{__name__.partition('.')[0]}."
_PROGRAMS = (f"{_PACKAGE}course.", f"{_PACKAGE}cli.")
"""Modules of ours with programs to be compiled: exercises' and the demo's."""
_marked: set[str] = set()
"""Modules of ours whose functions Dynamo was told to skip."""


def is_ours(names: Mapping[str, Any]) -> bool:
    """Return True if these are globals of a module of ours that takes part in a watch."""
    name = str(names.get("__name__"))
    return name.startswith(_PACKAGE) and (name == f"{_PACKAGE}cli.run" or not name.startswith(_PROGRAMS))


def _skip_our_functions() -> None:
    """Make Dynamo skip the functions that observers call: torch compiles backwards, and logs it, while it evaluates
    the program's own frames."""
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
    """Return the replacement of a function, or of None, which stands for one that does nothing."""
    real = _nothing if real is None else real
    failed = functools.partial(_failed, path)
    if "." in getattr(real, "__qualname__", ""):
        return _Method(functools.partial(_call, failed, wrap), real)
    return functools.update_wrapper(functools.partial(_call, failed, wrap, real), real)


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


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


@hidden_from_dynamo
def _call(failed: Callable[[Exception], None], wrap: Wrap, real: Any, *args: Any, **kwargs: Any) -> Any:
    return call(failed, wrap, (), real, args, kwargs)


def lost_claims() -> dict[str, str]:
    """Return the claims that rest on what the running torch does not have, each with the reason."""
    lost: dict[str, str] = {}
    for path in _registry:
        if hook_points.find(path) is None:
            for claim in _claims[path]:
                lost.setdefault(claim, hook_points.lacks(path))
    return lost
