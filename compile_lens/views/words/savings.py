"""The headline's savings: operators and bytes, before and after."""

from __future__ import annotations

from compile_lens.measures.ledger import Ledger, Row, eager_bytes
from compile_lens.record.figures import AtLeast, Figure, summed

from . import quantities
from .quantities import counted

UNSAVED = "none saved"
BY_FUSION = f"{UNSAVED} by fusion"
EAGER = ", eager operators before"
ATEN = ", ATen operators before"
"""What the bytes before are of: of eager PyTorch's own operators where they moved fewer; of ATen's where eager's are
more or not known. The headline credits fusion with the fewer."""


def saving(ledger: Ledger) -> tuple[tuple[str, str, str], ...]:
    """The ledger in brief: ``(what, before, after)`` for operators and bytes, of the graphs where all of it is known;
    where there is no such graph, each of those where it is.

    ``before`` is ``""`` where nothing was saved: where nothing was fused or the bytes did not become fewer. Where
    they became more, both are given, and ``what`` says that nothing was saved; so it does of launches that are not
    fewer than the eager operators.
    """
    out = []
    every = ledger.single
    pairs = (("work", "eager_ops", "launches"), ("memory traffic", "bytes_before", "bytes_after"))
    whole = [r for r in every if all(getattr(r, one) is not None for _, *both in pairs for one in both)]
    for what, first, last in pairs:
        known = whole or [r for r in every if None not in (getattr(r, first), getattr(r, last))]
        before, after = (summed(getattr(r, column) for r in known) for column in (first, last))
        if not known or before is None or after is None:
            continue
        some = (
            f", {len(known):,} of {quantities.plural(len(every), 'graph')}" if len(known) < len(every) else ""
        )
        if first == "eager_ops":
            worse = f", {UNSAVED}" if _no_fewer(before, after) else ""
            out.append(
                (what + some + worse, counted(before, "eager op"), counted(after, "launch", "launches"))
            )
        else:
            out.append(_bytes(what + some, known, before, after))
    return tuple(out)


def _bytes(
    what: str, rows: list[Row], aten: Figure | AtLeast, after: Figure | AtLeast
) -> tuple[str, str, str]:
    """Bytes before and after. One eager operator may be many ATen operators, but it never moved the bytes of each."""
    eager = eager_bytes(rows)
    fewer = eager is not None and isinstance(aten, Figure) and eager < aten
    before = eager if eager is not None and fewer else aten
    of = EAGER if fewer else ATEN if eager is None or eager != aten else ""
    if _unsaved(rows, before, after):
        worse = isinstance(before, Figure) and isinstance(after, Figure) and after > before
        what_of = f"{what}{of if worse else ''}, {BY_FUSION}"
        return what_of, quantities.amount(before) if worse else "", quantities.amount(after)
    return what + of, quantities.amount(before), quantities.amount(after)


def _no_fewer(before: Figure | AtLeast, after: Figure | AtLeast) -> bool:
    """Return True if no call makes fewer ``after`` than ``before``."""
    most = before if isinstance(before, Figure) else before.most
    return most is not None and (after if isinstance(after, Figure) else after.least) >= most


def _unsaved(rows: list[Row], before: Figure | AtLeast, after: Figure | AtLeast) -> bool:
    if before == after:
        return True
    eager, launches = (summed(getattr(r, c) for r in rows) for c in ("eager_ops", "launches"))
    if isinstance(eager, Figure) and isinstance(launches, Figure):
        if _no_fewer(eager, launches):
            return True  # as many launches as eager PyTorch makes: none became part of another
    else:
        aten, loops, groups = (summed(getattr(r, c) for r in rows) for c in ("aten_ops", "loops", "groups"))
        if aten is not None and aten == loops == groups:
            return True
    if all(isinstance(r.eager_ops, Figure) and r.eager_ops <= 1 for r in rows):
        return True  # eager PyTorch runs one operator in each graph: there was none to fuse it with
    return isinstance(before, Figure) and isinstance(after, Figure) and after >= before


def saved(saving: tuple[str, str, str]) -> str:
    """One part of ``saving`` as text: ``work: 5 eager ops → 1 launch``."""
    what, before, after = saving
    return f"{what}: {before} → {after}" if before else f"{what}: {after}"
