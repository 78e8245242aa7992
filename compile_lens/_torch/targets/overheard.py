"""What a program asks of the device while Dynamo traces it. Dynamo answers, and keeps the answer as a constant."""

from __future__ import annotations

from typing import Any

import torch

from ...record.graph import Frame
from ..ground import hook_points
from .interfaces import MARK
from .questions import ATTRIBUTES, FUNCTIONS, UNKNOWN, Questions, frame_at, internal, text
from .replaced import Places


def place(places: Places, questions: Questions) -> None:
    """Listen to Dynamo's translator, on marked threads."""
    import torch._dynamo.symbolic_convert as symbolic_convert
    from torch._dynamo.variables.ctx_manager import AutocastModeVariable
    from torch._dynamo.variables.dicts import ConstDictVariable
    from torch._dynamo.variables.tensor import TensorVariable

    translator = symbolic_convert.InstructionTranslatorBase
    load: Any = getattr(translator, "_load_attr", None)
    call: Any = getattr(translator, "call_function", None)
    names = _names()
    given: dict[int, Any] = {}  # the devices that tensors gave, by the identity of what Dynamo has for them

    def is_given(variable: Any) -> bool:
        return id(variable) in given

    def note(asked: str, answer: Any, tx: Any) -> None:
        if not questions.within:
            questions.put("asked", asked, text(answer), _line_of(tx))

    def load_attr(tx: Any, attr: Any) -> Any:
        if attr not in _ATTRIBUTES:
            return load(tx, attr)
        owner = _realized(tx.stack[-1])
        found = load(tx, attr)
        loaded(tx, owner, attr)
        return found

    def loaded(tx: Any, owner: Any, attr: str) -> None:
        of_tensor = isinstance(owner, TensorVariable)
        if of_tensor and attr == "device":
            if _is_stand_in(tx.stack[-1]):
                given[id(tx.stack[-1])] = tx.stack[-1]
        elif of_tensor and attr == "get_device":
            note("Tensor.get_device()", -1, tx)
        elif of_tensor and attr in ATTRIBUTES:
            note(f"Tensor.{attr}", _constant(tx.stack[-1]), tx)
        elif attr in ("type", "index") and _is_stand_in(owner):
            note(f"Tensor.device.{attr}", _constant(tx.stack[-1]), tx)
        elif attr in ("cuda", "hip") and getattr(owner, "value", None) is torch.version:
            note(f"torch.version.{attr}", _constant(tx.stack[-1]), tx)

    def call_function(tx: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        builtin = getattr(fn, "fn", None)
        name = names.get(id(builtin or getattr(fn, "value", None) or fn), "")
        if name in _OF_THE_STATE and internal(tx.f_code.co_filename):
            name = ""  # asked by a module of torch's
        if not name and args and builtin in (str, repr, format) and _is_stand_in(args[0]):
            name = f"{builtin.__name__}(Tensor.device)"
        if name:
            with questions.whole():
                found = call(tx, fn, args, kwargs)
            note(name, _constant(tx.stack[-1]), tx)
            return found
        owner = _realized(args[0]) if len(args) > 1 and _is_getattr(fn) else None
        if args and is_given(args[0]) and isinstance(getattr(fn, "obj", None), ConstDictVariable):
            note("Tensor.device", torch.device("cpu"), tx)
        found = call(tx, fn, args, kwargs)
        if owner is not None and (attr := _constant(args[1])) in _ATTRIBUTES:
            loaded(tx, owner, attr)
        return found

    def compared(real: Any) -> Any:
        def compare(tx: Any, args: Any, kwargs: Any) -> Any:
            found = real(tx, args, kwargs)
            asks = sum(map(is_given, args)) or sum(map(_is_stand_in, args))
            if asks == 1:  # two of them are equal on any device
                note("Tensor.device", torch.device("cpu"), tx)
            return found

        return compare

    def contains(real: Any) -> Any:
        def within(tx: Any, container: Any, item: Any) -> Any:
            with questions.whole():
                found = real(tx, container, item)
            if is_given(item):
                note("Tensor.device", torch.device("cpu"), tx)
            return found

        return within

    def formatted(tx: Any, spec: Any, flags: Any) -> Any:
        asks = is_given(tx.stack[-1])
        found = form(tx, spec, flags)
        if asks:
            note("str(Tensor.device)", "cpu", tx)
        return found

    def method(variable: Any, tx: Any, name: str, args: Any, kwargs: Any) -> Any:
        found = call_method(variable, tx, name, args, kwargs)
        if name == "type" and not args and not kwargs:
            note("Tensor.type()", _constant(found), tx)
        return found

    def enter(variable: Any, *args: Any) -> Any:
        kind, dtype, enabled = (*variable.target_values, True)[:3]
        with questions.whole():
            found = real_enter(variable, *args)
        line = (_line_of(args[0]) or _decorated(args[0])) if args else None
        questions.entered(kind, dtype, enabled, line, made_before=variable.source is not None)
        return found

    form: Any = getattr(translator, "_format_value", None)
    call_method: Any = getattr(TensorVariable, "call_method", None)
    places.attribute(translator, "_format_value", MARK, formatted)
    places.attribute(TensorVariable, "call_method", MARK, method)
    for name in ("generic_contains", "pysequence_contains"):
        real_contains: Any = getattr(symbolic_convert, name, None)
        places.attribute(symbolic_convert, name, MARK, contains(real_contains))
    places.attribute(translator, "_load_attr", MARK, load_attr)
    places.attribute(translator, "call_function", MARK, call_function)
    real_enter: Any = getattr(AutocastModeVariable, "enter", None)
    places.attribute(AutocastModeVariable, "enter", MARK, enter)
    handlers = getattr(symbolic_convert, "compare_op_handlers", {})
    for operator in ("==", "!="):
        if operator in handlers:
            places.entry(handlers, operator, compared(handlers[operator]))


_ATTRIBUTES = (*ATTRIBUTES, "device", "get_device", "type", "index", "cuda", "hip")

_STATE = ("torch:is_autocast_enabled", "torch:is_autocast_cpu_enabled", "torch:get_autocast_dtype")
_OF_THE_STATE = tuple(f"{path.replace(':', '.')}()" for path in _STATE)
"""What asks for a region of autocast."""


def _names() -> dict[int, str]:
    """The functions by their identity, also those that something stands in for."""
    found = {}
    for path in (*FUNCTIONS, *_STATE):
        owner = hook_points.find(path)
        function = getattr(*owner, None) if owner is not None else None
        while function is not None:
            found[id(function)] = f"{path.replace(':', '.')}()"
            function = getattr(function, "__wrapped__", None)
    return found


def _realized(variable: Any) -> Any:
    realize = getattr(variable, "realize", None)
    return realize() if realize is not None else variable


def _constant(variable: Any) -> Any:
    try:
        return _realized(variable).as_python_constant()
    except Exception:  # Dynamo has errors of its own for what is no constant
        return UNKNOWN


def _is_getattr(fn: Any) -> bool:
    known = _realized(fn)
    return getattr(known, "fn", None) is getattr or type(known).__name__ == "GetAttrBuiltinVariable"


def _is_stand_in(variable: Any) -> bool:
    """Whether it is the device of the tensors that stand for those of the target."""
    value = _constant(variable)
    return isinstance(value, torch.device) and value.type == "cpu"


def _line_of(tx: Any) -> Frame | None:
    """The innermost line of the program's that Dynamo is at."""
    for _ in range(100):
        if tx is None:
            return None
        file = getattr(getattr(tx, "f_code", None), "co_filename", "")
        if file and not internal(file):
            summary = tx.frame_summary()
            return frame_at(summary.filename, summary.lineno or 0, summary.name)
        tx = getattr(tx, "parent", None)
    return None


def _decorated(tx: Any) -> Frame | None:
    """Where a function begins that autocast decorates: the frame that Dynamo is at is the decorator's."""
    cell = getattr(tx, "symbolic_locals", {}).get("func")
    function = _realized(getattr(cell, "pre_existing_contents", None))
    code = getattr(function, "get_code", lambda: None)()
    if code is None or internal(code.co_filename):
        return None
    return frame_at(code.co_filename, code.co_firstlineno, code.co_name)
