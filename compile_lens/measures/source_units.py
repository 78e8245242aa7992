"""Units of work: the Python lines of a compilation, the calls in its only line, or the modules run by its only call,
and what each became.

A view gives each unit its own colour, so that a reader sees at once what it became.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePath

from compile_lens.measures.address import NO_WORK
from compile_lens.measures.chain import PYTHON, Address, Chain, walk
from compile_lens.measures.memo import memoized
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Source

_PAST_COLUMNS = 1_000_000
"""A column past every line's end."""


DECOMPOSED = ("forward", "inference")
"""Stages without operators that compute nothing, such as an identity or a dropout of rate 0."""

BEFORE = (PYTHON, "dynamo", "pre_grad", "joint")
"""Stages before ``DECOMPOSED``."""


LOWERED = ("loops", "groups", "code")
"""Stages after the operators, separate for each phase."""


@dataclass(frozen=True)
class Unit:
    """A Python line, a call in one, or a module that is run from one.

    Attributes:
        file, line: its place.
        column, end_column: for a call its first character in the line, counted from 0, and the one past its last;
            ``None`` for a line and for a module. A call that takes all of its line starts at 0, and ``end_column`` is
            ``None``.
        tag: a short name: the name of the call's node, the line number, or the path of the module.
        nodes: addresses of the nodes traced from it.
    """

    file: str
    line: int
    column: int | None
    end_column: int | None
    tag: str
    nodes: tuple[Address, ...]


@dataclass(frozen=True)
class Units:
    """The units of one compilation, in source order. Operations that vanish when operators are decomposed, such as a
    dropout of rate 0, are not units.

    Attributes:
        all: the units.
        of: by address, the numbers of the units that it came from, in order; an absent address came from none.
    """

    all: tuple[Unit, ...]
    of: Mapping[Address, tuple[int, ...]]


@memoized
def units(capture: Record) -> Mapping[str, Units]:
    """Return the units of each compilation by id. A frame of torch counts only if no line of the user is known."""
    up = dict(Chain(capture).links())
    places = _Places(capture)
    return {c.id: _units(c, up, places) for c in capture.compilations}


Up = Mapping[Address, Iterable[Address]]


def _units(compilation: Compilation, up: Up, places: _Places) -> Units:
    nodes = _surviving_work(compilation, up)
    work = {address: node.innermost[0] for address, node in nodes.items()}
    units = tuple(_by_call(work) or _by_line(work, places))
    if len(units) == 1:
        units = tuple(_by_module(units[0], nodes)) or units
    own = {address: 1 << number for number, unit in enumerate(units) for address in unit.nodes}
    up = _without_derivatives(compilation, up)
    return Units(units, _units_by_address(compilation.id, own, up, _views(compilation)))


def _surviving_work(compilation: Compilation, up: Up) -> dict[Address, Node]:
    """Return the nodes of which units consist: those with work of their own that became something."""
    nodes = dict(_work(compilation, up))
    if not any(key in compilation.graphs for key in DECOMPOSED):
        return nodes
    pending = [address for address in up if address[0] == compilation.id and address[1] not in BEFORE]
    left = set(pending)
    while pending:
        for above in up.get(pending.pop(), ()):
            if above not in left:
                left.add(above)
                pending.append(above)
    return {address: node for address, node in nodes.items() if address in left}


def _without_derivatives(compilation: Compilation, up: Up) -> Up:
    """Return links in which a forward node comes only from the operator that it computes, not from a derivative that it
    also serves (the derivative of ``cos(x)`` reads ``sin(x)``)."""
    joint, forward = (compilation.graphs.get(key) for key in ("joint", "forward"))
    if joint is None or forward is None:
        return up
    derived = {(compilation.id, "joint", path + node.name) for path, node in walk(joint) if node.derivative}
    changed = dict(up)
    for path, node in walk(forward):
        here = (compilation.id, "forward", path + node.name)
        above = tuple(up.get(here, ()))
        changed[here] = tuple(address for address in above if address not in derived) or above
    return changed


def _views(compilation: Compilation) -> set[Address]:
    """Return the views, which compute nothing."""
    return {
        (compilation.id, graph.key, path + node.name)
        for graph in compilation.graphs.values()
        for path, node in walk(graph)
        if node.kind == "view"
    }


def _work(compilation: Compilation, up: Up) -> Iterator[tuple[Address, Node]]:
    """Yield the nodes that compute something, have a line of their own and are linked to it directly."""
    for stage in compilation.stages:
        if not isinstance(stage, Graph):
            continue
        for path, node in walk(stage):
            address = (compilation.id, stage.key, path + node.name)
            if node.op not in NO_WORK and any(above[1] == PYTHON for above in up.get(address, ())):
                if node.innermost:
                    yield address, node


def _by_call(work: Mapping[Address, Frame]) -> list[Unit]:
    """Return the calls of the only line, in order of their ends; nothing if there are several lines or no columns.

    A call that takes all of its line has no columns in a stack trace.
    """
    lines = {(frame.file, frame.line) for frame in work.values()}
    spans: dict[tuple[int, int], list[Address]] = {}
    for address, frame in work.items():
        span = (
            (0, _PAST_COLUMNS)
            if frame.column is None or frame.end_column is None
            else (frame.column, frame.end_column)
        )
        spans.setdefault(span, []).append(address)
    if len(lines) != 1 or all(start == 0 for start, _ in spans):
        return []
    ((file, line),) = lines
    return [
        Unit(
            file,
            line,
            start,
            None if end == _PAST_COLUMNS else end,
            _tag([address[2] for address in spans[start, end]]),
            tuple(spans[start, end]),
        )
        for start, end in sorted(spans, key=lambda span: (span[1], -span[0]))
    ]


