"""Nearest cache entry of a call, from the logged guards of the cache entries.

A log has no argument values. Those of a call are taken from the guards of the variant that it compiled.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import failed_guards, guard_values, messages, syntax
from ..compilation import DynamicDim
from ..program import UNKNOWN, FailedGuard, FrameEvaluation
from . import graph_text


class LoggedVariant:
    """A compiled variant of a code object with its parsed guards."""

    def __init__(self, evaluation: FrameEvaluation, tree: str) -> None:
        self.evaluation = evaluation
        self.leaves: dict[tuple[str, str], list[str]] = {}
        for source, kind, text in graph_text.leaves(tree):
            self.leaves.setdefault((_plain(source), kind), []).append(_plain(messages.with_place(text)[0]))
        self.types = {_plain(source): type_name for source, type_name in graph_text.types(tree).items()}


def nearest_variant(
    failed: Sequence[FailedGuard], variants: Mapping[str, LoggedVariant], new: LoggedVariant | None
) -> int:
    """Return the index in ``failed`` of the variant with the fewest failing guards, among those on values for which a
    guard of this code failed so far; ``UNKNOWN`` if the log does not determine it. ``new`` is the variant that the
    call compiled, ``None`` if it compiled none. Ties are settled as in a watch."""
    if len(failed) < 2:
        return 0
    older = [variants.get(one.id) for one in failed]
    if new is None or None in older:
        return UNKNOWN
    known = (*failed, *_earlier(failed[0].id, variants))
    comparison = _Comparison(
        frozenset(about for one in known for about in guard_values.guarded_values(one.source)),
        frozenset(one.source for one in known),
        values(new),
    )
    failures = [
        _failing_values(one, variant, new, comparison)
        for one, variant in zip(failed, older)
        if variant is not None
    ]
    order = [
        (len(fails), not guard_values.is_zero_one_specialized(one), at)
        for at, (one, (fails, _)) in enumerate(zip(failed, failures))
    ]
    best = min(order)[2]
    most = len(failures[best][0] | failures[best][1])
    doubt = any(len(fails) < most for at, (fails, _) in enumerate(failures) if at != best)
    tied = any(
        unknown for at, (fails, unknown) in enumerate(failures) if len(fails) == len(failures[best][0])
    )
    return UNKNOWN if doubt or tied else best


@dataclass(frozen=True)
class _Comparison:
    """The values by which variants are compared, the parts of tensors among them, and the call's known values."""

    abouts: frozenset[str]
    parts: frozenset[str]
    values: Mapping[str, Any]


def _earlier(id: str, variants: Mapping[str, LoggedVariant]) -> Iterator[FailedGuard]:
    code = id.rpartition("/")[0]
    for known, variant in variants.items():
        if known.rpartition("/")[0] == code and variant.evaluation.recompilation is not None:
            yield from variant.evaluation.recompilation.failed_guards


def _plain(text: str) -> str:
    """Return a source or guard in the program's terms, without the number that a variant's builtins dict has."""
    return re.sub(r"(__builtins_dict__)_\d+", r"\1", messages.plain_source(text.strip()))


def values(new: LoggedVariant) -> dict[str, Any]:
    """Return the values that the call of a variant had, as far as its guards tell, by source."""
    known: dict[str, Any] = {}
    for (source, kind), texts in new.leaves.items():
        for text in texts:
            about, words = failed_guards.compiled_for(text)
            if kind in _EQUALITY_KINDS and about and (value := _literal(words)) is not None:
                known[about] = value
            if kind == _TENSOR_KIND and (check := guard_values.TENSOR_CHECK.search(text)):
                known |= _of_tensor(source, check)
    dims: Iterable[DynamicDim] = new.evaluation.dynamic
    known |= {messages.plain_source(one.source): _literal(one.observed) for one in dims if one.observed}
    return known


def _of_tensor(source: str, check: re.Match[str]) -> dict[str, Any]:
    sizes, strides = (syntax.literal(check[what]) for what in ("size", "stride"))
    parts = {f"{source}.{what}": check[what] for what in ("dtype", "requires_grad")}
    parts[f"{source}.dim()"] = len(sizes)
    for what, of in (("size", sizes), ("stride", strides)):
        parts |= {f"{source}.{what}({i})": n for i, n in enumerate(of) if n is not None}
    return parts


