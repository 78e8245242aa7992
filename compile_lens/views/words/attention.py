"""Text about attention written with separate operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compile_lens.measures.written_attention import WrittenAttention

from .labels import place, places
from .quantities import bytes_in_short, plural, ranges


def attention_by_lines(every: Iterable[WrittenAttention]) -> list[list[WrittenAttention]]:
    """Group attentions with the same lines and call: each layer of a model has one."""
    groups: dict[tuple[str, str], list[WrittenAttention]] = {}
    for one in every:
        groups.setdefault((places(one.frames), one.call), []).append(one)
    return list(groups.values())


def attention_place(own: Sequence[WrittenAttention]) -> str:
    """Return the lines of a group of attentions: ``model.py:11–13``."""
    names = {place(frame).rpartition(":")[0] for frame in own[0].frames}
    runs = ranges({frame.line for frame in own[0].frames})
    if len(names) != 1:
        return places(own[0].frames)
    return f"{names.pop()}:{', '.join(str(a) if a == b else f'{a}–{b}' for a, b in runs)}"


def attention_words(own: Sequence[WrittenAttention]) -> str:
    """Return a replacement for a group of attentions, and the memory traffic it avoids."""
    times = f" ({plural(len(own), 'time')})" if len(own) > 1 else ""
    moved = bytes_in_short(sum(one.moved for one in own))
    return (
        f"{own[0].call} in place of {attention_place(own)}{times}: a fused kernel neither writes nor reads scores and "
        f"weights, ~{moved} in the forward. Not timed here."
    )


def attention_advice(own: Sequence[WrittenAttention]) -> str:
    """Return the same advice in one line."""
    moved = bytes_in_short(sum(one.moved for one in own))
    return f"to try: {own[0].call} in {attention_place(own)}: ~{moved} less in the forward"
