"""Agreement of compiled code with eager PyTorch: one comparison for each observable effect of a call."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

import torch

from .._torch.ground import values
from .._torch.ground.values import Shape
from ..record.verification import ALIAS, CHANGED, GRADIENT, RESULT, ValueCheck
from .distances import Distances, distances
from .observation import MISSING, Observation
from .snapshot import PIECE_ELEMENTS, Snapshot, alike, dense, pieces, widest

TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.float64: (1e-7, 1e-9)}
"""Relative and absolute tolerance by dtype: those of ``torch.testing``, with a slightly wider absolute part."""

DEFAULT_TOLERANCE = (1.3e-5, 1e-5)
"""Relative and absolute tolerance for float32 and for dtypes without an entry in ``TOLERANCES``."""

EAGER_ERROR_FACTOR = 3.0
"""A compiled result agrees if its error against float64 is at most this multiple of eager's."""


@dataclasses.dataclass
class Agreement:
    """Comparisons of two calls.

    Attributes:
        checks: the comparisons that were made.
        not_run: effects that cannot be compared for lack of a reference, with the reason: eager has none, or the type
            defines no equality.
        not_compared: effects of the compiled code that could not be compared, with the reason.
    """

    checks: list[ValueCheck] = dataclasses.field(default_factory=list)
    not_run: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    not_compared: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return all(c.ok for c in self.checks)

    def accept(self, values: set[tuple[str, str]]) -> None:
        """Mark the checks with these kinds and names as passed."""
        self.checks = [
            dataclasses.replace(c, ok=True, special="") if (c.kind, c.name) in values else c
            for c in self.checks
        ]

    def set_aside(self, reasons: dict[str, str], problems: bool = False) -> None:
        """Drop the numbers of the checks with these names; with ``problems`` also their other differences."""
        for at, check in enumerate(self.checks):
            if check.name in reasons:
                self.checks[at] = without_values(
                    dataclasses.replace(check, problem="") if problems else check
                )
                self.not_compared.append((check.name, reasons[check.name]))


def compared(eager: Observation, compiled: Observation, reference: Observation | None = None) -> Agreement:
    """Return the comparison of all effects of either call."""
    reference = reference or Observation()
    agreement = Agreement()
    checks = agreement.checks
    for name in _either(eager.results, compiled.results):
        actual, want = compiled.results.get(name, MISSING), eager.results.get(name, MISSING)
        _add(agreement, RESULT, name, actual, want, reference.results.get(name))
    checks += _containers(RESULT, compiled.shapes, eager.shapes)
    checks += _empty_alone(compiled, eager)
    for name in _either(eager.after, compiled.after):
        actual, want = compiled.later(name), eager.later(name)
        _add(agreement, CHANGED, name, actual, want, reference.after.get(name))
    for name in _either(eager.aliases, compiled.aliases):
        if name in eager.results and name in compiled.results:
            checks.append(_alias(name, compiled.aliases.get(name, ""), eager.aliases.get(name, "")))
    checks += _containers(CHANGED, compiled.shapes_after, eager.shapes_after)
    if eager.no_gradients:
        agreement.not_run.append(("gradients", f"eager cannot take them: {eager.no_gradients}"))
    elif compiled.no_gradients:
        agreement.not_compared.append(("gradients", f"compiled cannot take them: {compiled.no_gradients}"))
    else:
        _gradients(agreement, eager.gradients, compiled.gradients, reference.gradients)
    return agreement


def without_values(comparison: ValueCheck) -> ValueCheck:
    """Return a check of type, shape and strides only; its distances are NaN (not compared)."""
    return dataclasses.replace(
        comparison,
        max_abs=math.nan,
        max_rel=math.nan,
        eager_abs=None,
        compiled_abs=None,
        ok=not comparison.problem,
        special="",
    )


def _containers(kind: str, got: dict[str, Shape], want: dict[str, Shape]) -> list[ValueCheck]:
    """Return failed checks for containers whose class or key order differs from eager's."""
    checks = []
    for name in (n for n in want if n in got):
        mine, its = got[name], want[name]
        names = _class_names(mine.kind, its.kind)
        if names[0] != names[1]:
            checks.append(_missing(name, kind, f"a {names[0]} where eager has a {names[1]}"))
        elif mine.keys != its.keys and set(mine.keys) == set(its.keys):
            order = [_cut(repr(list(shape.keys))) for shape in (mine, its)]
            checks.append(_missing(name, kind, f"keys {order[0]} where eager has {order[1]}"))
    return checks


def _class_names(mine: type, its: type) -> tuple[str, str]:
    """Return the names of two classes, with their modules if the names are equal.

    A class that the call itself defines exists twice, and Dynamo gives it another module: only its name counts.
    """
    if mine.__qualname__ != its.__qualname__:
        short = mine.__name__ != its.__name__
        return (mine.__name__, its.__name__) if short else (mine.__qualname__, its.__qualname__)
    if not (_is_importable(mine) and _is_importable(its)):
        return mine.__name__, its.__name__
    return f"{mine.__module__}.{mine.__qualname__}", f"{its.__module__}.{its.__qualname__}"


