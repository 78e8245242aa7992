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
from .observation import MISSING, Observation, Seen

TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.float64: (1e-7, 1e-9)}
"""Relative and absolute tolerance by dtype (those of ``torch.testing``, a little wider in absolute terms)."""

DEFAULT = (1.3e-5, 1e-5)
"""The same for float32 and what has none of its own."""

AS_GOOD = 3.0
"""Multiple of eager's own error against a float64 run that a compiled result may have and still agree."""


def compared(
    eager: Observation, compiled: Observation, reference: Observation | None = None
) -> tuple[tuple[ValueCheck, ...], tuple[tuple[str, str], ...]]:
    """All that either call did, and what could not be compared, with the reason."""
    reference = reference or Observation()
    checks: list[ValueCheck] = []
    left: list[tuple[str, str]] = []
    for name in _either(eager.results, compiled.results):
        actual, want = compiled.results.get(name, MISSING), eager.results.get(name, MISSING)
        _add(checks, left, RESULT, name, actual, want, reference.results.get(name))
    checks += _containers(RESULT, compiled.shapes, eager.shapes)
    checks += _empty_alone(compiled, eager)
    for name in _either(eager.after, compiled.after):
        actual, want = compiled.later(name), eager.later(name)
        _add(checks, left, CHANGED, name, actual, want, reference.after.get(name))
    for name in _either(eager.aliases, compiled.aliases):
        if name in eager.results and name in compiled.results:
            checks.append(_alias(name, compiled.aliases.get(name, ""), eager.aliases.get(name, "")))
    checks += _containers(CHANGED, compiled.shapes_after, eager.shapes_after)
    if eager.no_gradients:
        left.append(("gradients", f"eager cannot take them: {eager.no_gradients}"))
    elif compiled.no_gradients:
        checks.append(_missing("gradients", GRADIENT, f"compiled cannot take them: {compiled.no_gradients}"))
    else:
        checks += _gradients(eager.gradients, compiled.gradients, reference.gradients)
    return tuple(checks), tuple(left)


def without_values(comparison: ValueCheck) -> ValueCheck:
    """The comparison of type, shape and strides alone: its numbers are NaN, since they were not compared."""
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
    """Containers of another class than eager's, or with their keys in another order."""
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
    """The names of two classes, with their modules where they need them.

    A class that a call makes is made twice, and Dynamo gives it a module of its own: it goes by its name.
    """
    if mine.__qualname__ != its.__qualname__:
        short = mine.__name__ != its.__name__
        return (mine.__name__, its.__name__) if short else (mine.__qualname__, its.__qualname__)
    if not (_stands(mine) and _stands(its)):
        return mine.__name__, its.__name__
    return f"{mine.__module__}.{mine.__qualname__}", f"{its.__module__}.{its.__qualname__}"


def _stands(kind: type) -> bool:
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _empty_alone(compiled: Observation, eager: Observation) -> list[ValueCheck]:
    """Empty containers that one side alone returns: of a full one, what it holds is missing."""
    checks = []
    for mine, other, who in ((eager, compiled, "eager"), (compiled, eager, "compiled")):
        alone = (n for n, s in mine.shapes.items() if not s.size and n not in other.shapes)
        checks += [_missing(n, RESULT, f"only {who} has it") for n in alone if n not in other.results]
    return checks


def _either(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))


def _add(
    checks: list[ValueCheck],
    left: list[tuple[str, str]],
    kind: str,
    name: str,
    actual: Any,
    want: Any,
    reference: Any,
) -> None:
    actual, want = _seen(actual), _seen(want)
    if actual is MISSING or want is MISSING:
        checks.append(_missing(name, kind, f"only {'eager' if actual is MISSING else 'compiled'} has it"))
    elif isinstance(actual, Seen) and isinstance(want, Seen):
        checks.append(_tensor(name, kind, actual, want, reference))
    elif actual is None and want is None:
        return  # what returns nothing says nothing
    elif isinstance(actual, Seen) or isinstance(want, Seen):
        kinds = [x.kind if isinstance(x, Seen) else type(x).__name__ for x in (actual, want)]
        checks.append(_missing(name, kind, f"a {kinds[0]} where eager has a {kinds[1]}"))
    else:
        _plain(checks, left, kind, name, actual, want)


def _seen(value: Any) -> Any:
    return Seen.of(value) if isinstance(value, torch.Tensor) else value


def _missing(name: str, kind: str, problem: str) -> ValueCheck:
    inf = float("inf")
    return ValueCheck(name, "", (), inf, inf, None, None, False, kind, problem)


def _plain(
    found: list[ValueCheck], left: list[tuple[str, str]], kind: str, name: str, got: Any, want: Any
) -> None:
    same = values.same_plain(got, want, *DEFAULT)
    label = type(want).__name__
    if same is None:
        left.append((name, f"objects of type {label} do not say whether they are equal"))
        return
    number = isinstance(got, (int, float, complex)) and isinstance(want, (int, float, complex))
    gap = 0.0 if same else float(abs(got - want)) if number else math.inf
    gap = math.inf if gap != gap else gap
    scale = abs(want) if number and gap < math.inf else 0
    problem = "" if same else f"{_short(got)} where eager has {_short(want)}"
    found.append(
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
    eager: dict[str, Any], compiled: dict[str, Any], reference: dict[str, Any]
) -> list[ValueCheck]:
    checks = []
    for name in _either(eager, compiled):
        actual, want = compiled.get(name), eager.get(name)
        label = f"gradient of {name}"
        if actual is None and want is None:
            continue
        # To autograd no gradient is a gradient of zeros.
        actual, want = (
            (torch.zeros_like(want), want)
            if actual is None
            else (actual, torch.zeros_like(actual) if want is None else want)
        )
        own = reference.get(name)
        checks.append(
            _tensor(label, GRADIENT, Seen.of(actual), Seen.of(want), None if own is None else Seen.of(own))
        )
    return checks


