"""Names the forward operators whose derivatives a part of the backward computes: ``sin``, or ``mul of line 7`` if
several lines have one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from compile_lens.measures import address
from compile_lens.measures.chain import Address, Chain, walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names

Whose = tuple[tuple[str, tuple[str, ...]], ...]
"""Operators of a kernel, each with the names of its forward operators."""

DERIVED = "made by autograd for a derivative"
"""Describes a call of the joint graph that is not in the program."""

MAX_NAMES = 3
"""Maximum names for one line."""


class Derivatives:
    """Names forward operators for the kernels of a capture."""

    def __init__(self, capture: Record) -> None:
        self._chain: Chain = Chain(capture)
        self._compilations = {c.id: c for c in capture.compilations}
        self._words: dict[str, dict[Address, str]] = {}

    def of(self, cid: str, kernel: Kernel) -> Whose:
        """Return the names for each operator of a backward kernel; nothing for other kernels."""
        if kernel.phase != "backward":
            return ()
        pairs = []
        for origin in kernel.origins:
            address = (cid, "backward.post_grad", origin)
            whose = self._chain.derivatives(address) if address in self._chain else ()
            words = self._of(cid)
            phrases = tuple(dict.fromkeys(words[a] for a in whose if a in words))
            if phrases:
                pairs.append((origin, phrases))
        return tuple(pairs)

    def made(self) -> Iterator[tuple[Address, tuple[str, ...]]]:
        """Yield each node of a joint graph made by autograd, with the names of the operators it differentiates."""
        for compilation in self._compilations.values():
            joint = compilation.graphs.get("joint")
            words = self._of(compilation.id)
            for path, node in walk(joint) if joint is not None else ():
                address = (compilation.id, "joint", path + node.name)
                if node.derivative:
                    yield (
                        address,
                        tuple(dict.fromkeys(words[a] for a in self._chain.up(address) if a in words)),
                    )

    def _of(self, cid: str) -> dict[Address, str]:
        if cid not in self._words:
            self._words[cid] = _words(self._compilations[cid])
        return self._words[cid]


def _words(compilation: Compilation) -> dict[Address, str]:
    """Return a name for each node of the graph before the joint graph."""
    joint = next((s for s in compilation.stages if isinstance(s, Graph) and s.key == "joint"), None)
    if joint is None or joint.before not in compilation.graphs:
        return {}
    nodes = {
        (compilation.id, joint.before, path + node.name): node
        for path, node in walk(compilation.graphs[joint.before])
        if node.op.startswith("call_")
    }
    lines: dict[str, set[int]] = {}
    for node in nodes.values():
        lines.setdefault(_operator(node), set()).update(f.line for f in node.innermost)
    return {address: _word(node, lines[_operator(node)]) for address, node in nodes.items()}


def _operator(node: Node) -> str:
    """Return ``sin`` for ``torch.sin`` and for a method of that name, ``scan`` for ``lib.scan.default``."""
    return address.function(node.target)


def _word(node: Node, lines: Collection[int]) -> str:
    """Return the operator, with its line if operators of this name have several lines."""
    places = [f" of line {frame.line}" for frame in node.innermost if len(lines) > 1]
    return _operator(node) + "".join(places)


def phrase(words: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return ``for the derivative of sin, mul``."""
    return f"for the derivative of {first_names(words, most)}" if words else ""


def of_names(whose: Whose, names: Collection[str]) -> tuple[str, ...]:
    """Return the distinct names for some operators of a kernel."""
    return tuple(dict.fromkeys(word for name, words in whose if name in names for word in words))
