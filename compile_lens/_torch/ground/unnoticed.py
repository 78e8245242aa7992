"""Frames of ours that stand among those of Dynamo's ``convert_frame.py``, and pass for them."""

from __future__ import annotations

from typing import Any, TypeVar

_F = TypeVar("_F", bound=Any)

AROUND = ", around torch/_dynamo/convert_frame.py"
"""Behind the names of their files: what torch asks is how a name ends."""

MODULE = "torch._dynamo.convert_frame:"
"""How the paths of hooks begin whose wrappers stand there."""


def unnoticed(function: _F) -> _F:
    """``function``, whose frames torch takes for those of its own ``convert_frame.py``.

    Dynamo looks at the frames above it: for a function under ``disable(recursive=False)`` right above its own, for
    the stack of the program up to them.
    """
    code = function.__code__
    function.__code__ = code.replace(co_filename=code.co_filename.removesuffix(AROUND) + AROUND)
    return function
