"""Room on Python's stack for a compile.

CPython keeps the frames of functions in blocks of 16 KiB. A loop whose calls cross the end of a block asks the
system for the next block at every call, and gives it back at every return. A compile is deep enough to have
several such places, in torch and here, and it is chance which loops meet one: they may cost a tenth of it. A
frame that wants much room gets a larger block, and what it leaves of it is there for the frames above it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

SLOTS = 1 << 16
"""Values that the frame says it needs. It never uses them: the system gives memory to what is written to.

A block is the smallest power of two that holds them with what each frame has besides, so nearly half of it,
512 KiB, is left for others: about a thousand frames of usual size.
"""


def roomy(function: Function) -> Function:
    """``function``, called on a stack with room above it."""

    @functools.wraps(function)
    def with_room(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return cast(Function, make_room(with_room))


def make_room(function: Function) -> Function:
    """The same function, whose frame leaves room for those above it."""
    # Elsewhere frames have no blocks.
    if sys.version_info >= (3, 11) and sys.implementation.name == "cpython":
        function.__code__ = function.__code__.replace(co_stacksize=SLOTS)
    return function
