"""Reader of a program's values that runs none of the program's code."""

from __future__ import annotations

import ast
import collections
import enum
import functools
import os
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...record import messages
from ..graphs import fx_values
from ..ground.program_hooks import without_torch_function

Names = Mapping[str, Any]


def read_now(source: str, names: Names, globals: Names) -> str:
    """Return the value of an expression as text; ``""`` if reading it would run code of the program."""
    tree = messages.parse_expression(source)
    if tree is None:
        return ""
    try:
        value = _read(tree, names, globals)
    except _Unreadable:
        return ""
    return description(value)


class NoValue(enum.Enum):
    """Placeholder for a value that was not read."""

    MISSING = "its owner can be read, and does not have it"
    UNREAD = "it cannot be read"


def value_of(source: str, names: Names, globals: Names) -> Any:
    """Return the value of an expression, or ``NoValue``."""
    tree = messages.parse_expression(source)
    try:
        return NoValue.UNREAD if tree is None else _read(tree, names, globals)
    except _Unreadable:
        pass
    if isinstance(tree, ast.Subscript):
        owner = value_of(ast.unparse(tree.value), names, globals)
        if type(owner) in (dict, list, tuple) and isinstance(tree.slice, ast.Constant):
            return NoValue.MISSING
    return NoValue.UNREAD


class _Unreadable(Exception):
    """Raised if a value does not exist or reading it would run code of the program."""


_FIELDS = (types.MemberDescriptorType, type(vars(collections.namedtuple("_One", "field"))["field"]))
"""Descriptors of ``__slots__`` and named tuples, which run no code of the program."""


def _is_instance(value: Any, base: type | tuple[type, ...]) -> bool:
    """Return ``isinstance`` without reading ``__class__``, which may run code of the program."""
    return issubclass(type(value), base)


_PLAIN = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CellType,
    types.CodeType,
    functools.partial,
    slice,
    range,
)
"""Builtin classes whose attributes can be read without running code of the program."""


def _read(node: ast.expr, names: Names, globals: Names) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for attributes in (names, globals):
            if node.id in attributes:
                return attributes[node.id]
        raise _Unreadable
    if isinstance(node, ast.Attribute):
        return _attribute(_read(node.value, names, globals), node.attr)
    if isinstance(node, ast.Subscript):
        return _item(_read(node.value, names, globals), _read(node.slice, names, globals))
    if isinstance(node, ast.BinOp):
        return _arithmetic(node.op, _read(node.left, names, globals), _read(node.right, names, globals))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _arithmetic(ast.Sub(), 0, _read(node.operand, names, globals))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and node.func.value.id in ("dict", "tuple", "list"):
            return _call_unbound(node, names, globals)
        value = _read(node.func.value, names, globals)
        if type(value) in (torch.Tensor, torch.nn.Parameter) and all(
            isinstance(index, ast.Constant) for index in node.args
        ):
            return _tensor_measure(
                value, node.func.attr, [getattr(index, "value", None) for index in node.args]
            )
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _call_builtin(node.func.id, _read(node.args[0], names, globals))
    raise _Unreadable


def _attribute(owner: Any, name: str) -> Any:
    if type(owner) in _PLAIN:
        try:
            return object.__getattribute__(owner, name)
        except (AttributeError, ValueError):  # an empty cell
            raise _Unreadable from None
    if _is_instance(owner, type):
        return _attribute_of_class(owner, name)
    if name == "grad" and type(owner) in (torch.Tensor, torch.nn.Parameter):
        return _gradient(owner)
    try:
        attributes = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        attributes = {}
    if name == "__dict__":
        return attributes
    if name == "__class__":
        return type(owner)
    for inside in (attributes, *(attributes.get(part) for part in ("_parameters", "_buffers", "_modules"))):
        if type(inside) is dict and name in inside:
            return inside[name]
    value = _class_attribute(type(owner), name)
    if type(value) in _FIELDS:
        try:
            return value.__get__(owner)
        except AttributeError:
            raise _Unreadable from None
    return _plain_attribute(value)


def _attribute_of_class(owner: type, name: str) -> Any:
    if name in ("__mro__", "__dict__", "__name__", "__qualname__"):
        return type.__dict__[name].__get__(owner)
    return _plain_attribute(_class_attribute(owner, name))


def _class_attribute(owner: type, name: str) -> Any:
    for one in type.__dict__["__mro__"].__get__(owner):
        own = type.__dict__["__dict__"].__get__(one)
        if name in own:
            return own[name]
    raise _Unreadable


def _plain_attribute(value: Any) -> Any:
    try:
        _class_attribute(type(value), "__get__")
    except _Unreadable:
        return value
    raise _Unreadable


def _item(owner: Any, key: Any) -> Any:
    if _is_instance(owner, types.MappingProxyType) and type(key) is str:
        owner = dict(owner)
    if _is_instance(owner, dict) and type(key) in (str, int):
        own = dict.keys(owner)
        if all(type(one) in (str, int) for one in own) and key in own:
            return dict.__getitem__(owner, key)
    elif _is_instance(owner, (list, tuple)) and type(key) is int:
        base = list if _is_instance(owner, list) else tuple
        if -base.__len__(owner) <= key < base.__len__(owner):
            return base.__getitem__(owner, key)
    raise _Unreadable