_EQUALITY_KINDS = (
    "EQUALS_MATCH",
    "LENGTH_CHECK",
    "DICT_LENGTH",
    "TUPLE_ITERATOR_LEN",
    "RANGE_ITERATOR_MATCH",
)
_TENSOR_KIND = "TENSOR_MATCH"
SIZES = ("LAMBDA_GUARD", "SYMBOLIC_SHAPE_GUARD")
"""Torch's kinds of guards on ranges or several values."""
_STATE_KIND = "GLOBAL_STATE"


def _failing_values(
    failed: FailedGuard, old: LoggedVariant, new: LoggedVariant, comparison: _Comparison
) -> tuple[set[str], set[str]]:
    """Return the guarded values of a variant whose guards fail, and those whose guards may fail."""
    states = _states(old, new) if failed.text.startswith(failed_guards.STATE) else set()
    fails = states or {guard_values.guarded_value(failed.source) or failed.text}
    if not failed.text.startswith(failed_guards.STATE):
        fails |= _states(old, new)
    unknown: set[str] = set()
    for (source, kind), texts in old.leaves.items():
        for text in texts:
            if text in new.leaves.get((source, kind), ()):
                continue
            for part, holds in _parts(source, kind, text, new, comparison):
                if holds is not True:
                    (unknown if holds is None else fails).add(part)
    return fails, unknown - fails


def _states(old: LoggedVariant, new: LoggedVariant) -> set[str]:
    """Return the names of torch's global settings that differ between two variants."""
    one, two = (_state(variant) for variant in (old, new))
    return {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}


def _state(variant: LoggedVariant) -> dict[str, Any]:
    for text in variant.leaves.get(("", _STATE_KIND), ()):
        _, _, json_text = text.partition(" against ")
        try:
            state = json.loads(json_text)
        except (ValueError, RecursionError):
            continue
        if isinstance(state, dict):
            return state
    return {}


def _parts(
    source: str, kind: str, text: str, new: LoggedVariant, comparison: _Comparison
) -> Iterator[tuple[str, bool | None]]:
    """Yield the values that a guard of an older variant checks, and whether each check holds; None if unknown."""
    if kind in SIZES:
        if any(re.search(rf"(?<![\w.]){re.escape(about)}\.", text) for about in comparison.abouts):
            about, _ = failed_guards.compiled_for(text)
            yield about or text, _holds(text, comparison.values)
        return
    if kind in _IGNORED_KINDS or not comparison.abouts & set(guard_values.guarded_values(source)):
        return
    check = guard_values.TENSOR_CHECK.search(text) if kind == _TENSOR_KIND else None
    if check is not None:
        yield from _tensor(source, check, new, comparison)
        return
    about, words = failed_guards.compiled_for(text)
    part = guard_values.guarded_value(about or source)
    if about in comparison.values:
        yield part, _literal(words) == comparison.values[about]
    elif (source, kind) in new.leaves:
        yield part, False  # the new variant has a guard of the same kind with another value
    elif kind == "TYPE_MATCH" and source in new.types:
        yield part, f"type={new.types[source]}" in text
    else:
        yield part, None


_IGNORED_KINDS = (_STATE_KIND, *graph_text.MARKINGS)
"""Kinds of guards by which variants are not compared, as in a watch."""


def _tensor(
    source: str, check: re.Match[str], new: LoggedVariant, comparison: _Comparison
) -> Iterator[tuple[str, bool | None]]:
    if (source, _TENSOR_KIND) not in new.leaves:  # no tensor in the new variant, or not guarded there
        known = new.types.get(source)
        yield source, None if known is None or "Tensor" in known or "Parameter" in known else False
        return
    differs = []
    for part, compiled_for in _of_tensor(source, check).items():
        now = comparison.values.get(part)
        if now is not None and now != compiled_for:
            differs.append(part)
        elif now is None and part in comparison.parts:
            yield part, None
    own = [part for part in differs if part in comparison.parts]
    yield from ((part, False) for part in own or ([source] if differs else []))


def _holds(text: str, values: Mapping[str, Any]) -> bool | None:
    """Return whether a comparison of sizes holds in the call; None if a size is unknown."""
    tree = messages.parse_expression(text)
    return None if tree is None else messages.comparison_holds(_Values(values).visit(tree))


class _Values(ast.NodeTransformer):
    """Transformer that replaces expressions with known numbers by these numbers."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)):
            value = self._values.get(ast.unparse(node))
            return ast.Constant(value) if type(value) in (int, float) else node
        return super().generic_visit(node)


def _literal(text: str) -> Any:
    try:
        return syntax.literal(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
