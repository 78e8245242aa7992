"""Calls of the functions that replace torch's own. None of their errors reaches torch or the program."""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from torch._dynamo.eval_frame import skip_code

from ...errors import LensError
from . import source_places
from .placement import as_convert_frame


def skip_in_dynamo(function: Any) -> None:
    """Make Dynamo skip the frames of a function and of those nested in it. A wrapper from Python's library or torch is
    not skipped: its code object is shared by all functions that it wraps, including the program's."""
    code = getattr(function, "__code__", None)
    shared = isinstance(code, types.CodeType) and _is_shared(code.co_filename)
    codes = [code] if isinstance(code, types.CodeType) and not shared else []
    while codes:
        one = codes.pop()
        skip_code(one)
        codes += [inner for inner in one.co_consts if isinstance(inner, types.CodeType)]


def _is_shared(file: str) -> bool:
    in_library = file.startswith(_LIBRARY) and "-packages" not in file.removeprefix(_LIBRARY)
    return in_library or source_places.is_torch_file(file)


_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")


class Deliberate(Exception):
    """Base of exceptions that a hook raises on purpose to leave a function of torch's; ``call`` lets them propagate."""


_PROPAGATES = "_compile_lens_passes"


@contextlib.contextmanager
def passing() -> Iterator[None]:
    """Let errors of this block propagate through the hook: without its work, which our caller requested, the compile
    would be useless."""
    try:
        yield
    except Exception as error:
        setattr(error, _PROPAGATES, True)
        raise


@as_convert_frame
def call(
    failed: Callable[[Exception], None],
    function: Callable[..., Any],
    before: tuple[Any, ...],
    real: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return ``function(*before, real, *args, **kwargs)``. If it fails, call ``failed`` with its error and return the
    result of ``real``, which runs once in any case. Errors of ``real`` propagate."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def once(*args: Any, **kwargs: Any) -> Any:
        try:
            result = real(*args, **kwargs)
        except BaseException as error:
            errors.append(error)
            raise
        results.append(result)
        return result

    once.__wrapped__ = real  # type: ignore[attr-defined]
    try:
        try:
            return function(*before, once, *args, **kwargs)
        except (Deliberate, LensError):
            raise
        except Exception as error:
            if getattr(error, _PROPAGATES, False) or any(error is one for one in errors):
                raise
            with contextlib.suppress(Exception):
                failed(error)
        if errors:  # the function failed while handling an error of ``real``
            raise errors[-1]
        return results[-1] if results else real(*args, **kwargs)
    finally:
        errors.clear()  # their tracebacks refer to this frame


skip_in_dynamo(call)


def torch_frame() -> types.FrameType | None:
    """Return the innermost frame that is not ours: the caller of the function that a hook replaces."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and source_places.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
