"""Nested containers of a user's arguments and results, by torch's own rules for what is a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree


def leaves(tree: Any) -> list[Any]:
    """What a nest of containers holds, in order."""
    return list(_pytree.tree_leaves(tree))


def tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors in a nest of containers, in order."""
    kind = type(tree)
    if kind in _EMPTY:
        return []
    if kind is tuple or kind is list:  # nearly all nests are of these: without what a nest of any kind takes
        return [x for part in tree if type(part) not in _EMPTY for x in tensors(part)]
    if isinstance(tree, torch.Tensor) and kind not in _pytree.SUPPORTED_NODES:
        return [tree]
    return [x for x in leaves(tree) if isinstance(x, torch.Tensor)]


_EMPTY = frozenset((int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout))
"""Types of values that hold no tensor."""


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves, and the shape of the nest for ``unflatten``."""
    found, spec = _pytree.tree_flatten(tree)
    return list(found), spec


def unflatten(found: list[Any], spec: Any) -> Any:
    """The nest that ``flatten`` took apart."""
    return _pytree.tree_unflatten(found, spec)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with each leaf replaced."""
    return _pytree.tree_map(function, tree)


def children(value: Any) -> list[tuple[str, Any]] | None:
    """What a node that torch knows holds, with the step to each; ``None`` for what it does not know."""
    node = _pytree.SUPPORTED_NODES.get(type(value))
    if node is None:
        return None
    with_keys = getattr(node, "flatten_with_keys_fn", None)
    if with_keys is not None:
        try:
            return [(str(key), child) for key, child in with_keys(value)[0]]
        except Exception:  # one that was registered without names, or in another way
            return [("", child) for child in node.flatten_fn(value)[0]]
    return [("", child) for child in node.flatten_fn(value)[0]]
