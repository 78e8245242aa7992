"""Context managers that hide our work on tensors from the program's hooks.

A program may count, log or move tensors with ``__torch_function__``, modes and hooks for saved tensors. These must see
the program's own calls, as often as without a capture, and no others.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import torch

from .undo import Undo

_F = TypeVar("_F", bound=Callable[..., Any])


def without_torch_function(function: _F) -> _F:
    """Return ``function`` wrapped so that it calls neither ``__torch_function__`` of a subclass nor a mode."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return function(*args, **kwargs)

    return cast(_F, wrapper)


@contextlib.contextmanager
def without_compiled_autograd() -> Iterator[None]:
    """For the duration, run backwards as autograd does without ``compiled_autograd``, which compiles them."""
    compiler = torch._C._dynamo.compiled_autograd
    with Undo() as undo, undo:
        before = compiler.set_autograd_compiler(None, False)
        undo.add(compiler.set_autograd_compiler, *before)
        yield


@contextlib.contextmanager
def without_saved_tensor_hooks() -> Iterator[None]:
    """For the duration, save tensors for a backward without the program's hooks and without anomaly detection."""
    anomaly, at_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    autograd = torch._C._autograd
    taken: list[Any] = []

    def put_back() -> None:
        while taken:
            autograd._push_saved_tensors_default_hooks(*taken.pop()[0])

    with Undo() as undo, undo:
        undo.add(put_back)
        # Removed, not overridden with hooks of ours: torch.func refuses to run under any.
        while (hooks := autograd._top_saved_tensors_default_hooks(True)) is not None:
            taken += [(hooks, autograd._pop_saved_tensors_default_hooks())]  # one statement: both, or neither
        if anomaly:
            undo.add(torch.set_anomaly_enabled, True, at_nan)
            torch.set_anomaly_enabled(False)
        yield
