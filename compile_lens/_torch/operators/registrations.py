"""Transfer of a program's registrations with torch: Dynamo's marks on functions, settings that are functions, container
classes, and changes to Inductor's tables."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch.utils._pytree as pytree

from . import inductor_tables, transfers
from .transfers import Registration, Undo, display_name, function_in, is_torchs

IDS = {
    "_allowed_callable_ids": "torch.compiler.allow_in_graph",
    "_nonstrict_trace_callable_ids": "torch._dynamo.nonstrict_trace",
    "_leaf_function_ids": "torch._dynamo.decorators.leaf_function",
    "_disallowed_callable_ids": "torch._dynamo.disallow_in_graph",
}
"""Dynamo's sets of function addresses, and the call that adds to each. Non-strict and leaf functions are also allowed
ones."""

_OWN = "torch._dynamo."
"""Prefix of the modules whose functions Dynamo itself registers."""

Setting = tuple[str, str, Any]
"""A config module, the name of a setting, and a value that is not plain."""


def collect(
    own: Mapping[str, Any], settings: Iterable[Setting] = (), torchs: inductor_tables.Own | None = None
) -> Iterator[Registration]:
    """Yield all registrations of this process. ``own`` are the program's modules by name, including its script;
    ``torchs`` are the original entries of Inductor's tables."""
    for module, name, value in settings:
        yield Registration(f"{module}.{name}", "function", _set, (module, name, value), function_in(value))
    yield from _substitutes(own)
    yield from _marked_functions(own)
    yield from container_places(own)
    yield from inductor_tables.changed_entries(torchs or {})


def _if_programs(value: Any, own: Mapping[str, Any]) -> Any:
    """Return the function if it is the program's, and so matters only if the program's code reaches it; else None."""
    name = getattr(value, "__globals__", {}).get("__name__")
    return value if name == "__main__" or name in own else None


def _substitutes(own: Mapping[str, Any]) -> Iterator[Registration]:
    handlers = _handlers() if "torch._dynamo.variables" in sys.modules else {}
    for original, substitute in list(handlers.items()):
        handler = getattr(substitute, "__torch_dynamo_polyfill__", None)
        name = str(getattr(handler, "__globals__", {}).get("__name__"))
        if original is substitute or name.startswith(_OWN):  # the table has it under both functions
            continue
        where = f"torch.compiler.substitute_in_graph({display_name(original)})"
        of = _if_programs(original, own)
        watch = None
        if of is None and not isinstance(original, _OF_TYPES):
            watch = transfers.watch_function, (where, original)
        yield Registration(where, "substitute", _substitute, substitute, function_in(handler), of, watch)


_OF_TYPES = types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType
"""Methods of C types, which Dynamo also finds through their objects."""


def _marked_functions(own: Mapping[str, Any]) -> Iterator[Registration]:
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None:
        return
    there: dict[int, list[str]] = {}
    for table in IDS:
        # torch fills the table on first use
        for one in getattr(getattr(rules, table, None), "function_ids", None) or ():
            there.setdefault(one, []).append(table)
    if not there:
        return
    for value in _objects_at(there, rules):
        if str(getattr(value, "__module__", "")).startswith(_OWN):
            continue
        tables = there[id(value)]
        by = function_in(value)
        by = by if _if_programs(by, own) is not None else None
        yield Registration(
            f"{IDS[tables[-1]]}({display_name(value)})",
            "mark",
            _mark_function,
            (value, tables),
            by,
            _if_programs(value, own),
        )


_addresses: dict[int, Callable[[], Any]] = {}
"""Weak references by address, which avoid another search of all objects in the process."""


def _objects_at(wanted: Iterable[int], rules: Any) -> list[Any]:
    """Return the objects with these addresses."""
    remaining = set(wanted)
    objects: list[Any] = []

    def take(values: Iterable[Any]) -> None:
        for value in values:
            if id(value) in remaining:
                remaining.discard(id(value))
                objects.append(value)
                with contextlib.suppress(TypeError):  # C methods have no weak references
                    _addresses[id(value)] = weakref.ref(value)

    take([value for one in [*remaining] if (value := _addresses.get(one, _no_undo)()) is not None])
    if remaining:
        rule_map = getattr(rules, "get_torch_obj_rule_map", None)
        take([] if rule_map is None else [one for one in rule_map() if callable(one)])
    if remaining:
        take(gc.get_objects())
    return objects


def _no_undo() -> None:
    return None


def _handlers() -> dict[Any, Any]:
    variables: Any = sys.modules["torch._dynamo.variables"]
    polyfilled = getattr(variables, "PolyfilledFunctionVariable", None)
    return {} if polyfilled is None else polyfilled._get_polyfill_handlers()


