"""Differences of settings, graph breaks and recompiles between two captures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TypeVar

from compile_lens.record import claims
from compile_lens.record.breaks import Ending
from compile_lens.record.capture import SETTINGS, Record
from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change

from .side import places

_T = TypeVar("_T")
_LOCAL = re.compile(r"\b([LG])\[(['\"])(\w+)\2\]")
_PART = re.compile(r"\._modules\[(['\"])\w+\1\]")
_TYPE = re.compile(r"type=<class '(?!torch\.)[^']*\.[^']*'>")  # of the program's
_NUMBER = re.compile(r"\b\d{6,}\b|0x[0-9a-f]+")

ENVIRONMENT = {
    "torch": "torch",
    "triton": "Triton",
    "isa": "vector instructions",
    "device": "device",
    "target": "target",
}
"""Parts of the environment on which generated code depends, with titles."""


def settings(a: Record, b: Record) -> Iterator[Change]:
    """Yield the changes in options, torch, device and torch's global settings."""
    one, two = asdict(a.options), asdict(b.options)
    inductors = [dict(record.options.options) for record in (a, b)]
    for name in one:
        if name == "options" or one[name] == two[name]:
            continue
        yield _became(name, one[name], two[name])
    for name in dict.fromkeys((*inductors[0], *inductors[1])):
        before, after = (options.get(name, "default") for options in inductors)
        if before != after:
            yield Change("settings", CHANGED, f"option {name}: {before} became {after}")
    # With a target, the device is the model's name, which the target already tells.
    target_differs = one["target"] != two["target"]
    for name, title in ENVIRONMENT.items():
        before, after = (getattr(record.environment, name) for record in (a, b))
        if before != after and not (target_differs and name in ("device", "target", "isa")):
            yield _became(title, before, after)
    ones, twos = (dict(record.environment.settings) for record in (a, b))
    for name in dict.fromkeys((*ones, *twos)):
        # A record with settings holds only those configs that differ from torch's default.
        other = "torch's default" if ones and twos and name not in SETTINGS else None
        one_way, other_way = ones.get(name, other), twos.get(name, other)
        if one_way != other_way and None not in (one_way, other_way):
            yield _became(name, one_way, other_way)


def _became(name: str, before: object, after: object) -> Change:
    def shown(value: object) -> str:
        return "none" if value is None or value == "" else str(value)

    return Change("settings", CHANGED, f"{name}: {shown(before)} became {shown(after)}")


def breaks(a: Record, b: Record) -> Iterator[Change]:
    """Yield the changes in graph breaks, skipped frames, recompilations and how each capture ended."""
    ended = [
        record.nothing_compiled or (record.failure.message if record.failure else "") for record in (a, b)
    ]
    if ended[0] != ended[1]:
        words = [text.strip().partition("\n")[0] or "compiled" for text in ended]
        yield Change("breaks", CHANGED, f"outcome: {words[0]} became {words[1]}")
    for kind, ending in unmatched(a.breaks, b.breaks, _reason):
        if other_side(a, b, kind).lacks(claims.BREAKS):
            continue
        verb = "a new graph break" if kind == ADDED else "a graph break is gone"
        yield Change("breaks", kind, f"{verb}: {_reason(ending)}", places(ending.frames[-1:]))
    ones, twos = ([s for s in record.skipped if s.cause.kind != "graph break"] for record in (a, b))
    for kind, skip in unmatched(ones, twos, lambda s: (s.kind, _reason(s.cause))):
        if other_side(a, b, kind).lacks(claims.SKIPS):
            continue
        what = f"{skip.function}, {skip.kind}" if skip.kind != "function" else skip.function
        verb = "runs eagerly" if kind == ADDED else "no longer runs eagerly"
        yield Change("breaks", kind, f"{what} {verb}: {_reason(skip.cause)}", places(skip.cause.frames[-1:]))
    for kind, again in unmatched(a.recompiles, b.recompiles, lambda r: tuple(map(plain, r.guards))):
        if other_side(a, b, kind).lacks(claims.RECOMPILES):
            continue
        verb = "compiled again" if kind == ADDED else "no longer compiled again"
        yield Change("breaks", kind, f"{again.function} is {verb}: {'; '.join(again.guards)}")


def other_side(a: Record, b: Record, kind: str) -> Record:
    """Return the record that lacks a new or gone item: if it did not observe everything, it may have the item too."""
    return b if kind == REMOVED else a


def _reason(ending: Ending) -> str:
    return ending.reason.strip().partition("\n")[0] or "no reason was recorded"


def plain(text: str, names: dict[str, str] | None = None) -> str:
    """Return a guard without the program's names (of variables, submodules and classes) and without object ids:
    ``L['x'] == 3`` gives ``L[…] == 3``."""
    known = {} if names is None else names

    def of(name: re.Match[str]) -> str:
        if name[1] == "G" and name[3] in ("torch",):
            return name[0]
        return f"{name[1]}[…]" if names is None else known.setdefault(name[0], f"{name[1]}[…]")

    return _NUMBER.sub("…", _TYPE.sub("type=…", _PART.sub("._modules[…]", _LOCAL.sub(of, text))))


def unmatched(
    ones: Iterable[_T], twos: Iterable[_T], key: Callable[[_T], object]
) -> Iterator[tuple[str, _T]]:
    """Yield the items that only one side has, by key; of equal items the surplus."""
    first, second = list(ones), list(twos)
    for kind, some, others in ((REMOVED, first, second), (ADDED, second, first)):
        left = Counter(key(other) for other in others)
        for one in some:
            left[key(one)] -= 1
            if left[key(one)] < 0:
                yield kind, one


def unknown(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the stages, claims and settings that could not be compared, with reasons."""
    missing_stages = [{m.stage.rpartition(" ")[2]: m.reason for m in record.missing} for record in records]
    sentences = [
        f"stage {stage} of the {ORDINALS[n]} was not seen: {reason}"
        for n, missing in enumerate(missing_stages)
        for stage, reason in missing.items()
    ]
    sentences += [
        f"graphs and kernels: the capture of the {ORDINALS[n]} failed in stage {record.failure.stage}"
        for n, record in enumerate(records)
        if record.failure is not None
    ]
    sentences += [
        f"{lost.stage} of the {ORDINALS[n]} were not all seen: {lost.reason}"
        for n, record in enumerate(records)
        for lost in record.not_observed
    ]
    return (*dict.fromkeys(sentences), *_unknown_settings(records))


ORDINALS = ("first", "second")


def _unknown_settings(records: Sequence[Record]) -> Iterator[str]:
    """Yield torch's global settings that a record lacks: it is older than they are, or torch did not report them."""
    names = [[name for name in SETTINGS if name not in dict(r.environment.settings)] for r in records]
    if names[0] and names[0] == names[1]:
        yield f"{', '.join(names[0])}: neither record says how torch was configured"
        return
    for which, some in zip(ORDINALS, names):
        if some:
            yield f"{', '.join(some)}: the record of the {which} does not say how torch was configured"
