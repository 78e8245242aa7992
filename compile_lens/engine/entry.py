"""Decorators of the public functions that capture: they keep Dynamo out and separate options from arguments."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ..errors import needs_torch

FIRST = ("compile_lens._torch.preload", "compile_lens.engine.local")
"""Modules that a child imports before its first capture."""

GROUP = "compile_lens._torch.ground.process_group:fake_group"
"""Context in which a child acts as the caller's rank; objects with a process group need one to be unpickled."""

WITHIN = {"cuda": "compile_lens._torch.targets.autocast:regions_stay"}
"""Context in which the child loads a request, by kind of target device."""

_F = TypeVar("_F", bound=Callable[..., Any])


def outside_dynamo(function: _F) -> _F:
    """Decorate a function so that Dynamo does not trace into it when it traces a program that captures.

    It applies ``torch.compiler.disable``, which loads Dynamo. If Dynamo is not loaded, nothing is traced, and a capture
    in the child process leaves it unloaded.
    """
    inside: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if not inside:
            if kwargs.get("target") is not None or kwargs.get("targets") is not None:
                from ..child import process

                process.ready(FIRST)
                if "torch._dynamo" not in sys.modules:
                    return function(*args, **kwargs)
            inside.append(_torch(function.__name__).compiler.disable(function))
        return inside[0](*args, **kwargs)

    return cast(_F, outside)


def _torch(name: str) -> Any:
    """Return torch. Raises ``ModuleNotFoundError`` with what to install for the public function ``name``."""
    __tracebackhide__ = True
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise needs_torch(f"compile_lens.{name}") from None
    return torch


def separates_keywords(
    like: Callable[..., Any] | None = None, without: Sequence[str] = ()
) -> Callable[[_F], _F]:
    """Return a decorator for public functions that take ``fn, *args``: keywords that are not options go into
    ``kwargs``.

    Args:
        like: a public function whose options the decorated one takes too, except those in ``without``.
    """

    def decorated(function: _F) -> _F:
        own = own_options(function, like, without)
        first = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def separated(*args: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            _torch(function.__name__)
            if not args and first not in keywords:
                return function(*args, **keywords)
            from .call import separate

            fn, *rest = args or (keywords.pop(first),)
            return function(fn, *rest, **separate(function.__name__, own, fn, tuple(rest), keywords))

        return cast(_F, separated)

    return decorated


def own_options(
    function: Callable[..., Any], like: Callable[..., Any] | None = None, without: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of the options of ``function``, and of those of ``like`` that are not in ``without``."""

    def options(of: Callable[..., Any] | None) -> list[str]:
        parameters = inspect.signature(of).parameters.values() if of is not None else ()
        return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]

    return tuple(
        dict.fromkeys([*options(function), *(name for name in options(like) if name not in without)])
    )
