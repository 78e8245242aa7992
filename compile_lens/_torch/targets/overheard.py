"""What a program asks of the device while Dynamo traces it. Dynamo answers, and keeps the answer as a constant."""

from __future__ import annotations

from typing import Any

import torch

from ...graph import Frame
from .. import versions
from .interfaces import MARK
from .places import Places
from .questions import ATTRIBUTES, FUNCTIONS, UNKNOWN, Questions, frame_at, internal, text


def place(places: Places, questions: Questions) -> None:
    """Listen to Dynamo's translator, on marked threads."""
    import torch._dynamo.symbolic_convert as symbolic_convert
    from torch._dynamo.variables.ctx_manager import AutocastModeVariable
    from torch._dynamo.variables.tensor import TensorVariable

    translator = symbolic_convert.InstructionTranslatorBase
    load: Any = getattr(translator, "_load_attr", None)
    call: Any = getattr(translator, "call_function", None)
    names = _names()
    given: dict[int, Any] = {}  # the devices that tensors gave, by the identity of what Dynamo has for them

    def is_given(variable: Any) -> bool:
        return id(_realized(variable)) in given

    def load_attr(tx: Any, attr: Any) -> Any:
        if attr not in _ATTRIBUTES:
            return load(tx, attr)
        owner = _realized(tx.stack[-1])
        found = load(tx, attr)
        if isinstance(owner, TensorVariable) and attr == "device":
            device = _realized(tx.stack[-1])
            if _is_stand_in(device):
                given[id(device)] = device
        elif isinstance(owner, TensorVariable) and attr not in ("type", "index"):
            answer: Any = -1 if attr == "get_device" else _constant(tx.stack[-1])
            asked = "Tensor.get_device()" if attr == "get_device" else f"Tensor.{attr}"
            questions.put("asked", asked, text(answer), _line_of(tx))
        elif attr in ("type", "index") and _is_stand_in(owner):
            questions.put("asked", f"Tensor.device.{attr}", text(_constant(tx.stack[-1])), _line_of(tx))
        return found

    def call_function(tx: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        name = names.get(id(getattr(fn, "fn", None) or getattr(fn, "value", None) or fn), "")
        if not name and args and getattr(fn, "fn", None) is str and _is_stand_in(args[0]):
            name = "str(Tensor.device)"
        if not name:
            return call(tx, fn, args, kwargs)
        with questions.whole() as outermost:
            found = call(tx, fn, args, kwargs)
        if outermost:
            questions.put("asked", name, text(_constant(tx.stack[-1])), _line_of(tx))
        return found

    def compared(real: Any) -> Any:
        def compare(tx: Any, args: Any, kwargs: Any) -> Any:
            found = real(tx, args, kwargs)
            asks = sum(map(is_given, args)) or sum(map(_is_stand_in, args))
            if asks == 1:  # two of them are equal on any device
                questions.put("asked", "Tensor.device", repr("cpu"), _line_of(tx))
            return found

        return compare

    def enter(variable: Any, *args: Any) -> Any:
        kind, dtype, enabled = (*variable.target_values, True)[:3]
        with questions.whole():
            found = real_enter(variable, *args)
        questions.entered(kind, dtype, enabled, _line_of(args[0]) if args else None)
        return found

    places.attribute(translator, "_load_attr", MARK, load_attr)
    places.attribute(translator, "call_function", MARK, call_function)
    real_enter: Any = getattr(AutocastModeVariable, "enter", None)
    places.attribute(AutocastModeVariable, "enter", MARK, enter)
    handlers = getattr(symbolic_convert, "compare_op_handlers", {})
    for operator in ("==", "!="):
        if operator in handlers:
            places.entry(handlers, operator, compared(handlers[operator]))


_ATTRIBUTES = (*ATTRIBUTES, "device", "get_device", "type", "index")


def _names() -> dict[int, str]:
    """The functions by their identity, also those that something stands in for."""
    found = {}
    for path in FUNCTIONS:
        owner = versions.find(path)
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
