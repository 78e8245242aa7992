"""Identity of values that change between calls, across the functions that were recompiled for them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from compile_lens.record.failed_guards import STATE
from compile_lens.record.messages import plain_source
from compile_lens.record.program import FailedGuard, FrameEvaluation, ProgramFrame, ProgramRecord

from .program import statement

Key = tuple[Hashable, ...]
"""A fact of the program; effects of the same fact share it."""


@dataclass(frozen=True)
class Change:
    """A value that changed, so that a code object was recompiled.

    Attributes:
        frame: the code object.
        evaluations: the frame evaluations in which the value changed.
        source: its expression (``x.size(0)``, ``self.n``).
    """

    frame: ProgramFrame
    evaluations: tuple[FrameEvaluation, ...]
    source: str

    @classmethod
    def of(cls, frame: ProgramFrame, evaluations: list[FrameEvaluation]) -> Change | None:
        """Return the change; ``None`` if torch names no changed value."""
        last = evaluations[-1].recompilation
        failed = None if last is None else last.change
        return None if failed is None else cls(frame, tuple(evaluations), failed.source or failed.text)

    @property
    def guards(self) -> Iterator[tuple[FrameEvaluation, FailedGuard]]:
        """Evaluations and failed guards, one pair for each time that the value changed."""
        for evaluation in self.evaluations:
            if evaluation.recompilation is not None and evaluation.recompilation.change is not None:
                yield evaluation, evaluation.recompilation.change

    @property
    def code(self) -> tuple[str, int, str]:
        """File, line and name of the function, also for a resume function."""
        return self.frame.file, self.frame.line, self.frame.function

    @property
    def name(self) -> str:
        """Name of the variable or the attribute; ``""`` if it is neither."""
        return _NAME.sub("", self.source) if _PATH.fullmatch(self.source) else ""


_PATH = re.compile(r"[A-Za-z_][\w.]*")
_NAME = re.compile(r".*\.")
_STACK = re.compile(r"___stack(\d+)")
_CLASS = re.compile(r"type=(<class '[^']*'>)")


def keys_of(program: ProgramRecord, changes: list[Change | None]) -> list[frozenset[Key]]:
    """Return the keys of each change; changes of one fact share a key.

    A fact is a variable of a function, its resume functions included; an attribute of a class; a global; a torch
    setting; or several values with the same old and new value while both older variants were the newest.
    """
    keys: list[set[Key]] = [set() if one is None else set(_own_keys(one)) for one in changes]
    known = [(number, one) for number, one in enumerate(changes) if one is not None]
    callers: dict[tuple[str, int, str], set[tuple[str, str]]] = {}
    for frame in program.frames:
        at = {(v.caller.file, v.caller.function) for v in frame.evaluations if v.caller is not None}
        callers.setdefault((frame.file, frame.line, frame.function), set()).update(at)
    by_values: dict[tuple[str, str], list[tuple[int, Change, int, int]]] = {}
    for number, one in known:
        for evaluation, failed in one.guards:
            if failed.old and failed.new:
                span = (_before(one, evaluation, failed), evaluation.number)
                by_values.setdefault((failed.old, failed.new), []).append((number, one, *span))
    named = set()  # results of a break that also have a name in the program
    for values, alike in by_values.items():
        for i, (a, one, since, until) in enumerate(alike):
            for b, other, other_since, other_until in alike[i + 1 :]:
                if (
                    a != b
                    and max(since, other_since) < min(until, other_until)
                    and _may_be_one(one, other, callers)
                ):
                    key = ("values", *values, min(a, b), max(a, b))
                    keys[a].add(key)
                    keys[b].add(key)
                    stacks = [_STACK.match(each.source) is not None for each in (one, other)]
                    named |= {a, b} if stacks.count(True) == 1 else set()
    for number, one in known:
        if number not in named and _is_given_by_break(one) and one.frame.resume_line is not None:
            keys[number].add(("line", *statement(program, one.frame.file, one.frame.resume_line)))
    return [frozenset(own) for own in keys]


def _own_keys(change: Change) -> Iterator[Key]:
    """Yield the keys that follow from one change alone."""
    source = change.source
    if not _STACK.match(source):
        yield ("variable", *change.code, change.frame.torch_caller, source)
    if any(failed.text.startswith(STATE) for _, failed in change.guards):
        yield ("state", source)
    if not change.name or ":" in source:
        return
    raw, classes = set(), set()
    for evaluation in change.frame.evaluations:
        for guard in evaluation.guards:
            plain = plain_source(guard.source)
            if plain == source:
                raw.add(guard.source)
            if source == f"{plain}.{change.name}" and (match := _CLASS.search(guard.text)):
                classes.add(match[1])
    for name in classes:
        yield ("attribute", name, change.name)
    if "." in source:
        for line in {failed.line for _, failed in change.guards if failed.line is not None}:
            yield ("attribute", line.file, line.line, change.name)
    elif any(each.startswith("G[") for each in raw):
        yield ("global", change.frame.file, source)


def _before(change: Change, evaluation: FrameEvaluation, failed: FailedGuard) -> int:
    """Return the number of the evaluation that made the older variant; -1 if it is older than the record."""
    numbers = [
        v.number for v in change.frame.evaluations if v.id == failed.id and v.number < evaluation.number
    ]
    return numbers[-1] if numbers else -1


def _may_be_one(a: Change, b: Change, callers: dict[tuple[str, int, str], set[tuple[str, str]]]) -> bool:
    """Return True if two values with the same change may be one fact: sizes; variables of the same name; a value that
    a break left on the stack; an argument of a function that the other one calls."""
    if (".size(" in a.source) is not (".size(" in b.source):
        return False
    if ".size(" in a.source:
        return True
    if _STACK.match(a.source) or _STACK.match(b.source):
        return a.code == b.code
    if not a.name or not b.name or "." in a.source or "." in b.source:
        return False  # attributes are matched by their class
    calls = any((x.code[0], x.code[2]) in callers.get(y.code, ()) for x, y in ((a, b), (b, a)))
    return a.code != b.code and (a.name == b.name or calls)


def _is_given_by_break(change: Change) -> bool:
    """Return True if a value is the result of the line that broke: the last used value of the stack."""
    match = _STACK.match(change.source)
    if match is None:
        return False
    held = (
        _STACK.findall(guard.source) for evaluation in change.frame.evaluations for guard in evaluation.guards
    )
    return int(match[1]) >= max((int(number) for numbers in held for number in numbers), default=0)
