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
    PIECE_ELEMENTS,
    Snapshot,
    has_own_dispatch,
    is_wrapper,
    plain_parts,
    unreadable,
    version_of,
)

MAX_EXACT_ELEMENTS = 1_000_000
"""Maximum total elements of two views of one storage for an exact test if they overlap."""


@dataclass
class Observation:
    """Effects of one call. Each name says where its value was found.

    Attributes:
        results: tensors (``Snapshot``) and plain values that were returned.
        shapes: containers that were returned.
        shapes_after: containers in inputs, modules, closures and globals after the call.
        after: values in inputs, modules, closures and globals that the call changed; ``all_after`` has the unchanged
            ones too.
        unchanged: number of those tensors that the call did not change.
        aliases: for each result, the values that share its memory, with offsets in bytes.
        gradients: gradient of the results for each leaf; None if they do not depend on it.
        no_gradients: why gradients could not be taken.
        drew: True if random numbers were drawn from torch's default CPU generator.
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
        """Return the object under ``name`` after the call; ``MISSING`` if there is none."""
        return self.after[name] if name in self.after else self.all_after.get(name, MISSING)


MISSING = object()
"""Marker of an absent value."""

Caller = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def observed(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backward: bool,
    saved_state: SavedState,
    call: Caller | None = None,
    wide: bool = False,
    nudge: int | None = None,
) -> Observation:
    """Make one call on copies, and restore other state that it changed from ``saved_state``, which was saved with
    ``state=True``.

    Without ``call``, ``fn`` runs without a compiler, even if it was compiled before; ``call`` makes the call in another
    way. ``wide`` computes in float64. ``nudge`` is a seed: each input number is changed by one unit in the last place,
    in a random direction. The random state is not reset.
    """
    from .._torch.graphs.double_precision import double_precision
    from .._torch.isolation import forced_eager

    copied_call = copied(fn, args, kwargs, wide=wide)
    precision = double_precision if wide else contextlib.nullcontext
    try:
        before = _state(*copied_call)
        if nudge is not None:
            perturb([x for x in before.values() if isinstance(x, torch.Tensor)], nudge)
        firsts = {} if nudge is not None else _with_grads(_state(fn, args, kwargs))
        first_state = {
            n: (Snapshot.of(x, saved_state.first(firsts.get(n))), version_of(x))
            for n, x in _with_grads(before).items()
        }
        leaves = _leaf_names(before)
        random = torch.get_rng_state()
        if call is not None:
            result = call(*copied_call)
        else:
            with forced_eager(), precision():
                result = copied_call[0](*copied_call[1], **copied_call[2])
        observation = Observation(drew=not torch.equal(random, torch.get_rng_state()))
        _record_effects(observation, result, copied_call, before, first_state, saved_state)
        if backward:
            with precision():
                _take_gradients(observation, result, before, leaves, saved_state)
        later = observation.all_after  # unchanged values share the first snapshot's memory
        later |= {
            n: observation.after.get(n) or first_state[n][0]
            for n, x in later.items()
            if isinstance(x, torch.Tensor)
        }
        return observation
    finally:
        saved_state.reset()


def perturb(tensors: list[torch.Tensor], seed: int) -> None:
    """Change each number of tensors by one unit in the last place, up or down."""
    generator = torch.Generator().manual_seed(seed)
    for tensor in tensors:
        if not (tensor.is_floating_point() or tensor.is_complex()) or unreadable(tensor):
            continue
        # An expanded tensor, a class without these operators, and a dtype without arithmetic stay unchanged.
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
    """Return the objects that the call receives or reaches, by name."""
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


def _record_effects(
    observation: Observation,
    result: Any,
    copied_call: Any,
    before: dict[str, Any],
    first_state: dict[str, Any],
    saved_state: SavedState,
) -> None:
    after = _state(copied_call[0], copied_call[1], copied_call[2], observation.shapes_after)
    shared = _memories(before, after, saved_state)
    for name, value in values.parts([("result", result)], shapes=observation.shapes):
        tensor = values.as_tensor(value)
        if tensor is not None:
            keep = not tensor.requires_grad and _is_alone(tensor, shared)
            value = Snapshot.of(tensor, keep=keep)
        observation.results[name] = value
    for name, value in [*after.items(), *_grads(after)]:
        tensor = values.as_tensor(value)
        if tensor is None:
            observation.all_after[name] = value
            first = before.get(name, MISSING)
            changed = first is MISSING or values.same_plain(value, first, 0.0, 0.0) is False
        else:
            changed = name not in first_state or _changed(tensor, *first_state[name])
            observation.unchanged += not changed and not first_state[name][0].unreadable
            observation.all_after[name] = tensor
        if changed:
            observation.after[name] = value if tensor is None else Snapshot.of(tensor)
    observation.aliases = aliases(
        [(n, x) for n, x in values.named_tensors([("result", result)])],
        [(n, x) for n, x in after.items() if isinstance(x, torch.Tensor)],
    )


# Which tensors share memory ----------------------------------------------------------------------------------


def aliases(results: list[values.Part], state: list[values.Part]) -> dict[str, str]:
    """Return, for each result, the inputs, state and earlier results with which it shares elements."""
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


def _memories(before: dict[str, Any], after: dict[str, Any], saved_state: SavedState) -> set[int | None]:
    """Return the addresses of the storages that a call reaches."""
    tensors = [*before.values(), *after.values(), *saved_state.tensors]
    return {_memory(x) for x in tensors if isinstance(x, torch.Tensor)}


def _is_alone(tensor: torch.Tensor, shared: set[int | None]) -> bool:
    """Return True if the tensor may be kept without a copy: it shares no storage with anything that a call reaches, and
    fills at least half of its own. Only on the CPU; other devices may reuse memory between calls."""
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
    if one.element_size() != other.element_size() or one.numel() + other.numel() > MAX_EXACT_ELEMENTS:
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
    """Return the names of copied non-leaf tensors, by the ``id`` of the leaf that receives the gradient of each."""
    tensors = [(n, x) for n, x in state.items() if isinstance(x, torch.Tensor)]
    bases = [(f"what {n} is a view of", x._base) for n, x in tensors if x._is_view() and x._base is not None]
    names: dict[int, str] = {}
    for name, tensor in [*tensors, *bases]:
        if (leaf := leaf_of(tensor)) is not None:
            names.setdefault(id(leaf), name)
    return names


def _take_gradients(
    observation: Observation,
    result: Any,
    before: dict[str, Any],
    leaf_names: dict[int, str],
    saved_state: SavedState,
) -> None:
    from .._torch.ground.gradient_edges import gradient_edges, sum_by_leaf

    changed = [
        (n, observation.all_after[n])
        for n in observation.after
        if isinstance(observation.all_after.get(n), torch.Tensor)
        and observation.all_after[n].grad_fn is not None
    ]
    roots = {n: x for n, x in [*values.named_tensors([("result", result)]), *changed] if _differentiable(x)}
    names = dict(leaf_names)
    for name, tensor in [*before.items(), *observation.all_after.items()]:
        if isinstance(tensor, torch.Tensor):
            names.setdefault(id(tensor), name)
            if tensor._is_view() and tensor._base is not None:
                names.setdefault(id(tensor._base), f"what {name} is a view of")
    # To leaves without a name too, as backward(): a compiled backward that was differentiated raises on its way to one.
    edges = gradient_edges(list(roots.values()))
    if not edges:
        return
    try:
        directions = [_direction(n, x) for n, x in roots.items()]
        gradients = torch.autograd.grad(
            list(roots.values()), [edge for _, edge in edges], directions, allow_unused=True
        )
    except Exception as error:  # a freed graph, or a missing derivative or operator
        observation.no_gradients = str(error).strip().partition(". ")[0] or type(error).__name__
        return
    sums = sum_by_leaf((leaf for leaf, _ in edges), gradients)
    by_name = {names[id(leaf)]: x for leaf, x in sums if id(leaf) in names}
    shared = _memories(before, observation.all_after, saved_state)
    observation.gradients = {
        n: None if x is None else Snapshot.of(x, keep=_is_alone(x, shared))
        for n, x in sorted(by_name.items(), key=lambda p: p[0])
    }


def _differentiable(tensor: torch.Tensor) -> bool:
    return bool(tensor.requires_grad) and bool(tensor.is_floating_point() or tensor.is_complex())


def _direction(name: str, root: torch.Tensor) -> torch.Tensor:
    """Return the direction to differentiate along. Elements vary, since the plain sum of a softmax has no gradient;
    none is zero, which would hide a wrong gradient.

    The numbers are exact in every dtype, so that a float64 run has the same ones.
    """
    if root.layout != torch.strided or type(settled(root)) not in OWN_CLASSES:
        return torch.ones_like(root)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    direction = torch.empty(root.shape, dtype=root.dtype)
    for part in direction.view(-1).split(PIECE_ELEMENTS):
        eighths = torch.randint(-8, 8, part.shape, generator=generator, dtype=torch.float64)
        part.copy_(torch.where(eighths < 0, eighths, eighths + 1) / 8)
    if direction.stride() == root.stride() and root.device.type == "cpu":
        return direction
    return torch.empty_like(root, requires_grad=False).copy_(direction)