# In the other process --------------------------------------------------------------------------------------


def _set(arguments: Setting) -> Undo:
    module, name, value = arguments
    patch = importlib.import_module(module).patch({name: value})
    patch.__enter__()
    return lambda: patch.__exit__(None, None, None)


def _mark_function(arguments: tuple[Any, list[str]]) -> Undo:
    value, wanted = arguments
    rules: Any = importlib.import_module("torch._dynamo.trace_rules")
    undo: list[Undo] = []
    for table in IDS:
        ids = getattr(rules, table, None)
        if ids is None or (table in wanted) == (id(value) in ids):
            continue
        put, back = (ids.add, ids.remove) if table in wanted else (ids.remove, ids.add)
        put(id(value))
        undo.append(functools.partial(back, id(value)))
    return lambda: [one() for one in undo]


def _substitute(substitute: Any) -> Undo:
    """Register a substitute in the other process. ``substitute`` is the decorator's result, with references to the
    original and the handler."""
    original, handler = substitute.__torch_dynamo_original__, substitute.__torch_dynamo_polyfill__
    decorators: Any = importlib.import_module("torch._dynamo.decorators")
    rules: Any = importlib.import_module("torch._dynamo.trace_rules")
    builder: Any = importlib.import_module("torch._dynamo.variables.builder")
    handlers = _handlers()
    before = handlers.get(original)
    if before is substitute:  # the import of its module registered it
        return _no_undo
    addresses = builder.VariableBuilder._id_dispatch()
    tables = ((handlers, _identity), (rules.get_torch_obj_rule_map(), _identity), (addresses, id))
    ids = rules._polyfilled_function_ids

    def take(*functions: Any) -> list[tuple[dict[Any, Any], Any, Any]]:
        for one in functions:
            ids.remove(id(one))
        there = [(table, key(one)) for table, key in tables for one in functions if one is not None]
        return [(table, one, table.pop(one)) for table, one in there if one in table]

    taken = take(original, before)
    folds = getattr(substitute, "__torch_dynamo_can_constant_fold_through__", False)
    registered = decorators.substitute_in_graph(
        original, can_constant_fold_through=folds, skip_signature_check=True
    )(handler)
    for table, key in tables:
        table[key(substitute)] = table[key(registered)]
    handlers[original] = handlers[substitute] = substitute
    ids.add(id(substitute))

    def undo() -> None:
        take(original, registered, substitute)
        for table, one, value in taken:
            table[one] = value
        for one in (original, before) if before is not None else ():
            ids.add(id(one))

    return undo


def _identity(value: Any) -> Any:
    return value


_REGISTER_NODE = "torch.utils._pytree.register_pytree_node"


def container_places(own: Mapping[str, Any]) -> Iterator[Registration]:
    """Yield the program's container classes (``torch.utils._pytree``) that importing its modules does not register;
    ``own`` are its modules by name."""
    for kind, node in list(pytree.SUPPORTED_NODES.items()):
        module = str(getattr(kind, "__module__", ""))
        function = function_in(node.flatten_fn)
        by = None if function is None else str(function.__globals__.get("__name__"))
        if not {module, by} & {"__main__", *own} or (by == module != "__main__"):
            continue
        stored = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
        value = kind, tuple(node), None if stored is None else tuple(stored), kind in _constants()
        where = f"{_REGISTER_NODE}({kind.__qualname__})"
        yield Registration(
            where, "container", _register, value, None if is_torchs(function) else function, kind
        )


def _constants() -> set[type]:
    constants: set[type] = getattr(pytree, "CONSTANT_NODES", set())
    return constants


def _register(arguments: tuple[type, tuple[Any, ...], tuple[Any, ...] | None, bool]) -> Undo:
    """Register a container in the other process."""
    kind, node, stored, constant = arguments
    if kind in pytree.SUPPORTED_NODES:  # the import of its module registered it
        return lambda: None
    name, to, of = (None, None, None) if stored is None else stored[1:]
    before = dict(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    pytree._private_register_pytree_node(
        kind,
        node[1],
        node[2],
        serialized_type_name=name,
        to_dumpable_context=to,
        from_dumpable_context=of,
        flatten_with_keys_fn=node[3],
    )
    if constant:
        _constants().add(kind)

    def undo() -> None:
        del pytree.SUPPORTED_NODES[kind]
        del pytree.SUPPORTED_SERIALIZED_TYPES[kind]
        _constants().discard(kind)
        pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.clear()
        pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.update(before)

    return undo
