"""Answer to whether two items are one kernel, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.record.decision import REASONS, Decision
from compile_lens.record.graph import Frame
from compile_lens.record.messages import all_names

from .user_words import A_PART, MORE

SAME, INLINED, FUSED, NOT_FUSED, DIFFERENT_GRAPHS, NOTHING = (
    "same", "inlined", "fused", "not fused", "different graphs", "no loop",
)  # fmt: skip
"""Values of ``Why.verdict``."""

LIBRARY_CALL_BETWEEN = (
    "A call of a library or of a kernel written by hand stands between them: all of it has to run after one and "
    "before the other."
)
"""Reason why two loops are not fused that are not library calls themselves."""

NOT_PROPOSED = "Inductor did not propose the pair."
NEVER_PROPOSED = "never proposed"
NOT_SEEN = "not seen"
"""``Why.verdict`` if loops or groups are not in the record, ``Why.reason`` if the scheduler's decisions are not."""
DECISIONS_NOT_SEEN = "Why they were not fused was not seen."


IN_FACTS = 3
"""Decisions that are among the facts of an answer."""


@dataclass(frozen=True)
class Why:
    """Result of ``capture.why(a, b)``.

    Attributes:
        a, b: the two items, as requested.
        where: the compile id and the phase (``"0/0 forward"``); ``""`` if they share none.
        verdict: ``same``, ``inlined``, ``fused``, ``not fused``, ``different graphs``, ``no loop`` or ``not seen``.
        reason: if not fused, a key of ``compile_lens.record.decision.REASONS``, ``"never proposed"``, or ``"not seen"``
            if the record has no decisions of the scheduler.
        sentence: the answer in one plain sentence.
        facts: evidence from the record, in order.
        decisions: the scheduler's decisions about their groups, last one first.
        saved: modelled bytes, at most, that one kernel for both would save: it reads no buffer that it writes, writes
            none that nothing else needs, and reads common inputs once; ``None`` if unknown or not applicable.
        saved_note: why ``saved`` is ``None``.
        remedy: a change to try, ``""`` if there is none.
        calls: operators of the library calls that prevent fusion.
        words: code of each of the two: "`torch.softmax(x, -1)` (model.py:7)"; ``""`` if no line is known.
        library: the same for each library call that prevents fusion.
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
        """Sort key of answers: not fused above fused, then the bytes that fusing would save."""
        return self.verdict == NOT_FUSED, self.saved or 0

    @property
    def common(self) -> str:
        """Common words of both, also if they differ only in the number of further expressions; ``""`` otherwise."""
        if self.words[0] == self.words[1]:
            return self.words[0]
        one, two = (MORE.sub("", words) for words in self.words)
        return one if one == two else ""

    @property
    def pair(self) -> str:
        """Both items as code, or by name if no line is known."""
        if self.common:
            calls = len(self.library) if self.sentence == REASONS["extern"].sentence else 0
            return f"two {('loops', 'parts', 'calls')[min(calls, 2)]} of {self.common}, {self.a} and {self.b}"
        one, two = self.words
        return f"{one or self.a} and {two or self.b}"

    @property
    def answer(self) -> str:
        """The sentence, naming the library call that it is about."""
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
    """Yield the words of calls, with a count if several have the same words."""
    for one, count in Counter(words).items():
        part = one.startswith(A_PART)
        several = f"{count} parts of {one.removeprefix(A_PART)}" if part else f"{count} calls for {one}"
        yield one if count == 1 else several
