"""Prefixes of patterns, the nested parts that the matcher tries first, and how many of them fit at a node."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch.fx

Prefix = tuple[tuple[Any, int | None], ...]
"""Nested parts of a pattern, each with the position of the next one in its arguments."""

_prefixes: weakref.WeakKeyDictionary[Any, tuple[Prefix, Any]] = weakref.WeakKeyDictionary()


def prefix_of(pattern: Any) -> tuple[Prefix, Any]:
    """Return a pattern's prefix, and a key that is equal for equivalent prefixes."""
    known = _prefixes.get(pattern)
    if known is None:
        spine = tuple(_parts(pattern))
        known = _prefixes[pattern] = (spine, tuple((_criterion(part), place) for part, place in spine))
    return known


def walk(
    spine: Prefix, alike: Any, node: Any, fitting: dict[tuple[Any, Any], bool]
) -> tuple[int, Any] | None:
    """Return the number of parts that fit at a node, and the node at which the next part fails; None if all fit.

    The first part fits, since the node was found by its operator. ``fitting`` caches results, since most patterns have
    common parts.
    """
    for fits, (part, place_of_next) in enumerate(spine):
        if fits:
            if type(node) is not torch.fx.Node:
                return fits, node
            key = alike[fits][0], node
            if key not in fitting:
                fitting[key] = bool(part._match_fns(node))
            if not fitting[key]:
                return fits, node
        if place_of_next is not None:
            arguments = node._args[place_of_next : place_of_next + 1]  # at most one
            if arguments:
                node = arguments[0]
    return None


def _criterion(part: Any) -> Any:
    """Return a key that is equal for parts which fit the same nodes."""
    functions = getattr(part, "fns_set", None)
    return part if functions is None else (getattr(part, "op", None), frozenset(functions))


def _parts(pattern: Any) -> Iterator[tuple[Any, int | None]]:
    """Yield the nested parts in the matcher's order, each with the position of the next in its arguments."""
    part = (getattr(pattern, "outputs", None) or [pattern])[0]
    while hasattr(part, "_match_fns"):
        arguments = getattr(part, "args", ())
        at = next((i for i, a in enumerate(arguments) if hasattr(a, "_match_fns")), None)
        if any(isinstance(a, (tuple, list, dict)) or hasattr(a, "pattern") for a in arguments[:at]):
            at = None
        yield part, at
        if at is None:
            return
        part = arguments[at]
