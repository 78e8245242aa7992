"""What the headline says that was saved: operators and bytes, before and after."""

from __future__ import annotations

from compile_lens.figures import AtLeast, Figure, summed
from compile_lens.measures.ledger import Ledger, Row

from . import outline
from .launches import counted

UNSAVED = "none saved by fusion"


def saving(ledger: Ledger) -> tuple[tuple[str, str, str], ...]:
    """The ledger in brief: ``(what, before, after)`` for operators and bytes, of the graphs where both are known.

    ``before`` is ``""`` where nothing was saved: where nothing was fused or the bytes did not become fewer.
    """
    out = []
    for what, first, last in (
        ("work", "eager_ops", "launches"),
        ("memory traffic", "bytes_before", "bytes_after"),
    ):
        every = ledger.single
        known = [r for r in every if None not in (getattr(r, first), getattr(r, last))]
        before, after = (summed(getattr(r, column) for r in known) for column in (first, last))
        if not known or before is None or after is None:
            continue
        some = f", {len(known):,} of {outline.plural(len(every), 'graph')}" if len(known) < len(every) else ""
        if first == "eager_ops":
            out.append((what + some, counted(before, "eager op"), counted(after, "launch", "launches")))
        elif _unsaved(known, before, after):
            out.append((f"{what}{some}, {UNSAVED}", "", outline.amount(after)))
        else:
            out.append((what + some, outline.amount(before), outline.amount(after)))
    return tuple(out)


def _unsaved(rows: list[Row], before: Figure | AtLeast, after: Figure | AtLeast) -> bool:
    aten, loops, groups = (summed(getattr(r, c) for r in rows) for c in ("aten_ops", "loops", "groups"))
    if (aten is not None and aten == loops == groups) or before == after:
        return True
    return isinstance(before, Figure) and isinstance(after, Figure) and after >= before


def saved(saving: tuple[str, str, str]) -> str:
    """One part of ``saving`` as text: ``work: 5 eager ops → 1 launch``."""
    what, before, after = saving
    return f"{what}: {before} → {after}" if before else f"{what}: {after}"
