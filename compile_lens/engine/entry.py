"""Keeps Dynamo out of what captures, also where a program that captures is itself compiled."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import torch

from ..errors import UsageError

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
    parameters = inspect.signature(function).parameters.values()
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_more = any(p.kind == p.VAR_KEYWORD for p in parameters)

    @functools.wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in named and not takes_more:
                raise UsageError(_unknown(function.__name__, name, named[1:]))
        if not inside:
            if kwargs.get("target") is not None or kwargs.get("targets") is not None:
                from ..child import process

                process.ready(FIRST)
                if "torch._dynamo" not in sys.modules:
                    return function(*args, **kwargs)
            inside.append(torch.compiler.disable(function))
        return inside[0](*args, **kwargs)

    return cast(_F, outside)


def check_options(
    function: str,
    own: Sequence[str],
    given: Iterable[str],
    like: Callable[..., Any],
    without: Sequence[str] = (),
) -> None:
    """Raises ``UsageError`` for an option that neither ``function`` nor ``like``, to which it hands them, takes.
    ``without`` are options of ``like`` that ``function`` does not take."""
    parameters = inspect.signature(like).parameters.values()
    names = (p.name for p in parameters if p.kind == p.KEYWORD_ONLY and p.name not in without)
    known = list(dict.fromkeys((*own, *names)))
    for name in given:
        if name not in known:
            raise UsageError(_unknown(function, name, known))


def _unknown(function: str, name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"{function} has no argument {name!r}; {meant}it has {', '.join(known)}. "
        f"What the captured function takes by name goes in kwargs={{{name!r}: …}}"
    )
