"""Why a code is compiled again: the guard that failed in each older form, with what it was called with now."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch

from ...record import messages
from ..graphs import fx_values
from ..ground.unseen import unseen
from . import scopes
from .observers import noting, observe


@observe("torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons", "recompiles")
def recompilation_reasons(real: Any, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch asks why older forms of a code did not fit."""
    reasons = real(entries, frame, *args, **kwargs)
    visiting = scopes.current()
    if visiting is not None:
        with noting(visiting.scopes, "why a function was compiled again"):
            found = entries if isinstance(entries, list) else _chain(entries)
            visiting.recompiled = len(found), int(torch._dynamo.config.recompile_limit)
            visiting.failed = [
                messages.failed(str(text), lambda source: now(source, frame.f_locals, frame.f_globals))
                for text in reasons
            ]
    return reasons


def _chain(entry: Any) -> list[Any]:
    """The forms of a code where torch gives the first of them (torch 2.11)."""
    found = []
    while entry is not None:
        found.append(entry)
        entry = getattr(entry, "next", None)
    return found


def now(source: str, names: Mapping[str, Any], globals: Mapping[str, Any]) -> str:
    """What a value is now; ``""`` where it cannot be read without running code of the program."""
    tree = messages.parsed(source)
    if tree is None:
        return ""
    try:
        value = _read(tree, names, globals)
    except _Unreadable:
        return ""
    return described(value)


class _Unreadable(Exception):
    """Reading it would run code of the program, or it is not there."""


def _read(node: ast.expr, names: Mapping[str, Any], globals: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        for held in (names, globals):
            if node.id in held:
                return held[node.id]
    elif isinstance(node, ast.Attribute):
        owner = _read(node.value, names, globals)
        try:
            held = object.__getattribute__(owner, "__dict__")
        except AttributeError:
            raise _Unreadable from None
        for inside in (held, *(held.get(part) for part in ("_parameters", "_buffers", "_modules"))):
            if type(inside) is dict and node.attr in inside:
                return inside[node.attr]
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner, key = _read(node.value, names, globals), node.slice.value
        if type(owner) is dict and type(key) in (str, int) and key in owner:
            return owner[key]
        if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
            return owner[key]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        value = _read(node.args[0], names, globals)
        if node.func.id == "len" and type(value) in (list, tuple, dict, str, set, frozenset):
            return len(value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        value = _read(node.func.value, names, globals)
        if type(value) in (torch.Tensor, torch.nn.Parameter) and all(
            isinstance(index, ast.Constant) for index in node.args
        ):
            return _measured(value, node.func.attr, [getattr(index, "value", None) for index in node.args])
    raise _Unreadable


@unseen
def _measured(value: torch.Tensor, what: str, index: list[Any]) -> int:
    """A size, a stride or the number of dimensions of a plain tensor."""
    known = {"size": value.shape, "stride": value.stride()}.get(what)
    if what == "dim" and not index:
        return int(value.dim())
    if known is None or len(index) != 1 or type(index[0]) is not int or not 0 <= index[0] < len(known):
        raise _Unreadable
    return int(known[index[0]])


@unseen
def described(value: Any) -> str:
    """A value in a few words; of what is not plain its class."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return messages.clip(repr(value))
    if isinstance(value, torch.Tensor):
        found = fx_values.tensor(value)
        return f"{found.dtype}[{', '.join(map(str, found.shape))}]"
    return f"a {type(value).__name__}"