def _call_unbound(node: ast.Call, names: Names, globals: Names) -> Any:
    """Return the value of ``dict.keys(d)`` or ``dict.__getitem__(d, key)``, which torch writes for subclasses of
    builtins."""
    function = ast.unparse(node.func)
    arguments = [_read(argument, names, globals) for argument in node.args]
    if function == "dict.keys" and len(arguments) == 1 and _is_instance(arguments[0], dict):
        return list(dict.keys(arguments[0]))
    if function.endswith(".__getitem__") and len(arguments) == 2:
        return _item(arguments[0], arguments[1])
    raise _Unreadable


def _call_builtin(function: str, value: Any) -> Any:
    if function == "type":
        return type(value)
    if function == "len":
        for base in (list, tuple, dict, str, set, frozenset, collections.deque):
            if _is_instance(value, base):
                return base.__len__(value)
    if function == "dict" and _is_instance(value, types.MappingProxyType):
        return dict(value)
    if function == "list" and type(value) is list:
        return value
    raise _Unreadable


def _arithmetic(op: ast.operator, one: Any, two: Any) -> int:
    how = {
        ast.Add: int.__add__,
        ast.Sub: int.__sub__,
        ast.Mult: int.__mul__,
        ast.Mod: int.__mod__,
        ast.FloorDiv: int.__floordiv__,
    }.get(type(op))
    if how is None or type(one) is not int or type(two) is not int:
        raise _Unreadable
    try:
        return int(how(one, two))
    except ZeroDivisionError:
        raise _Unreadable from None


@without_torch_function
def _gradient(value: torch.Tensor) -> torch.Tensor | None:
    if not value.is_leaf:  # torch warns of those
        raise _Unreadable
    return value.grad


@without_torch_function
def _tensor_measure(value: torch.Tensor, what: str, index: list[Any]) -> int:
    """Return a size, stride or the number of dimensions of a plain tensor."""
    known = {"size": value.shape, "stride": value.stride()}.get(what)
    if what == "dim" and not index:
        return int(value.dim())
    if known is None or len(index) != 1 or type(index[0]) is not int or not 0 <= index[0] < len(known):
        raise _Unreadable
    return int(known[index[0]])


@without_torch_function
def description(value: Any) -> str:
    """Return a short text for a value: plain values as they are, others by name or class."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return messages.clip(repr(value))
    if type(value) in (torch.dtype, torch.device, torch.layout, torch.memory_format):
        return repr(value)
    if isinstance(value, torch.Tensor):
        tensor = fx_values.tensor(value)
        return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
    return messages.clip(name_of(value)) or f"a {type(value).__name__}"


_OF_TORCH = "_VariableFunctionsClass."
"""Qualifier of torch's own functions: ``torch.sin``."""


def name_of(value: Any) -> str:
    """Return the name of a class, function, code, module or enumeration member; ``""`` for others."""
    if _is_instance(value, type):
        return _qualified(value)
    if _is_instance(value, enum.Enum):
        own = object.__getattribute__(value, "__dict__")
        return f"{_qualified(type(value))}.{own.get('_name_')}"
    if type(value) is types.CodeType:
        return f"{value.co_name} ({os.path.basename(value.co_filename)}:{value.co_firstlineno})"
    if type(value) is types.ModuleType:
        return f"module {value.__dict__.get('__name__')}"
    if type(value) is types.MethodType:
        return name_of(value.__func__)
    if type(value) in (types.FunctionType, types.BuiltinFunctionType):
        where = value.__module__ if type(value.__module__) is str else ""
        return (
            f"{where}.{value.__qualname__}".removeprefix("builtins.").removeprefix(".").replace(_OF_TORCH, "")
        )
    return ""


def _qualified(owner: type) -> str:
    read: Callable[[str], Any] = lambda name: type.__dict__[name].__get__(owner)  # noqa: E731
    where = read("__dict__").get("__module__")
    name = str(read("__qualname__"))
    return f"{where}.{name}" if type(where) is str and where != "builtins" else name


_MARKS = {
    "_dynamo_dynamic_indices": "mark_dynamic",
    "_dynamo_weak_dynamic_indices": "maybe_mark_dynamic",
    "_dynamo_unbacked_indices": "decorators.mark_unbacked",
    "_dynamo_static_indices": "mark_static",
}
"""Torch's attribute of a tensor with the marked dimensions, by the function that marks them."""


def dimension_marks(names: Names) -> dict[str, str]:
    """Return the marks that the program put on sizes of these tensors, as it writes them, by size: ``x.size(0)``."""
    marks: dict[str, str] = {}
    for name, value in names.items():
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            continue
        own = vars(value)
        ranges = {one.dim: (one.min, one.max) for one in own.get("_dynamo_dynamic_range", ())}
        for attribute, function in _MARKS.items():
            for dim in own.get(attribute, ()):
                low, high = ranges.get(dim, (None, None))
                ends = [f"{end}={n}" for end, n in (("min", low), ("max", high)) if n is not None]
                marks[f"{name}.size({dim})"] = f"{function}({', '.join((name, str(dim), *ends))})"
    return marks
