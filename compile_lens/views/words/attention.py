"""Attention that a program writes out, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compile_lens.measures.written_attention import WrittenAttention

from .labels import places
from .quantities import bytes_in_short, plural


def attention_by_lines(every: Iterable[WrittenAttention]) -> list[list[WrittenAttention]]:
    """Attentions of the same lines and the same call together: each layer of a model has one."""
    groups: dict[tuple[str, str], list[WrittenAttention]] = {}
    for one in every:
        groups.setdefault((places(one.frames), one.call), []).append(one)
    return list(groups.values())


def attention_words(own: Sequence[WrittenAttention]) -> str:
    """Say what could take the place of some attentions of the same lines, and what need not move then."""
    times = f" {plural(len(own), 'time')}" if len(own) > 1 else ""
    moved = bytes_in_short(sum(one.moved for one in own))
    return (
        f"{own[0].call} in place of {places(own[0].frames)}, which write attention out{times}: where a fused kernel "
        f"computes it, scores and weights (~{moved} in the forward) are neither written nor read. Not timed here."
    )


def attention_advice(own: Sequence[WrittenAttention]) -> str:
    """The same in a line."""
    moved = bytes_in_short(sum(one.moved for one in own))
    return f"to try: {own[0].call} in {places(own[0].frames)}: ~{moved} less in the forward"
