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
    return [x for x in leaves(tree) if isinstance(x, torch.Tensor)]


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
