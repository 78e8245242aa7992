"""Keeps Dynamo out of what captures, also where a program that captures is itself compiled."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ..errors import needs_torch

FIRST = ("compile_lens._torch.preload", "compile_lens.engine.local")
"""Modules that every capture in a child needs."""

GROUP = "compile_lens._torch.ground.process_group:fake_group"
"""Context in which a child stands for the caller's rank: what holds a process group needs one to be unpacked."""

WITHIN = {"cuda": "compile_lens._torch.targets.autocast:regions_stay"}
"""By kind of device, in which context the child imports what a function for it needs."""

_F = TypeVar("_F", bound=Callable[..., Any])


def outside_dynamo(function: _F) -> _F:
    """Dynamo, where it traces a program that captures something itself, must not look inside.

    As ``torch.compiler.disable``, which loads Dynamo. Where it is not loaded no one is traced: what is captured in the
    child process leaves it so.
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
    """Return torch. Raises ``ModuleNotFoundError`` that says what to install, for a public function of that name."""
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
    """Return a decorator of public functions that take ``fn, *args``: what is no option of theirs goes into ``kwargs``.

    Args:
        like: the public function whose options the decorated one takes too, but for those of ``without``.
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
