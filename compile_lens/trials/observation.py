"""Observable effects of one call: its results, in-place changes, results that share memory, and gradients."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .._torch.ground import values
from .._torch.ground.storage import address, settled
from .copies import copied, leaf_of
from .restoration import SavedState
from .snapshot import (
    OWN_CLASSES,
    PIECE,
    Snapshot,
    has_own_dispatch,
    is_wrapper,
    plain_parts,
    unreadable,
    version_of,
)

EXACT = 1_000_000
"""Elements up to which it is worked out whether two views of one memory have an element in common."""


@dataclass
class Observation:
    """One call. Names say where a value was found; ``before`` and ``after`` are of what the call was given and
    reaches.

    Attributes:
        results: tensors (``Snapshot``) and plain values of what was returned.
        shapes: the containers of what was returned.
        shapes_after: those of inputs, modules, closures and globals after the call.
        after: the same of inputs, modules, closures and globals, where the call changed them; ``all_after`` has those
            that it left as they were too.
        unchanged: how many tensors of those it left as they were.
        aliases: for each result, what it shares memory with, and how far from its start.
        gradients: of the results, for every leaf that they depend on; ``None`` where it depends on nothing.
        no_gradients: why they could not be taken.
        drew: whether random numbers were drawn from torch's own generator.
    """

    results: dict[str, Any] = field(default_factory=dict)
    shapes: dict[str, values.Shape] = field(default_factory=dict)
    shapes_after: dict[str, values.Shape] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    all_after: dict[str, Any] = field(default_factory=dict)
    unchanged: int = 0
    aliases: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, Snapshot | None] = field(default_factory=dict)
    no_gradients: str = ""
    drew: bool = False

    def later(self, name: str) -> Any:
        """Return the object under ``name`` after the call; ``MISSING`` where there was none."""
        return self.after[name] if name in self.after else self.all_after.get(name, MISSING)


MISSING = object()
"""Stands for a value that is not there."""

Caller = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def observed(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backward: bool,
    held: SavedState,
    call: Caller | None = None,
    wide: bool = False,
    nudge: int | None = None,
) -> Observation:
    """Make one call on copies, and put back what else it changed (``held`` is of the call itself, with its state).

    ``call`` makes it in another way than by calling ``fn``, which runs without a compiler, also where it was compiled
    before; ``wide`` makes it in float64; ``nudge`` changes each number that it is given by one unit in the last place,
    in directions that depend on it. Random numbers go on from where they are.
    """
    from .._torch.graphs.double_precision import double_precision
    from .._torch.isolation import forced_eager

    twin = copied(fn, args, kwargs, wide=wide)
    precision = double_precision if wide else contextlib.nullcontext
    try:
        before = _state(*twin)
        if nudge is not None:
            perturb([x for x in before.values() if isinstance(x, torch.Tensor)], nudge)
        firsts = {} if nudge is not None else _with_grads(_state(fn, args, kwargs))
        kept = {
            n: (Snapshot.of(x, held.first(firsts.get(n))), version_of(x))
            for n, x in _with_grads(before).items()
        }
        leaves = _leaf_names(before)
        random = torch.get_rng_state()
        if call is not None:
            result = call(*twin)
        else:
            with forced_eager(), precision():
                result = twin[0](*twin[1], **twin[2])
        seen = Observation(drew=not torch.equal(random, torch.get_rng_state()))
        _look(seen, result, twin, before, kept, held)
        if backward:
            with precision():
                _take_gradients(seen, result, before, leaves, held)
        later = seen.all_after  # what it left as it was stands in memory once, beside the originals
        later |= {n: seen.after.get(n) or kept[n][0] for n, x in later.items() if isinstance(x, torch.Tensor)}
        return seen
    finally:
        held.reset()


def perturb(tensors: list[torch.Tensor], seed: int) -> None:
    """Change the numbers of tensors by one unit in the last place."""
    generator = torch.Generator().manual_seed(seed)
    for tensor in tensors:
        if not (tensor.is_floating_point() or tensor.is_complex()) or unreadable(tensor):
            continue
        # A tensor that is expanded, of a class that lacks an operator, or of a type without arithmetic stays as it is.
        with (
            contextlib.suppress(Exception),
            torch.inference_mode() if tensor.is_inference() else torch.no_grad(),
        ):
            for _, part in plain_parts(tensor):
                step, count = torch.finfo(part.dtype).eps, part.numel()
                drawn = torch.randint(-(2**63), 2**63 - 1, (count // 8 + 1,), generator=generator)
                signs = drawn.view(torch.int8)[:count].bitwise_and_(1).view(part.shape)
                part.mul_(signs.to(part.dtype).mul_(2 * step).add_(1 - step))


def _state(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: dict[str, values.Shape] | None = None
) -> dict[str, Any]:
    """Return the objects that the call is given and reaches, by name."""
    roots = [(f"input {i}", a) for i, a in enumerate(args)] + [(f"input {k}", v) for k, v in kwargs.items()]
    return dict(values.parts([*roots, ("", fn)], code=True, shapes=shapes))


def _with_grads(state: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {n: x for n, x in [*state.items(), *_grads(state)] if isinstance(x, torch.Tensor)}


def _grads(state: dict[str, Any]) -> list[tuple[str, torch.Tensor]]:
    leaves = [(n, x) for n, x in state.items() if isinstance(x, torch.Tensor) and x.is_leaf]
    return [(f"{n}.grad", x.grad) for n, x in leaves if x.grad is not None]


def _changed(tensor: torch.Tensor, first: Snapshot, version: int) -> bool:
    same = first.is_of(tensor) if tensor.requires_grad == first.requires_grad else False
    return version_of(tensor) != version if same is None else not same


def _look(
    seen: Observation,
    result: Any,
    twin: Any,
    before: dict[str, Any],
    kept: dict[str, Any],
    held: SavedState,
) -> None:
    after = _state(twin[0], twin[1], twin[2], seen.shapes_after)
    shared = _memories(before, after, held)
    for name, value in values.parts([("result", result)], shapes=seen.shapes):
        tensor = values.as_tensor(value)
        if tensor is not None:
            keep = not tensor.requires_grad and _is_alone(tensor, shared)
            value = Snapshot.of(tensor, keep=keep)
        seen.results[name] = value
    for name, value in [*after.items(), *_grads(after)]:
        tensor = values.as_tensor(value)
        if tensor is None:
            seen.all_after[name] = value
            first = before.get(name, MISSING)
            changed = first is MISSING or values.same_plain(value, first, 0.0, 0.0) is False
        else:
            changed = name not in kept or _changed(tensor, *kept[name])
            seen.unchanged += not changed and not kept[name][0].unreadable
            seen.all_after[name] = tensor
        if changed:
            seen.after[name] = value if tensor is None else Snapshot.of(tensor)
    seen.aliases = aliases(
        [(n, x) for n, x in values.named_tensors([("result", result)])],
        [(n, x) for n, x in after.items() if isinstance(x, torch.Tensor)],
    )


# Which tensors share memory ----------------------------------------------------------------------------------


def aliases(results: list[values.Part], state: list[values.Part]) -> dict[str, str]:
    """For each result what it shares elements with: inputs and state, and results before it."""
    shared: dict[str, str] = {}
    by_memory: dict[int, list[tuple[str, torch.Tensor]]] = {}
    state, results = ([(n, settled(x)) for n, x in part] for part in (state, results))
    for name, tensor in state:
        if (where := _memory(tensor)) is not None:
            by_memory.setdefault(where, []).append((name, tensor))
    for name, tensor in results:
        where = _memory(tensor)
        if where is None:
            continue
        others = by_memory.setdefault(where, [])
        shares = [f"{n} {_relation(tensor, other)}" for n, other in others if _overlap(tensor, other)]
        if shares:
            shared[name] = ", ".join(sorted(shares))
        others.append((name, tensor))
    return shared


def _memory(tensor: torch.Tensor) -> int | None:
    if tensor.layout != torch.strided or tensor.is_nested or is_wrapper(tensor) or has_own_dispatch(tensor):
        return None
    return (address(tensor) if tensor.numel() else 0) or None


def _memories(before: dict[str, Any], after: dict[str, Any], held: SavedState) -> set[int | None]:
    """Return the memory of all that a call reaches."""
    tensors = [*before.values(), *after.values(), *held.tensors]
    return {_memory(x) for x in tensors if isinstance(x, torch.Tensor)}


def _is_alone(tensor: torch.Tensor, shared: set[int | None]) -> bool:
    """Return True if nothing that a call reaches has the memory of a tensor, so that no other call writes to it, and
    the tensor is not a small part of that memory. A device may have memory that each call uses anew."""
    where = _memory(tensor)
    if where is None or where in shared or tensor.device.type != "cpu":
        return False
    return bool(tensor.untyped_storage().nbytes() <= 2 * tensor.numel() * tensor.element_size())


def _relation(tensor: torch.Tensor, other: torch.Tensor) -> str:
    gap = tensor.storage_offset() * tensor.element_size() - other.storage_offset() * other.element_size()
    return f"({gap:+,} bytes)" if gap else ""


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    (low, high), (low_2, high_2) = _extent(one), _extent(other)
    if high <= low_2 or high_2 <= low:
        return False
    if one.element_size() != other.element_size() or one.numel() + other.numel() > EXACT:
        return True
    size = max(high, high_2) // one.element_size()
    used = torch.zeros(size, dtype=torch.bool)
    used.as_strided(one.size(), one.stride(), one.storage_offset()).fill_(True)
    return bool(used.as_strided(other.size(), other.stride(), other.storage_offset()).any())


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    start, size = tensor.storage_offset(), tensor.element_size()
    return start * size, (start + last + 1) * size


# Gradients ---------------------------------------------------------------------------------------------------


def _leaf_names(state: dict[str, Any]) -> dict[int, str]:
    """Return the names of tensors that autograd computed, by the leaf that has the gradient of each."""
    tensors = [(n, x) for n, x in state.items() if isinstance(x, torch.Tensor)]
    bases = [(f"what {n} is a view of", x._base) for n, x in tensors if x._is_view() and x._base is not None]
    names: dict[int, str] = {}
    for name, tensor in [*tensors, *bases]:
        if (leaf := leaf_of(tensor)) is not None:
            names.setdefault(id(leaf), name)
    return names


def _take_gradients(
    seen: Observation,
    result: Any,
    before: dict[str, Any],
    leaf_names: dict[int, str],
    held: SavedState,
) -> None:
    from .._torch.ground.gradient_edges import gradient_edges

    changed = [
        (n, seen.all_after[n])
        for n in seen.after
        if isinstance(seen.all_after.get(n), torch.Tensor) and seen.all_after[n].grad_fn is not None
    ]
    roots = {n: x for n, x in [*values.named_tensors([("result", result)]), *changed] if _differentiable(x)}
    names = dict(leaf_names)
    for name, tensor in [*before.items(), *seen.all_after.items()]:
        if isinstance(tensor, torch.Tensor):
            names.setdefault(id(tensor), name)
            if tensor._is_view() and tensor._base is not None:
                names.setdefault(id(tensor._base), f"what {name} is a view of")
    edges = [(x, edge) for x, edge in gradient_edges(list(roots.values())) if id(x) in names]
    if not edges:
        return
    try:
        towards = [_direction(n, x) for n, x in roots.items()]
        gradients = torch.autograd.grad(
            list(roots.values()), [edge for _, edge in edges], towards, allow_unused=True
        )
    except Exception as error:  # the graph is used up, or a derivative or an operator of a class is not there
        seen.no_gradients = str(error).strip().partition(". ")[0] or type(error).__name__
        return
    by_leaf: dict[int, torch.Tensor | None] = {}
    for (leaf, _), gradient in zip(edges, gradients):
        other = by_leaf.get(id(leaf))
        by_leaf[id(leaf)] = gradient if other is None else other if gradient is None else other + gradient
    shared = _memories(before, seen.all_after, held)
    seen.gradients = {
        names[n]: None if x is None else Snapshot.of(x, keep=_is_alone(x, shared))
        for n, x in sorted(by_leaf.items(), key=lambda p: names[p[0]])
    }


def _differentiable(tensor: torch.Tensor) -> bool:
    return bool(tensor.requires_grad) and bool(tensor.is_floating_point() or tensor.is_complex())


def _direction(name: str, root: torch.Tensor) -> torch.Tensor:
    """Return the direction to differentiate along: a different number for each element, since the sum of a softmax has
    no gradient, and zero for none, which would hide a wrong gradient.

    They are exact in every type, so that a run in float64 has the same.
    """
    if root.layout != torch.strided or type(settled(root)) not in OWN_CLASSES:
        return torch.ones_like(root)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    direction = torch.empty(root.shape, dtype=root.dtype)
    for part in direction.view(-1).split(PIECE):
        eighths = torch.randint(-8, 8, part.shape, generator=generator, dtype=torch.float64)
        part.copy_(torch.where(eighths < 0, eighths, eighths + 1) / 8)
    if direction.stride() == root.stride() and root.device.type == "cpu":
        return direction
    return torch.empty_like(root, requires_grad=False).copy_(direction)
