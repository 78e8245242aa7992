"""Objects passed to ``torch.compile`` that torch calls through a wrapper function of its own."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import types
import weakref
from typing import Any

import torch
from torch._dynamo import eval_frame

from ...record.breaks import Ending
from ...record.graph import Frame
from ..frames import eager_lines
from ..ground import source_places
from .callers import is_library


def number_of(compiler: Any) -> int:
    """Return the number, from 1, of the ``torch.compile`` to which a Dynamo callback belongs; 0 if its cache entries
    are isolated."""
    region = getattr(eval_frame, "get_eval_frame_isolate_recompiles_id", None)
    if region is not None and region() != _SHARED:
        return 0
    if compiler not in _numbers:
        _numbers[compiler] = next(_count)
    return _numbers[compiler]


_numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_count = itertools.count(1)
_SHARED = -1
"""Torch's number for the region of cache entries that are not isolated."""


def is_wrapper(code: types.CodeType) -> bool:
    """Return True for the code of torch's wrapper around a callable that Dynamo cannot trace directly, or of its resume
    function."""
    own = code.co_name == "inner" or eager_lines.plain_name(code.co_name) == "inner"
    return own and source_places.is_internal(code.co_filename)


def wrapped_place(frame: Any) -> Frame | None:
    """Return the place of the callable if ``frame`` is of torch's wrapper; None for any other frame."""
    code = frame.f_code
    if not is_wrapper(code):
        return None
    function = frame.f_locals.get("fn")
    return Frame("", 0, _UNNAMED) if function is None else described(unwrapped(function))


_UNNAMED = "what follows a call of torch's"
"""Name for a resume function of the wrapper, which has no reference to the callable."""


def without_wrapper(ending: Ending, wrapped: Frame, caller: Frame | None) -> Ending:
    """Return the ending without torch's wrapper in its stack, since the program called the wrapped object."""
    own = tuple(
        at for at in ending.frames if at.function != "inner" or not source_places.is_internal(at.file)
    )
    return dataclasses.replace(ending, frames=own or (place_of(wrapped, caller),))


def place_of(wrapped: Frame, caller: Frame | None) -> Frame:
    """Return the place of an object: its first line, or the program's line that calls it if it is not the program's."""
    if wrapped.file or caller is None:
        return wrapped
    return dataclasses.replace(caller, function=wrapped.function)


def unwrapped(function: Any) -> Any:
    """Return the object inside torch's wrapper, or the function itself; for a module's ``__call__``, the module."""
    while is_wrapper(getattr(function, "__code__", _NO_CODE)) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if isinstance(function, types.MethodType) and function.__func__ in _MODULE_CALLS:
        return function.__self__
    return function


_MODULE_CALLS = (torch.nn.Module.__call__, torch.nn.Module._call_impl)


_NO_CODE = is_wrapper.__code__


def described(function: Any) -> Frame:
    """Return an object's name and first line; no file and line if it is not the program's.

    For a function wrapped by a library's decorator, such as ``torch.no_grad()``, the program's function is described.
    """
    code = code_of(function)
    if code is not None and is_library(code.co_filename) and isinstance(function, _FUNCTIONS):
        own = inspect.unwrap(function)
        inner = code_of(own)
        if inner is not None and not is_library(inner.co_filename):
            function, code = own, inner
    where = (
        ("", 0) if code is None or is_library(code.co_filename) else (code.co_filename, code.co_firstlineno)
    )
    return Frame(*where, _name(function, code))


def code_of(function: Any) -> types.CodeType | None:
    """Return the code that runs when an object is called, None if it has no Python code."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, torch.nn.Module):
        function = type(function).forward
    elif not isinstance(function, _FUNCTIONS):
        function = next((vars(c)["__call__"] for c in type(function).__mro__ if "__call__" in vars(c)), None)
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function.__code__ if isinstance(function, types.FunctionType) else None


_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def _name(function: Any, code: types.CodeType | None) -> str:
    if isinstance(function, functools.partial):
        return f"functools.partial of {_name(function.func, code)}"
    if isinstance(function, torch.nn.Module):
        return type(function).__name__
    if code is not None and isinstance(function, _FUNCTIONS) and not is_library(code.co_filename):
        return eager_lines.plain_name(code.co_name)
    if isinstance(function, _OPERATORS):
        return f"torch.ops.{function}"
    try:
        name = str(object.__getattribute__(function, "__name__"))
    except AttributeError:  # a callable object of the program
        name = type(function).__name__
    return f"torch.{name}" if getattr(torch, name, None) is function else name


_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
