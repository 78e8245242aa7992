"""Summary of a capture: costs with suggestions, memory, eager parts, and pairs that are not fused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from compile_lens.measures.chain import Chain
from compile_lens.measures.cost import CostRow
from compile_lens.measures.cost import cost as cost_of
from compile_lens.measures.input_names import BUFFER, PARAMETER
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.library_calls import RepeatedCall, repeated_calls
from compile_lens.measures.memory_use import COPY, MemoryRow, memory_use
from compile_lens.measures.quantities import graphs
from compile_lens.measures.unfused_pairs import UnfusedPair, all_unfused_pairs
from compile_lens.measures.written_attention import written_attention
from compile_lens.record import claims, messages
from compile_lens.record.capture import Record
from compile_lens.record.figures import MEASURED, MODELLED, Figure
from compile_lens.record.graph import Frame
from compile_lens.record.memory import saved_bytes
from compile_lens.record.messages import first_names

from ..document import cut
from ..findings.budget_curve import advice
from ..findings.cost import price, share, whole
from ..words import labels, outcome, quantities, stamp
from ..words.attention import attention_advice, attention_by_lines
from ..words.characters import flat
from ..words.failed_line import marked, own_frames, where
from ..words.quantities import launch_words, plural
from .summary import Part, Row, Summary, not_observed, sentence

COSTS, PLACES, SAVED, KERNELS, STAGES = 3, 3, 3, 3, 4
"""Maximum number of: lines by cost, places that ran eagerly, lines by saved memory, kernel names of a line, and stages
listed under one reason."""
FACT = "stage or fact", "stages or facts"

MIN_PEAK_SHARE = 0.25
"""Minimum share of the peak at which the summary suggests saving less for the backward."""

LESS_SAVED = (
    "to try: torch.utils.checkpoint around it, or a memory budget: capture.memory_curve() shows what each budget saves "
    "and computes again"
)
COST_CALL = "capture.cost()"
MEMORY_CALL = 'capture.memory("name")'
NOT_TIMED = "That fewer launches or bytes are faster: no kernel was timed."
KEEP_COMPILING = "That compiling is to blame, or should be disabled: nothing here says so."


def summary(capture: Record) -> Summary:
    """Return the Summary of a capture."""
    environment = labels.environment(capture)
    code = stamp.of_capture(capture)
    if capture.failure is not None:
        return Summary(
            _title(capture),
            environment[:2],
            (sentence(f"{capture.function} {outcome.verdict(capture).partition(':')[0]}"),),
            (*_failure_parts(capture), *_stages_before(capture)),
            (
                ("Everything", 'print(error.capture.text("full"))'),
                ("torch's traceback", "raise error.__cause__"),
            ),
            ("That the compiler is at fault: whether eager PyTorch raises this too was not tried.",),
        )
    saved = "; ".join(map(outcome.saved, outcome.saving(ledger_of(capture))))
    verdict = tuple(map(sentence, filter(None, (outcome.verdict(capture), saved))))
    parts = (
        _cost(capture),
        _memory(capture),
        _eager(capture),
        _recompiles(capture),
        _not_fused(capture),
        not_observed(capture.missing, FACT, STAGES, "capture.missing"),
    )
    timed = cost_of(capture, "line").evidence == MEASURED if capture.kernels else False
    return Summary(
        _title(capture),
        (*environment[:2], *([code] if code else [])),
        verdict,
        tuple(part for part in parts if part is not None),
        (("Everything", 'print(capture.text("full"))'), ("Page", 'capture.save("page.html")')),
        (*(() if timed else (NOT_TIMED,)), KEEP_COMPILING),
    )


def _title(capture: Record) -> str:
    """Return the captured function with its own place, not that of a decorator's wrapper or of a resume function."""
    function = capture.function.removeprefix("partial(").rstrip(")")
    own = (function, function.rpartition("<locals>.")[2])
    names = {f"{name}{method}" for name in own for method in ("", ".forward", ".__call__")}
    places = [(source.name, source.file, source.first_line) for source in capture.sources]
    places += [(one.function, one.file, one.line) for one in capture.compilations]
    for name, file, number in places:
        if name in names and file:
            return f"{capture.function} ({labels.place(Frame(file, number, ''))})"
    return capture.function


def _cost(capture: Record) -> Part | None:
    if not capture.kernels:
        return None
    cost = cost_of(capture, "line")
    pairs = _pairs_by_line(capture)
    attentions = _attentions_by_line(capture)
    repeated = {(call.frame.function, labels.place(call.frame)): call for call in repeated_calls(capture)}
    rows = []
    for row in cost.rows[:COSTS]:
        call = next((repeated[key] for f in row.lines if (key := (f.function, row.name)) in repeated), None)
        actions = _actions(pairs.get(row.name, []), row) if call is None else _one_call(call)
        advice = attentions.get(row.name, actions)
        lines = [*(("", words) for words in advice), ("", _kernels(row))]
        head = f"{share(row):>5}  {price(cost, row)}"
        rows.append(Row(head, row.name or "code whose line is not known", row.expression, tuple(lines)))
    fact = f"{whole(cost)} in all: {cost.origin}"
    return Part("Cost by line", fact, tuple(rows), len(cost.rows) - len(rows), COST_CALL)


