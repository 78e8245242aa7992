"""Parser for Triton's two dialects of MLIR. Every operation ends with its location, usually an alias:

    %tmp1 = math.sin %tmp0 : tensor<256xf32> loc(#loc27)
    #loc9 = loc("kernel.py":25:23)
    #loc27 = loc("tmp1"(#loc9))

A location is a place in a file, a combination of others (named, in a call as ``callsite(inner at outer)``, or
``fused[…]``), or ``unknown``.
"""

from __future__ import annotations

import re
from functools import cache

from ..record.kernel import Form
from .listing import KERNEL_FILE, Listing

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_REFERENCE = re.compile(r"#loc\d*\b")
_PLACE = re.compile(rf'"(?:[^"]*/)?{re.escape(KERNEL_FILE)}":(\d+):\d+')


def read(text: str, kind: str) -> Form:
    """Return the dialect's text without locations, and its links.

    The line that opens a region (a loop, a reduction) has the location of its operation, which follows the region.
    """
    aliases = {m[1]: m[2] for line in text.splitlines() if (m := _ALIAS.match(line))}

    @cache
    def sources(location: str) -> frozenset[int]:
        numbers = {int(number) for number in _PLACE.findall(location)} - {0}
        # An alias may refer to earlier or later aliases, but never to itself.
        return frozenset(numbers.union(*(sources(aliases.get(a, "")) for a in _REFERENCE.findall(location))))

    page = Listing()
    opened: list[list[int]] = []
    for line in text.splitlines():
        if _ALIAS.match(line):
            continue
        bare, locations = _split(line)
        lines = sorted(frozenset[int]().union(*map(sources, locations)))
        page.add(bare, lines)
        closed: list[int] = []
        here = len(page.lines)
        for mark in _braces(bare):
            if mark == "{":
                opened.append([*closed, here])
                closed = []
            elif opened:
                closed = opened.pop()
        for opener in closed:
            if opener != here:
                page.link(opener, lines)
    return page.form(kind)


def _split(line: str) -> tuple[str, list[str]]:
    """Return a line without its locations, and the text of each."""
    kept: list[str] = []
    locations: list[str] = []
    at = 0
    while at < len(line):
        if line[at] == '"':
            end = _quoted(line, at)
        elif line.startswith(" loc(", at):
            end = _closed(line, at + 5)
            locations.append(line[at + 5 : end - 1])
            at = end
            continue
        else:
            end = at + 1
        kept.append(line[at:end])
        at = end
    return "".join(kept), locations


def _quoted(line: str, at: int) -> int:
    """Return the end of the string that begins at a quote."""
    end = at + 1
    while end < len(line) and line[end] != '"':
        end += 2 if line[end] == "\\" else 1
    return min(end + 1, len(line))


def _closed(line: str, at: int) -> int:
    """Return the end of the bracket opened before ``at``."""
    depth = 1
    while at < len(line) and depth:
        if line[at] == '"':
            at = _quoted(line, at)
            continue
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        at += 1
    return at


def _braces(line: str) -> list[str]:
    """Return the braces of a line without a partner on the same line."""
    marks: list[str] = []
    at = 0
    while at < len(line):
        if line[at] == '"':
            at = _quoted(line, at)
            continue
        if line[at] == "}" and marks and marks[-1] == "{":
            marks.pop()
        elif line[at] in "{}":
            marks.append(line[at])
        at += 1
    return marks
