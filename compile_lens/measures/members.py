"""Members of a fusion question: the loops that a kernel, an ATen node, a group or a Python line stands for, in each
graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compile_lens.errors import UsageError
from compile_lens.measures.address import FORMS, function
from compile_lens.measures.chain import PYTHON, Address, Chain, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.graph import Frame, Node
from compile_lens.record.kernel import Kernel

Place = tuple[str, str]
"""A compile id and a phase."""


@dataclass(frozen=True)
class Members:
    """Something that was asked for: its name, and its loops by place, in order of the record.

    ``kind`` is ``kernel``, ``line`` or ``node``; ``note`` says why there is no loop.
    """

    name: str
    kind: str
    places: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


def resolve(
    capture: Record, a: Kernel | str | int, b: Kernel | str | int, phase: str = ""
) -> tuple[Members, Members, Place | None]:
    """Return what ``a`` and ``b`` stand for, and the one place where both are (None if there is none).

    Raises ``UsageError`` for what is unknown, and where both are in several places and ``phase`` picks none.
    """
    finder = _Finder(capture)
    one, two = finder.find(a), finder.find(b)
    common = [place for place in finder.places if place in one.places and place in two.places]
    if phase:
        wanted = [p for p in finder.places if phase in (p[1], f"{p[0]} {p[1]}")]
        if not wanted:
            raise UsageError(f"phase {phase!r} is not in this capture, which has {_said(finder.places)}")
        common = [place for place in common if place in wanted]
        if not common:
            here = "; ".join(f"{m.name} is in {_said(m.places) or 'none'}" for m in (one, two))
            raise UsageError(f"phase {phase!r} does not hold both: {here}")
    if len(common) > 1:
        raise UsageError(
            f"{one.name} and {two.name} are both in {_said(common)}: "
            f"pick one with phase={_shortest(common, finder.places)!r}"
        )
    return one, two, common[0] if common else None


def _said(places: Iterable[Place]) -> str:
    return ", ".join(f"{cid} {phase}" for cid, phase in places)


def _shortest(common: list[Place], every: list[Place]) -> str:
    cid, phase = common[0]
    return phase if sum(p[1] == phase for p in every) == 1 else f"{cid} {phase}"


class _Finder:
    """Looks names up in one capture."""

    def __init__(self, capture: Record) -> None:
        self.capture = capture
        self.chain: Chain = Chain(capture)
        self.addresses = self.chain.addresses()
        self._loops_of: dict[Place, dict[str, Node]] = {}
        self._targets_of: dict[Place, dict[str, str]] = {}
        self.places = [
            (c.id, phase) for c in capture.compilations for phase in PHASES if f"{phase}.loops" in c.graphs
        ]

    def find(self, what: Kernel | str | int) -> Members:
        """Return what ``what`` stands for; the first of these that exists: kernel, line, ATen node, loop, group."""
        if isinstance(what, Kernel):
            return self._kernels(what.name, self._home(what))
        if isinstance(what, int) and not isinstance(what, bool):
            return self._at(f"line {what}", (self.chain.texts.line("", what),))
        if not isinstance(what, str):
            raise UsageError(
                f"{what!r} is no kernel, name or line: give a Kernel, a name such as 'add', {FORMS}, or a line number"
            )
        named = [
            (c.id, k)
            for c in self.capture.compilations
            for code in c.code.values()
            for k in code.kernels
            if k.name == what
        ]
        if named:
            return self._kernels(what, named)
        return self._at(what, self.chain.find(what)) if self.chain.texts.is_form(what) else self._node(what)

    def _home(self, kernel: Kernel) -> list[tuple[str, Kernel]]:
        every = [
            (c.id, k) for c in self.capture.compilations for code in c.code.values() for k in code.kernels
        ]
        homes = [(cid, k) for cid, k in every if k is kernel] or [(cid, k) for cid, k in every if k == kernel]
        if not homes:
            names = ", ".join(dict.fromkeys(k.name for _, k in every)) or "none"
            raise UsageError(f"kernel {kernel.name!r} is not one of this capture, which has {names}")
        return homes

    def _kernels(self, name: str, kernels: list[tuple[str, Kernel]]) -> Members:
        places: dict[Place, tuple[str, ...]] = {}
        for cid, kernel in kernels:
            start = [(cid, f"{kernel.phase}.groups", group) for group in kernel.groups]
            start = start or [(cid, f"{kernel.phase}.post_grad", origin) for origin in kernel.origins]
            loops = self._loops(start)
            for place, loop_names in loops.items():
                places[place] = tuple(dict.fromkeys((*places.get(place, ()), *loop_names)))
        return Members(
            name, "kernel", places, "the record does not say which loops it runs" if not places else ""
        )

    def _at(self, name: str, found: tuple[Address, ...]) -> Members:
        """Return what a line, or a call or a node at one, stands for."""
        kind = "line" if any(a[1] == PYTHON for a in found) else "node"
        places = self._loops(list(found))
        return Members(name, kind, places, "" if places else "it became no loop")

    def _node(self, name: str) -> Members:
        places: dict[Place, tuple[str, ...]] = {}
        known = False
        for cid, phase in self.places:
            for stage in (f"{phase}.post_grad", phase, f"{phase}.loops", f"{phase}.groups"):
                if (cid, stage, name) in self.chain:
                    known = True
                    loop_names = self._loops([(cid, stage, name)]).get((cid, phase))
                    if loop_names:
                        places[cid, phase] = loop_names
                    break
        if not known:
            called = self._written(name)
            if called is not None:
                return called
            names = dict.fromkeys(
                a[2]
                for a in self.addresses
                if a[1].endswith((".post_grad", ".code")) and ":" not in a[2] and a[2] != "output"
            )
            some = ", ".join(list(names)[:20]) + (", …" if len(names) > 20 else "")
            raise UsageError(
                f"{name!r} is no kernel, node, loop or group of this capture, no function that it calls, "
                f"and none of {FORMS}; it has {some or 'none'}"
            )
        note = "" if places else "it became no loop: an input, a view, or optimised away"
        return Members(name, "node", places, note)

    def _written(self, name: str) -> Members | None:
        """Return what a name of the program stands for: a node that Dynamo saw, or the only call of a function or
        operator.

        Such a call may be decomposed: it stands for the loops of all that it became. ``None`` for no such name.
        """
        wanted = function(name)
        for stages in (("dynamo",), ("joint", *PHASES)):
            named, calls = [], []
            for compilation in self.capture.compilations:
                for stage in stages:
                    graph = compilation.graphs.get(stage)
                    for path, node in walk(graph) if graph is not None else ():
                        address = (compilation.id, stage, path + node.name)
                        if address[2] == name:
                            named.append((address, node))
                        elif node.op.startswith("call") and wanted == function(node.target):
                            calls.append((address, node))
            candidates = named or calls
            if len({address[2] for address, _ in candidates}) > 1:
                each = ", ".join(
                    dict.fromkeys(
                        a[2] + (f" ({_at(n.frames[-1])})" if n.frames else "") for a, n in candidates
                    )
                )
                raise UsageError(f"{name!r} is called more than once: name one of {each}, or its line")
            if candidates:
                places = self._loops([address for address, _ in candidates])
                return Members(name, "node", places, "" if places else "it became no loop")
        return None

    def _loops(self, start: list[Address]) -> dict[Place, tuple[str, ...]]:
        """The loops of addresses: of a group its members, of all else those that compute what it became."""
        loop_names: dict[Place, set[str]] = {}
        for address in start:
            if address not in self.chain:
                continue
            stage = address[1]
            if stage.endswith(".groups"):
                reached = self.chain.up(address)
            elif stage.endswith(".code"):
                above = (a for a in self.chain.up(address) if a[1].endswith(".post_grad"))
                reached = tuple(loop for node in above for loop in self._computing(node))
            elif stage.endswith(".loops"):
                reached = (address,)
            else:
                lowered = [
                    a
                    for a in (address, *self.chain.descendants(address, derivatives=False))
                    if a[1].endswith(".post_grad")
                ]
                reached = tuple(loop for node in lowered for loop in self._computing(node))
            for where, at, loop in reached:
                if at.endswith(".loops"):
                    loop_names.setdefault((where, at.rpartition(".")[0]), set()).add(loop)
        return {
            place: tuple(n for n in self._graph(*place) if n in loop_names[place])
            for place in self.places
            if place in loop_names
        }

    def _computing(self, address: Address) -> list[Address]:
        """The loops that compute an ATen node.

        Inductor also counts it to the library call that takes its result, and counts the call's node to the
        loops that prepare its arguments: a call computes the node that it is named after, and no other that
        has a loop.
        """
        cid, stage, name = address
        below = [a for a in self.chain.down(address) if a[1].endswith(".loops")]
        nodes = {a: self._graph(cid, a[1].rpartition(".")[0])[a[2]] for a in below}
        calls = [a for a, n in nodes.items() if n.op in ("extern", "nop")]
        own = self._targets(cid, stage).get(name, "")
        if any(nodes[a].op == "extern" and _operator(nodes[a].target) == _operator(own) for a in calls):
            return calls
        return [a for a in below if a not in calls] or below

    def _graph(self, cid: str, phase: str) -> dict[str, Node]:
        if (cid, phase) not in self._loops_of:
            compilation = next(c for c in self.capture.compilations if c.id == cid)
            graph = compilation.graphs[f"{phase}.loops"]
            self._loops_of[cid, phase] = {path + node.name: node for path, node in walk(graph)}
        return self._loops_of[cid, phase]

    def _targets(self, cid: str, stage: str) -> dict[str, str]:
        if (cid, stage) not in self._targets_of:
            compilation = next(c for c in self.capture.compilations if c.id == cid)
            graph = compilation.graphs[stage]
            self._targets_of[cid, stage] = {path + node.name: node.target for path, node in walk(graph)}
        return self._targets_of[cid, stage]


def _at(frame: Frame) -> str:
    return f"{frame.file.rpartition('/')[2]}:{frame.line}"


def _operator(target: str) -> str:
    """``sort`` of ``aten.sort.stable``, ``mm`` of ``extern_kernels.mm``."""
    parts = target.split(".")
    return parts[-1] if len(parts) < 3 else parts[-2]
