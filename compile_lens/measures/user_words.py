"""Names of loops, groups and buffers in the words of the program: expressions, lines, inputs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from compile_lens.record.capture import Record
from compile_lens.record.comparison import place
from compile_lens.record.graph import Frame
from compile_lens.record.messages import all_names

from .address import Address
from .chain import Chain
from .input_names import InputNames, input_names
from .links import unknown_node_origins

MAX_CHARACTERS = 60
"""Longest expression in characters; a longer one is cut."""

A_PART = "a part of "
"""Prefix for code whose line is known but not its expression, as on Python 3.10."""

BACKWARD_OF = "the backward of "
"""Prefix for code that computes the derivative of an expression; with respect to which input is not known."""

RECOMPUTED = "the recomputation of "
"""Prefix for code of a backward that computes an expression of the forward again."""

SEEDS_OF = "the draw of random seeds for "
"""Begins the words for a call that draws seeds: what they are for is generated from them elsewhere."""

MORE = re.compile(r" and (at least )?[\d,]+ more( lines?)?$")
"""End of the words for several expressions."""

_DRAWS_SEEDS = "prims.inductor_seed"

_TOUCHED = re.compile(r"(?<=both touch )[^;]+")
"""The buffers in the evidence of a decision."""


class UserWords:
    """Names in one phase of one compilation. An item that reaches no line keeps its own name."""

    def __init__(self, capture: Record, compilation: str, phase: str) -> None:
        self._at = (compilation, phase)
        self._chain = Chain(capture)
        self._names: InputNames = input_names(capture)
        self._groups: dict[str, str] = {}
        self._origins_unknown = bool(unknown_node_origins(capture))
        self._joint_unknown = phase == "backward" and any(
            gap.stage == "joint" for c in capture.compilations if c.id == compilation for gap in c.missing
        )
        nodes = {
            stage: {node.name: node for node in graph.nodes}
            for c in capture.compilations
            for stage in (f"{phase}.post_grad", f"{phase}.loops", f"{phase}.groups")
            if c.id == compilation and (graph := c.graphs.get(stage)) is not None
        }
        aten, loops, groups = (
            nodes.get(f"{phase}.{stage}", {}) for stage in ("post_grad", "loops", "groups")
        )
        self._inputs = {name: node.inputs for name, node in loops.items()}
        draws = {name for name, node in aten.items() if node.target.startswith(_DRAWS_SEEDS)}
        of_seeds = {name for name, node in loops.items() if node.origins and draws.issuperset(node.origins)}
        self._seeds = {
            *of_seeds,
            *(name for name, node in groups.items() if node.members and of_seeds.issuperset(node.members)),
        }

    def group(self, name: str) -> str:
        """Return the code that a group computes: "`torch.softmax(q @ k, -1)` (t.py:6)"; its own name if not known."""
        if name not in self._groups:
            self._groups[name] = self.of([self._address("groups", name)]) or name
        return self._groups[name]

    def groups(self, names: Collection[str]) -> str:
        """Return the code that several groups compute; ``""`` if no line is known."""
        return self.of([self._address("groups", name) for name in names])

    def frame(self, names: Collection[str]) -> Frame | None:
        """Return the line named in the words for several groups; None if no line is known."""
        frames = self._frames(
            address for name in names if (address := self._address("groups", name)) in self._chain
        )
        return max(frames, key=_last) if frames else None

    def loops(self, names: Collection[str]) -> str:
        """Return the code that several loops compute; ``""`` if no line is known."""
        return self.of([self._address("loops", name) for name in names])

    def in_loops(self, names: Collection[str]) -> str:
        """Return one loop with its code, or the number of several loops; their names if no line is known."""
        words = self.loops(names)
        if not words:
            return ", ".join(names)
        (first, *more) = names
        return f"{len(names)} loops, of {words}" if more else f"{first}, the loop of {words}"

    def evidence(self, text: str) -> str:
        """Return the evidence of a decision with its buffers as code of the program."""
        return _TOUCHED.sub(lambda match: self.buffers(match[0].split(", ")), text)

    def buffers(self, names: Collection[str]) -> str:
        """Return the values in buffers: inputs by name, others by the code that computes them."""
        return all_names(dict.fromkeys(map(self._buffer, names)), 3)

    def _buffer(self, name: str) -> str:
        given = self._names.of(self._at[0], f"{self._at[1]}.post_grad", name)
        if given is not None:
            return f"`{given.name}`"
        words = self.of([self._address("loops", name)])
        if words.startswith(SEEDS_OF):
            return words.replace(SEEDS_OF, "the random seeds for ", 1)
        if words:
            return f"a value in {words}" if words.startswith((BACKWARD_OF, RECOMPUTED)) else words
        reads = [
            self._names.of(self._at[0], f"{self._at[1]}.post_grad", one) for one in self._inputs.get(name, ())
        ]
        sources = all_names(f"`{one.name}`" for one in reads if one is not None)
        return f"{name}, made from {sources}" if sources else name

    def of(self, addresses: Iterable[Address]) -> str:
        """Return the last, outermost expression with its line and the number of others; ``""`` if there is none."""
        known = [address for address in addresses if address in self._chain]
        derived, computed = self._joint_nodes(known)
        frames = self._frames(derived or known)
        if not frames:
            return ""
        last = max(frames, key=_last)
        fewer = "at least " if self._origins_unknown else ""  # nodes without a known line are not counted
        count = len(frames) - 1
        lines = "" if last.call else " line" if count == 1 else " lines"
        more = f" and {fewer}{count} more{lines}" if count else ""
        name = f"{_expression(last)}{more}"
        if all(address[2] in self._seeds for address in known):
            name = f"{SEEDS_OF}{name}"
        if computed and not derived:
            return f"{RECOMPUTED}{name}"
        if any(self._chain.derivatives(address) for address in known):
            return f"{BACKWARD_OF}{name}"
        if self._joint_unknown:
            return f"{name}, or the backward of it: not known which"
        return name

    def _joint_nodes(self, addresses: Iterable[Address]) -> tuple[list[Address], list[Address]]:
        """Return the joint-graph nodes that a backward computes: those that autograd added, and those of the forward;
        nodes without a line are omitted."""
        if self._at[1] != "backward":
            return [], []
        above = dict.fromkeys(a for one in addresses for a in self._chain.ancestors(one) if a[1] == "joint")
        nodes = [a for a in above if self._frames([a])]
        derived = [a for a in nodes if self._chain.derivatives(a)]
        return derived, [a for a in nodes if a not in derived]

    def _frames(self, addresses: Iterable[Address]) -> Collection[Frame]:
        """Return the frames of code, each expression once."""
        frames: dict[tuple[str, str], Frame] = {}
        for address in addresses:
            for frame in self._chain.lines(address, derivatives=False):
                frames.setdefault((frame.file, frame.within), frame)
        return frames.values()

    def _address(self, stage: str, name: str) -> Address:
        return self._at[0], f"{self._at[1]}.{stage}", name


def _last(frame: Frame) -> tuple[int, int, int]:
    """Return a sort key that is largest for the last, outermost expression."""
    return frame.line, -(frame.column or 0), frame.end_column or 0


def _expression(frame: Frame) -> str:
    """Return the expression with its line, one that is cut with its columns, by which ``Chain`` finds it. Where it is
    not known, a part of the line, as on Python 3.10."""
    text = frame.expression.removeprefix("return ")
    at = place(frame.file, frame.line)
    short = text
    if len(text) > MAX_CHARACTERS:
        short, at = f"{text[: MAX_CHARACTERS - 1]}…", frame.address
    return f"{'' if frame.call else A_PART}`{short}` ({at})" if short else at
