"""Guards, under which a compilation can be reused, with the program's line that caused each."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ...record import claims, failed_guards, guard_values, messages
from ...record.graph import Frame
from ...record.program import GuardOrigin, Specialization
from ..frames import dynamo, eager_lines
from ..graphs import fx
from ..ground import source_places
from . import scopes, value_reader
from .observers import observe, observing

_USER = re.compile(r"^(?P<text>.*)  # (?P<file>\S.*):(?P<line>\d+) in (?P<function>\S+)$", re.DOTALL)


@observe("torch._dynamo.guards:CheckFunctionManager.__init__", claims.GUARDS, claims.SIZES)
def check_function(real: Any, manager: Any, code: Any, output: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Record the guards that Dynamo creates for a compile."""
    result = real(manager, code, output, *args, **kwargs)
    evaluation = scopes.current()
    if evaluation is not None and output is not None:
        with observing(evaluation.scopes, claims.GUARDS, claims.SIZES):
            root = getattr(getattr(manager, "guard_manager", None), "root", None)
            tensors = dynamo.tensor_checks(root) if root is not None else {}
            evaluation.guards = (
                *_value_guards(output, tensors),
                *_size_guards(output, {code.co_filename for code in evaluation.lines}),
            )
            evaluation.held |= _guarded_objects(output)
            shapes = getattr(output, "shape_env", None)
            evaluation.specialized = tuple(_specialized(shapes))
            symbols = dynamo.with_environment_symbols(evaluation.dynamic, shapes)
            evaluation.dynamic = guard_values.with_constraints(symbols, _symbol_checks(output))
    return result


def _value_guards(output: Any, tensors: Mapping[str, str]) -> list[GuardOrigin]:
    guards = []
    for guard in _sorted_guards(output.guards):
        kind = dynamo.kind_of(guard)
        parts = tuple(messages.without_addresses(line) for line in dynamo.conditions(guard))
        if kind == "SHAPE_ENV":
            continue  # the guards between sizes describe its parts
        name = guard.name if isinstance(guard.name, str) else guard.name()
        if kind == "TENSOR_MATCH" and name in tensors:
            parts = (tensors[name],)
        source = messages.without_addresses(name or "")
        guards.append(GuardOrigin(" and ".join(parts) or kind, source, kind, _line(guard.user_stack)))
    return guards


def _symbol_checks(output: Any) -> list[str]:
    """Return the text of the checks of symbolic sizes and numbers."""
    shapes = (guard for guard in output.guards if dynamo.kind_of(guard) == "SHAPE_ENV")
    return [part for guard in shapes for part in dynamo.conditions(guard)]


def _guarded_objects(output: Any) -> dict[str, str]:
    """Return a text for the object, or the class of a tensor, that each guard checks; on failure, torch only reports an
    id."""
    objects = {}
    for guard in output.guards:
        name = guard.name if isinstance(guard.name, str) else guard.name()
        sources = [failed_guards.guarded_object(line) for line in dynamo.conditions(guard)]
        # Torch's guard on a function does not state the code object that it checks.
        if dynamo.kind_of(guard) == "CLOSURE_MATCH":
            sources.append(f"{messages.plain_source(name)}.__code__")
        # Torch's message on another class of dictionary, and 2.11's guard on a parameter, do not state the type.
        if dynamo.kind_of(guard) in ("TENSOR_MATCH", "TYPE_MATCH"):
            sources.append(f"type({messages.plain_source(name)})")
        for source in filter(None, sources):
            value = value_reader.read_now(source, output.local_scope, output.global_scope)
            if value:
                objects[source] = value
    return objects


def _sorted_guards(guards: Iterable[Any]) -> list[Any]:
    """Return the guards in torch's order, computing each key only once."""
    listed = list(guards)
    return (
        sorted(listed, key=lambda guard: guard.sort_key())
        if hasattr(torch._guards.Guard, "sort_key")
        else sorted(listed)
    )


def _line(stack: Any) -> Frame | None:
    """Return the program's line in a stack: the innermost one that is not torch's own."""
    for summary in reversed(stack or ()):
        if not source_places.is_torch_file(summary.filename):
            frame = fx.frame_of(summary)
            return dataclasses.replace(frame, function=eager_lines.plain_name(frame.function))
    return None


def _specialized(shapes: Any) -> Iterator[Specialization]:
    """Yield the symbols that torch specialised to one value, with the program's line that required it."""
    stacks = getattr(shapes, "specialization_stacks", {})
    for symbol, value in getattr(shapes, "replacements", {}).items():
        if not getattr(value, "is_number", False):
            continue
        for source in shapes.var_to_sources.get(symbol, [])[:1]:
            name = source.name if isinstance(source.name, str) else source.name()
            yield Specialization(
                messages.plain_source(name), str(symbol), str(value), _line(stacks.get(source))
            )


def _size_guards(output: Any, files: set[str]) -> list[GuardOrigin]:
    """Return the guards between sizes. Torch truncates file names; they are completed if exactly one of ``files``
    matches."""
    guards = []
    for guard in getattr(getattr(output, "shape_env", None), "guards", ()):
        where = _USER.match(str(getattr(guard.sloc, "maybe_user_loc", None) or ""))
        line = None
        if where:
            function = eager_lines.plain_name(where["function"])
            whole = [file for file in files if file.endswith(where["file"])]
            file = whole[0] if len(whole) == 1 else where["file"]
            line = Frame(file, int(where["line"]), function, where["text"].strip())
        guards.append(GuardOrigin(str(guard.expr), "", "SHAPE_ENV", line))
    return guards
