"""The code that turns a switch in a program: a call of ``torch.compile`` to copy, settings that it lacks before it."""

from __future__ import annotations

import ast
import inspect
import json
import keyword
from collections.abc import Mapping
from typing import Any

import torch

from .switches import Switch

TAKEN = ("dynamic", "mode", "fullgraph")
"""Arguments that ``torch.compile`` shares with ``capture``, beside ``options``."""


def applied(fn: Any, switch: Switch, given: Mapping[str, Any]) -> str:
    """Return the code that compiles ``fn`` with a switch turned, and with the options given to ``capture``.

    The last line is the call, on one line. A value among Inductor's options that cannot be written as a literal, such
    as a pass, stands in a name, ``options``: what was given.
    """
    lines = []
    if switch.partitioner:
        lines.append("import torch._functorch.config")
        lines += [f"torch._functorch.config.{name} = {_text(v)}" for name, v in switch.partitioner.items()]
    parts = [_name(fn)]
    own = dict(given.get("options") or {})
    if own or switch.options:
        parts.append(f"options={_options(own, switch.options)}")
    more = {name: given[name] for name in TAKEN if given.get(name) not in (None, False)}
    if given.get("dynamic") is False:
        more["dynamic"] = False
    parts += [f"{name}={_text(value)}" for name, value in {**more, **switch.arguments}.items()]
    return "\n".join((*lines, f"torch.compile({', '.join(parts)})"))


def _name(fn: Any) -> str:
    """Return the name of a function in its source, or one for a function that has none."""
    name = getattr(fn, "__name__", "")
    if isinstance(fn, torch.nn.Module):
        return "model"
    return name if inspect.isfunction(fn) and name.isidentifier() and not keyword.iskeyword(name) else "f"


def _options(own: dict[str, Any], turned: dict[str, Any]) -> str:
    literal = all(_literal(value) for value in own.values())
    written = {**own, **turned} if literal else turned
    items = [f"{json.dumps(name)}: {_text(value)}" for name, value in written.items()]
    return "{" + ", ".join(items if literal else ("**options", *items)) + "}"


def _literal(value: Any) -> bool:
    try:
        same = ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return False
    return type(same) is type(value) and bool(same == value)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
