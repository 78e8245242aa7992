"""Classes that a program registered as containers (``torch.utils._pytree``), on their way to another process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch.utils._pytree as pytree

from .places import Place, Undo, function_in, of_torch

_WORDS = "torch.utils._pytree.register_pytree_node"


def places(own: Mapping[str, Any]) -> Iterator[Place]:
    """Those of the program's; ``own`` are its modules by name. What a module does upon import is done there too."""
    for kind, node in list(pytree.SUPPORTED_NODES.items()):
        module = str(getattr(kind, "__module__", ""))
        function = function_in(node.flatten_fn)
        by = None if function is None else str(function.__globals__.get("__name__"))
        if not {module, by} & {"__main__", *own} or (by == module != "__main__"):
            continue
        stored = pytree.SUPPORTED_SERIALIZED_TYPES.get(kind)
        value = kind, tuple(node), None if stored is None else tuple(stored), kind in _constants()
        where = f"{_WORDS}({kind.__qualname__})"
        yield Place(where, "container", _register, value, None if of_torch(function) else function, kind)


def _constants() -> set[type]:
    found: set[type] = getattr(pytree, "CONSTANT_NODES", set())
    return found


def _register(given: tuple[type, tuple[Any, ...], tuple[Any, ...] | None, bool]) -> Undo:
    """In the other process."""
    kind, node, stored, constant = given
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
