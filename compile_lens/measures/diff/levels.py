"""The difference of two captures: every level matched and compared, and what of it is the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from compile_lens.record.capture import Record
from compile_lens.record.difference import CHANGED, LEVELS, Change, DifferenceRecord

from . import guards, inductor, inputs, kernels, memory, settings
from .ends import ends
from .operators import nodes
from .phases import alone
from .side import Side, matched

_D = TypeVar("_D", bound=DifferenceRecord)

CAUSES = (*(level for level in LEVELS if level not in ("settings", "figures")), "figures")
"""The levels of which the first that differs is the cause, beside the settings."""

EFFECTS = ("guards", "figures")
"""Those that what was asked for accounts for, where nothing else differs: other inputs have other guards and sizes."""


def difference(a: Record, b: Record, cls: type[_D]) -> _D:
    """What differs between ``a`` and ``b``, as a ``cls``."""
    sides = Side(a), Side(b)
    changes = [*inputs.given(sides), *settings.settings(a, b), *settings.breaks(a, b)]
    lines = matched(sides, ("dynamo", "dynamo"))
    changes += nodes("lines", "", sides, ("dynamo", "dynamo"), lines)
    changes += ends(sides)
    pairs = phases_of(*sides)
    for phases in pairs:
        changes += _phase(sides, phases)
    changes += alone(sides, pairs)
    changes += kernels.figures(a, b)
    changes += kernels.saved(sides, matched(sides, ("joint", "joint")))
    if a.environment.torch == b.environment.torch and all(c.level == "settings" for c in changes):
        for phases in pairs:
            changes += memory.around(f"{phases[1]}: ", sides, phases)
    changes += guards.guards(a, b)
    changes = list(merged(changes))
    order = list(LEVELS)
    changes.sort(key=lambda change: order.index(change.level))
    return cls(_title(a), _title(b), causes(changes), tuple(changes), settings.unknown((a, b)), (a, b))


MERGED = ("fusion", "kernels", "saved")
"""Levels at which layers that are alike give the same sentence."""


def merged(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes, what is said in the same words of several places once."""
    alike: dict[object, list[Change]] = {}
    for number, change in enumerate(changes):
        key = (change.level, change.kind, change.text) if change.level in MERGED else number
        alike.setdefault(key, []).append(change)
    for same in alike.values():
        if len(same) == 1:
            yield same[0]
            continue
        lines = tuple(dict.fromkeys(line for one in same for line in one.lines))
        facts = tuple(dict.fromkeys(fact for one in same for fact in one.facts))[: inductor.FACTS]
        yield replace(same[0], text=f"{same[0].text}, in {len(same)} places", lines=lines, facts=facts)


def causes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """What the rest follows from: the settings, and the first level below them at which anything differs."""
    every = tuple(changes)
    asked = tuple(c for c in every if c.level == "settings")
    for level in CAUSES:
        found = tuple(c for c in every if c.level == level)
        if asked and (level in EFFECTS or all(c.follows for c in found)):
            continue
        if found:
            return (*asked, *_first(found))
    return asked


def _first(found: tuple[Change, ...]) -> tuple[Change, ...]:
    """Of one level what is new, gone, or asked otherwise by the program; what may follow from it (other shapes, other
    readers) only where nothing is."""
    if found[0].level == "lines":
        sharp = tuple(c for c in found if not c.follows)
    else:
        sharp = tuple(c for c in found if c.kind != CHANGED)
    return sharp or found


def phases_of(a: Side, b: Side) -> list[tuple[str, str]]:
    """Phases that stand for each other: a forward is what inference is where a gradient is needed."""
    found = [(p, p) for p in a.phases if p in b.phases]
    if not found:
        for one, two in (("inference", "forward"), ("forward", "inference")):
            if one in a.phases and two in b.phases:
                found.append((one, two))
    return found


def _phase(sides: tuple[Side, Side], phases: tuple[str, str]) -> list[Change]:
    where = f"{phases[1]}: "
    handed = matched(sides, phases)
    after = (f"{phases[0]}.post_grad", f"{phases[1]}.post_grad")
    lowered = matched(sides, after)
    changes = nodes("operators", where, sides, phases, handed)
    changes += inductor.rewrites(where, sides, phases)
    changes += inductor.rewrites(where, sides, after)
    names = [[(i.address[0], i.address[2]) for i in side.stage(key)] for side, key in zip(sides, after)]
    pairs = {names[0][one]: names[1][two] for one, two in lowered.pairs.items()}
    changes += inductor.lowering(where, sides, phases, pairs)
    changes += inductor.fusion(where, sides, phases, lowered)
    changes += kernels.kernels(where, sides, phases, lowered)
    changes += memory.memory(where, sides, phases, lowered)
    return changes


def _title(record: Record) -> str:
    target = f" for {record.options.target}" if record.options.target else ""
    return f"{record.function}{target}, torch {record.environment.torch}"
