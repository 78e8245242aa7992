"""Prefixes of patterns: the nested parts that the matcher tries first, and how many of them fit at a node."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch.fx

Prefix = tuple[tuple[Any, int | None], ...]
"""Parts of a pattern, each with the position of the next one in its arguments."""

_prefixes: weakref.WeakKeyDictionary[Any, tuple[Prefix, Any]] = weakref.WeakKeyDictionary()


def prefix_of(pattern: Any) -> tuple[Prefix, Any]:
    """Return the parts of a pattern that the matcher tries first, and a key that is equal for patterns with equal
    prefixes."""
    known = _prefixes.get(pattern)
    if known is None:
        spine = tuple(_parts(pattern))
        known = _prefixes[pattern] = (spine, tuple((_criterion(part), place) for part, place in spine))
    return known


def walk(
    spine: Prefix, alike: Any, node: Any, fitting: dict[tuple[Any, Any], bool]
) -> tuple[int, Any] | None:
    """Return how many parts fit at a node, and the node at which the next does not; None if all of them fit.

    The first part fits: the node was found under its operator. ``fitting`` caches results: most patterns have parts in
    common.
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
            given = node._args[place_of_next : place_of_next + 1]  # at most one
            if given:
                node = given[0]
    return None


def _criterion(part: Any) -> Any:
    """Return the criterion by which a part fits a node: equal for parts that fit the same nodes."""
    wanted = getattr(part, "fns_set", None)
    return part if wanted is None else (getattr(part, "op", None), frozenset(wanted))


def _parts(pattern: Any) -> Iterator[tuple[Any, int | None]]:
    """Yield the nested parts that are tried in order, each with the position of the next in its arguments."""
    part = (getattr(pattern, "outputs", None) or [pattern])[0]
    while hasattr(part, "_match_fns"):
        given = getattr(part, "args", ())
        at = next((i for i, a in enumerate(given) if hasattr(a, "_match_fns")), None)
        if any(isinstance(a, (tuple, list, dict)) or hasattr(a, "pattern") for a in given[:at]):
            at = None
        yield part, at
        if at is None:
            return
        part = given[at]
