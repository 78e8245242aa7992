"""Nearest cache entry of a call, by the guards that a log holds of the entries.

A log has no values of a call. What it compiled then has them: its guards are made of what it was called with.
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
    """A variant of a code, with what its guards check."""

    def __init__(self, evaluation: FrameEvaluation, tree: str) -> None:
        self.evaluation = evaluation
        self.leaves: dict[tuple[str, str], list[str]] = {}
        for source, kind, text in graph_text.leaves(tree):
            self.leaves.setdefault((_plain(source), kind), []).append(_plain(messages.with_place(text)[0]))
        self.types = {_plain(source): type_name for source, type_name in graph_text.types(tree).items()}


def nearest_variant(
    failed: Sequence[FailedGuard], variants: Mapping[str, LoggedVariant], new: LoggedVariant | None
) -> int:
    """The place in ``failed`` of the variant in which least fails of what failed in any of them, now or earlier;
    ``UNKNOWN`` where the log does not say enough to tell. ``new`` is what the call became, ``None`` where it became
    nothing. Of those in which as much fails, one is taken as a watch does."""
    if len(failed) < 2:
        return 0
    older = [variants.get(one.id) for one in failed]
    if new is None or None in older:
        return UNKNOWN
    known = (*failed, *_earlier(failed[0].id, variants))
    comparison = _Asked(
        frozenset(about for one in known for about in guard_values.guarded_values(one.source)),
        frozenset(one.source for one in known),
        values(new),
    )
    failures = [
        _failing(one, variant, new, comparison) for one, variant in zip(failed, older) if variant is not None
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
class _Asked:
    """Values by which entries are compared: parts of tensors and others, and what each was in the call."""

    abouts: frozenset[str]
    parts: frozenset[str]
    values: Mapping[str, Any]


def _earlier(id: str, variants: Mapping[str, LoggedVariant]) -> Iterator[FailedGuard]:
    code = id.rpartition("/")[0]
    for known, variant in variants.items():
        if known.rpartition("/")[0] == code and variant.evaluation.recompilation is not None:
            yield from variant.evaluation.recompilation.failed_guards


def _plain(text: str) -> str:
    """A source or a guard in the program's words; torch numbers the dicts of builtins anew for each variant."""
    return re.sub(r"(__builtins_dict__)_\d+", r"\1", messages.plain_source(text.strip()))


def values(new: LoggedVariant) -> dict[str, Any]:
    """Return the sizes, numbers and parts of tensors in the call for which an entry was compiled."""
    known: dict[str, Any] = {}
    for (source, kind), texts in new.leaves.items():
        for text in texts:
            about, words = failed_guards.compiled_for(text)
            if kind in _EQUAL and about and (value := _literal(words)) is not None:
                known[about] = value
            if kind == _TENSOR and (check := guard_values.TENSOR_CHECK.search(text)):
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


_EQUAL = ("EQUALS_MATCH", "LENGTH_CHECK", "DICT_LENGTH", "TUPLE_ITERATOR_LEN", "RANGE_ITERATOR_MATCH")
_TENSOR = "TENSOR_MATCH"
SIZES = ("LAMBDA_GUARD", "SYMBOLIC_SHAPE_GUARD")
"""torch's kinds of guards on more than one value, or on a range."""
_STATE = "GLOBAL_STATE"


def _failing(
    failed: FailedGuard, old: LoggedVariant, new: LoggedVariant, asked: _Asked
) -> tuple[set[str], set[str]]:
    """Return the guards of an entry that fail, and those that may fail."""
    states = _states(old, new) if failed.text.startswith(failed_guards.STATE) else set()
    fails = states or {guard_values.guarded_value(failed.source) or failed.text}
    if not failed.text.startswith(failed_guards.STATE):
        fails |= _states(old, new)
    unknown: set[str] = set()
    for (source, kind), texts in old.leaves.items():
        for text in texts:
            if text in new.leaves.get((source, kind), ()):
                continue
            for part, holds in _parts(source, kind, text, new, asked):
                if holds is not True:
                    (unknown if holds is None else fails).add(part)
    return fails, unknown - fails


def _states(old: LoggedVariant, new: LoggedVariant) -> set[str]:
    """The settings of torch's that were others when two variants were made."""
    one, two = (_state(variant) for variant in (old, new))
    return {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}


def _state(variant: LoggedVariant) -> dict[str, Any]:
    for text in variant.leaves.get(("", _STATE), ()):
        _, _, json_text = text.partition(" against ")
        try:
            state = json.loads(json_text)
        except (ValueError, RecursionError):
            continue
        if isinstance(state, dict):
            return state
    return {}


def _parts(
    source: str, kind: str, text: str, new: LoggedVariant, asked: _Asked
) -> Iterator[tuple[str, bool | None]]:
    """Yield the values that a guard of an older entry checks, and whether each check holds in the call."""
    if kind in SIZES:
        if any(re.search(rf"(?<![\w.]){re.escape(about)}\.", text) for about in asked.abouts):
            about, _ = failed_guards.compiled_for(text)
            yield about or text, _holds(text, asked.values)
        return
    if kind in _ASIDE or not asked.abouts & set(guard_values.guarded_values(source)):
        return
    check = guard_values.TENSOR_CHECK.search(text) if kind == _TENSOR else None
    if check is not None:
        yield from _tensor(source, check, new, asked)
        return
    about, words = failed_guards.compiled_for(text)
    part = guard_values.guarded_value(about or source)
    if about in asked.values:
        yield part, _literal(words) == asked.values[about]
    elif (source, kind) in new.leaves:
        yield part, False  # of one kind, and another one
    elif kind == "TYPE_MATCH" and source in new.types:
        yield part, f"type={new.types[source]}" in text
    else:
        yield part, None


_ASIDE = (_STATE, *graph_text.MARKINGS)
"""Kinds of guards by which a watch does not compare entries either."""


def _tensor(
    source: str, check: re.Match[str], new: LoggedVariant, asked: _Asked
) -> Iterator[tuple[str, bool | None]]:
    if (source, _TENSOR) not in new.leaves:  # it is none in the new variant, or that does not ask
        known = new.types.get(source)
        yield source, None if known is None or "Tensor" in known or "Parameter" in known else False
        return
    differs = []
    for part, compiled_for in _of_tensor(source, check).items():
        now = asked.values.get(part)
        if now is not None and now != compiled_for:
            differs.append(part)
        elif now is None and part in asked.parts:
            yield part, None
    own = [part for part in differs if part in asked.parts]
    yield from ((part, False) for part in own or ([source] if differs else []))


def _holds(text: str, values: Mapping[str, Any]) -> bool | None:
    """Return whether a comparison of sizes holds in the call; None where one is not known."""
    tree = messages.parse_expression(text)
    return None if tree is None else messages.comparison_holds(_Values(values).visit(tree))


class _Values(ast.NodeTransformer):
    """Numbers in the place of what is known."""

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
