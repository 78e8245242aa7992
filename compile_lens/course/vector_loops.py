"""Loops of a C++ kernel: the numbers per step of each block, and which blocks are tails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BOUND = r"static_cast<int64_t>\((?P<{0}>(?:[^()]|\([^()]*\))*)\)"
_LOOP = re.compile(
    rf"for\(int64_t (?P<name>\w+)={_BOUND.format('start')}; (?P=name)<{_BOUND.format('end')}; "
    rf"(?P=name)\+={_BOUND.format('step')}\)"
)
_CONDITION = re.compile(r"if\(C10_(?P<kind>LIKELY|UNLIKELY)\((?P<text>.*)\)\)")
_RANGE = re.compile(
    rf"(?P<name>\w+) >= {_BOUND.format('start')} && (?P=name) < {_BOUND.format('end')}(?= &&|$)"
)


@dataclass(frozen=True)
class LoopBlock:
    """The innermost part of a loop: its numbers per step (None if a size is a symbol), and whether it is a tail, which
    fills only part of a register."""

    width: int | None
    tail: bool = False


def loop_blocks(source: str) -> list[LoopBlock]:
    """Return the blocks of all loops of a kernel, in text order."""
    return list(_blocks(source, {}))


def without_tails(source: str) -> str:
    """Return a kernel's source without its tails, which repeat the loop body."""
    before, *tails = source.split("if(C10_UNLIKELY(")
    return before + "".join(tail[_block_end(tail) :] for tail in tails)


def _blocks(text: str, steps: dict[str, int]) -> Iterator[LoopBlock]:
    """Yield the blocks in a text inside loops over these variables, given with their steps."""
    at = 0
    while loop := _LOOP.search(text, at):
        yield from _conditional(text[at : loop.start()], steps)
        at = loop.end() + _block_end(text[loop.end() :])
        body, step = text[loop.end() : at], _number(loop["step"])
        inner = list(_blocks(body, {**steps, loop["name"]: step or 1}))
        if inner or step is None:
            yield from inner
        else:
            yield _block(step, loop["start"], loop["end"], whole=False)
    yield from _conditional(text[at:], steps)


def _conditional(text: str, steps: dict[str, int]) -> Iterator[LoopBlock]:
    """Yield blocks under a condition: they take whole steps if each variable's range is a multiple of its step."""
    for condition in _CONDITION.finditer(text):
        ranges = [r for r in _RANGE.finditer(condition["text"]) if steps.get(r["name"], 1) > 1]
        parts = [
            _block(steps[r["name"]], r["start"], r["end"], condition["kind"] == "LIKELY") for r in ranges
        ]
        widths = [part.width for part in parts if part.width is not None]
        if parts:
            yield LoopBlock(
                min(widths) if len(widths) == len(parts) else None, any(part.tail for part in parts)
            )


def _block(step: int, start: str, end: str, whole: bool) -> LoopBlock:
    """Return the block for a range and a step; ``whole``: it takes whole steps even if the range is a symbol."""
    first, last = _number(start), _number(end)
    if first is None or last is None:
        return LoopBlock(step) if whole or step == 1 else LoopBlock(None, tail=True)
    count = last - first
    return LoopBlock(min(step, count), count % step != 0)


def _number(text: str) -> int | None:
    match = re.fullmatch(r"(-?\d+)L?", text.strip())
    return int(match[1]) if match else None


def _block_end(text: str) -> int:
    """Return the end of the first block in braces."""
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark == "{") - (mark == "}")
        if mark == "}" and not depth:
            return at + 1
    return len(text)
