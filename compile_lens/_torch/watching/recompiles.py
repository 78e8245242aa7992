"""Why a code is compiled again: the guard that failed in each older form, with what it was called with now."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import torch

from ...record.graph import Frame
from ...record.program import FailedGuard, GuardOrigin
from ..frames import left_to_python
from ..graphs import fx_values
from ..ground.unseen import unseen
from . import scopes
from .observers import noting, observe

_HEAD = re.compile(r"(?:Cache|\[?)*(?P<id>(?:!\d+/)?\d+/\d+(?:_\d+)?)\]?: (?P<rest>.*)", re.DOTALL)
_WHERE = re.compile(r"  # (?P<text>.*)  # (?P<file>\S.*):(?P<line>\d+) in (?P<function>\S+)\s*$")
_PLACE = re.compile(r"  # (?:.* )?\(?(?P<file>\S+):(?P<line>\d+) in (?P<function>\S+?)\)?\s*$")
_TENSOR = re.compile(
    r"tensor '(?P<source>.+?)' (?P<what>.*?)\. expected (?P<old>.+?)(?:, actual (?P<new>.+?))?(?:\. |$)",
    re.DOTALL,
)
_ROOM = 80
"""Characters of a value that is told."""


@observe("torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons", "recompiles")
def recompilation_reasons(real: Any, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch asks why older forms of a code did not fit."""
    reasons = real(entries, frame, *args, **kwargs)
    visiting = scopes.current()
    if visiting is not None:
        with noting(visiting.scopes, "why a function was compiled again"):
            found = entries if isinstance(entries, list) else _chain(entries)
            visiting.recompiled = len(found), int(torch._dynamo.config.recompile_limit)
            visiting.failed = [failed(str(text), frame.f_locals, frame.f_globals) for text in reasons]
    return reasons


def _chain(entry: Any) -> list[Any]:
    """The forms of a code where torch gives the first of them (torch 2.11)."""
    found = []
    while entry is not None:
        found.append(entry)
        entry = getattr(entry, "next", None)
    return found


def failed(text: str, names: Mapping[str, Any], globals: Mapping[str, Any]) -> FailedGuard:
    """A guard that failed, from torch's sentence about it, and what the value is now."""
    head = _HEAD.match(text)
    id, rest = (head["id"], head["rest"]) if head else ("", text)
    rest = rest.partition("\nUser stack trace:")[0].strip()
    where = _where(rest)
    line = None
    if where:
        at = where.groupdict()
        name = left_to_python.plain(at["function"])
        line = Frame(at["file"], int(at["line"]), name, (at.get("text") or "").strip())
        rest = rest[: where.start()].strip()
    tensor = _TENSOR.match(rest)
    if tensor:
        said, source = rest.partition(". Guard failed on")[0], _plain(tensor["source"])
        old, new = tensor["old"], tensor["new"] or ""
        if old in ("requires_grad=0", "requires_grad=1"):  # all that torch says of it
            old, new = ("False", "True") if old[-1] == "0" else ("True", "False")
        return FailedGuard(id, said, source + _part(tensor["what"]), old, new, line)
    source, old = _compared(rest)
    return FailedGuard(id, rest, source, old, _now(source, names, globals), line)


def _where(rest: str) -> re.Match[str] | None:
    """The comment in which torch says the line of a guard. A text in the guard may look like one."""
    starts = [m.start() for m in re.finditer("  # ", rest)]
    for start in starts:
        if _parsed(rest[:start]) is not None:
            return _WHERE.match(rest, start) or _PLACE.match(rest, start)
    return _WHERE.search(rest) or _PLACE.search(rest)


def _parsed(guard: str) -> ast.expr | None:
    try:
        return ast.parse(guard.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _part(what: str) -> str:
    """What of a tensor torch compared, as one would ask for it."""
    at = re.match(r"(?P<what>size|stride) mismatch at index (?P<index>\d+)", what)
    if at:
        return f".{at['what']}({at['index']})"
    word = what.partition(" mismatch")[0]
    return {"rank": ".dim()", "dtype": ".dtype", "device": ".device", "requires_grad": ".requires_grad"}.get(
        word, ""
    )


def _plain(source: str) -> str:
    """``L['x']`` as ``x``, ``L['self'].n`` as ``self.n``."""
    return re.sub(r"\b[LG]\['(\w+)'\]", r"\1", source)


def _compared(guard: str) -> tuple[str, str]:
    """The value that a guard is about, and what it was, where the guard compares it with a constant."""
    tree = _parsed(guard)
    if not (
        isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], (ast.Eq, ast.Is))
    ):
        return "", ""
    if not isinstance(tree.comparators[0], ast.Constant):
        return "", ""
    return _plain(ast.unparse(tree.left)), _clip(ast.unparse(tree.comparators[0]))


def _now(source: str, names: Mapping[str, Any], globals: Mapping[str, Any]) -> str:
    """What a value is now; ``""`` where it cannot be read without running code of the program."""
    tree = _parsed(source)
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
    raise _Unreadable


@unseen
def described(value: Any) -> str:
    """A value in a few words; of what is not plain its class."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return _clip(repr(value))
    if isinstance(value, torch.Tensor):
        found = fx_values.tensor(value)
        return f"{found.dtype}[{', '.join(map(str, found.shape))}]"
    return f"a {type(value).__name__}"


def _clip(text: str) -> str:
    return text if len(text) <= _ROOM else text[: _ROOM - 1] + "…"


def with_line(found: FailedGuard, origins: tuple[GuardOrigin, ...]) -> FailedGuard:
    """A failed guard with the line that made it, as the guards of the older form say it; torch's own sentence cuts the
    names of files."""
    same = [o.line for o in origins if o.line is not None and found.text in (o.text, *o.text.split(" and "))]
    about = [
        o.line for o in origins if o.line is not None and found.source and _plain(o.source) == found.source
    ]
    line = next((of for of in (same, about) if len(set(of)) == 1), (found.line,))[0]
    return dataclasses.replace(found, line=line)
