"""Coloured texts of a page, within limits on size and on colouring time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compile_lens.measures.chain import walk
from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code, Kernel

from ..words.characters import clean
from ..words.highlight import runs
from .items import Items

COLOURED = 400_000
"""Maximum coloured characters; the rest of the page is plain."""

TEXT_ONE = 1_000_000
"""Maximum characters of one text; a longer one is cut at the end of a line, with a note."""

TEXT_ALL = 8_000_000
"""Maximum characters of all texts; kernel sources within their module are not counted again."""

_NEWLINE = re.compile("\n")

Run = tuple[int, int]
Text = dict[str, object]
"""``Text`` of the page: ``text`` and ``inks``."""

_ORDER = (
    "code",
    "dynamo",
    "forward",
    "inference",
    "backward",
    "post_grad",
    "joint",
    "pre_grad",
    "loops",
    "groups",
)
"""Priority of texts if not all can be shown and coloured."""


@dataclass(frozen=True)
class Place:
    """Place of a kernel's source in its module: first character, and first and last line, from 1."""

    start: int
    first: int
    last: int


@dataclass(frozen=True)
class Module:
    """A generated module as text, and the sources of its kernels (``None`` for a library call)."""

    text: Text
    sources: tuple[Text | None, ...]
    places: tuple[Place | None, ...]


class Texts:
    """The texts of a page: sources, graphs by stage number, modules by stage number.

    If the page would become too large, the least important texts are omitted or not coloured.
    """

    def __init__(self, capture: Record, items: Items) -> None:
        self.sources: dict[int, Text] = {}
        self.graphs: dict[int, Text] = {}
        self.modules: dict[int, Module] = {}
        self._room = TEXT_ALL
        self._inks = COLOURED
        for number, source in enumerate(capture.sources):
            self.sources[number] = self._text(source.text, "python")
        for seen in sorted(items.stages, key=lambda s: (_drawing_order(s.stage), s.compilation, s.number)):
            if isinstance(seen.stage, Code):
                self.modules[seen.number] = self._module(seen.stage)
            else:
                self.graphs[seen.number] = self._text(seen.stage.text, "python")

    def _text(self, source: str, language: str) -> Text:
        text = self._fit(clean(source))
        return made(text, self._runs(text, language))

    def _fit(self, text: str) -> str:
        """Return the text, or as many lines as fit and a note on the rest."""
        room = min(TEXT_ONE, self._room)
        if len(text) > room:
            end = text.rfind("\n", 0, room) + 1
            left = len(text) - end
            text = f"{text[:end]}… ({left:,} characters left out to keep the page small)"
            self._room -= end
        else:
            self._room -= len(text)
        return text

    def _runs(self, text: str, language: str) -> list[Run]:
        inks = runs(text, language, self._inks)
        self._inks -= sum(length for length, _ in inks)
        return inks

    def _module(self, code: Code) -> Module:
        """Return a module coloured as Python, with its kernels coloured in their own language."""
        text = self._fit(clean(code.text))
        cleaned = (clean(kernel.source) for kernel in code.kernels)
        sources = [own if own.strip() else None for own in cleaned]
        starts = [0, *(newline.end() for newline in _NEWLINE.finditer(text))]
        places = tuple(_place(text, starts, own, k) for own, k in zip(sources, code.kernels, strict=True))
        # A source that is not in the module counts against the page's limit itself.
        shown = [own if own is None or p else self._fit(own) for own, p in zip(sources, places, strict=True)]
        inks = [
            [] if own is None else self._runs(own, kernel.language)
            for own, kernel in zip(shown, code.kernels, strict=True)
        ]
        spans = _spans(shown, places, inks)
        rest, at = [], 0
        for start, own, _ in spans:
            rest.append(text[at:start])
            at = start + len(own)
        rest.append(text[at:])
        around = self._runs("".join(rest), "python")
        return Module(
            made(text, _spliced(around, spans)),
            tuple(
                None if own is None else made(own, newline) for own, newline in zip(shown, inks, strict=True)
            ),
            places,
        )


Span = tuple[int, str, list[Run]]
"""A kernel's source in its module: start, text and colours."""


def _spans(
    sources: Sequence[str | None], places: Sequence[Place | None], inks: Sequence[list[Run]]
) -> list[Span]:
    """Return the sources within the module, in order and without overlaps."""
    spans: list[Span] = []
    end = 0
    placed = [(p.start, s, i) for p, s, i in zip(places, sources, inks, strict=True) if p and s is not None]
    for start, own, runs_of in sorted(placed, key=lambda span: span[0]):
        if start >= end:
            spans.append((start, own, runs_of))
            end = start + len(own)
    return spans


def _spliced(around: Sequence[Run], spans: Sequence[Span]) -> Iterator[Run]:
    """Yield the colours of a module, with those of its kernels inserted."""
    pieces = iter(around)
    length, ink = 0, 0
    at = 0
    for start, own, inks in spans:
        while at < start:
            if not length:
                length, ink = next(pieces, (start - at, 0))
            used = min(length, start - at)
            yield used, ink
            at += used
            length -= used
        yield from inks
        done = sum(run for run, _ in inks)
        yield len(own) - done, 0
        at += len(own)
    yield length, ink
    yield from pieces


