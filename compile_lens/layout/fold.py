"""Levels of a folded drawing: which nodes share a box, which boxes are inside an opened box, and so on.

Nodes are put in one line: execution order, with each input just before its first use. Every box is a contiguous part of
that line, so boxes form no cycle, and the forward and backward part of one module stay two boxes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from compile_lens.record.graph import Node

from .collapse import separate
from .text import shorten

_MAX_STEPS = 40
"""Most steps of a module path that are used: enough for any model, and a bound for any text."""

_MAX_BETWEEN = 3
"""Most nodes without a module that count to a module if they are between two of its parts."""

_Steps = tuple[str, ...]
_NOWHERE: _Steps = ()


@dataclass(frozen=True)
class Part:
    """The nodes ``line[start:stop]`` as one box of a level: a plain node if it is one.

    Attributes:
        name: unique in the graph: a node's name, a module path, or the names of a span's ends.
        text: label of the box: its name without the path of its level.
        module: the module path, ``""`` for spans and plain nodes.
        inside: number of the level inside, -1 for a plain node.
    """

    start: int
    stop: int
    name: str
    text: str
    module: str
    inside: int


@dataclass(frozen=True)
class Level:
    """Content of one opened box. ``module`` is the path that all of its nodes share."""

    module: str
    parts: tuple[Part, ...]

    @property
    def start(self) -> int:
        """Index of the first of its nodes in the line."""
        return self.parts[0].start

    @property
    def stop(self) -> int:
        """Index after the last of its nodes in the line."""
        return self.parts[-1].stop


@dataclass(frozen=True)
class Fold:
    """Levels of one graph, the whole graph first; ``modules`` has the path of each node of the line."""

    line: tuple[Node, ...]
    modules: tuple[str, ...]
    levels: tuple[Level, ...]

    @property
    def folds(self) -> bool:
        """True if any box contains several nodes."""
        return len(self.levels) > 1


@dataclass(frozen=True)
class _Run:
    """A future box: nodes that share ``depth`` steps of their path, or the neighbours ``runs`` in one span."""

    start: int
    stop: int
    depth: int
    runs: tuple[_Run, ...] = ()

    @property
    def single(self) -> bool:
        return self.stop - self.start == 1


def fold(nodes: Sequence[Node], modules: Mapping[str, str] | None, opened: int) -> Fold:
    """Fold ``nodes`` by module path, with at most ``opened`` boxes (at least 2) in a level.

    ``modules`` gives the paths by node name; the default is each node's own.
    """
    line, placed = _line(nodes, modules)
    folding = _Folding(line, placed, opened)
    levels = folding.levels() if line else [Level("", ())]
    own = tuple(_module(n, modules) for n in line)
    return Fold(tuple(line), own, tuple(levels))


def _module(node: Node, modules: Mapping[str, str] | None) -> str:
    return node.module if modules is None else modules.get(node.name, "")


def _line(nodes: Sequence[Node], modules: Mapping[str, str] | None) -> tuple[list[Node], list[_Steps]]:
    """Return the nodes in line and the placement steps of each: an input goes with its first user."""
    workers, sources = separate(nodes)
    workers = _with_free_first(workers, modules)
    first: dict[str, int] = {}
    for index, worker in enumerate(workers):
        for name in worker.inputs:
            first.setdefault(name, index)
    before: dict[int, list[Node]] = {}
    unused = []
    for source in sources:
        if source.name in first:
            before.setdefault(first[source.name], []).append(source)
        else:
            unused.append(source)
    line, placed = list(unused), [_NOWHERE] * len(unused)
    for index, (worker, steps) in enumerate(zip(workers, _placement_steps(workers, modules), strict=True)):
        joined = [*before.get(index, ()), worker]
        line += joined
        placed += [steps] * len(joined)
    return line, placed


def _with_free_first(workers: Sequence[Node], modules: Mapping[str, str] | None) -> list[Node]:
    """Return the nodes, those first that read nothing and are between two parts of a module, but outside it.

    Seeds of random numbers are such nodes, and would split the first layer of a model.
    """
    paths = [_module(worker, modules) for worker in workers]
    outer = [_steps(path)[:1] for path in paths]
    heads = {one[0] for one in outer if one}
    above = {"", *(head[:end] for head in heads for end, letter in enumerate(head) if letter == ".")}
    after: list[_Steps] = [_NOWHERE] * len(paths)
    for index in range(len(paths) - 2, -1, -1):
        after[index] = after[index + 1] if paths[index + 1] in above else outer[index + 1]
    before = _NOWHERE
    free: list[Node] = []
    rest: list[Node] = []
    for index, (worker, path) in enumerate(zip(workers, paths, strict=True)):
        between = before == after[index] != _NOWHERE
        (free if between and path in above and not worker.inputs else rest).append(worker)
        before = before if path in above else outer[index]
    return free + rest


def _placement_steps(workers: Sequence[Node], modules: Mapping[str, str] | None) -> list[_Steps]:
    """Return the placement steps of each node: those of its module.

    A sum of gradients has no module, which would split the backward of a residual block. Therefore a few nodes without
    a module, between two parts of one and with the same callers, count to that module.
    """
    paths = [_module(worker, modules) for worker in workers]
    known = {path: _steps(path) for path in dict.fromkeys(paths)}
    placed = [known[path] for path in paths]
    last = -1
    for index, steps in enumerate(placed):
        if not steps:
            continue
        if last >= 0 and 1 < index - last <= _MAX_BETWEEN + 1:
            ends = workers[last].frames[:-1], workers[index].frames[:-1]
            shared = _common(placed[last], steps)
            if len(shared) < min(len(placed[last]), len(steps)) and all(
                node.frames and node.frames[:-1] in ends for node in workers[last + 1 : index]
            ):
                placed[last + 1 : index] = [shared] * (index - last - 1)
        last = index
    return placed


def _common(one: _Steps, other: _Steps) -> _Steps:
    count = next(
        (i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    return one[:count]


def _steps(path: str) -> _Steps:
    """Return the steps from box to box along a path.

    A number goes with the name before it (``layers.0``): a list of modules computes nothing itself.
    """
    steps: list[str] = []
    numbered = True
    for part in path.split("."):
        if part.isdecimal() and not numbered:
            steps[-1] += f".{part}"
            numbered = True
        elif part:
            steps.append(part)
            numbered = False
    return tuple(steps[:_MAX_STEPS])


class _Folding:
    """Computation of ``fold`` for one graph."""

    def __init__(self, line: Sequence[Node], placed: Sequence[_Steps], opened: int) -> None:
        self.line = line
        self.steps = placed
        self.opened = opened
        self.works = [0]
        for node in line:
            self.works.append(self.works[-1] + (node.op not in ("placeholder", "get_attr")))
        self.taken = {n.name for n in line}
        self.visits: Counter[str] = Counter()

    def levels(self) -> list[Level]:
        """Return all levels, outer ones first. It uses a queue, not recursion: paths and spans can be deep."""
        start = self._runs(0, len(self.line), self._shared(0, len(self.line), 0))
        work: deque[tuple[Sequence[_Run], int]] = deque([(self._with_largest_opened(start), 0)])
        levels: list[Level] = []
        while work:
            runs, depth = work.popleft()
            parts = []
            for run in self._bounded(runs, depth):
                inside = -1
                if not run.single:
                    inside = len(levels) + 1 + len(work)
                    work.append((run.runs or self._runs(run.start, run.stop, run.depth), run.depth))
                parts.append(self._part(run, depth, inside))
            levels.append(Level(".".join(self.steps[parts[0].start][:depth]), tuple(parts)))
        return levels

    def _runs(self, start: int, stop: int, depth: int) -> list[_Run]:
        """Group nodes ``start`` to ``stop``, which share ``depth`` steps, by their next step."""
        runs = []
        while start < stop:
            end = start + 1
            if len(self.steps[start]) > depth:
                step = self.steps[start][depth]
                while end < stop and len(self.steps[end]) > depth and self.steps[end][depth] == step:
                    end += 1
            if self.works[end] - self.works[start] > 1:
                runs.append(_Run(start, end, self._shared(start, end, depth + 1)))
            else:
                runs += [_Run(i, i + 1, depth) for i in range(start, end)]
            start = end
        return runs

    def _shared(self, start: int, stop: int, depth: int) -> int:
        """Return the number of steps that nodes ``start`` to ``stop`` share, of which ``depth`` are known."""
        first = self.steps[start]
        shared = len(first)
        for index in range(start + 1, stop):
            steps = self.steps[index]
            if steps is first:
                continue
            end = min(shared, len(steps))
            shared = depth
            while shared < end and steps[shared] == first[shared]:
                shared += 1
            if shared <= depth:
                return depth
        return shared

    def _with_largest_opened(self, runs: list[_Run]) -> list[_Run]:
        """Return the outermost level with its largest boxes opened, as long as they contain boxes and these fit.

        Most models are one module with nearly all nodes: a drawing of that box would show nothing.
        """
        counts = Counter(self.steps)
        while True:
            for at, run in enumerate(runs):
                if run.single or run.runs:
                    continue
                # All visits of one module count: a training graph has its forward and its backward.
                path = self.steps[run.start][: run.depth]
                node_count = sum(count for steps, count in counts.items() if steps[: run.depth] == path)
                if 3 * node_count <= 2 * len(self.line):
                    continue
                inner = self._bounded(self._runs(run.start, run.stop, run.depth), run.depth)
                boxes = sum(not r.single for r in inner)
                if boxes > 1 and len(runs) - 1 + len(inner) <= self.opened:
                    runs = [*runs[:at], *inner, *runs[at + 1 :]]
                    break
            else:
                return runs

    def _bounded(self, runs: Sequence[_Run], depth: int) -> Sequence[_Run]:
        """Return at most ``opened`` runs: runs of plain nodes become spans, else all become even spans."""
        if len(runs) <= self.opened:
            return runs
        stretches: list[list[_Run]] = []
        for run in runs:
            if run.single and stretches and stretches[-1][-1].single:
                stretches[-1].append(run)
            else:
                stretches.append([run])
        if not 1 < len(stretches) <= self.opened:
            # As many boxes as each of them will contain: 400 nodes are 20 spans of 20.
            ends = list(accumulate((self._counts(run) for run in runs), initial=0))
            if ends[-1] < 2:
                ends = list(range(len(runs) + 1))
            deep = 1
            while self.opened**deep < ends[-1]:
                deep += 1
            count = 2
            while count**deep < ends[-1]:
                count += 1
            cuts = [bisect_left(ends, i * ends[-1] // count) for i in range(count)] + [len(runs)]
            stretches = [list(runs[a:b]) for a, b in pairwise(cuts)]
        return [s[0] if len(s) == 1 else _Run(s[0].start, s[-1].stop, depth, tuple(s)) for s in stretches]

    def _counts(self, run: _Run) -> bool:
        """Return True if a run counts for the size of spans. A node without inputs (an input, a filled tensor) is only
        in the first of several equal layers, whose spans would otherwise begin elsewhere than in the others."""
        return not run.single or bool(self.line[run.start].inputs)

    def _path(self, run: _Run, depth: int) -> str:
        return ".".join(self.steps[run.start][depth : run.depth])

    def _ends(self, span: _Run, depth: int) -> tuple[str, str]:
        """Return the names of the first and the last box of a span, ``depth`` steps down."""
        first, last = span, span
        while first.runs:
            first = first.runs[0]
        while last.runs:
            last = last.runs[-1]
        names = [self.line[r.start].name if r.single else self._path(r, depth) for r in (first, last)]
        return names[0], names[1]

    def _part(self, run: _Run, depth: int, inside: int) -> Part:
        if run.single:
            name = self.line[run.start].name
            return Part(run.start, run.stop, name, name, "", -1)
        if run.runs:
            first, last = self._ends(run, 0)
            name, module = f"{first} … {last}", ""
            first, last = self._ends(run, depth)
            text = f"{shorten(first, 16)} … {shorten(last, 17)}"
        else:
            name = module = self._path(run, 0)
            text = self._path(run, depth)
        self.visits[name] += 1
        if self.visits[name] > 1:
            again = f" ({self.visits[name]})"
            name, text = name + again, shorten(text, 36 - len(again)) + again
        while name in self.taken:
            name += " (box)"
        self.taken.add(name)
        return Part(run.start, run.stop, name, text, module, inside)
