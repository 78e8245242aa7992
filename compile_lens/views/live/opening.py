"""The first answers on the page of a model: where the cost is, what to try first, where the memory is, what ran
eagerly."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.measures.cost import SECONDS, cost
from compile_lens.measures.ledger import ledger
from compile_lens.measures.memory_use import memory_use
from compile_lens.measures.quantities import graphs
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.figures import Figure

from ..findings.budget_curve import gain
from ..findings.cost import amount, both_phases, percent, share
from ..findings.memory import owner
from ..words import outcome
from ..words.answers import MIN_SAVED_SHARE, answers
from ..words.characters import line
from ..words.quantities import memory_in_short, observed, plural
from .items import Items

MAX_SMALL_CALL_OPERATORS = 20
"""A call with at most this many eager operators has no such answers: its page starts with the flow."""


def opening(capture: Record, items: Items) -> list[dict[str, object]]:
    """Return an ``OpeningAnswer`` for each question with a known answer; none for small calls and failed calls."""
    operators = ledger(capture).total.eager_ops
    if capture.failure is not None or not capture.kernels or operators is None:
        return []
    least = operators if isinstance(operators, Figure) else operators.least
    if least <= MAX_SMALL_CALL_OPERATORS:
        return []
    return [*_cost(capture, items), *_try_first(capture, items), *_memory(capture), *_eager(capture)]


def _answer(
    title: str, words: str, item: int | None = None, finding: str = "", kernel: int | None = None
) -> dict[str, object]:
    numbers = {key: -1 if one is None else one for key, one in (("item", item), ("kernel", kernel))}
    return {"title": title, "words": line(words), **numbers, "finding": finding}


def _cost(capture: Record, items: Items) -> Iterator[dict[str, object]]:
    whole = cost(capture)
    row = next((row for row in whole.rows if row.name and row.share), None)
    if row is not None:
        total = amount(whole, whole.total, whole.at_least)
        scope = "" if whole.unit == SECONDS else " moved"
        words = f"{row.name}: {share(row)} of {total}{' in both phases' if both_phases(capture) else scope}"
        at = row.lines[0].file, row.lines[0].line
        yield _answer("Cost", words, items.line(*at), kernel=_most_expensive(capture, items, at))


def _most_expensive(capture: Record, items: Items, at: tuple[str, int]) -> int | None:
    """Return the item of the kernel that contributes most to the cost of a line, if cost is divided equally among a
    kernel's lines; kernels that run before the backward come first."""
    rows = [
        (row, {(one.file, one.line) for one in row.lines})
        for row in cost(capture, "kernel").rows
        if row.addresses
    ]
    own = [
        (row.phases == ("backward",), -(row.amount or 0) / len(lines), row)
        for row, lines in rows
        if at in lines
    ]
    first = min(own, key=lambda one: one[:2], default=None)
    return None if first is None else items.item(first[2].addresses[0])


def _try_first(capture: Record, items: Items) -> Iterator[dict[str, object]]:
    rows = {address: row.order for row in cost(capture, "kernel").rows for address in row.addresses}
    every = answers(capture)
    best = max(every, key=lambda address: every[address].saved, default=None)
    if best is None:
        return
    answer = every[best]
    if not answer.saved:
        yield _answer(
            "Try first",
            f"nothing: no known remedy saves {percent(MIN_SAVED_SHARE)} of the bytes",
            None,
            "fusion",
        )
        return
    one_file = len({source.file for source in capture.sources}) == 1
    place = f"lines {answer.place.rpartition(':')[2]}" if one_file else answer.place
    if answer.place:
        about = f"in {place}"
    elif answer.loops:
        about = f"{answer.loops} in #{rows[best]}"
    else:
        about = f"for #{rows[best]} {answer.against}".rstrip()
    yield _answer("Try first", f"{answer.short_remedy} {about}: {answer.gain}", items.item(best))


def _memory(capture: Record) -> Iterator[dict[str, object]]:
    use = memory_use(capture, "line")
    if use.peak is None or not use.rows:
        return
    most = max(use.rows, key=lambda row: row.peak or 0)
    own = memory_in_short(most.peak or 0)
    where = f" in the {use.place.rpartition(' ')[2]}" if both_phases(capture) else ""
    words = f"peak ~{memory_in_short(use.peak)}{where}: ~{own} by {owner(most)}"
    curve = capture.budget_curve
    if curve is not None and curve.best is not None and (less := gain(curve)) >= MIN_SAVED_SHARE:
        words += f"; budget {curve.best.budget:g}: −{100 * less:.0f} %"
    yield _answer("Memory", words, None, "memory")


def _eager(capture: Record) -> Iterator[dict[str, object]]:
    if outcome.eager_parts_unknown(capture):
        yield _answer("Eager", "not seen")
        return
    places = outcome.eager(capture)
    breaks, recompiles = len(capture.breaks), len(capture.recompiles)
    again = observed(recompiles, "recompile", capture.lacks(claims.RECOMPILES))
    counts = f"{plural(breaks, 'break')}, {again or plural(recompiles, 'recompile')}"
    what = plural(len(places), "place") if places else f"nothing: {plural(graphs(capture), 'graph')}"
    yield _answer("Eager", f"{what}, {counts}")
