"""Observers of a program's device queries in untraced Python, which are answered as on the CPU.

Torch's functions and tensor attributes are observed; in traced code Dynamo must see the originals.
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
    BUILD_FUNCTIONS,
    DEVICE_ANSWERS,
    FUNCTIONS,
    METHODS,
    PROFILER_MARKS,
    PROPERTIES,
    DeviceQueries,
    answer_text,
    frame_at,
    is_dynamo_code,
    is_internal,
    traced_line,
)
from .replacements import Replacements, is_marked, skip_in_dynamo

Note = Callable[..., None]

_TORCH = os.path.join(os.path.dirname(torch.__file__), "")

_QUERYING = (
    "BINARY",  # a lookup in a table
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
"""Prefixes of instructions that inspect a tensor's device; merely passing it to a call does not."""


def place(places: Replacements, kind: str, queries: DeviceQueries) -> None:
    """Observe device queries on marked threads; ``kind`` is the device type."""
    note = _make_note(queries)
    skip_in_dynamo(is_dynamo_code)

    def replace(path: str, observer: Callable[[str, Any], Any]) -> None:
        target = hook_points.find(path)
        if target is not None:
            owner, name = target
            places.attribute(owner, name, MARK, observer(path, getattr(owner, name)))
            if path != PROPERTIES:
                _register_as_torchs(places, getattr(owner, name))
            skip_in_dynamo(getattr(owner, name))

    answers = DEVICE_ANSWERS.get(kind, {})
    for path in FUNCTIONS:
        if kind != "cuda" or not path.startswith(
            "torch.backends.mps:"
        ):  # no machine with CUDA has MPS, so that the answer is right
            replace(path, lambda path, real: _observed(note, _dotted(path), real, answers.get(path)))
    for path in BUILD_FUNCTIONS:
        replace(path, lambda path, real: _observed_build_query(queries, note, _dotted(path), real))
    for path in PROFILER_MARKS:
        replace(path, lambda path, real: lambda *args, **kwargs: 0)
    if kind == "cuda":  # these queries only matter for CUDA
        _build_flags(places, queries)
        _acceptable(places, queries)
        _memory(places, queries)
    watched = _TensorAttributes(note, kind)
    places.enter(watched.placed())
    import torch._dynamo.convert_frame as convert_frame

    compile_frame: Any = getattr(convert_frame, "_compile", None)

    def compiles(*args: Any, **kwargs: Any) -> Any:
        with watched.off():
            return compile_frame(*args, **kwargs)

    places.attribute(convert_frame, "_compile", MARK, compiles)


def _dotted(path: str) -> str:
    return path.replace(":", ".")


def _build_flags(places: Replacements, queries: DeviceQueries) -> None:
    from torch._dynamo.variables.misc import PythonModuleVariable

    method = _attribute_method(PythonModuleVariable)
    real: Any = getattr(PythonModuleVariable, method)

    def read(variable: Any, tx: Any, name: str) -> Any:
        module = getattr(variable.value, "__name__", "")
        if name in BUILD_FLAGS.get(module, ()):
            answer = getattr(variable.value, name, None)
            queries.put("queried", f"{module}.{name}", answer_text(answer), traced_line())
        return real(variable, tx, name)

    places.attribute(PythonModuleVariable, method, PHASE, read)


def _memory(places: Replacements, queries: DeviceQueries) -> None:
    """Record queries of the device's memory size, which differs by about a percent from any published figure."""
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    method = _attribute_method(UserDefinedObjectVariable)
    real: Any = getattr(UserDefinedObjectVariable, method)

    def read(variable: Any, tx: Any, name: str) -> Any:
        if name == "total_memory" and isinstance(variable.value, Properties):
            query = "torch.cuda.get_device_properties().total_memory"
            answer = _memory_text(variable.value.total_memory)
            queries.put("queried", query, answer, traced_line(), once=True)
        return real(variable, tx, name)

    places.attribute(UserDefinedObjectVariable, method, PHASE, read)


def _memory_text(size: int) -> str:
    """Return the size with its uncertainty: some makers only publish gigabytes, which may be 10^9 or 2^30 bytes."""
    gigabytes, rest = divmod(size, 10**9)
    other = f", its {gigabytes} GB of 10^9 bytes: if they are of 2^30, it has {gigabytes * 2**30}"
    return answer_text(size) + ("" if rest else other)


def _attribute_method(variable: Any) -> str:
    """Return the name of Dynamo's method that reads an attribute; torch 2.15 uses CPython's name."""
    return "var_getattr" if hasattr(variable, "var_getattr") else "tp_getattro_impl"


