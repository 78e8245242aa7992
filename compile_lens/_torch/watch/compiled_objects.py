"""What the program gave to ``torch.compile``, where torch calls it through a function of its own."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import torch

from ...record.breaks import Ending
from ...record.graph import Frame
from ..frames import eager_lines
from ..ground import source_places
from .callers import library


def is_wrapper(code: types.CodeType) -> bool:
    """Whether a code is torch's function around what it cannot look into by itself, or the rest of that."""
    own = code.co_name == "inner" or eager_lines.plain(code.co_name) == "inner"
    return own and source_places.is_internal(code.co_filename)


def behind(frame: Any) -> Frame | None:
    """What torch calls through its function, where Dynamo is asked about a frame of that; ``None`` of any other."""
    code = frame.f_code
    if not is_wrapper(code):
        return None
    function = frame.f_locals.get("fn")
    return Frame("", 0, _UNNAMED) if function is None else named(thing(function))


_UNNAMED = "what follows a call of torch's"
"""Of the rest of that function, which does not hold what it called."""


def shown(ending: Ending, behind: Frame, caller: Frame | None) -> Ending:
    """A reason without torch's function in its stack: the program called what is behind."""
    own = tuple(
        at for at in ending.frames if at.function != "inner" or not source_places.is_internal(at.file)
    )
    return dataclasses.replace(ending, frames=own or (place(behind, caller),))


def place(behind: Frame, caller: Frame | None) -> Frame:
    """Where a thing is: it begins there, or the program calls it there where it is not the program's."""
    if behind.file or caller is None:
        return behind
    return dataclasses.replace(caller, function=behind.function)


def thing(function: Any) -> Any:
    """What is behind torch's wrapper, or the function itself; of a module's call the module."""
    while is_wrapper(getattr(function, "__code__", _NO_CODE)) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    if isinstance(function, types.MethodType) and function.__func__ in _CALLS:
        return function.__self__
    return function


_CALLS = (torch.nn.Module.__call__, torch.nn.Module._call_impl)


_NO_CODE = is_wrapper.__code__


def named(function: Any) -> Frame:
    """A thing as the program would call it, and where it begins: no file and line of what is not the program's."""
    code = code_of(function)
    where = ("", 0) if code is None or library(code.co_filename) else (code.co_filename, code.co_firstlineno)
    return Frame(*where, _name(function, code))


def code_of(function: Any) -> types.CodeType | None:
    """The code that runs when a thing is called, ``None`` where there is none of Python's."""
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
    if code is not None and isinstance(function, _FUNCTIONS):
        return eager_lines.plain(code.co_name)
    if isinstance(function, _OPERATORS):
        return f"torch.ops.{function}"
    try:
        name = str(object.__getattribute__(function, "__name__"))
    except AttributeError:  # an object of the program's that can be called
        name = type(function).__name__
    return f"torch.{name}" if getattr(torch, name, None) is function else name


_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
