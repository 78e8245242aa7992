"""Values that depend on how intermediate numbers are rounded, so that eager and compiled code may both be right."""

from __future__ import annotations

from typing import Any

import torch

from .._torch.ground import values
from ..record.verification import ALIAS, ValueCheck
from .agreement import DEFAULT_TOLERANCE, EAGER_ERROR_FACTOR, TOLERANCES, as_snapshot
from .distances import gap
from .observation import Observation
from .snapshot import Snapshot, dense, pieces, widest

ROUNDING = (
    "it depends on how numbers in between are rounded: eager on inputs that differ by one unit in the last place gives "
    "results as far apart"
)


def rounded(
    eager: Observation, compiled: Observation, nudged: list[Observation], failed: list[ValueCheck]
) -> set[str]:
    """Return the names of ``failed`` checks where compiled differs from eager no more than eager does from itself on
    inputs changed by one unit in the last place (``nudged``)."""
    mine, its = _values(compiled), _values(eager)
    others = [_values(n) for n in nudged]
    names = set()
    for check in failed:
        name = check.name
        if (
            check.kind == ALIAS
            or name not in mine
            or name not in its
            or type(mine[name]) is not type(its[name])
        ):
            continue
        numbers = not check.problem or check.problem.startswith("shape ")
        if not isinstance(its[name], torch.Tensor) or numbers:
            if as_far(mine[name], its[name], [o.get(name) for o in others]):
                names.add(name)
    return names


def _values(one: Observation) -> dict[str, Any]:
    """Return tensors and plain values by the names of their checks."""
    gradients = {f"gradient of {n}": v for n, v in one.gradients.items()}
    later = {n: one.later(n) for n in one.all_after}
    flat: dict[str, Any] = {}
    for name, value in {**later, **one.results, **gradients}.items():
        value = as_snapshot(value)
        if isinstance(value, Snapshot):
            flat.update({f"{name}{path}": part for path, part in value.parts})
        else:
            flat[name] = value
    return flat


def as_far(mine: Any, its: Any, others: list[Any]) -> bool:
    """Return True if a value is no farther from eager's than ``others``, which eager computed from inputs one unit in
    the last place apart."""
    if not isinstance(its, torch.Tensor):
        if isinstance(its, (float, complex)):
            gaps = [abs(o - its) for o in others if isinstance(o, (float, complex))]
            return bool(gaps) and abs(mine - its) <= EAGER_ERROR_FACTOR * max(gaps)
        return any(type(o) is type(its) and values.same_plain(o, its, 0.0, 0.0) is False for o in others)
    tensors = [dense(o) for o in others if isinstance(o, torch.Tensor)]
    mine, its = dense(mine), dense(its)
    if mine.shape != its.shape:
        return any(o.shape != its.shape for o in tensors)
    tensors = [o for o in tensors if o.shape == its.shape]
    if not tensors or mine.dtype != its.dtype:
        return False
    if not (its.is_floating_point() or its.is_complex()):
        moved = torch.stack([o != its for o in tensors]).any(0)
        return int((mine != its).sum()) <= EAGER_ERROR_FACTOR * int(moved.sum())
    rtol, atol = TOLERANCES.get(its.dtype, DEFAULT_TOLERANCE)
    beyond = differs = 0
    farthest = widest_spread = 0.0
    for part, want, *rest in pieces(mine, its, *tensors):
        wide = widest(want)
        apart, most = gap(widest(part), wide)
        farthest = max(farthest, most)
        spread = torch.zeros_like(apart)
        for one in rest:
            other, most = gap(widest(one), wide)
            widest_spread = max(widest_spread, most)
            torch.maximum(spread, other, out=spread)
        allowed = atol + rtol * wide.abs().nan_to_num(0.0, 0.0, 0.0)
        beyond += int((apart > EAGER_ERROR_FACTOR * spread + allowed).sum())
        differs += int((apart > allowed).sum())
    # Allow a few elements beyond: in so few runs a number may happen not to move.
    return beyond <= differs / 10 and farthest <= EAGER_ERROR_FACTOR * widest_spread