def _is_importable(kind: type) -> bool:
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _empty_alone(compiled: Observation, eager: Observation) -> list[ValueCheck]:
    """Return failed checks for empty containers that only one side returns; for others, their items are missing."""
    checks = []
    for mine, other, who in ((eager, compiled, "eager"), (compiled, eager, "compiled")):
        alone = (n for n, s in mine.shapes.items() if not s.size and n not in other.shapes)
        checks += [_missing(n, RESULT, f"only {who} has it") for n in alone if n not in other.results]
    return checks


def _either(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))


def _add(agreement: Agreement, kind: str, name: str, actual: Any, want: Any, reference: Any) -> None:
    actual, want = as_snapshot(actual), as_snapshot(want)
    checks = agreement.checks
    if actual is MISSING or want is MISSING:
        checks.append(_missing(name, kind, f"only {'eager' if actual is MISSING else 'compiled'} has it"))
    elif isinstance(actual, Snapshot) and isinstance(want, Snapshot):
        _tensor(agreement, name, kind, actual, want, reference)
    elif actual is None and want is None:
        return  # nothing to compare
    elif isinstance(actual, Snapshot) or isinstance(want, Snapshot):
        kinds = [x.kind if isinstance(x, Snapshot) else type(x).__name__ for x in (actual, want)]
        checks.append(_missing(name, kind, f"a {kinds[0]} where eager has a {kinds[1]}"))
    else:
        _plain(agreement, kind, name, actual, want)


def as_snapshot(value: Any) -> Any:
    return Snapshot.of(value) if isinstance(value, torch.Tensor) else value


def _missing(name: str, kind: str, problem: str) -> ValueCheck:
    inf = float("inf")
    return ValueCheck(name, "", (), inf, inf, None, None, False, kind, problem)


def _plain(agreement: Agreement, kind: str, name: str, got: Any, want: Any) -> None:
    same = values.same_plain(got, want, *DEFAULT_TOLERANCE)
    label = type(want).__name__
    if same is None:
        agreement.not_run.append((name, f"objects of type {label} do not say whether they are equal"))
        return
    number = isinstance(got, (int, float, complex)) and isinstance(want, (int, float, complex))
    gap = 0.0 if same else float(abs(got - want)) if number else math.inf
    gap = math.inf if gap != gap else gap
    scale = abs(want) if number and gap < math.inf else 0
    problem = "" if same else f"{_short(got)} where eager has {_short(want)}"
    agreement.checks.append(
        ValueCheck(
            name, label, (), gap, float(gap / scale) if scale else gap, None, None, same, kind, problem
        )
    )


def _short(value: Any) -> str:
    try:
        text = f"{type(value).__name__} {value!r}"
    except Exception:  # the user's own repr failed
        return type(value).__name__
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _alias(name: str, actual: str, want: str) -> ValueCheck:
    sentences = [
        f"memory shared with {text.strip()}" if text else "memory of its own" for text in (actual, want)
    ]
    problem = "" if actual == want else f"{sentences[0]} where eager has {sentences[1]}"
    gap = 0.0 if actual == want else float("inf")
    return ValueCheck(name, want.strip(), (), gap, gap, None, None, actual == want, ALIAS, problem)


def _gradients(
    agreement: Agreement,
    eager: dict[str, Snapshot | None],
    compiled: dict[str, Snapshot | None],
    reference: dict[str, Snapshot | None],
) -> None:
    for name in _either(eager, compiled):
        actual, want = compiled.get(name), eager.get(name)
        # For autograd, None and a gradient of zeros are the same.
        actual = _zeros(want) if actual is None else actual
        want = _zeros(actual) if want is None else want
        if actual is not None and want is not None:
            _tensor(agreement, f"gradient of {name}", GRADIENT, actual, want, reference.get(name))


def _zeros(like: Snapshot | None) -> Snapshot | None:
    if like is None:
        return None
    return dataclasses.replace(like, parts=tuple((n, torch.zeros_like(x)) for n, x in like.parts))


# Tensors -----------------------------------------------------------------------------------------------------