def _attentions_by_line(capture: Record) -> dict[str, Iterable[str]]:
    """Return the advice for each line of an attention written with separate operators."""
    return {
        labels.place(frame): (attention_advice(own),)
        for own in attention_by_lines(written_attention(capture))
        for frame in own[0].frames
    }


def _kernels(row: CostRow) -> str:
    bound = f", {row.bound}-bound" if row.bound else ""
    left = len(row.kernels) - KERNELS
    named = first_names(row.kernels, KERNELS)
    if left > 0 and row.launches != len(row.kernels):  # several launches may share a name
        named += f" {'name' if left == 1 else 'names'}"
    return f"{launch_words(row.launches)}{chosen(row)}{bound}: {named}"


def chosen(row: CostRow) -> str:
    """Return that a branch chooses the kernels of a row, if a call launches fewer than it has."""
    fewer = isinstance(row.launches, Figure) and row.launches < len(row.kernels)
    return ", chosen by a branch" if fewer else ""


def _one_call(call: RepeatedCall) -> Iterator[str]:
    """Yield how often a line calls a library operator, and what to try."""
    yield "to try: one call for all of them, on stacked operands (torch.bmm, torch.einsum)"
    where = f" of `{flat(call.frame.call)}`" if call.frame.call else ""
    yield f"{call.operator}{where} is called {call.count} times, and no call needs another's result"


def _actions(pairs: list[tuple[UnfusedPair, int]], row: CostRow) -> Iterator[str]:
    """Yield the pairs that are not fused at a line, the upper bound that fusing would save, and what to try. Among
    equal pairs, one with the line on both sides is preferred."""
    if not pairs:
        return

    def rank(of_line: tuple[UnfusedPair, int]) -> tuple[bool, int, int]:
        pair, sides = of_line
        saved = pair.why.saved
        return bool(pair.remedy) and _is_worth(saved, row), saved or 0, sides

    best, sides = max(pairs, key=rank)
    worth, *_ = rank((best, sides))
    saved = (
        ""
        if best.why.saved is None
        else f", at most {quantities.amount(Figure(best.why.saved, MODELLED))} saved by fusing"
    )
    if worth:
        yield f"to try: {best.remedy}"
    yield f"not fused: {best.why.pair} ({best.phase}{saved}): {best.why.answer}"


def _is_worth(saved: int | None, row: CostRow) -> bool:
    """Return True if a line costs at least 1 % of the call and fusing may save at least 10 % of its bytes, as far as
    these are known."""
    if row.share is not None and row.share < 0.01:
        return False
    return saved is None or row.nbytes is None or saved >= row.nbytes / 10


def _pairs_by_line(capture: Record) -> dict[str, list[tuple[UnfusedPair, int]]]:
    """Return the pairs of groups that are not fused, by Python line, each with the number of its sides that come from
    the line."""
    chain = Chain(capture)
    by_line: dict[str, list[tuple[UnfusedPair, int]]] = {}
    for pair in all_unfused_pairs(capture):
        addresses = [(pair.compilation, f"{pair.phase}.groups", name) for name in (pair.first, pair.second)]
        sides = Counter(
            place
            for address in addresses
            if address in chain
            for place in {labels.place(frame) for frame in chain.lines(address)}
        )
        for place, count in sides.items():
            by_line.setdefault(place, []).append((pair, count))
    return by_line


def _memory(capture: Record) -> Part | None:
    held = [(one, c) for c in capture.compilations for one in c.memory]
    peaks = [(one.peak, one.phase, c.id) for one, c in held if one.peak is not None]
    partitions = [(c.id, c.partition.saved) for c in capture.compilations if c.partition is not None]
    if not peaks and not partitions:
        return None
    facts = []
    if peaks:
        most, phase, cid = max(peaks)
        where = phase if len(capture.compilations) == 1 else f"{cid} {phase}"
        least = "" if len(peaks) == len(held) else "at least "
        facts.append(f"peak {least}~{quantities.memory_in_short(most)} in the {where}, modelled")
    free = [cid for cid, saved in partitions if all(one.alias_of or one.nbytes == 0 for one in saved)]
    if free:
        of = "" if len(free) == len(partitions) else f" of {', '.join(free)}"
        facts.append(f"nothing that takes memory of its own is saved for the backward{of}")
    for cid, saved in partitions:
        own = saved_bytes(saved)
        if cid in free:
            continue
        unknown = any(one.nbytes is None for one in saved)
        size = (
            "of unknown size"
            if own is None
            else f"{'at least ' if unknown else ''}~{quantities.memory_in_short(own)}"
        )
        facts.append(f"{size} saved for the backward{'' if len(partitions) == 1 else f' of {cid}'}")
    saving = sorted(
        (row for row in memory_use(capture, "name").rows if row.saved), key=lambda row: -(row.saved or 0)
    )
    rows = [
        Row(
            f"~{quantities.memory_in_short(row.saved or 0)} saved",
            _owner(row),
            row.expression,
        )
        for row in saving
    ]
    kept = sum(saved_bytes(saved) or 0 for _, saved in partitions)
    if capture.budget_curve is not None:
        rows = rows or [Row("")]
        rows[0] = replace(rows[0], lines=(("", advice(capture.budget_curve)),))
    elif peaks and kept >= MIN_PEAK_SHARE * max(peaks)[0]:
        computed = next((n for n, row in enumerate(saving) if row.line is not None), None)
        if computed is not None:  # a checkpoint does not recompute a copy of an input or parameter
            rows[computed] = replace(rows[computed], lines=(("", LESS_SAVED),))
    return Part("Memory", ", ".join(facts), *cut(rows, SAVED), MEMORY_CALL)


