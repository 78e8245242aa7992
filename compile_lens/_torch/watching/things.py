"""What the program gave to ``torch.compile``, where torch calls it through a function of its own."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from ...record.graph import Frame
from ..frames import left_to_python
from ..ground import torch_source


def is_wrapper(code: types.CodeType) -> bool:
    """Whether a code is torch's function around what it cannot look into by itself."""
    return torch_source.internal(code.co_filename) and code.co_name == "inner"


def thing(function: Any) -> Any:
    """What is behind torch's wrapper, or the function itself."""
    while is_wrapper(getattr(function, "__code__", _NO_CODE)) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


_NO_CODE = is_wrapper.__code__


def named(function: Any) -> Frame:
    """A thing as the program would call it, and where it begins: no file and line where it is not in Python."""
    code = code_of(function)
    where = ("", 0) if code is None else (code.co_filename, code.co_firstlineno)
    return Frame(*where, _name(function, code))


def code_of(function: Any) -> types.CodeType | None:
    """The code that runs when a thing is called, ``None`` where there is none of Python's."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, torch.nn.Module):
        function = type(function).forward
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _name(function: Any, code: types.CodeType | None) -> str:
    if isinstance(function, functools.partial):
        return f"functools.partial of {_name(function.func, code)}"
    if isinstance(function, torch.nn.Module):
        return type(function).__name__
    if code is not None:
        return left_to_python.plain(code.co_name)
    name = str(getattr(function, "__name__", type(function).__name__))
    return f"torch.{name}" if getattr(torch, name, None) is function else name
