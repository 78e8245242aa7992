"""Keeps Dynamo out of what captures, also where a program that captures is itself compiled."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

_F = TypeVar("_F", bound=Callable[..., Any])


def outside_dynamo(function: _F) -> _F:
    """Dynamo, where it traces a program that captures something itself, must not look inside.

    As ``torch.compiler.disable``, which loads Dynamo. Where it is not loaded no one is traced: what is captured in the
    child process leaves it so.
    """
    inside: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def outside(*args: Any, **kwargs: Any) -> Any:
        if not inside:
            if kwargs.get("target") is not None or kwargs.get("targets") is not None:
                from ..child import process

                process.ready()
                if "torch._dynamo" not in sys.modules:
                    return function(*args, **kwargs)
            inside.append(torch.compiler.disable(function))
        return inside[0](*args, **kwargs)

    return cast(_F, outside)
