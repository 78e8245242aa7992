"""Chain of links between stages, both ways: Python line ↔ Dynamo ↔ ATen ↔ loop ↔ group ↔ kernel and its lines.

Links are read from the record (``origins``, ``members``, ``frames``), never guessed. They are many-to-many:
fusion maps n→1, decomposition 1→n, and a rematerialised operator is in two kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from compile_lens.errors import UsageError
from compile_lens.measures.address import FORMS, NO_WORK, AddressTexts
from compile_lens.measures.address import PYTHON as PYTHON
from compile_lens.measures.address import Address as Address
from compile_lens.measures.address import line_address as line_address
from compile_lens.measures.address import walk as walk
from compile_lens.measures.dead_ends import DeadEnd, DeadEnds
from compile_lens.measures.derivatives import Derivatives
from compile_lens.measures.links import kernel_lines as kernel_lines
from compile_lens.measures.links import links_of
from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names


class Chain:
    """The links of a capture. *Up* is towards the Python line, *down* towards the kernel.

    Every answer is in record order. The links are built once for a capture, in time proportional to their number,
    however many chains share them.

    An address is ``(compile id, stage, name)`` or a text, as the page copies it and ``str`` of a frame begins: a line
    (``"model.py:7"``), a call in one by its columns (``"model.py:7:11-23"``, on Python 3.11 and later), a name at a
    line (``"sin@7"``, ``"sin@model.py:7"``: of a node or of its callee), a kernel or a line of one, a module with
    its submodules (``"module:layers.3.attn"``). The end of a file's path is enough. A text means everything that it
    names in every compilation (``find``), and the answer covers all of these. An ambiguous text raises an error that
    lists a text for each possibility. Columns mean a call, and an input first used there if no call is or if a kernel
    copies the input to another layout.

    Autograd may need a value that the program computes anyway: if the forward saves ``sin(x)`` for its backward, one
    node is both the program's sine and the one for the derivative of ``cos(x)``, and both calls are above it.
    If the backward recomputes it (for ``sin(x) + cos(x)``), the forward's node is the program's alone.
    ``derivatives=False`` omits nodes of the joint graph and the forward that only the call's derivative needs; above a
    node of the forward it omits the ops whose gradient needs that node. It omits nothing of a backward, which exists
    for derivatives only (``derivatives`` names the ops).

    Every method that takes an address raises ``UsageError`` if the record has no such node.
    """

    def __init__(self, capture: Record) -> None:
        self._links = links_of(capture)
        self._ends = DeadEnds(capture, self._links.down)
        self._derivatives = Derivatives(capture, self._links.up)

    def addresses(self) -> tuple[Address, ...]:
        """Return all addresses: nodes by stage, kernels, lines of kernels, then Python lines."""
        links = self._links
        return (*links.nodes, *links.kernels, *links.code_lines, *links.lines)

    def find(self, text: str) -> tuple[Address, ...]:
        """Return the addresses that a text names (see ``compile_lens.measures.address``): for a call in a line the
        nodes traced from it, in all compilations. Raise ``UsageError`` if the text is unknown or ambiguous."""
        return self.texts.find(text)

    @cached_property
    def texts(self) -> AddressTexts:
        """Texts for addresses in this capture."""
        links = self._links
        inputs = [address for address in links.framed if links.nodes[address].op in NO_WORK]
        copied = {a for a in inputs if not links.kernels.keys().isdisjoint(_reach(links.down, [a]))}
        return AddressTexts(links.nodes, links.kernels, links.code_lines, links.lines, links.framed, copied)

    def __contains__(self, address: object) -> bool:
        links = self._links
        if isinstance(address, str):
            return address in self.texts
        return (
            address in links.nodes
            or address in links.kernels
            or address in links.code_lines
            or address in links.lines
        )

    def links(self) -> Iterator[tuple[Address, Collection[Address]]]:
        """Yield each address of ``addresses()``, in that order, with the addresses that it directly came from.

        Faster than calling ``up`` for many addresses.
        """
        for address in self.addresses():
            yield address, self._links.up.get(address, _NO_LINKS).keys()

    def up(self, address: Address | str, derivatives: bool = True) -> tuple[Address, ...]:
        """Return the addresses that this one directly came from."""
        links, known = self._links, self.known(address)
        steps = ((at, to) for at in known for to in links.up.get(at, ()))
        return _unique(
            to for at, to in steps if derivatives or not (to in links.derived and _phase(at) == "forward")
        )

    def down(self, address: Address | str, derivatives: bool = True) -> tuple[Address, ...]:
        """Return the addresses that this one directly became."""
        links, known = self._links, self.known(address)
        steps = ((at, to) for at in known for to in links.down.get(at, ()))
        return _unique(to for at, to in steps if derivatives or not self._for_derivative(at, to))

    def _for_derivative(self, above: Address, below: Address) -> bool:
        """Return True if ``below`` exists for a derivative of ``above``, or serves one."""
        derived = self._links.derived
        return _phase(below) == "forward" if above in derived else below in derived

    def ancestors(self, address: Address | str, derivatives: bool = True) -> tuple[Address, ...]:
        """Return all addresses that this one came from, nearest first, without itself; then, for a line of a kernel,
        the kernel, and its loop and group if they alone compute the line's nodes."""
        known = self.known(address)
        return self._beside(known, self._above(known, derivatives), below=False)

    def descendants(self, address: Address | str, derivatives: bool = True) -> tuple[Address, ...]:
        """Return all addresses that this one became, nearest first, without itself; then its lines (``ancestors``)."""
        known = self.known(address)
        return self._beside(known, self._below(known, derivatives), below=True)

    def beside(self, address: Address | str) -> tuple[Address, ...]:
        """Return what contains a line of a kernel, and for a loop, a group or a kernel the lines in it.
        This is containment, not a step of the chain: a line serves only some of a loop's nodes."""
        return _unique(to for at in self.known(address) for to in self._links.places.get(at, ()))

    def _beside(
        self, start: Sequence[Address], reached: Sequence[Address], below: bool
    ) -> tuple[Address, ...]:
        lines = self._links.code_lines
        placed = (to for at in start if (at in lines) != below for to in self.beside(at))
        if below:
            reached = (*reached, *self._readers_of_constants(start, reached))
        return tuple(address for address in _unique((*reached, *placed)) if address not in start)

    def _readers_of_constants(self, start: Sequence[Address], reached: Sequence[Address]) -> list[Address]:
        """Return the readers of a merged constant that is in ``start``, or that one of ``start`` became as a whole:
        the readers are linked only to the parts that they use."""
        constants = self._links.constants
        readers: list[Address] = []
        for one in (*start, *reached) if constants else ():
            above: Collection[Address] = (one,)
            while one in constants and len(above) == 1 and (at := next(iter(above))) not in start:
                above = self._links.up.get(at, _NO_LINKS)
            if one in constants and len(above) == 1:
                readers += constants[one]
        return readers

    def lines(self, of: Kernel | Address | str, derivatives: bool = True) -> tuple[Frame, ...]:
        """Return the innermost user frames that a kernel or node came from, by file and line.

        A frame of torch counts only for a node that has no other. Nodes that exist only for derivatives have the
        lines of their forward ops, also without ``derivatives``.
        Empty if the chain does not reach Python (``why_not`` says where it ends).
        """
        if isinstance(of, Kernel):
            return self._frames(self._links.uses[self._position(of)], derivatives)
        lines_in_order: dict[Frame, None] = {}
        for one in self.known(of):
            if one[1] == PYTHON:
                start = [a for a in self._links.down.get(one, ()) if self._innermost(a) == one]
                frames = [f for f in self._frames(start) if line_address(f.file, f.line) == one]
            else:
                frames = list(self._frames([one], derivatives))
            lines_in_order.update(dict.fromkeys(frames))
        return _in_order(lines_in_order)

    def _frames(self, start: Sequence[Address], derivatives: bool = True) -> tuple[Frame, ...]:
        own_frames: dict[Frame, None] = {}
        for address in (*start, *self._above(start, derivatives)):
            if address in self._links.framed:
                own_frames.update(dict.fromkeys(self._links.nodes[address].innermost))
        return _in_order(own_frames) if own_frames or derivatives else self._frames(start)

    def _above(self, start: Sequence[Address], derivatives: bool) -> tuple[Address, ...]:
        whole, derived = _reach(self._links.up, start), self._links.derived
        forward = [address for address in start if _phase(address) == "forward"]
        if derivatives or not forward or derived.isdisjoint(whole):
            return whole
        rest = [address for address in start if _phase(address) != "forward"]
        own = {*_reach(self._links.up, forward, derived), *_reach(self._links.up, rest)}
        return tuple(address for address in whole if address in own)

    def _below(self, start: Sequence[Address], derivatives: bool) -> tuple[Address, ...]:
        whole, derived = _reach(self._links.down, start), self._links.derived
        if derivatives or derived.isdisjoint((*start, *whole)):
            return whole
        own = {*_reach(self._links.down, [a for a in start if a not in derived], derived)}
        return tuple(address for address in whole if address in own or _phase(address) == "backward")

    def derivatives(self, of: Address | str) -> tuple[Address, ...]:
        """Return the ops whose derivative a node of the joint graph, or anything of a backward down to a line of a
        kernel, exists for: nodes before the joint graph.

        Values that the backward recomputes exist for the derivatives that read them. Empty for all other addresses.
        """
        return tuple(dict.fromkeys(a for one in self.known(of) for a in self._derivatives.of(one)))

    def kernels(
        self, file: Address | str, line: int | None = None, derivatives: bool = True
    ) -> tuple[Kernel, ...]:
        """Return the kernels that a Python line became, itself or through the functions it calls, in record order.

        ``kernels("/home/ada/model.py", 7)``, or an address alone: ``kernels("model.py:7:11-23")``. Empty for a line
        without tensor work, or whose work was optimised away. Raise ``UsageError`` for a file that is not in the
        record.
        """
        if line is None:
            start = self.known(file)
        elif not isinstance(file, str) or file not in self._links.files:
            some = first_names(map(repr, self._links.files)) or "none"
            raise UsageError(f"the record has no file {file!r}; it has {some}")
        else:
            start = (line_address(file, line),)
        reached = {*start, *self._below(start, derivatives)}
        every = zip(self._links.every, self._links.uses, strict=True)
        # A kernel is not among the addresses that it came from.
        return tuple(
            kernel
            for kernel, uses in every
            if not reached.isdisjoint(uses) or any(self._links.kernels.get(a) is kernel for a in start)
        )

    def why_not(self, address: Address | str) -> str:
        """Return why the chain ends at an address: why nothing is above it, or else why nothing is below it; ``""`` if
        it goes on both ways, or has reached the generated code.

        For a text with several addresses, ``""`` if the chain goes on at one of them, else the reason for each.
        """
        reasons = dict.fromkeys(self._why_not(one) for one in self.known(address))
        return "" if "" in reasons else "; ".join(reasons)

    def _why_not(self, address: Address) -> str:
        links = self._links
        above = links.up.get(address) or address[1] == PYTHON
        if address in links.constants:
            return ""
        if above and not links.down.get(address) and not address[1].endswith(".code"):
            return str(self._ends.why(address))
        if links.up.get(address):
            return ""
        if address[1] == PYTHON:
            return "a Python line is where the chain starts"
        item = links.nodes.get(address) or links.kernels.get(address) or links.code_lines[address]
        reason = item.no_origin or links.lost.get(address, "")
        return reason or "the record names no origin and no source line for it"

    def end(self, address: Address | str) -> DeadEnd:
        """Return why nothing came of a Python line or a node; for several addresses, of the first without a result."""
        known = self.known(address)
        return self._ends.why(next((a for a in known if not self._links.down.get(a)), known[0]))

    def leading(self) -> Collection[Address]:
        """Return all addresses that lead to a kernel, without the kernels."""
        start = dict.fromkeys(address for uses in self._links.uses for address in uses)
        start |= dict.fromkeys(self._links.constants)
        return {*start, *_reach(self._links.up, start)}

    def _innermost(self, address: Address) -> Address:
        (frame,) = self._links.nodes[address].innermost
        return line_address(frame.file, frame.line)

    def _position(self, kernel: Kernel) -> int:
        every = self._links.every
        for position, known in enumerate(every):
            if known is kernel:
                return position
        if kernel in every:  # an equal kernel, from a copy of the record
            return every.index(kernel)
        names = ", ".join(dict.fromkeys(k.name for k in every)) or "none"
        raise UsageError(f"kernel {kernel.name!r} is not one of this capture, which has {names}")

    def known(self, address: Address | str) -> tuple[Address, ...]:
        """Return the addresses of a text, or an address in a tuple; raise ``UsageError`` if the record has none."""
        if isinstance(address, str):
            return self.find(address)
        links = self._links
        if not (isinstance(address, tuple) and list(map(type, address)) == [str] * 3):
            kernels = ", ".join(dict.fromkeys(k.name for k in links.every)) or "none"
            raise UsageError(
                f"{address!r} is neither a kernel nor an address, as (compile id, stage, name): give one of "
                f"capture.kernels ({kernels}), of capture.chain.addresses(), or a text: {FORMS}"
            )
        if address in links.nodes or address in links.kernels or address in links.code_lines:
            return (address,)
        if address[1] == PYTHON:
            return (address,)
        compile_id, stage, name = address
        if (compile_id, stage) in links.missing:
            raise UsageError(
                f"stage {stage!r} of {compile_id} was not seen: {links.missing[compile_id, stage]}"
            )
        names = [a[2] for a in links.nodes if a[:2] == (compile_id, stage)]
        names += [a[2] for a in links.kernels if a[:2] == (compile_id, stage)]
        if names:
            some = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            raise UsageError(f"stage {stage!r} of {compile_id} has no {name!r}; it has {some}")
        stages = ", ".join(dict.fromkeys(f"{a[0]} {a[1]}" for a in (*links.nodes, *links.kernels))) or "none"
        raise UsageError(f"the capture has no stage {stage!r} of {compile_id!r}; it has {stages}")


_NO_LINKS: dict[Address, None] = {}


Edges = Mapping[Address, Collection[Address]]


def _unique(addresses: Iterable[Address]) -> tuple[Address, ...]:
    return tuple(dict.fromkeys(addresses))


def _phase(address: Address) -> str:
    return address[1].partition(".")[0]


def _in_order(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    return tuple(
        sorted(frames, key=lambda f: (f.file, f.line, f.column is not None, f.column or 0, f.function))
    )


def _reach(edges: Edges, start: Iterable[Address], without: Collection[Address] = ()) -> tuple[Address, ...]:
    """Return everything reachable from ``start``, breadth first, without ``start`` and never through ``without``."""
    begin = dict.fromkeys(start)
    seen = dict(begin)
    queue = list(begin)
    for address in queue:
        for following in edges.get(address, ()):
            if following not in seen and following not in without:
                seen[following] = None
                queue.append(following)
    return tuple(a for a in seen if a not in begin)
