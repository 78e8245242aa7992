"""Probes which elements of its arguments an eager operator reads: changes them and compares results bit for bit.

    python tests/helpers/operand_probe.py [--every N]

The operators are those that OpInfo's samples and their backward dispatch. It prints arguments that are never read
although the package's table lists them as read, and the opposite.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import eager_bytes
import torch
from eager_sweep import entries
from torch.utils import _pytree as pytree

PROBES = 6
"""Number of probed calls of each operator."""
LARGEST, SMALL = 4000, 120
"""Maximum elements of a probed call's arguments, and of an argument of which each element is changed."""


@dataclass
class Reads:
    """Observations of one argument: whether each call read it, and ``(elements read, elements)``."""

    looked_at: list[bool] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return real.nan_to_num(nan=12345.0) if real.is_floating_point() else real


def same(one: Any, other: Any) -> bool:
    """Return True if two results have the same numbers."""
    leaves, others = pytree.tree_leaves(one), pytree.tree_leaves(other)
    for a, b in zip(leaves, others):
        if isinstance(a, torch.Tensor):
            if a.shape != b.shape or not torch.equal(_plain(a), _plain(b)):
                return False
        elif a != b and not (a != a and b != b):
            return False
    return len(leaves) == len(others)


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    torch.manual_seed(0)
    args, kwargs = eager_bytes._copy((args, kwargs))
    return func(*args, **kwargs)


def _changed(tensor: torch.Tensor, element: int | None = None) -> torch.Tensor:
    other = tensor.clone(memory_format=torch.preserve_format)
    value = ~other if other.dtype == torch.bool else torch.full_like(other, float("nan"))
    if element is None:
        return value
    other.view(-1)[element] = value.reshape(-1)[element]
    return other


def probe(func: Any, args: Any, kwargs: Any, into: dict[tuple[str, str], Reads]) -> bool:
    """Probe a call, and return True if it needed probing."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    names = {
        id(t): name
        for name, v in eager_bytes.arguments(func, args, kwargs).items()
        for t in eager_bytes.tensors(v)
    }
    places = [
        (i, t)
        for i, t in enumerate(leaves)
        if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.numel()
    ]
    mutable = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
    random = torch.Tag.nondeterministic_seeded in func.tags
    if not places or mutable or random or sum(t.numel() for _, t in places) > LARGEST:
        return False
    reference = _run(func, args, kwargs)

    def looked_at(at: int, tensor: torch.Tensor) -> bool:
        other = list(leaves)
        other[at] = tensor
        try:
            return not same(reference, _run(func, *pytree.tree_unflatten(other, spec)))
        except Exception:  # an operator that rejects a number reads it
            return True

    for at, tensor in places:
        if not tensor.is_floating_point():
            continue
        reads = into[str(func), names.get(id(tensor), "")]
        reads.looked_at.append(looked_at(at, _changed(tensor)))
        if reads.looked_at[-1] and tensor.numel() <= SMALL and tensor.is_contiguous():
            count = sum(looked_at(at, _changed(tensor, e)) for e in range(tensor.numel()))
            reads.counts.append((count, tensor.numel()))
    return True


def probed(names: Iterable[str], samples: int = 12) -> dict[tuple[str, str], Reads]:
    """Return the observations for each operator and argument, over samples of these entries of OpInfo."""
    reads: dict[tuple[str, str], Reads] = defaultdict(Reads)
    calls: dict[str, int] = defaultdict(int)
    known = entries()
    for op in (known[name] for name in names):
        if torch.float32 not in op.dtypes or "grid_sampl" in op.name:
            continue
        drawn = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
        try:
            for sample in itertools.islice(drawn, samples):
                oracle = eager_bytes.eager(
                    op.get_op(), (sample.input, *sample.args), sample.kwargs, keep=True
                )
                for func, (args, kwargs) in oracle.calls:
                    if calls[str(func)] < PROBES:
                        with torch.no_grad():
                            calls[str(func)] += probe(func, args, kwargs, reads)
        except Exception:  # a sample for another device or library
            continue
    return reads


VALUES_DECIDE = set(
    "all amax any argmax argmin bitwise_and count_nonzero eq ge gt heaviside isin isinf isneginf isposinf kthvalue le "
    "logical_xor logical_and logical_or lt ne fmax fmin maximum minimum nonzero_static igamma igammac "
    "masked_fill where logical_not".split()
)
"""Operators that treat NaN like any number, or ignore it: NaN cannot prove that an element is not read."""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="one entry of so many")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for (name, argument), reads in sorted(probed(sorted(entries())[:: given.every]).items()):
        if not any(reads.looked_at):
            print(f"never looked at: {name} {argument}, {len(reads.looked_at)} calls")
        elif reads.counts and all(count < elements for count, elements in reads.counts):
            print(f"in part: {name} {argument}, {reads.counts}")


if __name__ == "__main__":
    main()