def made(text: str, inks: Sequence[Run] | Iterator[Run]) -> Text:
    """Return the text with its colours as page data; adjacent runs of one colour are merged.

    Lengths count UTF-16 units, as in the page's script.
    """
    joined: list[list[int]] = []
    wide = not text.isascii() and max(text) > "\uffff"
    at = 0
    for length, ink in inks:
        if wide:
            piece = text[at : at + length]
            at += length
            length += sum(c > "\uffff" for c in piece)
        if not length:
            continue
        if joined and joined[-1][1] == ink:
            joined[-1][0] += length
        else:
            joined.append([length, ink])
    if joined and not joined[-1][1]:
        joined.pop()
    return {"text": text, "inks": [length * 16 + ink for length, ink in joined]}


def _place(text: str, starts: Sequence[int], own: str | None, kernel: Kernel) -> Place | None:
    """Return the place of a source in its module, from the record; None if it is not there."""
    if own is None or not 0 < kernel.first_line <= kernel.last_line <= len(starts):
        return None
    begin = starts[kernel.first_line - 1]
    end = starts[kernel.last_line] if kernel.last_line < len(starts) else len(text)
    start = text.find(own, begin, end)
    if start < 0:
        return None
    first = kernel.first_line + text.count("\n", begin, start)
    return Place(start, first, first + own.removesuffix("\n").count("\n"))


def _drawing_order(stage: Graph | Code) -> int:
    name = "code" if isinstance(stage, Code) else stage.stage
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


_NAME = r"[A-Za-z_]\w*"
_CLASS = re.compile(r"( *)class (.+?)\(torch\.nn\.Module\):")
_HEAD = re.compile(r"\s*def forward\(self\b(.*)\)[^()]*:")
_QUOTED = re.compile(r'"[^"]*"' + "|'[^']*'")
_PARAMETER = re.compile(rf"(?:^|,)\s*({_NAME})\s*(?=[,:=]|$)")
_ASSIGNED = re.compile(rf"\s*({_NAME})\s*(?::[^=]*)?=(?!=)")
_UNPACKED = re.compile(rf"\s*((?:{_NAME}\s*,\s*)+(?:{_NAME}\s*)?)=(?!=)")
_DECLARED = re.compile(rf"\s*(?:{_NAME}\s*:\s*;?\s*)+")
_RETURN = re.compile(r"\s*return\b")
_HEADING = re.compile(rf"({_NAME}): ")

_INPUTS = frozenset(("placeholder",))
_OUTPUT = frozenset(("output",))


def defining_lines(graph: Graph, text: str) -> list[tuple[int, str]]:
    """Return line numbers, from 1, each with the full name of a node defined there (``"true_graph_0/sin"``).

    A node has at most one line, the first that defines it; a line may define several nodes.
    """
    ops: dict[str, str] = {}
    for path, node in walk(graph):
        ops.setdefault(path + node.name, node.op)
    lines_of: dict[str, int] = {}
    of = _headings if graph.stage in ("loops", "groups") else _fx
    for number, name in of(text, ops):
        lines_of.setdefault(name, number)
    return sorted(((number, name) for name, number in lines_of.items()), key=lambda pair: pair[0])


def _headings(text: str, ops: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of loops and groups, each with a heading such as ``op0: Pointwise 1000``."""
    for number, line in enumerate(text.split("\n"), 1):
        heading = _HEADING.match(line)
        if heading and heading[1] in ops and ops[heading[1]] not in _INPUTS:
            yield number, heading[1]


def _fx(text: str, ops: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of nodes in FX code: inputs in the signature, a statement for each node, subgraphs as inner
    classes."""
    outputs: dict[str, list[str]] = {}
    for name, op in ops.items():
        if op in _OUTPUT:
            outputs.setdefault(name.rpartition("/")[0], []).append(name)
    scopes: list[tuple[int, str]] = []  # indentation and name of each class around the line
    path = ""
    for number, line in enumerate(text.split("\n"), 1):
        inner = _CLASS.match(line)
        if inner:
            depth = len(inner[1])
            while scopes and scopes[-1][0] >= depth:
                scopes.pop()
            scopes.append((depth, inner[2]))
            path = "".join(f"{name}/" for _, name in scopes[1:])  # the first is the graph itself
        elif line.lstrip().startswith("#"):
            continue
        elif _RETURN.match(line):
            for name in outputs.get(path.removesuffix("/"), ()):
                yield number, name
        else:
            for name, only in _names(line):
                full = path + name
                if full in ops and (only is None or ops[full] in only):
                    yield number, full


def _names(line: str) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield the names that a statement defines, and the node kinds that they must have."""
    bare = _QUOTED.sub("", line)
    head = _HEAD.match(bare)
    unpacked = _UNPACKED.match(bare)
    assigned = _ASSIGNED.match(bare)
    if head:
        yield from ((name, _INPUTS) for name in _PARAMETER.findall(head[1]))
    elif unpacked:
        yield from ((name, _INPUTS) for name in re.findall(_NAME, unpacked[1]))
    elif assigned:
        yield assigned[1], None
    elif _DECLARED.fullmatch(bare):
        yield from ((name, _INPUTS) for name in re.findall(_NAME, bare))
