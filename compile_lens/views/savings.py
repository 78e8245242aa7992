"""What the headline says that was saved: operators and bytes, before and after."""

from __future__ import annotations

from compile_lens.measures.ledger import Ledger

from . import outline

UNSAVED = "none saved by fusion"


def saving(ledger: Ledger) -> tuple[tuple[str, str, str], ...]:
    """The ledger in brief: ``(what, before, after)`` for operators and bytes, where both are known.

    ``before`` is ``""`` where nothing was saved: where nothing was fused or the bytes did not become fewer.
    """
    total = ledger.total
    out = []
    if total.eager_ops is not None and total.launches is not None:
        launches = outline.plural(total.launches, "launch", "launches")
        out.append(("work", outline.plural(total.eager_ops, "eager op"), launches))
    before, after = total.bytes_before, total.bytes_after
    if before is not None and after is not None:
        apart = total.aten_ops is not None and total.aten_ops == total.loops == total.groups
        if apart or after >= before:
            out.append((f"memory traffic, {UNSAVED}", "", outline.amount(after)))
        else:
            out.append(("memory traffic", outline.amount(before), outline.amount(after)))
    return tuple(out)


def saved(saving: tuple[str, str, str]) -> str:
    """One part of ``saving`` as text: ``work: 5 eager ops → 1 launch``."""
    what, before, after = saving
    return f"{what}: {before} → {after}" if before else f"{what}: {after}"
