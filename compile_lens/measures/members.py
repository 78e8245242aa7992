"""Members of a fusion question: the loops of a kernel, an ATen node, a group or a Python line, in each graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from compile_lens.errors import UsageError
from compile_lens.measures.address import FORMS, function
from compile_lens.measures.chain import PYTHON, Address, Chain, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.graph import Node
from compile_lens.record.kernel import Kernel

Place = tuple[str, str]
"""A compile id and a phase."""


Subject = Kernel | Address | str | int
"""An item that ``capture.why`` accepts."""


@dataclass(frozen=True)
class Members:
    """A requested item: its name, and its loops by place, in record order.

    ``kind`` is ``kernel``, ``line`` or ``node``; ``note`` says why there is no loop. ``nodes`` are, by place, the nodes
    with a name: if there are several, the name is ambiguous.
    """

    name: str
    kind: str
    places: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""
    nodes: dict[Place, tuple[Address, ...]] = field(default_factory=dict)


def resolve(
    capture: Record, a: Subject, b: Subject, phase: str = ""
) -> tuple[Members, Members, tuple[Place, ...]]:
    """Return the members of ``a`` and ``b``, and the places that contain both (possibly none).

    A name of several calls means the one in the graphs of the other item. Raise ``UsageError`` for an unknown or
    ambiguous item.
    """
    finder = _Finder(capture)
    one, two = finder.both(a, b, phase)
    common = [place for place in finder.places if place in one.places and place in two.places]
    if phase:
        selected = finder.of_phase(finder.places, phase)
        if not selected and finder.loops_missing and finder.of_phase(finder.phases, phase):
            return one, two, ()
        if not selected:
            raise UsageError(f"phase {phase!r} is not in this capture, which has {_listed(finder.places)}")
        common = [place for place in common if place in selected]
        if not common:
            here = "; ".join(f"{m.name} is in {_listed(m.places) or 'none'}" for m in (one, two))
            raise UsageError(f"phase {phase!r} does not hold both: {here}")
    for thing in (one, two):
        finder.check(thing, common, phase)
    return one, two, tuple(common)


def _listed(places: Iterable[Place]) -> str:
    return ", ".join(f"{cid} {phase}" for cid, phase in places)


def _shortest(common: list[Place], every: list[Place]) -> str:
    cid, phase = common[0]
    return phase if sum(p[1] == phase for p in every) == 1 else f"{cid} {phase}"


def unseen_loops(capture: Record) -> str:
    """Return why the loops of a phase are not in the record; ``""`` if none are missing."""
    return next(
        (m.message for c in capture.compilations for m in c.missing if m.stage.endswith(".loops")), ""
    )


class _Finder:
    """Lookup of names in one capture."""

    def __init__(self, capture: Record) -> None:
        self.capture = capture
        self.chain: Chain = Chain(capture)
        self.addresses = self.chain.addresses()
        self._loops_of: dict[Place, dict[str, Node]] = {}
        self._targets_of: dict[Place, dict[str, str]] = {}
        self.places = [
            (c.id, phase) for c in capture.compilations for phase in PHASES if f"{phase}.loops" in c.graphs
        ]
        stages = ("", ".post_grad", ".loops", ".groups")
        self.phases = [
            (c.id, phase)
            for c in capture.compilations
            for phase in PHASES
            if any(phase + stage in c.graphs for stage in stages)
        ]
        self.loops_missing = unseen_loops(capture)

    @staticmethod
    def of_phase(places: Iterable[Place], phase: str) -> list[Place]:
        """Return the places that a caller's ``phase`` names: ``forward``, or ``0/0 forward``."""
        return [place for place in places if phase in (place[1], f"{place[0]} {place[1]}")]

    def both(self, a: Subject, b: Subject, phase: str) -> tuple[Members, Members]:
        """Return the members of two items; one that is ambiguous alone is looked up in the graphs of the other."""
        subjects, members, errors = (a, b), dict[int, Members](), dict[int, UsageError]()
        for number, what in enumerate(subjects):
            try:
                members[number] = self.find(what)
            except UsageError as error:
                errors[number] = error
        for number, reason in errors.items():
            other = members.get(1 - number)
            within = (
                self.of_phase(self.places, phase)
                if phase
                else list(other.places)
                if other is not None
                else []
            )
            if not within or not isinstance(subjects[number], str):
                raise reason
            members[number] = self.find(subjects[number], within)
        return members[0], members[1]

    def find(self, what: Subject, within: Collection[Place] | None = None) -> Members:
        """Return the members of an item; of a name, as the first of: kernel, line, node, loop, group.

        ``within`` restricts kernels to these places.
        """
        if isinstance(what, Kernel):
            return self._kernels(what.name, self._owners(what))
        if isinstance(what, int) and not isinstance(what, bool):
            return self._at(f"line {what}", (self.chain.texts.line("", what),))
        if isinstance(what, tuple):
            return self._address(self.chain.known(what)[0])
        if not isinstance(what, str):
            raise UsageError(
                f"{what!r} is no kernel, name or line: give a Kernel, a name such as 'add', {FORMS}, or a line number"
            )
        kernels = [
            (cid, k)
            for cid, k in self._all_kernels()
            if k.name == what and (within is None or (cid, k.phase) in within)
        ]
        if kernels:
            self._check_kernel(what, within)
            return self._kernels(what, kernels)
        return self._at(what, self.chain.find(what)) if self.chain.texts.is_form(what) else self._named(what)

    def _check_kernel(self, name: str, within: Collection[Place] | None) -> None:
        """Raise ``UsageError`` for the bare name of a function that is called more than once, in any graphs."""
        calls = [
            (cid, kernel)
            for cid, kernel in self._all_kernels()
            if kernel.name.partition("#")[0] == name and (within is None or (cid, kernel.phase) in within)
        ]
        if len({kernel.name for _, kernel in calls}) < 2:
            return
        texts, lines = [], []
        for cid, kernel in calls:
            address = (cid, f"{kernel.phase}.code", kernel.name)
            alone = sum(kernel.name == other.name for _, other in calls) == 1 and kernel.name != name
            texts.append(repr(kernel.name if alone else address))
            lines += [str(frame) for frame in self.chain.lines(address, derivatives=False)[:1]]
        where = f"; they come from, in this order: {'; '.join(lines)}" if len(lines) == len(texts) else ""
        raise UsageError(f"{name!r} is called more than once: give one of {', '.join(texts)}{where}")

    def check(self, thing: Members, common: list[Place], phase: str) -> None:
        """Raise ``UsageError`` if a name means several nodes of the graphs in question or, without a selected phase,
        nodes of different lines in different functions."""
        near = {place: thing.nodes[place] for place in common or thing.nodes if place in thing.nodes}
        several = any(len(nodes) > 1 for nodes in near.values())
        nodes = tuple(node for nodes in near.values() for node in nodes) if several else ()
        if not nodes and not phase:
            of_function = {
                cid.partition("/")[0]: nodes[0] for (cid, _), nodes in reversed(thing.nodes.items())
            }
            several = len(set(map(self.chain.texts.line_of, of_function.values()))) > 1
            nodes = tuple(reversed(of_function.values())) if several else ()
        if nodes:
            texts = [repr(text) for text in self.chain.texts.distinct(nodes, thing.name)]
            some = ", ".join(texts[:20]) + (", …" if len(texts) > 20 else "")
            single = [place for place, nodes in near.items() if len(nodes) == 1 and several]
            pick = f", or pick a graph with phase={_shortest(single, self.places)!r}" if single else ""
            raise UsageError(f"{thing.name!r} is a name of several nodes: give one of {some}{pick}")

    def _all_kernels(self) -> list[tuple[str, Kernel]]:
        """Return the kernels of the capture, each with its compile id."""
        return [
            (c.id, k) for c in self.capture.compilations for code in c.code.values() for k in code.kernels
        ]

    def _address(self, address: Address) -> Members:
        """Return the members of an address."""
        cid, stage, name = address
        if stage.endswith(".code") and ":" not in name:
            phase = stage.rpartition(".")[0]
            return self._kernels(
                name, [(c, k) for c, k in self._all_kernels() if (c, k.phase, k.name) == (cid, phase, name)]
            )
        return self._at(name, (address,))

    def _owners(self, kernel: Kernel) -> list[tuple[str, Kernel]]:
        every = self._all_kernels()
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

    def _at(self, name: str, addresses: tuple[Address, ...]) -> Members:
        """Return the members of a line, or of a call or a node at one."""
        kind = "line" if any(a[1] == PYTHON for a in addresses) else "node"
        places = self._loops(list(addresses))
        return Members(name, kind, places, "" if places else self.loops_missing or "it became no loop")

    def _named(self, name: str) -> Members:
        """Return the members of a name: that of a node, or of an operator or function that nodes call.

        In each graph that is one node, by its name in the last stage, or several that make the name ambiguous:
        if one stage has several nodes of the name, or two stages use it for different nodes.
        """
        places: dict[Place, tuple[str, ...]] = {}
        nodes: dict[Place, tuple[Address, ...]] = {}
        for place in self.phases:
            matches = self._matches(*place, name)
            if matches:
                nodes[place] = matches
                loop_names = self._loops([*matches]).get(place)
                if loop_names:
                    places[place] = loop_names
        if not nodes:
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
        note = (
            "" if places else self.loops_missing or "it became no loop: an input, a view, or optimised away"
        )
        return Members(name, "node", places, note, nodes)

    def _matches(self, cid: str, phase: str, name: str) -> tuple[Address, ...]:
        """Return the nodes of one graph with a name or a callee of that name: one, or several different ones.

        In a backward its own nodes come first: the program's ``mul`` also has a product there.
        """
        program, joint = ("dynamo", "pre_grad"), ("joint",)
        own = (phase, f"{phase}.post_grad", f"{phase}.loops", f"{phase}.groups")
        for stages in (own, joint, program) if phase == "backward" else ((*program, *own), joint):
            by_stage = [self._of_stage(cid, stage, name) for stage in stages]
            matches = [match for of_stage in by_stage for match in of_stage]
            above = {match: self.chain.ancestors(match) for match in matches}
            distinct = tuple(m for m in matches if set(matches).isdisjoint(above[m]))
            if len(distinct) == 1:
                several = next((of_stage for of_stage in by_stage if len(of_stage) > 1), None)
                return tuple(several or matches[-1:])
            if distinct:
                return distinct
        return ()

    def _of_stage(self, cid: str, stage: str, name: str) -> list[Address]:
        """Return the nodes of a stage with a name; before Inductor's loops also those with a callee of that name."""
        compilation = next(c for c in self.capture.compilations if c.id == cid)
        graph = compilation.graphs.get(stage)
        selected = "" if stage.endswith((".loops", ".groups")) else function(name)
        return [
            (cid, stage, path + node.name)
            for path, node in (walk(graph) if graph is not None else ())
            if path + node.name == name or (node.op.startswith("call") and selected == function(node.target))
        ]

    def _loops(self, start: list[Address]) -> dict[Place, tuple[str, ...]]:
        """Return the loops of addresses: of a group its members, of any other the loops that compute its nodes."""
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
        """Return the loops that compute an ATen node.

        Inductor also lists it among the origins of the library call that reads its result, and lists the call's node
        among those of the loops that prepare its arguments. A call computes only the node that it is named after, and
        nodes without a loop.
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


def _operator(target: str) -> str:
    """Return ``sort`` for ``aten.sort.stable``, ``mm`` for ``extern_kernels.mm``."""
    parts = target.split(".")
    return parts[-1] if len(parts) < 3 else parts[-2]
