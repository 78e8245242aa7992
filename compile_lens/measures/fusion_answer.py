"""The answer to whether two things are one kernel, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.record.decision import REASONS, Decision
from compile_lens.record.graph import Frame
from compile_lens.record.messages import all_names

from .user_words import A_PART

SAME, INLINED, FUSED, NOT_FUSED, DIFFERENT_GRAPHS, NOTHING = (
    "same", "inlined", "fused", "not fused", "different graphs", "no loop",
)  # fmt: skip
"""Values of ``Why.verdict``."""

LIBRARY_CALL_BETWEEN = (
    "A call of a library or of a kernel written by hand stands between them: all of it has to run after one and "
    "before the other."
)
"""Reasons that keep two apart which are not library calls themselves."""

NOT_PROPOSED = "Inductor did not propose the pair."
NEVER_PROPOSED = "never proposed"
NOT_SEEN = "not seen"
"""``Why.verdict`` where loops or groups, ``Why.reason`` where the scheduler's decisions are not in the record."""
DECISIONS_NOT_SEEN = "Why they were not fused was not seen."

_MORE = re.compile(r" and (at least )?[\d,]+ more( lines?)?$")


@dataclass(frozen=True)
class Why:
    """Result of ``capture.why(a, b)``.

    Attributes:
        a, b: the two things, as they were asked for.
        where: the compile id and the phase (``"0/0 forward"``); ``""`` where they share none.
        verdict: ``same``, ``inlined``, ``fused``, ``not fused``, ``different graphs``, ``no loop`` or ``not seen``.
        reason: if not fused, a key of ``compile_lens.record.decision.REASONS``, ``"never proposed"``, or ``"not seen"``
            where the record has no decisions of the scheduler.
        sentence: the answer in one plain sentence.
        facts: what the record shows for it, in order.
        decisions: what the scheduler decided about their groups, the last word first.
        saved: modelled bytes, at most, that one kernel for both would not move: what one writes is not read by the
            other, nor written if nothing else needs it, and what both read is read once; ``None`` where that is
            unknown or is no question.
        saved_note: why ``saved`` is ``None``.
        remedy: what one could try, ``""`` where there is nothing to try.
        calls: the library calls that keep them apart, by the names of their operators.
        words: of each of the two what it computes, in the words of the program: "`torch.softmax(x, -1)` (model.py:7)";
            ``""`` where no line is known.
        library: the same of each library call that keeps them apart.
        called: what these call: ``a library``, ``a collective``, ``a custom operator``, ``a Triton kernel of the
            program``.
        lines: the lines that ``words`` name.
    """

    a: str
    b: str
    where: str
    verdict: str
    reason: str = ""
    sentence: str = ""
    facts: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    saved: int | None = None
    saved_note: str = ""
    remedy: str = ""
    calls: tuple[str, ...] = ()
    words: tuple[str, str] = ("", "")
    library: tuple[str, ...] = ()
    called: str = "a library"
    lines: tuple[Frame, ...] = ()

    @property
    def rank(self) -> tuple[bool, int]:
        """A key for sorting answers: what fusing would save, where they are not fused."""
        return self.verdict == NOT_FUSED, self.saved or 0

    @property
    def common(self) -> str:
        """The words of both, or what these begin with where they differ only in how many more expressions each has;
        ``""`` otherwise."""
        if self.words[0] == self.words[1]:
            return self.words[0]
        one, two = (_MORE.sub("", words) for words in self.words)
        return one if one == two else ""

    @property
    def pair(self) -> str:
        """Both in the words of the program, or by their names where no line is known."""
        if self.common:
            calls = len(self.library) if self.sentence == REASONS["extern"].sentence else 0
            return f"two {('loops', 'parts', 'calls')[min(calls, 2)]} of {self.common}, {self.a} and {self.b}"
        one, two = self.words
        return f"{one or self.a} and {two or self.b}"

    @property
    def answer(self) -> str:
        """The sentence, with the library call that it is about."""
        if not self.library or self.sentence not in (LIBRARY_CALL_BETWEEN, REASONS["extern"].sentence):
            return self.sentence
        calls, several = all_names(_counted(self.library), 3), len(self.library) > 1
        if self.sentence == LIBRARY_CALL_BETWEEN:
            stand = "stand between them, calls" if several else "stands between them, a call"
            return f"{calls} {stand} of {self.called}: all of it has to run after one and before the other."
        are, loop, it = ("are calls", "their loops", "them") if several else ("is a call", "its loop", "it")
        return f"{calls} {are} of {self.called}: Inductor did not generate {loop}, so it cannot add to {it}."

    def __str__(self) -> str:
        head = f"{self.a} and {self.b}" + (f" ({self.where})" if self.where else "")
        text = [f"{head}: {self.verdict}" + (f", {self.reason}" if self.reason else "")]
        text += [f"  {name}: {words}" for name, words in zip((self.a, self.b), self.words) if words]
        text.append(f"  {self.answer}")
        if self.saved:
            text.append(f"  fusing would have saved at most {self.saved:,} bytes (modelled)")
        elif self.saved == 0:
            text.append("  fusing would have saved no bytes (modelled)")
        elif self.saved_note:
            text.append(f"  bytes that fusing would have saved: unknown, {self.saved_note}")
        if self.remedy:
            text.append(f"  to try: {self.remedy}")
        return "\n".join([*text, *(f"  - {fact}" for fact in self.facts)])


def _counted(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of calls; of several with the same words, how many there are."""
    for one, count in Counter(words).items():
        part = one.startswith(A_PART)
        several = f"{count} parts of {one.removeprefix(A_PART)}" if part else f"{count} calls for {one}"
        yield one if count == 1 else several
