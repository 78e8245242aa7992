"""Difference between two captures: all levels matched and compared, and the causes among the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from compile_lens.record.capture import Record
from compile_lens.record.difference import ADDED, CHANGED, LEVELS, REMOVED, Change, DifferenceRecord

from . import guards, inductor, inputs, kernels, settings
from .kernels import title, works
from .operators import counted, name, nodes, operation
from .side import Side, matched

_D = TypeVar("_D", bound=DifferenceRecord)

CAUSES = (*(level for level in LEVELS if level not in ("settings", "figures")), "figures")
"""Levels in causal order: the first that differs is the cause, besides the settings."""

EFFECTS = ("guards", "figures")
"""Levels that changed settings alone can explain: other inputs have other guards and sizes."""


def difference(a: Record, b: Record, cls: type[_D]) -> _D:
    """Return the difference between ``a`` and ``b`` as a ``cls``."""
    sides = Side(a), Side(b)
    changes = [*inputs.input_changes(sides), *settings.settings(a, b), *settings.breaks(a, b)]
    # The later stages of a capture that failed do not exist: nothing in them is gone.
    failed = a.failure is not None or b.failure is not None
    if not failed or all(side.stage("dynamo") for side in sides):
        changes += nodes("lines", "", sides, ("dynamo", "dynamo"), matched(sides, ("dynamo", "dynamo")))
    changes += inputs.boundary_changes(sides)
    pairs = phases_of(*sides)
    for phases in pairs:
        changes += _phase(sides, phases)
    changes += () if failed else alone(sides, pairs)
    changes += kernels.figures(a, b)
    changes += () if failed else kernels.saved(sides, matched(sides, ("joint", "joint")))
    if a.environment.torch == b.environment.torch and all(c.level == "settings" for c in changes):
        for phases in pairs:
            changes += inductor.caller_code(f"{phases[1]}: ", sides, phases)
    changes += () if failed else guards.guards(a, b)
    changes = list(merged(changes))
    order = list(LEVELS)
    changes.sort(key=lambda change: order.index(change.level))
    return cls(_title(a), _title(b), causes(changes), tuple(changes), settings.unknown((a, b)), (a, b))


MERGED = ("fusion", "kernels", "saved")
"""Levels at which repeated layers give the same sentence."""


def merged(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes, merging those with the same words in several places."""
    alike: dict[object, list[Change]] = {}
    for number, change in enumerate(changes):
        key = (change.level, change.kind, change.text) if change.level in MERGED else number
        alike.setdefault(key, []).append(change)
    for same in alike.values():
        if len(same) == 1:
            yield same[0]
            continue
        lines = tuple(dict.fromkeys(line for one in same for line in one.lines))
        facts = tuple(dict.fromkeys(fact for one in same for fact in one.facts))[: inductor.MAX_FACTS]
        yield replace(same[0], text=f"{same[0].text}, in {len(same)} places", lines=lines, facts=facts)


def causes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes from which the rest follows: the settings, and the first level below that differs."""
    every = tuple(changes)
    requested = tuple(c for c in every if c.level == "settings")
    for level in CAUSES:
        own = tuple(c for c in every if c.level == level)
        if requested and (level in EFFECTS or all(c.follows for c in own)):
            continue
        if own:
            return (*requested, *_first(own))
    return requested


def _first(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the changes of one level that are new, gone, or made by the program itself. Others (shapes, readers) may
    follow from these, and are returned only if there are none."""
    if changes[0].level == "lines":
        primary = tuple(c for c in changes if not c.follows)
    else:
        primary = tuple(c for c in changes if c.kind != CHANGED)
    return primary or changes


def phases_of(a: Side, b: Side) -> list[tuple[str, str]]:
    """Return pairs of matching phases. A forward matches inference if only one side needs gradients."""
    pairs = [(p, p) for p in a.phases if p in b.phases]
    if not pairs:
        for one, two in (("inference", "forward"), ("forward", "inference")):
            if one in a.phases and two in b.phases:
                pairs.append((one, two))
    return pairs


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
    changes += inductor.memory(where, sides, phases, lowered)
    return changes


def alone(sides: tuple[Side, Side], pairs: list[tuple[str, str]]) -> Iterator[Change]:
    """Yield a change of the operators and one of the kernels for each phase outside ``pairs``, such as the backward
    after an input came to need a gradient. Phases that were not observed are left out."""
    for number, kind in ((0, REMOVED), (1, ADDED)):
        side, other = sides[number], sides[1 - number]
        missing_phases = {m.stage.rpartition(" ")[2].partition(".")[0] for m in other.capture.missing}
        matched_phases = {pair[number] for pair in pairs} | missing_phases
        for phase in (p for p in side.phases if p not in matched_phases):
            yield from _phase_operators(side, phase, kind)
            yield from _phase_kernels(side, phase, kind)


def _phase_operators(side: Side, phase: str, kind: str) -> Iterator[Change]:
    own = [item for item in side.stage(phase) if operation(item.node)]
    if own:
        names = counted(name(item.node) for item in own)
        lines = side.lines(item.address for item in own)
        yield Change("operators", kind, f"{_is(phase, kind)}: {_many(len(own), 'operator')}: {names}", lines)


def _phase_kernels(side: Side, phase: str, kind: str) -> Iterator[Change]:
    own = works(side, phase)
    if own:
        calls = sum(work.kernel.language == "extern" for work in own)
        numbers = ((len(own) - calls, "kernel"), (calls, "library call"))
        many = " and ".join(_many(count, word) for count, word in numbers if count)
        names = counted(title(side, phase, work).removeprefix("the ") for work in own)
        lines = tuple(dict.fromkeys(line for work in own for line in side.kernel_lines(work.kernel)))
        yield Change("kernels", kind, f"{_is(phase, kind)}: {many}: {names}", lines)


def _is(phase: str, kind: str) -> str:
    return f"the {phase} is {'new' if kind == ADDED else 'gone'}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _title(record: Record) -> str:
    target = f" for {record.options.target}" if record.options.target else ""
    return f"{record.function}{target}, torch {record.environment.torch}"
