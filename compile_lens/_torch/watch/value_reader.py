"""Values of a program, read without running any code of it."""

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


def now(source: str, names: Names, globals: Names) -> str:
    """What a value is now; ``""`` where it cannot be read without running code of the program."""
    tree = messages.parsed(source)
    if tree is None:
        return ""
    try:
        value = _read(tree, names, globals)
    except _Unreadable:
        return ""
    return described(value)


class Lacking(enum.Enum):
    """In the place of a value."""

    MISSING = "what holds it can be read, and it is not there"
    UNREAD = "it cannot be read"


def value_of(source: str, names: Names, globals: Names) -> Any:
    """A value, or ``Unsupported``."""
    tree = messages.parsed(source)
    try:
        return Lacking.UNREAD if tree is None else _read(tree, names, globals)
    except _Unreadable:
        pass
    if isinstance(tree, ast.Subscript):
        owner = value_of(ast.unparse(tree.value), names, globals)
        if type(owner) in (dict, list, tuple) and isinstance(tree.slice, ast.Constant):
            return Lacking.MISSING
    return Lacking.UNREAD


class _Unreadable(Exception):
    """Reading it would run code of the program, or it is not there."""


_FIELDS = (types.MemberDescriptorType, type(vars(collections.namedtuple("_One", "field"))["field"]))
"""Of ``__slots__`` and of named tuples: a look into the object, and no code of a program."""


def _is(value: Any, base: type | tuple[type, ...]) -> bool:
    """``isinstance`` without asking the value for its class, which may be code of the program."""
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
"""Classes of Python's whose attributes are read without any code of a program."""


def _read(node: ast.expr, names: Names, globals: Names) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for held in (names, globals):
            if node.id in held:
                return held[node.id]
        raise _Unreadable
    if isinstance(node, ast.Attribute):
        return _attribute(_read(node.value, names, globals), node.attr)
    if isinstance(node, ast.Subscript):
        return _item(_read(node.value, names, globals), _read(node.slice, names, globals))
    if isinstance(node, ast.BinOp):
        return _reckoned(node.op, _read(node.left, names, globals), _read(node.right, names, globals))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _reckoned(ast.Sub(), 0, _read(node.operand, names, globals))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and node.func.value.id in ("dict", "tuple", "list"):
            return _unbound(node, names, globals)
        value = _read(node.func.value, names, globals)
        if type(value) in (torch.Tensor, torch.nn.Parameter) and all(
            isinstance(index, ast.Constant) for index in node.args
        ):
            return _measured(value, node.func.attr, [getattr(index, "value", None) for index in node.args])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _called(node.func.id, _read(node.args[0], names, globals))
    raise _Unreadable


def _attribute(owner: Any, name: str) -> Any:
    if type(owner) in _PLAIN:
        try:
            return object.__getattribute__(owner, name)
        except (AttributeError, ValueError):  # an empty cell
            raise _Unreadable from None
    if _is(owner, type):
        return _of_class(owner, name)
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        held = {}
    if name == "__dict__":
        return held
    if name == "__class__":
        return type(owner)
    for inside in (held, *(held.get(part) for part in ("_parameters", "_buffers", "_modules"))):
        if type(inside) is dict and name in inside:
            return inside[name]
    found = _looked_up(type(owner), name)
    if type(found) in _FIELDS:
        try:
            return found.__get__(owner)
        except AttributeError:
            raise _Unreadable from None
    return _no_descriptor(found)


def _of_class(owner: type, name: str) -> Any:
    if name in ("__mro__", "__dict__", "__name__", "__qualname__"):
        return type.__dict__[name].__get__(owner)
    return _no_descriptor(_looked_up(owner, name))


def _looked_up(owner: type, name: str) -> Any:
    for one in type.__dict__["__mro__"].__get__(owner):
        own = type.__dict__["__dict__"].__get__(one)
        if name in own:
            return own[name]
    raise _Unreadable


def _no_descriptor(found: Any) -> Any:
    try:
        _looked_up(type(found), "__get__")
    except _Unreadable:
        return found
    raise _Unreadable


def _item(owner: Any, key: Any) -> Any:
    if _is(owner, types.MappingProxyType) and type(key) is str:
        owner = dict(owner)
    if _is(owner, dict) and type(key) in (str, int):
        own = dict.keys(owner)
        if all(type(one) in (str, int) for one in own) and key in own:
            return dict.__getitem__(owner, key)
    elif _is(owner, (list, tuple)) and type(key) is int:
        base = list if _is(owner, list) else tuple
        if -base.__len__(owner) <= key < base.__len__(owner):
            return base.__getitem__(owner, key)
    raise _Unreadable


def _unbound(node: ast.Call, names: Names, globals: Names) -> Any:
    """``dict.keys(d)`` and ``dict.__getitem__(d, key)``, as torch asks what inherits from Python's own classes."""
    asked = ast.unparse(node.func)
    given = [_read(argument, names, globals) for argument in node.args]
    if asked == "dict.keys" and len(given) == 1 and _is(given[0], dict):
        return list(dict.keys(given[0]))
    if asked.endswith(".__getitem__") and len(given) == 2:
        return _item(given[0], given[1])
    raise _Unreadable


def _called(function: str, value: Any) -> Any:
    if function == "type":
        return type(value)
    if function == "len":
        for base in (list, tuple, dict, str, set, frozenset):
            if _is(value, base):
                return base.__len__(value)
    if function == "dict" and _is(value, types.MappingProxyType):
        return dict(value)
    if function == "list" and type(value) is list:
        return value
    raise _Unreadable


def _reckoned(op: ast.operator, one: Any, two: Any) -> int:
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
def _measured(value: torch.Tensor, what: str, index: list[Any]) -> int:
    """A size, a stride or the number of dimensions of a plain tensor."""
    known = {"size": value.shape, "stride": value.stride()}.get(what)
    if what == "dim" and not index:
        return int(value.dim())
    if known is None or len(index) != 1 or type(index[0]) is not int or not 0 <= index[0] < len(known):
        raise _Unreadable
    return int(known[index[0]])


@without_torch_function
def described(value: Any) -> str:
    """A value in a few words; of what is not plain its class."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return messages.clip(repr(value))
    if type(value) in (torch.dtype, torch.device, torch.layout, torch.memory_format):
        return repr(value)
    if isinstance(value, torch.Tensor):
        found = fx_values.tensor(value)
        return f"{found.dtype}[{', '.join(map(str, found.shape))}]"
    return messages.clip(named(value)) or f"a {type(value).__name__}"


_OF_TORCH = "_VariableFunctionsClass."
"""Where torch's own functions say that they stand: ``torch.sin``."""


def named(value: Any) -> str:
    """What a class, a function, a code, a module or a member of an enumeration is called; ``""`` of all else."""
    if _is(value, type):
        return _qualified(value)
    if _is(value, enum.Enum):
        own = object.__getattribute__(value, "__dict__")
        return f"{_qualified(type(value))}.{own.get('_name_')}"
    if type(value) is types.CodeType:
        return f"{value.co_name} ({os.path.basename(value.co_filename)}:{value.co_firstlineno})"
    if type(value) is types.ModuleType:
        return f"module {value.__dict__.get('__name__')}"
    if type(value) is types.MethodType:
        return named(value.__func__)
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
