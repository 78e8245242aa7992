"""Finding on pairs that were not fused, with reasons; in full, every decision of the scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.unfused_pairs import UnfusedPair, unfused_pairs
from compile_lens.measures.user_words import UserWords
from compile_lens.measures.written_attention import written_attention
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.decision import REASONS, Decision
from compile_lens.record.graph import Node
from compile_lens.record.messages import first_names

from ..document import LIVE, NAME, NOTE, NUMBER, TEXT, Finding, Prose, Row, Section, Table, cut
from ..words import quantities, sentences
from ..words.attention import attention_by_lines, attention_words
from .places import Place, bytes_cell, places

KEY, TITLE = "fusion", "Fusion decisions"
INTRO = "Unfused kernels that touch the same data, and why."
WHERE = "capture.decisions"

PAIRS = 200
"""Maximum pairs of one reason."""

DECISIONS = 3_000


def fusion(capture: Record) -> Finding | None:
    """Return the finding; None if nothing reached the scheduler."""
    seen = [place for place in places(capture) if place.graph("groups") is not None]
    if not seen:
        return None
    sections: list[Section] = _attention(capture)
    brief: list[str] = []
    ranked: list[tuple[tuple[bool, int], str]] = []
    count = 0
    silent = [p.title for p in seen if p.phase not in dict(p.compilation.decisions)]
    for place in seen:
        pairs = unfused_pairs(capture, place.compilation.id, place.phase)
        count += len(pairs)
        reasons = _reasons(place, pairs, UserWords(capture, place.compilation.id, place.phase))
        sections += [table for _, table in reasons]
        ranked += [(rank, f"{table.title}: {table.words[0]}") for rank, table in reasons]
        if not pairs:
            sections.append(Prose(place.title, (_nothing(place),)))
            brief.append(f"{place.title}: {_nothing(place)}")
    if silent:
        lacking = capture.lacks(claims.DECISIONS)
        silence = f"The record holds no decisions of the scheduler for {', '.join(silent)}{lacking and f': {lacking}'}."
        sections.append(Prose("", (silence,)))
    sections += [table for place in seen if (table := _decisions(capture, place))]
    whole = all(place.graph("loops") is not None for place in seen)
    none = "no unfused pair" if whole else "unfused pairs not seen"
    least = "" if whole else "at least "
    fact = f"{least}{quantities.plural(count, 'pair')} not fused" if count else none
    brief[:0] = [words for _, words in sorted(ranked, key=lambda one: one[0])]
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _attention(capture: Record) -> list[Section]:
    """Return a section on attentions written with separate operators, by line."""
    said = [f"To try: {attention_words(own)}" for own in attention_by_lines(written_attention(capture))]
    return [Prose("attention written out", tuple(said))] if said else []


def _nothing(place: Place) -> str:
    groups = place.graph("groups")
    working = [n for n in groups.calls if n.kind != "nop"] if groups else []
    if len(working) == 1:
        return "Everything is in one group: there is nothing left to fuse."
    if place.graph("loops") is None:
        return "Which groups touch common data was not seen."
    if not working:
        return "There is no group, and so nothing to fuse."
    return f"No two of the {len(working)} groups touch common data that fusing them could save."


def _reasons(
    place: Place, pairs: Sequence[UnfusedPair], words: UserWords
) -> list[tuple[tuple[bool, int], Table]]:
    """Return a table for each kind of reason with its rank, most bytes first."""
    kinds: dict[str, list[UnfusedPair]] = {}
    for pair in pairs:
        kinds.setdefault(pair.why.reason, []).append(pair)
    tables = []
    # Pairs with library calls, which never fuse, come last.
    ranks = {reason: (reason == "extern", -_saving(pairs_of)) for reason, pairs_of in kinds.items()}
    for reason, pairs_of in sorted(kinds.items(), key=lambda item: ranks[item[0]]):
        alike: dict[tuple[str, str, str], list[UnfusedPair]] = {}
        for pair in pairs_of:
            names = words.group(pair.first), words.group(pair.second)
            alike.setdefault((*names, sentences.touching(pair)), []).append(pair)
        every = sorted(alike.items(), key=lambda item: -_saving(item[1]))
        rows, left = cut([_alike(place, names, pairs_alike, words) for names, pairs_alike in every], PAIRS)
        said = list(dict.fromkeys(pair.why.sentence for pair in pairs_of))
        said += [f"To try: {remedy}" for remedy in dict.fromkeys(p.why.remedy for p in pairs_of) if remedy]
        title = f"{place.title}: {reason}, {quantities.plural(len(pairs_of), 'pair')}"
        head = ("first", "second", "could save", "shown by")
        kinds_of = (NAME, NAME, NUMBER, NOTE)
        table = Table(title, head, kinds_of, rows, tuple(said), left, "capture.why(a, b)")
        tables.append((ranks[reason], table))
    return tables


def _saving(pairs: Sequence[UnfusedPair]) -> int:
    return sum(pair.why.saved or 0 for pair in pairs)


def _alike(place: Place, names: tuple[str, str, str], pairs: Sequence[UnfusedPair], words: UserWords) -> Row:
    """Return the row for the pairs of the same lines, of which equal layers have one each."""
    *both, touching = names
    if both[0] == both[1]:  # two groups of one line
        both = [
            f"{name} · {group}" for name, group in zip(both, (pairs[0].first, pairs[0].second), strict=True)
        ]
    first, second = (name.replace("`", "") for name in both)
    known = [pair.why.saved for pair in pairs if pair.why.saved is not None]
    count = f"{len(pairs)} pairs" if len(pairs) > 1 else ""
    shown = "; ".join(filter(None, (count, touching, *_shown(pairs[0], words))))
    cells = (first, second, bytes_cell(sum(known) if known else None), shown)
    return Row(cells, tuple(place.at("groups", name) for pair in pairs for name in (pair.first, pair.second)))


def _shown(pair: UnfusedPair, words: UserWords) -> list[str]:
    """Return the evidence for the reason: figures and words of the last decision, or the facts."""
    if pair.why.reason != "extern" and pair.why.decisions:
        last = pair.why.decisions[0]
        parts = [
            words.evidence(last.evidence),
            _quoted(last),
            last.where,
        ]
        if any(parts):
            return [part for part in parts if part]
    # Decisions are shown separately, and sharing a kernel function is not about fusion.
    facts = [f for f in pair.why.facts if not f.startswith(("round ", "both are in the kernel"))]
    return facts[: 1 if pair.why.reason == "extern" else 2]


class Groups:
    """The groups of a phase with readable names."""

    def __init__(self, place: Place) -> None:
        groups, loops = place.graph("groups"), place.graph("loops")
        self._groups = {n.name: n for n in groups.nodes} if groups else {}
        self._loops = {n.name: n for n in loops.nodes} if loops else {}

    def named(self, group: str) -> str:
        """Return a group by its loops and operators: ``"op0 + op1 · amax, sub, exp and 9 more"``."""
        node = self._groups.get(group)
        if node is None:
            return group
        return f"{loops_in_short(node.members or (group,))} · {self._operators(node)}"

    def _operators(self, group: Node) -> str:
        if group.kind == "extern":
            return group.target.removesuffix(".default").removesuffix(".out")
        members = [self._loops[m] for m in group.members if m in self._loops]
        names = list(dict.fromkeys(origin for loop in members for origin in loop.origins))
        return first_names(names, 4) or group.target


def loops_in_short(names: Sequence[str]) -> str:
    """Return loop names in short: ``"op0"``, ``"op0 + op1"``, ``"op0 + op1 + 6 more"``."""
    return " + ".join(names) if len(names) <= 3 else f"{names[0]} + {names[1]} + {len(names) - 2} more"


def _decisions(capture: Record, place: Place) -> Table | None:
    decisions = dict(place.compilation.decisions).get(place.phase)
    if not decisions:
        return None
    every = sorted(decisions, key=lambda d: (d.round, not d.fused))
    named = UserWords(capture, place.compilation.id, place.phase)
    rows, left = cut([_decision(place, d, named) for d in every], DECISIONS)
    head = ("first", "second", "round", "outcome", "shared", "shown by")
    kinds = (NAME, NAME, NUMBER, TEXT, NUMBER, NOTE)
    last = max(d.round for d in decisions)
    fused = sum(d.fused for d in decisions)
    through = sum(d.through_others for d in decisions)
    others = f", {through} of them through others" if through else ""
    words = (
        f"{quantities.plural(len(decisions), 'pair')} in {quantities.plural(last, 'round')}: {fused} fused{others}. "
        "A pair is listed in the round that last considered it. Shared bytes are Inductor's own count.",
    )
    return Table(f"{place.title}: every decision", head, kinds, rows, words, left, WHERE, LIVE)


def _quoted(decision: Decision) -> str:
    """Return Inductor's own words, explained if both touch one buffer all the same; ``""`` if there are none."""
    message = decision.torch_message
    quoted = f"Inductor: “{message}”" if message else ""
    if message.startswith("no shared data") and decision.reason != "no shared data":
        quoted += " (it counts only the same elements in the same order)"
    return quoted


def _decision(place: Place, decision: Decision, words: UserWords) -> Row:
    outcome = "fused" if decision.fused else f"not fused: {decision.reason}"
    if decision.through_others:
        outcome += " through others" + (f"; as a pair: {decision.reason}" if decision.reason else "")
    known = decision.reason in REASONS
    parts = [
        words.evidence(decision.evidence),
        _quoted(decision),
        decision.where,
    ]
    if known and not any(parts):
        parts = [decision.sentence]
    cells = (
        loops_in_short(decision.a),
        loops_in_short(decision.b),
        str(decision.round),
        outcome,
        "" if decision.shared_bytes is None else f"{decision.shared_bytes:,} B",
        "; ".join(filter(None, parts)),
    )
    return Row(cells, tuple(place.at("loops", loop) for loop in decision.loops))
