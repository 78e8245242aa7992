"""A brief: one answer for a reader with a budget of tokens, such as a coding agent.

Facts come first, then evidence, conclusions that do not follow, and next questions with exact calls. Strings of the
user's program are data: ``quoted`` puts them on one line in quotation marks, so that none can pass for a heading or an
instruction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record.messages import without_object_addresses
from compile_lens.versions import OUTPUT_SCHEMA

from .words.characters import clean, flat
from .words.quantities import plural

MAX_TOKENS = 2000
"""The default budget of one answer."""

LEAST_TOKENS = 200
"""Smallest budget, enough for the headings, the first fact and the call for the rest."""


def tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text: a third of its UTF-8 bytes, rounded up. Common tokenizers need
    fewer for our texts."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 3)


def quoted(text: str, most: int = 160) -> str:
    """Return a user string on one line in quotation marks; beyond ``most`` characters the middle is replaced by the
    number of omitted characters."""
    if len(text) > most:
        head, tail = text[: most * 2 // 3], text[-(most // 3) :]
        text = f"{head} [{len(text) - len(head) - len(tail)} characters left out] {tail}"
    return '"' + flat(text).replace('"', "'") + '"'


@dataclass(frozen=True)
class Question:
    """A question that may come next.

    Attributes:
        text: the question, in words.
        call: the call that answers it.
    """

    text: str
    call: str


@dataclass(frozen=True)
class Brief:
    """One answer.

    Attributes:
        title: subject and source, in one line.
        facts: true sentences about the record, most important first.
        evidence: entries that support facts, most important first; later lines of an entry are indented.
        not_to_conclude: conclusions that the facts do not support.
        ask_next: questions that may come next.
        left_out: content of the record that the brief omits, with the calls for it.
    """

    title: str
    facts: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    not_to_conclude: tuple[str, ...] = ()
    ask_next: tuple[Question, ...] = ()
    left_out: tuple[str, ...] = ()

    def text(self, max_tokens: int = MAX_TOKENS) -> str:
        """Return the answer in at most ``max_tokens`` tokens. If needed, later lines of evidence are dropped first,
        then later questions and conclusions, then the rest of the evidence; the first fact always stays. A note tells
        how much was dropped and the tokens of the whole answer.

        Raises:
            UsageError: ``max_tokens`` is not a whole number, or less than 200.
        """
        check_budget(max_tokens)
        text = self._print(self._kept(max_tokens, self._print))
        return text if tokens(text) <= max_tokens else _cut(text, max_tokens)

    def to_dict(self, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data, as ``Brief`` in ``docs/static/output.schema.json``. With ``max_tokens``
        entries are dropped until the compact JSON fits."""
        if max_tokens is None:
            return self._data(self._all())
        check_budget(max_tokens)
        document = self._data(self._kept(max_tokens, lambda kept: _json(self._data(kept))))
        if tokens(_json(document)) > max_tokens:
            # The fact gets half of the bytes, since JSON may escape each as two.
            document["facts"] = [{"id": "F1", "text": _head(self.facts[0], max_tokens) + "…"}]
            document["title"] = _head(self.title, max_tokens // 4)
        return document

    def _all(self) -> dict[str, int]:
        """Return the size of each section: lines of evidence, and entries of the others."""
        return {key: len(entries) for key, entries in self._sections()}

    def _kept(self, max_tokens: int, form: Callable[[dict[str, int]], str]) -> dict[str, int]:
        """Return how many entries of each section, and lines of the evidence, to keep, so that a form of the answer
        fits; a fact always stays."""
        kept, sections = self._all(), dict(self._sections())
        for key, least in _ORDER_OF_CUTS:
            while kept[key] > least and (over := tokens(form(kept)) - max_tokens) > 0:
                kept[key] -= _last_entries(sections[key][least : kept[key]], over)
        if tokens(form(kept)) > max_tokens:  # one fact, longer than the whole budget
            return kept
        for key in ("evidence", "ask_next"):  # restore entries that fit after all
            while kept[key] < len(sections[key]):
                more = {**kept, key: kept[key] + 1}
                if tokens(form(more)) > max_tokens:
                    break
                kept = more
        return kept

    def _sections(self) -> tuple[tuple[str, Sequence[Any]], ...]:
        return (
            ("facts", self.facts),
            ("evidence", tuple(line for entry in self.evidence for line in entry.split("\n"))),
            ("not_to_conclude", self.not_to_conclude),
            ("ask_next", self.ask_next),
            ("left_out", self.left_out),
        )

    def _evidence(self, lines: int) -> tuple[tuple[str, ...], int]:
        """Return the entries of evidence that the first ``lines`` lines make, the last one with what it lacks; and how
        many entries there are that have no line of these."""
        shown: list[str] = []
        for number, entry in enumerate(self.evidence):
            own = entry.split("\n")
            if lines < len(own):
                if lines > 0:
                    own[lines:] = [f"({plural(len(own) - lines, 'line')} more)"]
                    return (*shown, "\n".join(own)), len(self.evidence) - number - 1
                return tuple(shown), len(self.evidence) - number
            lines -= len(own)
            shown.append(entry)
        return tuple(shown), 0

    def _data(self, kept: dict[str, int]) -> dict[str, Any]:
        sections = dict(self._sections())
        evidence, without = self._evidence(kept["evidence"])
        left = {key: len(sections[key]) - count for key, count in kept.items()}
        return {
            "schema": OUTPUT_SCHEMA,
            "title": self.title,
            "facts": _numbered("F", self.facts[: kept["facts"]]),
            "evidence": _numbered("E", evidence),
            "not_to_conclude": list(self.not_to_conclude[: kept["not_to_conclude"]]),
            "ask_next": [{"text": q.text, "call": q.call} for q in self.ask_next[: kept["ask_next"]]],
            "left_out": list(self.left_out[: kept["left_out"]]),
            "not_shown": {**left, "evidence": without},
        }

    def _print(self, kept: dict[str, int]) -> str:
        evidence, without = self._evidence(kept["evidence"])
        blocks = [flat(self.title), _section("FACTS", _ids("F", self.facts[: kept["facts"]]))]
        blocks.append(_section("EVIDENCE", _ids("E", evidence)))
        blocks.append(_section("DO NOT CONCLUDE", _listed(self.not_to_conclude[: kept["not_to_conclude"]])))
        questions = [(flat(q.text), flat(q.call)) for q in self.ask_next[: kept["ask_next"]]]
        width = max((len(text) for text, _ in questions), default=0)
        blocks.append(_section("ASK NEXT", [f"  {text:<{width}}  {call}" for text, call in questions]))
        lines = _listed(self.left_out[: kept["left_out"]])
        counts = [(key, len(entries), len(entries) - kept[key]) for key, entries in self._sections()]
        left = [
            f"{count} of {size} under {_TITLES[key]}"
            for key, size, count in counts
            if key != "evidence" and count
        ]
        left[:0] = [f"{without} of {len(self.evidence)} under {_TITLES['evidence']}"] if without else []
        if kept != self._all():
            whole = f"the whole answer has {self._size:,} tokens (max_tokens)"
            lines.append("  " + "; ".join((*left, whole)))
        blocks.append(_section("LEFT OUT", lines))
        return "\n\n".join(block for block in blocks if block)

    @cached_property
    def _size(self) -> int:
        """Return the tokens of the whole answer."""
        return tokens(self._print(self._all()))


def check_budget(max_tokens: int) -> None:
    """Raise ``UsageError`` for an invalid or too small budget."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < LEAST_TOKENS:
        raise UsageError(f"max_tokens={max_tokens!r}: give a whole number of at least {LEAST_TOKENS}")


_TITLES = {
    "facts": "FACTS",
    "evidence": "EVIDENCE",
    "not_to_conclude": "DO NOT CONCLUDE",
    "ask_next": "ASK NEXT",
    "left_out": "LEFT OUT",
}

_ORDER_OF_CUTS = (
    ("evidence", 6),
    ("ask_next", 1),
    ("not_to_conclude", 1),
    ("evidence", 2),
    ("left_out", 0),
    ("not_to_conclude", 0),
    ("ask_next", 0),
    ("evidence", 0),
    ("facts", 1),
)
"""Sections in the order in which they are cut, each with the entries (lines for evidence) to keep. Evidence is more
useful than general questions."""


def _last_entries(entries: Sequence[Any], over: int) -> int:
    """Return how many of the last entries to drop to save about ``over`` tokens, at least one."""
    saved = count = 0
    for entry in reversed(entries):
        saved += tokens(entry if isinstance(entry, str) else entry.text + entry.call)
        count += 1
        if saved >= over:
            break
    return max(count, 1)


def _ids(letter: str, entries: Sequence[str]) -> list[str]:
    """Return entries with their numbers; later lines of an entry are aligned with its first."""
    return [
        f"{f'{letter}{n}':<4}" + _clean(entry).replace("\n", "\n    ") for n, entry in enumerate(entries, 1)
    ]


def _clean(text: str) -> str:
    return clean(without_object_addresses(text))


def _listed(entries: Sequence[str]) -> list[str]:
    return ["  " + _clean(entry).replace("\n", "\n    ") for entry in entries]


def _numbered(letter: str, entries: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"id": f"{letter}{number}", "text": without_object_addresses(entry)}
        for number, entry in enumerate(entries, 1)
    ]


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _cut(text: str, max_tokens: int) -> str:
    """Return the head of a text with a note that it was cut, in at most ``max_tokens`` tokens."""
    end = "\n[cut: give more max_tokens]"
    return _head(text, max_tokens * 3 - len(end)) + end


def _head(text: str, size: int) -> str:
    """Return the head of a text, in at most ``size`` bytes of UTF-8."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
