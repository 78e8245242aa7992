"""Names of the parameters that arguments reach through functions which hand them on as they got them.

``torch.no_grad()`` and its like, and torch's own function around a callable, take ``*args, **kwargs``: Dynamo names an
input there by its number, ``L['args'][1]``.
"""

from __future__ import annotations

import dis
import inspect
import types
from typing import Any

import torch

_VARARGS, _VARKEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
_BETWEEN = ("BUILD_MAP", "DICT_MERGE", "LOAD_FAST")


def names(output: Any) -> dict[str, str]:
    """Return the names of parameters, by Dynamo's names, for the frame of its ``output``; empty if that hands nothing
    on."""
    code = getattr(getattr(output, "root_tx", None), "f_code", None)
    values = getattr(output, "local_scope", {})
    reached = None if code is None else _reached(values.get(_callee(code)))
    if code is None or reached is None:
        return {}
    callee, bound = reached
    args, kwargs = _packed(code)
    rest, more = _packed(callee)
    own = callee.co_varnames[bound : callee.co_argcount]
    by_name = callee.co_varnames[callee.co_posonlyargcount : callee.co_argcount + callee.co_kwonlyargcount]
    given = {
        f"L[{args!r}][{i}]": own[i] if i < len(own) else f"{rest}[{i - len(own)}]"
        for i in range(len(values.get(args, ())))
    }
    return given | {
        f"L[{kwargs!r}][{name!r}]": name if name in by_name else f"{more}[{name!r}]"
        for name in values.get(kwargs, ())
    }


def _reached(function: Any) -> tuple[types.CodeType, bool] | None:
    """Return the code of the function that gets what is handed to a callable, and whether it is a method and gets
    its object before; None if that is not known."""
    bound = isinstance(function, (torch.nn.Module, types.MethodType))
    function = getattr(function, "forward", function) if isinstance(function, torch.nn.Module) else function
    function = getattr(function, "__func__", function)
    while isinstance(function, types.FunctionType) and (name := _callee(function.__code__)):
        callee = _cells(function).get(name)
        if callee is None or isinstance(callee, (torch.nn.Module, types.MethodType)):
            break
        function = callee
    return (function.__code__, bound) if isinstance(function, types.FunctionType) else None


def _packed(code: types.CodeType) -> tuple[str, str]:
    """Return the names of ``*args`` and ``**kwargs``."""
    names = (*code.co_varnames[code.co_argcount + code.co_kwonlyargcount :], "", "")
    return names[0], names[1] if code.co_flags & _VARKEYWORDS else ""


def _cells(function: types.FunctionType) -> dict[str, Any]:
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # it has nothing yet
            continue
    return cells


def _callee(code: types.CodeType) -> str:
    """Return the variable whose function a code calls with all that it got, unchanged; ``""`` if that is not shown."""
    if not code.co_flags & _VARARGS or code.co_argcount or code.co_kwonlyargcount:
        return ""
    args, kwargs = _packed(code)
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    steps = [step for step in steps if step[0] not in ("CACHE", "NOP", "PUSH_NULL")]
    if any(name.startswith(("STORE_", "DELETE_")) and value in (args, kwargs) for name, value in steps):
        return ""
    callees: dict[str, int] = {}
    for at, (name, value) in enumerate(steps):
        call = next((i for i, step in enumerate(steps[at:], at) if step[0] == "CALL_FUNCTION_EX"), 0)
        handed = steps[at + 1 : call]
        if name != "LOAD_DEREF" or [value for name, value in handed if name.startswith("LOAD_")] != [
            one for one in (args, kwargs) if one
        ]:
            continue
        if all(name.startswith(_BETWEEN) for name, _ in handed):
            callees[value] = callees.get(value, 0) + 1
    uses = sum(name.startswith("LOAD_FAST") and value == kwargs for name, value in steps)
    return next(iter(callees)) if len(callees) == 1 and uses in (0, *callees.values()) else ""
