"""Keeps Dynamo out of what captures, also where a program that captures is itself compiled; describes its arguments."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import torch

from .._torch.ground.program_hooks import without_torch_function
from ..errors import UsageError

FIRST = ("compile_lens._torch.preload", "compile_lens.engine.local")
"""Modules that every capture in a child needs."""

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


def check_options(function: str, own: Sequence[str], given: Iterable[str], like: Callable[..., Any]) -> None:
    """Raises ``UsageError`` for an option that neither ``function`` nor ``like``, to which it hands them, takes."""
    parameters = inspect.signature(like).parameters.values()
    known = list(dict.fromkeys((*own, *(p.name for p in parameters if p.kind == p.KEYWORD_ONLY))))
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


def name_of(fn: Any) -> str:
    """Return a name for a callable that a reader would recognise."""
    from .._torch.frames.dynamo import qualified_name

    if isinstance(fn, functools.partial):
        return f"partial({name_of(fn.func)})"
    if isinstance(fn, torch.nn.Module):
        inner = fn.__dict__.get("_modules", {}).get("_orig_mod")
        return type(inner if inner is not None else fn).__name__
    return qualified_name(fn) or str(getattr(fn, "__name__", None) or type(fn).__name__)


def signature_of(fn: Any) -> inspect.Signature | None:
    """Return the signature that a call of ``fn`` has to fit; None for a builtin that has none."""
    try:
        return inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    except (TypeError, ValueError):
        return None


@without_torch_function
def describe_arguments(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Return one line for each argument: the name of its parameter, and what was passed."""
    signature = signature_of(fn)
    names = [
        parameter.name
        for parameter in (signature.parameters.values() if signature else ())
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names += [f"argument {i}" for i in range(len(names), len(args))]
    return tuple(f"{name}: {describe(value)}" for name, value in (*zip(names, args), *kwargs.items()))


@without_torch_function
def describe(value: Any) -> str:
    """Return dtype, shape and device of a tensor, the size of a container, else the value, shortened."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        grad = " requires_grad" if value.requires_grad else ""
        return f"{dtype}[{', '.join(map(str, value.shape))}] {value.device}{grad}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"dict of {len(value)}"
    return short(value)


def short(value: Any) -> str:
    """Return the ``repr`` of a value in at most 80 characters; of a tensor its description."""
    if isinstance(value, torch.Tensor):
        return f"a {describe(value)} tensor"
    try:
        text = repr(value)
    except Exception:  # the user's own repr failed; its type is all there is to say
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."
