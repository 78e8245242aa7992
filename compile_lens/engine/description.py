"""Names and short descriptions of callables and their arguments."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch

from .._torch.ground.program_hooks import without_torch_function


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