def _tensor(
    agreement: Agreement, name: str, kind: str, got: Snapshot, want: Snapshot, reference: Any
) -> None:
    """Add the comparison of two tensors: one check for each plain tensor that holds their values."""
    problem = _facts(kind, got, want)
    reason = got.unreadable or want.unreadable
    if reason:
        if got.empty and not want.unreadable:
            problem = f"{reason}; eager has its values"
        elif not (got.empty and want.empty):
            who = "compiled" if got.unreadable else "eager"
            agreement.not_compared.append((name, f"in {who} {reason}"))
        inf = math.nan if not problem else math.inf
        shape = want.shape
        agreement.checks.append(
            ValueCheck(name, _name(want.dtype), shape, inf, inf, None, None, not problem, kind, problem)
        )
        return
    truth = dict(reference.parts) if isinstance(reference, Snapshot) else {}
    mine, its = dict(got.parts), dict(want.parts)
    if list(mine) != list(its):
        problem = f"it holds {', '.join(mine)} where eager has {', '.join(its)}"
        agreement.checks.append(_missing(name, kind, problem))
        return
    for path, value in its.items():
        try:
            check = compare(f"{name}{path}", mine[path], value, truth.get(path), kind=kind, problem=problem)
        except Exception as error:  # each unsupported feature raises its own exception type
            lines = (str(error).strip() or type(error).__name__).splitlines()
            check = _missing(f"{name}{path}", kind, problem)
            check = without_values(
                dataclasses.replace(check, dtype=_name(value.dtype), shape=tuple(want.shape), kind=kind)
            )
            agreement.not_compared.append((f"{name}{path}", f"torch cannot compare it: {lines[0][:200]}"))
        agreement.checks.append(check)


def _facts(kind: str, got: Snapshot, want: Snapshot) -> str:
    """Return how two tensors differ apart from their numbers. Strides of gradients are ignored: autograd does not
    define them."""
    pairs: list[tuple[str, Any, Any]] = [
        ("type", got.kind, want.kind),
        ("dtype", _name(got.dtype), _name(want.dtype)),
        ("shape", got.shape, want.shape),
        ("device", str(got.device), str(want.device)),
        ("layout", _name(got.layout), _name(want.layout)),
    ]
    if kind != GRADIENT:
        pairs.append(("requires_grad", got.requires_grad, want.requires_grad))
        pairs.append(("strides", _strides(got), _strides(want)))
    return ", ".join(f"{what} {mine} where eager has {its}" for what, mine, its in pairs if mine != its)


def _strides(seen: Snapshot) -> tuple[int, ...]:
    """Return the strides that matter: those of sizes above 1, in a tensor that has elements."""
    if 0 in seen.shape:
        return ()
    return tuple(step for size, step in zip(seen.shape, seen.stride) if size > 1)


def _name(thing: Any) -> str:
    return str(thing).removeprefix("torch.")


def compare(
    name: str,
    actual: torch.Tensor,
    want: torch.Tensor,
    reference: torch.Tensor | None,
    *,
    kind: str = RESULT,
    problem: str = "",
    known: Distances | None = None,
) -> ValueCheck:
    """Return the comparison of one tensor with eager's; ``problem`` says what else differs, ``known`` are the distances
    if already computed."""
    dtype, same = want.dtype, actual.dtype == want.dtype and actual.is_nested == want.is_nested
    actual, want = dense(actual), dense(want)
    shape = tuple(want.shape)
    reference = None if reference is None else dense(reference)
    reference = None if reference is None or reference.shape != shape else reference
    same = same and actual.shape == want.shape
    exact = not (dtype.is_floating_point or dtype.is_complex)
    if known is None:
        tolerance = TOLERANCES.get(dtype, DEFAULT_TOLERANCE)
        known = distances(actual if same else None, want, reference, tolerance)
    ok = same and (torch.equal(actual, want) if exact else known.close)
    difference = known.apart if same else math.inf
    if (
        same
        and not ok
        and not exact
        and reference is not None
        and not (known.special or known.special_of_eager)
    ):
        # Long sums differ with their order: an error close to eager's own against float64 is accepted.
        own = known.error_of_eager.largest
        ok = 0 < own < math.inf and known.error.largest <= EAGER_ERROR_FACTOR * own
    return ValueCheck(
        name=name,
        dtype=_name(dtype),
        shape=shape,
        max_abs=difference,
        max_rel=difference / known.scale if known.scale else difference,
        eager_abs=None if reference is None else known.error_of_eager.largest,
        compiled_abs=None if reference is None or not same else known.error.largest,
        ok=ok and not problem,
        kind=kind,
        problem=problem,
        special=_special(actual, want) if same and not ok else "",
    )


def _special(got: torch.Tensor, want: torch.Tensor) -> str:
    """Return the first position where one side has a NaN or an infinity and the other does not; ``""`` if none."""
    differs = torch.zeros(got.shape, dtype=torch.bool, device=got.device)
    for place, a, b in pieces(differs, got, want):
        mine, its = widest(a), widest(b)
        place.copy_(~alike(mine, its) & ~(mine.isfinite() & its.isfinite()))
    more = int(differs.sum()) - 1
    if more < 0:
        return ""
    # Search in pieces: the indices of all elements would take more memory than the tensor.
    start, part = next(
        (i * PIECE_ELEMENTS, p)
        for i, p in enumerate(differs.flatten().split(PIECE_ELEMENTS))
        if bool(p.any())
    )
    flat = torch.tensor(start + int(part.nonzero()[0]))
    at = tuple(int(i) for i in torch.unravel_index(flat, got.shape)) if got.dim() else ()
    where = f" at {list(at)}" if at else ""
    count = f" (and {more:,} more)" if more else ""
    return f"{widest(got[at]).item():.6g} where eager has {widest(want[at]).item():.6g}{where}{count}"