# Tensors -----------------------------------------------------------------------------------------------------


def _tensor(name: str, kind: str, got: Seen, want: Seen, reference: Any) -> ValueCheck:
    truth = reference.value if isinstance(reference, Seen) else None
    return compare(name, got.value, want.value, truth, kind=kind, problem=_facts(kind, got, want))


def _facts(kind: str, got: Seen, want: Seen) -> str:
    """Return how two tensors differ beside their numbers. Autograd promises no strides of a gradient."""
    pairs: list[tuple[str, Any, Any]] = [
        ("type", got.kind, want.kind),
        ("dtype", _name(got.value.dtype), _name(want.value.dtype)),
        ("shape", tuple(got.value.shape), tuple(want.value.shape)),
        ("device", str(got.value.device), str(want.value.device)),
        ("layout", _name(got.value.layout), _name(want.value.layout)),
    ]
    if kind != GRADIENT:
        pairs.append(("requires_grad", got.requires_grad, want.requires_grad))
        pairs.append(("strides", _telling(got), _telling(want)))
    return ", ".join(f"{what} {mine} where eager has {its}" for what, mine, its in pairs if mine != its)


def _telling(seen: Seen) -> tuple[int, ...]:
    """Strides that say something: of sizes above one, in a tensor that has elements."""
    if not seen.value.numel():
        return ()
    return tuple(step for size, step in zip(seen.value.shape, seen.stride) if size > 1)


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
) -> ValueCheck:
    """One tensor against eager's; ``problem`` is what else differs."""
    dtype, shape = want.dtype, tuple(want.shape)
    same = actual.shape == want.shape and actual.dtype == dtype
    actual, want = _dense(actual), _dense(want)
    reference = None if reference is None or reference.shape != shape else _dense(reference)
    same = same and actual.shape == want.shape
    exact = not (dtype.is_floating_point or dtype.is_complex)
    rtol, atol = TOLERANCES.get(dtype, DEFAULT)
    ok = same and (torch.equal(actual, want) if exact else _close(actual, want, rtol, atol))
    difference = _max_abs(actual, want) if same else float("inf")
    scale = _max(want)
    if same and not ok and not exact and reference is not None:
        # Long sums differ by their order: no worse than eager's own distance from the truth is no error.
        own = _max_abs(want, reference)
        finite = bool(_wide(actual).isfinite().all() and _wide(want).isfinite().all())
        ok = finite and 0 < own < math.inf and _max_abs(actual, reference) <= AS_GOOD * own
    return ValueCheck(
        name=name,
        dtype=_name(dtype),
        shape=shape,
        max_abs=difference,
        max_rel=difference / scale if scale else difference,
        eager_abs=None if reference is None else _max_abs(want, reference),
        compiled_abs=None if reference is None or not same else _max_abs(actual, reference),
        ok=ok and not problem,
        kind=kind,
        problem=problem,
        special=_special(actual, want) if same and not ok else "",
    )


def _special(got: torch.Tensor, want: torch.Tensor) -> str:
    """The first place where one has a NaN or an infinity and the other has another number."""
    mine, its = _wide(got), _wide(want)
    differs = ~_alike(mine, its) & ~(mine.isfinite() & its.isfinite())
    if not bool(differs.any()):
        return ""
    at = tuple(int(i) for i in differs.nonzero()[0])
    where = f" at {list(at)}" if at else ""
    more = int(differs.sum()) - 1
    count = f" (and {more:,} more)" if more else ""
    return f"{mine[at].item():.6g} where eager has {its[at].item():.6g}{where}{count}"


def _close(actual: torch.Tensor, want: torch.Tensor, rtol: float, atol: float) -> bool:
    if actual.element_size() < 2:  # eight bits of floating point: what torch can compare is wider
        actual, want = actual.float(), want.float()
    return bool(torch.allclose(actual, want, rtol=rtol, atol=atol, equal_nan=True))


def _dense(x: torch.Tensor) -> torch.Tensor:
    """A plain tensor with the same numbers."""
    x = x.detach()
    if x.is_nested:
        return torch.cat([part.reshape(-1) for part in x.unbind()])
    if x.is_quantized:
        return x.dequantize()
    return x.to_dense() if x.layout != torch.strided else x


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.detach().to(torch.complex128 if x.is_complex() else torch.float64)


def _alike(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


def _max_abs(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference: infinite where one alone is a NaN or an infinity."""
    if not a.numel():
        return 0.0
    a, b = _wide(a), _wide(b)
    gap = float((a - b).abs().masked_fill(_alike(a, b), 0.0).max())
    return math.inf if gap != gap else gap


def _max(x: torch.Tensor) -> float:
    """The largest finite size."""
    x = _wide(x).abs()
    return float(x.masked_fill(~x.isfinite(), 0.0).max()) if x.numel() else 0.0
