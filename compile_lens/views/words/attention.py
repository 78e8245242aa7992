"""Attention that a program writes out, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compile_lens.measures.written_attention import WrittenAttention

from .labels import place, places
from .quantities import bytes_in_short, plural, ranges


def attention_by_lines(every: Iterable[WrittenAttention]) -> list[list[WrittenAttention]]:
    """Attentions of the same lines and the same call together: each layer of a model has one."""
    groups: dict[tuple[str, str], list[WrittenAttention]] = {}
    for one in every:
        groups.setdefault((places(one.frames), one.call), []).append(one)
    return list(groups.values())


def attention_place(own: Sequence[WrittenAttention]) -> str:
    """The lines of some attentions of the same lines: ``model.py:11–13``."""
    names = {place(frame).rpartition(":")[0] for frame in own[0].frames}
    runs = ranges({frame.line for frame in own[0].frames})
    if len(names) != 1:
        return places(own[0].frames)
    return f"{names.pop()}:{', '.join(str(a) if a == b else f'{a}–{b}' for a, b in runs)}"


def attention_words(own: Sequence[WrittenAttention]) -> str:
    """Say what could take the place of some attentions of the same lines, and what need not move then."""
    times = f" ({plural(len(own), 'time')})" if len(own) > 1 else ""
    moved = bytes_in_short(sum(one.moved for one in own))
    return (
        f"{own[0].call} in place of {attention_place(own)}{times}: a fused kernel neither writes nor reads scores and "
        f"weights, ~{moved} in the forward. Not timed here."
    )


def attention_advice(own: Sequence[WrittenAttention]) -> str:
    """The same in a line."""
    moved = bytes_in_short(sum(one.moved for one in own))
    return f"to try: {own[0].call} in {attention_place(own)}: ~{moved} less in the forward"
