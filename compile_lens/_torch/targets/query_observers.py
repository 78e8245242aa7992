"""What a program asks of the device in Python that Dynamo does not trace, which is answered as on the CPU.

Functions of torch and the attributes of its tensors are listened to. Dynamo, where it traces, must see torch's own.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..ground import hook_points
from .device_interfaces import MARK, PHASE, Properties
from .device_queries import (
    ATTRIBUTES,
    BUILD_FLAGS,
    FUNCTIONS,
    MARKS,
    METHODS,
    OF_THE_BUILD,
    ON_THE_DEVICE,
    PROPERTIES,
    Questions,
    frame_at,
    internal,
    line_traced,
    text,
    written_by_dynamo,
)
from .replacements import Places, not_compiled, on

Note = Callable[..., None]

_TORCH = os.path.join(os.path.dirname(torch.__file__), "")

_USES = (
    "BINARY",  # it is looked up in a table
    "LOAD_ATTR",
    "LOAD_METHOD",
    "COMPARE_OP",
    "CONTAINS_OP",
    "IS_OP",
    "FORMAT",
    "STORE",
    "UNARY",
    "POP_JUMP",
)
"""What asks something of a device that a tensor gave; to pass it on asks nothing."""


def place(places: Places, kind: str, questions: Questions) -> None:
    """Listen to torch, on marked threads; ``kind`` is the device's."""
    note = _noting(questions)
    not_compiled(written_by_dynamo)
    for path in FUNCTIONS:
        found = hook_points.find(path)
        if found is None or (kind == "cuda" and path.startswith("torch.backends.mps:")):  # no Mac has CUDA
            continue
        owner, name = found
        there = ON_THE_DEVICE.get(kind, {}).get(path)
        ours = _listening(note, path.replace(":", "."), getattr(owner, name), there)
        places.attribute(owner, name, MARK, ours)
        if path != PROPERTIES:
            _as_torchs(places, getattr(owner, name))
        not_compiled(getattr(owner, name))
    for path in OF_THE_BUILD:
        found = hook_points.find(path)
        if found is not None:
            owner, name = found
            ours = _asked_of_the_build(questions, note, path.replace(":", "."), getattr(owner, name))
            places.attribute(owner, name, MARK, ours)
            _as_torchs(places, getattr(owner, name))
            not_compiled(getattr(owner, name))
    for path in MARKS:
        found = hook_points.find(path)
        if found is not None:
            owner, name = found
            places.attribute(owner, name, MARK, lambda *told, **more: 0)
            _as_torchs(places, getattr(owner, name))
            not_compiled(getattr(owner, name))
    if kind == "cuda":  # torch for a Mac has no CUDA either
        _build_flags(places, questions)
        _acceptable(places, questions)
        _memory(places, questions)
    watched = _Watched(note, kind)
    places.enter(watched.placed())
    import torch._dynamo.convert_frame as convert_frame

    compile_frame: Any = getattr(convert_frame, "_compile", None)

    def compiles(*args: Any, **kwargs: Any) -> Any:
        with watched.off():
            return compile_frame(*args, **kwargs)

    places.attribute(convert_frame, "_compile", MARK, compiles)


def _build_flags(places: Places, questions: Questions) -> None:
    from torch._dynamo.variables.misc import PythonModuleVariable

    method = _reading(PythonModuleVariable)
    real: Any = getattr(PythonModuleVariable, method)

    def read(variable: Any, tx: Any, name: str) -> Any:
        module = getattr(variable.value, "__name__", "")
        if name in BUILD_FLAGS.get(module, ()):
            answer = getattr(variable.value, name, None)
            questions.put("queried", f"{module}.{name}", text(answer), line_traced())
        return real(variable, tx, name)

    places.attribute(PythonModuleVariable, method, PHASE, read)