def _acceptable(places: Replacements, queries: DeviceQueries) -> None:
    """Answer Dynamo's query of cuDNN, for which it creates a tensor on the device, as if cuDNN were present, and record
    it."""
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    handlers: dict[Any, Any] = getattr(TorchInGraphFunctionVariable, "_get_handlers", dict)()
    is_acceptable = inspect.unwrap(torch.backends.cudnn.is_acceptable)
    real = handlers.get(is_acceptable)
    if real is None:
        return

    def acceptable(variable: Any, tx: Any, tensor: Any, *extra: Any) -> Any:
        if not is_marked(MARK) or extra or getattr(tensor.device, "type", "") != "cuda":
            return real(variable, tx, tensor, *extra)
        answer = torch._C._get_cudnn_enabled() and tensor.dtype in torch.backends.cudnn.CUDNN_TENSOR_DTYPES
        queries.put("queried", "torch.backends.cudnn.is_acceptable()", repr(answer), traced_line())
        return ConstantVariable.create(answer)

    places.entry(handlers, is_acceptable, acceptable)


def prepare() -> None:
    """Fill Dynamo's table of torch's functions, which it builds on first use, before any is replaced here."""
    from torch._dynamo import trace_rules

    getattr(trace_rules, "get_torch_obj_rule_map", dict)()


def _make_note(queries: DeviceQueries) -> Note:
    """Return a function that records a query by a frame of the program, and that Dynamo skips."""

    def note(query: str, answer: Any, frame: Any) -> None:
        code = frame.f_code
        if is_internal(code.co_filename):
            return
        if query != "Tensor.device" or _is_queried(frame):
            queries.put(
                "queried",
                query,
                answer_text(answer),
                frame_at(code.co_filename, frame.f_lineno, code.co_name),
            )

    disabled: Note = torch.compiler.disable(note)
    return disabled


def _register_as_torchs(places: Replacements, ours: Any) -> None:
    """Make Dynamo treat a replacement as torch's own function instead of tracing it."""
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


def _observed(note: Note, name: str, real: Callable[..., Any], there: Any) -> Callable[..., Any]:
    def observed(*args: Any, **kwargs: Any) -> Any:
        if there is not None and is_dynamo_code(sys._getframe(2).f_code):
            return there
        answer = real(*args, **kwargs)
        if not torch.compiler.is_compiling() and not is_marked(
            PHASE
        ):  # Dynamo assumes is_compiling() when it traces this
            note(f"{name}()", answer, sys._getframe(2))
        return answer

    skip_in_dynamo(observed)
    return observed


def _observed_build_query(
    queries: DeviceQueries, note: Note, name: str, real: Callable[..., Any]
) -> Callable[..., Any]:
    def observed(*args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        if is_marked(PHASE):
            queries.put("queried", f"{name}()", answer_text(answer), traced_line())
        else:
            note(f"{name}()", answer, sys._getframe(2))
        return answer

    skip_in_dynamo(observed)
    return observed


class _TensorAttributes:
    """Observed attributes of tensors, active while untraced Python runs."""

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
        skip_in_dynamo(_Attribute.__get__)
        skip_in_dynamo(_Attribute._observed_answer)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self._real if tensor is None else self._observed_answer(tensor, owner, sys._getframe(1))

    def _observed_answer(self, tensor: Any, owner: Any, frame: Any) -> Any:
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
        # FlexAttention checks the device's support for a backward, and its error names the device.
        self._asks_for_the_device: Any = getattr(flex_attention._validate_device, "__code__", None)
        skip_in_dynamo(_Device.__get__)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        frame = sys._getframe(1)
        if tensor is not None and frame.f_code is self._asks_for_the_device and is_marked(MARK):
            return self._there
        return self._real if tensor is None else self._observed_answer(tensor, owner, frame)


class _Method(_Attribute):
    def __init__(self, note: Note, name: str) -> None:
        super().__init__(note, name)
        skip_in_dynamo(_Method.__get__)
        skip_in_dynamo(_ObservedMethod.__init__)
        skip_in_dynamo(_ObservedMethod.__call__)

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        real = self._real.__get__(tensor, owner)
        if tensor is None or sys._getframe(1).f_code.co_filename.startswith(_TORCH):
            return real
        return _ObservedMethod(self._note, f"{self._name}()", real)


class _ObservedMethod:
    def __init__(self, note: Note, name: str, real: Callable[..., Any]) -> None:
        self._note, self._name, self._real = note, name, real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._real(*args, **kwargs)
        if not args and not kwargs:  # ``x.type(torch.float16)`` is no query
            self._note(self._name, answer, sys._getframe(1))
        return answer


def _is_queried(frame: Any) -> bool:
    """Return True if the value that the frame has just loaded is inspected or stored, not passed to a call."""
    stack_above = 0
    for step in dis.get_instructions(frame.f_code):
        if step.offset <= frame.f_lasti:
            continue
        effect = dis.stack_effect(
            step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None, jump=False
        )
        single = stack_above == 0 and effect <= 1 and step.opname.startswith(_QUERYING)
        if single or stack_above + effect < 0 or (stack_above > 0 and stack_above + effect == 0):
            return step.opname.startswith(_QUERYING)
        stack_above += effect
    return True