def _owner(row: MemoryRow) -> str:
    """Return the line of a saved tensor, or the input that it is, or of which it is a copy in another layout."""
    if row.line is not None:
        return labels.place(row.line)
    if row.kind in (PARAMETER, BUFFER, "input"):
        return f"{row.kind} {row.name}"
    if row.kind == COPY:
        return f"copy of {row.name}"
    return "code whose line is not known"


def _eager(capture: Record) -> Part | None:
    lacking = outcome.eager_parts_unknown(capture)
    places = outcome.eager(capture)
    if not places:
        if outcome.state(capture) == outcome.NOTHING:
            return None  # the verdict has it
        if lacking:
            return Part("Eager", f"not seen: {lacking}")
        guards = sum(len(compilation.guards) for compilation in capture.compilations)
        counts = f"{plural(graphs(capture), 'graph')}, 0 graph breaks, {plural(guards, 'guard')}"
        return Part("Eager", f"nothing: {counts}")
    rows = []
    for place in places:
        reason = outcome.reason(place.ending)
        at = place.ending.frames[-1] if place.ending.frames else None
        lines = [
            ("because", reason.what),
            ("hint", reason.hint.partition("\n")[0]),
            ("torch says", place.why),
        ]
        rows.append(
            Row(
                "",
                labels.place(at) if at else "",
                at.text if at else "",
                (("", place.head), *((label, words) for label, words in lines if words)),
            )
        )
    fact = f"{'at least ' if lacking else ''}{plural(len(rows), 'place')}"
    return Part("Eager", fact, *cut(rows, PLACES), "capture.breaks, capture.skipped")


def _recompiles(capture: Record) -> Part | None:
    if not capture.recompiles:
        return None
    rows = [
        Row(one.id, lines=(("because", one.guards[0]),) if one.guards else ()) for one in capture.recompiles
    ]
    return Part("Recompiles", outcome.recompiled(capture), *cut(rows, PLACES), "capture.recompiles")


def _not_fused(capture: Record) -> Part | None:
    if not any(f"{phase}.groups" in c.graphs for c in capture.compilations for phase in c.phases):
        return None
    pairs = all_unfused_pairs(capture)
    silent = capture.lacks(claims.DECISIONS)
    fact = (
        plural(len(pairs), "pair that shares data", "pairs that share data")
        if pairs
        else "no two groups that share data"
    )
    if within := sum(bool(pair.kernel) for pair in pairs):
        fact += f", {within:,} of them within one kernel"
    return Part("Not fused", fact + (f" (reasons not seen: {silent})" if silent else ""))


def _failure_parts(capture: Record) -> Iterator[Part]:
    """Yield the failed line with its callers, torch's message, and what to do."""
    failure = capture.failure
    assert failure is not None
    frames = own_frames(failure)
    if frames:
        text, carets = marked(frames[-1])
        lines = tuple(("code", line) for line in (text, carets) if line)
        yield Part("At", where(frames[-1]), (Row("", lines=lines),) if lines else ())
        callers = tuple(Row("", where(frame), frame.text) for frame in reversed(frames[:-1]))
        if callers:
            yield Part("Called from", "", callers)
    raised, message = outcome.raised(failure), messages.summary(failure.message)
    if raised not in (message, f"{failure.type}: {message}"):
        yield Part("Error", labels.without_folders(raised))
    by = "Error" if failure.stage == "run" else "torch says"
    yield Part(by, f"{failure.type}: {labels.without_folders(message)}")
    if failure.hint:
        yield Part("Hint", labels.without_folders(" ".join(failure.hint.split())))
    if failure.link:
        yield Part("Reference", failure.link)


def _stages_before(capture: Record) -> Iterator[Part]:
    stages = list(dict.fromkeys(key for c in capture.compilations for key in c.graphs))
    yield Part("Captured before it", first_names(stages, 8) if stages else "no stage")