def _memory(places: Places, questions: Questions) -> None:
    """How much memory the device has is what its driver leaves: about a percent less or more than any figure of it."""
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    method = _reading(UserDefinedObjectVariable)
    real: Any = getattr(UserDefinedObjectVariable, method)

    def read(variable: Any, tx: Any, name: str) -> Any:
        if name == "total_memory" and isinstance(variable.value, Properties):
            asked = "torch.cuda.get_device_properties().total_memory"
            answer = _said_of_memory(variable.value.total_memory)
            questions.put("queried", asked, answer, line_traced(), once=True)
        return real(variable, tx, name)

    places.attribute(UserDefinedObjectVariable, method, PHASE, read)


def _said_of_memory(size: int) -> str:
    """Some makers publish gigabytes alone, and it is not said of which kind."""
    gigabytes, rest = divmod(size, 10**9)
    other = f", its {gigabytes} GB of 10^9 bytes: if they are of 2^30, it has {gigabytes * 2**30}"
    return text(size) + ("" if rest else other)


def _reading(variable: Any) -> str:
    """With which method Dynamo reads an attribute: torch 2.15 names it as CPython does."""
    return "var_getattr" if hasattr(variable, "var_getattr") else "tp_getattro_impl"


def _acceptable(places: Places, questions: Questions) -> None:
    """Dynamo makes a tensor on the device to ask cuDNN. It is answered as where a cuDNN is there, which is said."""
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    handlers: dict[Any, Any] = getattr(TorchInGraphFunctionVariable, "_get_handlers", dict)()
    asked = inspect.unwrap(torch.backends.cudnn.is_acceptable)
    real = handlers.get(asked)
    if real is None:
        return

    def acceptable(variable: Any, tx: Any, tensor: Any, *extra: Any) -> Any:
        if not on(MARK) or extra or getattr(tensor.device, "type", "") != "cuda":
            return real(variable, tx, tensor, *extra)
        answer = torch._C._get_cudnn_enabled() and tensor.dtype in torch.backends.cudnn.CUDNN_TENSOR_DTYPES
        questions.put("queried", "torch.backends.cudnn.is_acceptable()", repr(answer), line_traced())
        return ConstantVariable.create(answer)

    places.entry(handlers, asked, acceptable)


def prepare() -> None:
    """Dynamo looks up torch's functions in a table that it makes when it is first asked: not of ones placed here."""
    from torch._dynamo import trace_rules

    getattr(trace_rules, "get_torch_obj_rule_map", dict)()


def _noting(questions: Questions) -> Note:
    """Notes what a frame of the program's asked. Dynamo looks at nothing in it: it compiles the program's frames."""

    def note(asked: str, answer: Any, frame: Any) -> None:
        code = frame.f_code
        if internal(code.co_filename):
            return
        if asked != "Tensor.device" or _is_used(frame):
            questions.put(
                "queried", asked, text(answer), frame_at(code.co_filename, frame.f_lineno, code.co_name)
            )

    disabled: Note = torch.compiler.disable(note)
    return disabled


def _as_torchs(places: Places, ours: Any) -> None:
    """Dynamo treats a function that stands for one of torch's as it treats that, and does not read it."""
    import torch._dynamo.trace_rules as trace_rules
    import torch._dynamo.variables.torch as variables
    from torch._dynamo.variables import SkipFunctionVariable

    original = inspect.unwrap(ours)
    rules: dict[Any, Any] = getattr(trace_rules, "get_torch_obj_rule_map", dict)()
    tables = [rules]
    for name in ("constant_fold_functions", "constant_fold_functions_need_guards"):
        tables.append(getattr(variables, name, {}))
    for table in tables:
        if original in table:
            places.entry(table, ours, table[original])
    if original not in rules and trace_rules.lookup(original) is SkipFunctionVariable:  # by its file
        places.entry(rules, ours, SkipFunctionVariable)
        ours.__code__ = ours.__code__.replace(co_filename=inspect.getfile(original))


def _listening(note: Note, name: str, real: Callable[..., Any], there: Any) -> Callable[..., Any]:
    def listening(*args: Any, **kwargs: Any) -> Any:
        if there is not None and written_by_dynamo(sys._getframe(2).f_code):
            return there
        answer = real(*args, **kwargs)
        if not torch.compiler.is_compiling() and not on(
            PHASE
        ):  # Dynamo takes the first for true when it traces this
            note(f"{name}()", answer, sys._getframe(2))
        return answer

    not_compiled(listening)
    return listening


