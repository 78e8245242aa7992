"""Under which conditions a compilation may be used again, and which line of the program made each of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ...record import failed_guards, messages, ranges
from ...record.graph import Frame
from ...record.program import GuardOrigin, Specialization
from ..frames import dynamo, eager_lines
from ..graphs import fx
from ..ground import source_places
from . import scopes, value_reader
from .observers import noting, observe

_USER = re.compile(r"^(?P<text>.*)  # (?P<file>\S.*):(?P<line>\d+) in (?P<function>\S+)$", re.DOTALL)


@observe("torch._dynamo.guards:CheckFunctionManager.__init__", "guards")
def check_function(real: Any, manager: Any, code: Any, output: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Dynamo makes the guards of a compile."""
    result = real(manager, code, output, *args, **kwargs)
    visiting = scopes.current()
    if visiting is not None and output is not None:
        with noting(visiting.scopes, "guards"):
            root = getattr(getattr(manager, "guard_manager", None), "root", None)
            tensors = dynamo.tensor_checks(root) if root is not None else {}
            visiting.guards = (
                *_of_values(output, tensors),
                *_of_sizes(output, {code.co_filename for code in visiting.lines}),
            )
            visiting.held |= _held(output)
            shapes = getattr(output, "shape_env", None)
            visiting.specialized = tuple(_specialized(shapes))
            symbols = dynamo.with_environment_symbols(visiting.dynamic, shapes)
            visiting.dynamic = ranges.with_asked(symbols, _asked(output))
    return result


def _of_values(output: Any, tensors: Mapping[str, str]) -> list[GuardOrigin]:
    found = []
    for guard in _in_order(output.guards):
        kind = dynamo.kind_of(guard)
        parts = tuple(messages.stable(line) for line in dynamo.conditions(guard))
        if kind == "SHAPE_ENV":
            continue  # its parts are told by the sizes
        name = guard.name if isinstance(guard.name, str) else guard.name()
        if kind == "TENSOR_MATCH" and name in tensors:
            parts = (tensors[name],)
        source = messages.stable(name or "")
        found.append(GuardOrigin(" and ".join(parts) or kind, source, kind, _line(guard.user_stack)))
    return found


def _asked(output: Any) -> list[str]:
    """What is asked of sizes and numbers that are symbols."""
    shapes = (guard for guard in output.guards if dynamo.kind_of(guard) == "SHAPE_ENV")
    return [part for guard in shapes for part in dynamo.conditions(guard)]


def _held(output: Any) -> dict[str, str]:
    """Which object, and which class of tensors, each guard is made for: when it fails, torch knows a number of it."""
    found = {}
    for guard in output.guards:
        name = guard.name if isinstance(guard.name, str) else guard.name()
        asked = [failed_guards.object_of(line) for line in dynamo.conditions(guard)]
        # Of a function torch does not say on the guard what it asks.
        if dynamo.kind_of(guard) == "CLOSURE_MATCH":
            asked.append(f"{messages.plain_source(name)}.__code__")
        if (
            dynamo.kind_of(guard) == "TENSOR_MATCH"
        ):  # of a parameter, 2.11 does not say on the guard what it is
            asked.append(f"type({messages.plain_source(name)})")
        for source in filter(None, asked):
            value = value_reader.now(source, output.local_scope, output.global_scope)
            if value:
                found[source] = value
    return found


def _in_order(guards: Iterable[Any]) -> list[Any]:
    """As torch sorts them, which asks each for its key at every comparison."""
    found = list(guards)
    return (
        sorted(found, key=lambda guard: guard.sort_key())
        if hasattr(torch._guards.Guard, "sort_key")
        else sorted(found)
    )


def _line(stack: Any) -> Frame | None:
    """The line of the program in a stack: the last that is not torch's own."""
    for summary in reversed(stack or ()):
        if not source_places.is_torch_file(summary.filename):
            found = fx.frame_of(summary)
            return dataclasses.replace(found, function=eager_lines.plain(found.function))
    return None


def _specialized(shapes: Any) -> Iterator[Specialization]:
    """What was a symbol and became one value: torch replaces it, and knows where the program asked for that."""
    stacks = getattr(shapes, "specialization_stacks", {})
    for symbol, value in getattr(shapes, "replacements", {}).items():
        if not getattr(value, "is_number", False):
            continue
        for source in shapes.var_to_sources.get(symbol, [])[:1]:
            name = source.name if isinstance(source.name, str) else source.name()
            yield Specialization(
                messages.plain_source(name), str(symbol), str(value), _line(stacks.get(source))
            )


def _of_sizes(output: Any, files: set[str]) -> list[GuardOrigin]:
    """The guards between sizes. Torch cuts the names of files, which are told whole where one of ``files`` ends so."""
    found = []
    for guard in getattr(getattr(output, "shape_env", None), "guards", ()):
        where = _USER.match(str(getattr(guard.sloc, "maybe_user_loc", None) or ""))
        line = None
        if where:
            function = eager_lines.plain(where["function"])
            whole = [file for file in files if file.endswith(where["file"])]
            file = whole[0] if len(whole) == 1 else where["file"]
            line = Frame(file, int(where["line"]), function, where["text"].strip())
        found.append(GuardOrigin(str(guard.expr), "", "SHAPE_ENV", line))
    return found
