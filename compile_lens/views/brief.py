"""A brief: one answer for a reader with a budget of tokens, such as a coding agent.

Facts come first, then evidence, what does not follow from them, and the next questions with the exact call. Strings of
the user's program are data: ``quoted`` writes them on one line between quotation marks, so that none can pass for a
heading or an instruction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.versions import OUTPUT_SCHEMA

from .words.characters import clean, flat
from .words.quantities import plural

MAX_TOKENS = 2000
"""The default budget of one answer."""

LEAST_TOKENS = 200
"""The smallest budget: the headings, the first fact and the call that gives the rest."""


def tokens(text: str) -> int:
    """Return the tokens of a text, counted as a third of its UTF-8 bytes, rounded up. No tokenizer is needed, and the
    texts of code and figures that we print have fewer with all that are in use."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 3)


def quoted(text: str, most: int = 160) -> str:
    """Return a user's string on one line between quotation marks; from ``most`` characters on the middle is left out,
    and the number of characters left out is given."""
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
        title: what it is about and where it comes from, in one line.
        facts: sentences that hold for the record, the most important first.
        evidence: an entry for each fact that has any, the most important first; later lines of an entry are indented.
        not_to_conclude: conclusions that the facts do not support.
        ask_next: questions that may come next.
        left_out: what the record has and the brief does not, with the call that gives it.
    """

    title: str
    facts: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    not_to_conclude: tuple[str, ...] = ()
    ask_next: tuple[Question, ...] = ()
    left_out: tuple[str, ...] = ()

    def text(self, max_tokens: int = MAX_TOKENS) -> str:
        """Return the answer in at most ``max_tokens`` tokens. Evidence goes first where they do not suffice, then
        questions, conclusions and facts from the last on; the number of entries that are not shown is given. The first
        entry of evidence that has to go keeps the lines for which there is room.

        Raises:
            UsageError: ``max_tokens`` is not a whole number, or less than 200.
        """
        check_budget(max_tokens)
        kept = self._kept(max_tokens, self._print)
        text = self._with_head(kept, max_tokens) or self._print(kept)
        return text if tokens(text) <= max_tokens else _cut(text, max_tokens)

    def _with_head(self, kept: dict[str, int], max_tokens: int) -> str:
        """Return the answer with as many lines of the first entry of evidence that was left out as fit; ``""`` if none
        does."""
        first = kept["evidence"]
        lines = self.evidence[first].split("\n") if first < len(self.evidence) else []
        for count in range(len(lines) - 1, 0, -1):
            left = f"({plural(len(lines) - count, 'line')} more: ask for more tokens)"
            head = "\n".join([*lines[:count], left])
            evidence = (*self.evidence[:first], head, *self.evidence[first + 1 :])
            text = replace(self, evidence=evidence)._print({**kept, "evidence": first + 1})
            if tokens(text) <= max_tokens:
                return text
        return ""

    def to_dict(self, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data, as ``Brief`` in ``docs/static/output.schema.json``. With ``max_tokens``
        entries are left out until the compact JSON fits."""
        if max_tokens is None:
            return self._data(self._all())
        check_budget(max_tokens)
        document = self._data(self._kept(max_tokens, lambda kept: _json(self._data(kept))))
        if tokens(_json(document)) > max_tokens:
            # Half of the bytes for the fact: each may be written as two.
            document["facts"] = [{"id": "F1", "text": _head(self.facts[0], max_tokens) + "…"}]
            document["title"] = _head(self.title, max_tokens // 4)
        return document

    def _all(self) -> dict[str, int]:
        return {key: len(entries) for key, entries in self._sections()}

    def _kept(self, max_tokens: int, form: Callable[[dict[str, int]], str]) -> dict[str, int]:
        """Return how many entries of each section to keep, so that a form of the answer fits; a fact always stays."""
        kept, sections = self._all(), dict(self._sections())
        while (over := tokens(form(kept)) - max_tokens) > 0:
            key = next((k for k in _ORDER_OF_CUTS if kept[k] > (k == "facts")), None)
            if key is None:  # one fact, longer than the whole budget
                break
            kept[key] -= _last_entries(sections[key][: kept[key]], over, least=key == "facts")
        return kept

    def _sections(self) -> tuple[tuple[str, Sequence[Any]], ...]:
        return (
            ("facts", self.facts),
            ("evidence", self.evidence),
            ("not_to_conclude", self.not_to_conclude),
            ("ask_next", self.ask_next),
            ("left_out", self.left_out),
        )

    def _data(self, kept: dict[str, int]) -> dict[str, Any]:
        sections = dict(self._sections())
        return {
            "schema": OUTPUT_SCHEMA,
            "title": self.title,
            "facts": _numbered("F", self.facts[: kept["facts"]]),
            "evidence": _numbered("E", self.evidence[: kept["evidence"]]),
            "not_to_conclude": list(self.not_to_conclude[: kept["not_to_conclude"]]),
            "ask_next": [{"text": q.text, "call": q.call} for q in self.ask_next[: kept["ask_next"]]],
            "left_out": list(self.left_out[: kept["left_out"]]),
            "not_shown": {key: len(sections[key]) - count for key, count in kept.items()},
        }

    def _print(self, kept: dict[str, int]) -> str:
        blocks = [flat(self.title), _section("FACTS", _ids("F", self.facts[: kept["facts"]]))]
        blocks.append(_section("EVIDENCE", _ids("E", self.evidence[: kept["evidence"]])))
        blocks.append(_section("DO NOT CONCLUDE", _listed(self.not_to_conclude[: kept["not_to_conclude"]])))
        questions = [(flat(q.text), flat(q.call)) for q in self.ask_next[: kept["ask_next"]]]
        width = max((len(text) for text, _ in questions), default=0)
        blocks.append(_section("ASK NEXT", [f"  {text:<{width}}  {call}" for text, call in questions]))
        lines = _listed(self.left_out[: kept["left_out"]])
        for key, entries in self._sections():
            if kept[key] < len(entries):
                lines.append(
                    f"{len(entries) - kept[key]} of {len(entries)} under {_TITLES[key]}: ask for more tokens"
                )
        blocks.append(_section("LEFT OUT", lines))
        return "\n\n".join(block for block in blocks if block)


def check_budget(max_tokens: int) -> None:
    """Raise ``UsageError`` for a budget that no answer can keep."""
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < LEAST_TOKENS:
        raise UsageError(f"max_tokens={max_tokens!r}: give a whole number of at least {LEAST_TOKENS}")


_TITLES = {
    "facts": "FACTS",
    "evidence": "EVIDENCE",
    "not_to_conclude": "DO NOT CONCLUDE",
    "ask_next": "ASK NEXT",
    "left_out": "LEFT OUT",
}

_ORDER_OF_CUTS = ("evidence", "left_out", "ask_next", "not_to_conclude", "facts")


def _last_entries(entries: Sequence[Any], over: int, least: bool) -> int:
    """Return how many of the last entries to leave out to save about ``over`` tokens: one or more."""
    saved = count = 0
    for entry in reversed(entries[1:] if least else entries):
        saved += tokens(entry if isinstance(entry, str) else entry.text + entry.call)
        count += 1
        if saved >= over:
            break
    return max(count, 1)


def _ids(letter: str, entries: Sequence[str]) -> list[str]:
    """Return entries with their numbers; later lines of one stand under its first."""
    return [
        f"{f'{letter}{n}':<4}" + clean(entry).replace("\n", "\n    ") for n, entry in enumerate(entries, 1)
    ]


def _listed(entries: Sequence[str]) -> list[str]:
    return ["  " + clean(entry).replace("\n", "\n    ") for entry in entries]


def _numbered(letter: str, entries: Sequence[str]) -> list[dict[str, str]]:
    return [{"id": f"{letter}{number}", "text": entry} for number, entry in enumerate(entries, 1)]


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _cut(text: str, max_tokens: int) -> str:
    """Return the head of a text, and that it was cut, in at most ``max_tokens`` tokens."""
    end = "\n[cut: ask for more tokens]"
    return _head(text, max_tokens * 3 - len(end)) + end


def _head(text: str, size: int) -> str:
    """Return the head of a text, in at most ``size`` bytes of UTF-8."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