def _by_line(work: Mapping[Address, Frame], places: _Places) -> list[Unit]:
    lines: dict[tuple[str, int], list[Address]] = {}
    functions: dict[tuple[str, int], str] = {}
    for address, frame in work.items():
        lines.setdefault((frame.file, frame.line), []).append(address)
        functions.setdefault((frame.file, frame.line), frame.function)
    several = len({file for file, _ in lines}) > 1
    return [
        Unit(
            file,
            line,
            None,
            None,
            f"{_short(file, functions[file, line])}:{line}" if several else str(line),
            tuple(lines[file, line]),
        )
        for file, line in sorted(lines, key=places.of)
    ]


def _by_module(whole: Unit, nodes: Mapping[Address, Node]) -> list[Unit]:
    """Return the modules directly below the innermost one that contains all nodes of the only call, and that module's
    own nodes; nothing if that is only one part."""
    paths = {address: tuple(filter(None, nodes[address].module.split("."))) for address in whole.nodes}
    # The smallest and the largest path share the common prefix of all.
    least, greatest = min(paths.values()), max(paths.values())
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False)))
    parts: dict[tuple[str, ...], list[Address]] = {}
    for address, path in paths.items():
        parts.setdefault(path[: shared + 1], []).append(address)
    if len(parts) < 2:
        return []
    return [
        replace(
            whole,
            column=None,
            end_column=None,
            tag=_of_module(path) if len(path) > shared else _tag([address[2] for address in own]),
            nodes=tuple(own),
        )
        for path, own in parts.items()
    ]


def _of_module(path: tuple[str, ...]) -> str:
    """Return the last name of a path; if that is a number, with the name before it."""
    return ".".join(path[-2:]) if path[-1].isdigit() else path[-1]


def _short(file: str, function: str) -> str:
    """Return the file's name; for a notebook cell, whose file name is a number, that of the function in it."""
    stem = PurePath(file).stem
    return function if stem.isdigit() and function.isidentifier() else stem


def _tag(names: list[str]) -> str:
    """Return the name of the last node, which has the call's result, and the number of other nodes."""
    return names[-1] if len(names) == 1 else f"{names[-1]} +{len(names) - 1}"


class _Places:
    """Order of lines: first those of the recorded functions, in display order, then others."""

    def __init__(self, capture: Record) -> None:
        self._sources = [(s.file, s.first_line, s.first_line + s.text.count("\n")) for s in capture.sources]

    def of(self, place: tuple[str, int]) -> tuple[int, str, int]:
        file, line = place
        positions = (
            i for i, (name, first, last) in enumerate(self._sources) if name == file and first <= line <= last
        )
        return next(positions, len(self._sources)), file, line


def _units_by_address(
    compilation: str, own: Mapping[Address, int], up: Up, views: set[Address]
) -> dict[Address, tuple[int, ...]]:
    """Return the units of each address that came from some. Loops and their code come from the nodes that they compute,
    not from ``views`` through which they read, which may belong to other lines."""
    masks: dict[Address, int] = dict(own)
    known: set[Address] = set(own)
    for start in up:
        if start[0] != compilation or start in known:
            continue
        # Depth first without recursion, sources first. A cycle in a corrupt record ends, since nodes on the path count
        # as known.
        known.add(start)
        path, pending = [start], [iter(tuple(up.get(start, ())))]
        while path:
            above = next(pending[-1], None)
            if above is None:
                pending.pop()
                here = path.pop()
                links = up.get(here, ())
                if here[1].endswith(LOWERED):
                    links = [link for link in links if link not in views] or links
                for link in links:
                    masks[here] = masks.get(here, 0) | masks.get(link, 0)
            elif above[0] == compilation and above not in known:
                known.add(above)
                path.append(above)
                pending.append(iter(tuple(up.get(above, ()))))
    unpacked: dict[int, tuple[int, ...]] = {}
    for mask in masks.values():
        if mask not in unpacked:
            unpacked[mask] = tuple(i for i in range(mask.bit_length()) if mask >> i & 1)
    return {address: unpacked[mask] for address, mask in masks.items() if mask}


@memoized
def instances(capture: Record) -> Mapping[Source, tuple[str, ...]]:
    """Return the paths, such as ``layers.0``, of the modules that ran each method, if several are known to have.

    A module is known by a node from the method itself whose module has the method's class. A method with a node from a
    module inside none of these ran in unknown modules, too, and is left out.
    """
    own: dict[Source, dict[str, None]] = {}
    every: dict[Source, set[str]] = {}
    for node in (n for c in capture.compilations if (g := c.graphs.get("dynamo")) for n in g.nodes):
        for frame in node.innermost:
            around = [s for s in capture.sources if s.file == frame.file and frame.line in s.numbers]
            source = max(around, key=lambda s: s.first_line, default=None)
            if source is None:
                continue
            every.setdefault(source, set()).add(node.module)
            if node.module and node.module_type == source.name.rpartition(".")[0].rpartition(".")[2]:
                own.setdefault(source, {})[node.module] = None
    return {
        source: tuple(paths)
        for source, paths in own.items()
        if len(paths) > 1
        and all(any(f"{path}.".startswith(f"{m}.") for m in paths) for path in every[source])
    }