def _asked_of_the_build(
    questions: Questions, note: Note, name: str, real: Callable[..., Any]
) -> Callable[..., Any]:
    def asked(*args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        if on(PHASE):
            questions.put("queried", f"{name}()", text(answer), line_traced())
        else:
            note(f"{name}()", answer, sys._getframe(2))
        return answer

    not_compiled(asked)
    return asked


class _Watched:
    """Attributes of tensors, while Python runs that is not traced."""

    def __init__(self, note: Note, kind: str) -> None:
        self._ours: dict[str, _Attribute] = {name: _Attribute(note, name) for name in ATTRIBUTES}
        self._ours["device"] = _Device(note, kind)
        self._ours |= {name: _Method(note, name) for name in METHODS}
        self._off_by = 1

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        self._on()
        try:
            yield
        finally:
            self._off()

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        self._off()
        try:
            yield
        finally:
            self._on()

    def _on(self) -> None:
        self._off_by -= 1
        if self._off_by == 0:
            for name, ours in self._ours.items():
                setattr(torch.Tensor, name, ours)

    def _off(self) -> None:
        self._off_by += 1
        if self._off_by == 1:
            for name, ours in self._ours.items():
                if vars(torch.Tensor).get(name) is ours:
                    delattr(torch.Tensor, name)


class _Attribute:
    def __init__(self, note: Note, name: str) -> None:
        self._note, self._name = note, f"Tensor.{name}"
        self._real = getattr(torch.Tensor, name)
        not_compiled(_Attribute.__get__)
        not_compiled(_Attribute._told)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self._real if tensor is None else self._told(tensor, owner, sys._getframe(1))

    def _told(self, tensor: Any, owner: Any, frame: Any) -> Any:
        answer = self._real.__get__(tensor, owner)
        if not frame.f_code.co_filename.startswith(_TORCH):
            self._note(self._name, answer, frame)
        return answer

    def __set__(self, tensor: Any, value: Any) -> None:
        self._real.__set__(tensor, value)


class _Device(_Attribute):
    def __init__(self, note: Note, kind: str) -> None:
        super().__init__(note, "device")
        import torch.nn.attention.flex_attention as flex_attention

        self._there = torch.device(kind, 0)
        # FlexAttention asks whether the device has a backward, and says by its name that it has none.
        self._asks_for_the_device: Any = getattr(flex_attention._validate_device, "__code__", None)
        not_compiled(_Device.__get__)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        frame = sys._getframe(1)
        if tensor is not None and frame.f_code is self._asks_for_the_device and on(MARK):
            return self._there
        return self._real if tensor is None else self._told(tensor, owner, frame)


class _Method(_Attribute):
    def __init__(self, note: Note, name: str) -> None:
        super().__init__(note, name)
        not_compiled(_Method.__get__)
        not_compiled(_Asking.__init__)
        not_compiled(_Asking.__call__)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        real = self._real.__get__(tensor, owner)
        if tensor is None or sys._getframe(1).f_code.co_filename.startswith(_TORCH):
            return real
        return _Asking(self._note, f"{self._name}()", real)


class _Asking:
    def __init__(self, note: Note, name: str, real: Callable[..., Any]) -> None:
        self._note, self._name, self._real = note, name, real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._real(*args, **kwargs)
        if not args and not kwargs:  # ``x.type(torch.float16)`` asks nothing
            self._note(self._name, answer, sys._getframe(1))
        return answer


def _is_used(frame: Any) -> bool:
    """Whether what the frame has just loaded is asked for something, or kept; not passed on to a call."""
    above = 0
    for step in dis.get_instructions(frame.f_code):
        if step.offset <= frame.f_lasti:
            continue
        effect = dis.stack_effect(
            step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None, jump=False
        )
        single = above == 0 and effect <= 1 and step.opname.startswith(_USES)
        if single or above + effect < 0 or (above > 0 and above + effect == 0):
            return step.opname.startswith(_USES)
        above += effect
    return True
