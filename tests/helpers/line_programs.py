"""Functions of several lines, of which one line at a time is changed to observe which kernel lines change with it.

``line_programs.txt`` contains them: a name, the shapes of the arguments, and lines. A line is written as
``name = expression | another | without``: the same with another operator, and (where nothing else depends on it)
without its operator.
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from compile_lens.results.capture import Capture

FIRST = 2
"""Line number of a program's first statement in its file."""


@dataclass(frozen=True)
class Program:
    """A function of tensors ``x``, ``y``, … of these shapes, all of which require a gradient."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    lines: tuple[str, ...]

    @classmethod
    def read(cls, block: str) -> Program:
        """Return the program that a block of the file describes."""
        head, *lines = block.splitlines()
        name, _, shapes = head.partition(": ")
        sizes = tuple(tuple(int(size) for size in shape.split("×")) for shape in shapes.split(", "))
        return cls(name, sizes, tuple(line.strip() for line in lines))

    def choices(self) -> Iterator[tuple[int, int]]:
        """Yield the position of each line with alternatives, and the number of each alternative."""
        for position, line in enumerate(self.lines):
            for choice in range(1, line.count(" | ") + 1):
                yield position, choice

    def args(self) -> tuple[torch.Tensor, ...]:
        """Return arguments for a call."""
        return tuple(torch.full(shape, 0.5, requires_grad=True) for shape in self.shapes)

    def build(self, position: int = -1, choice: int = 0) -> Callable[..., Any]:
        """Return the function, with the line at ``position`` replaced by its alternative ``choice``."""
        head = f"def program({', '.join('xyzw'[: len(self.shapes)])}):"
        body = [_chosen(line, choice if i == position else 0) for i, line in enumerate(self.lines)]
        text = "\n".join([head, *(f"    {line}" for line in body), ""])
        file = f"/programs/{self.name} {position} {choice}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        space: dict[str, Any] = {"torch": torch, "F": F}
        exec(compile(text, file, "exec"), space)
        made: Callable[..., Any] = space["program"]
        return made


def _chosen(line: str, choice: int) -> str:
    head, _, rest = line.partition(" = ") if not line.startswith("return ") else ("return", "", line[7:])
    choices = rest.split(" | ")
    return f"{head} {choices[choice]}" if head == "return" else f"{head} = {choices[choice]}"


@dataclass(frozen=True)
class Written:
    """A line of a kernel that computes, without its numbers: the program lines that it leads to, and those of the
    forward ops of which it is the gradient."""

    phase: str
    text: str
    lines: frozenset[int]
    derivatives: frozenset[int]
    shown: str


MOVES = re.compile(
    r"^if |loadu|tl\.load\(|tl\.store\(|\.store\(|^(auto \w+ = )?(static_cast<\w+>\()?(in|out|in_out)_ptr\d+\["
)
"""Lines that only load or store a value; their presence depends on the value's other readers."""


def written(found: Capture) -> list[Written]:
    """Return the lines of a capture's kernels that contain a temporary, without loads and stores."""
    lines = []
    for compilation in found.compilations:
        for phase, code in compilation.code.items():
            for kernel in code.kernels:
                for number, text in enumerate(kernel.source.splitlines(), 1):
                    if "tmp" in text and not MOVES.search(text.strip()):
                        address = (compilation.id, code.key, f"{kernel.name}:{number}")
                        own, whose = _lines(found, address)
                        lines.append(Written(phase, _bare(text), own, whose, text.strip()))
    return lines


def _lines(found: Capture, address: tuple[str, str, str]) -> tuple[frozenset[int], frozenset[int]]:
    chain = found.chain
    if address not in chain:
        return frozenset(), frozenset()
    whose = (frame.line for above in chain.derivatives(address) for frame in chain.lines(above))
    return frozenset(frame.line for frame in chain.lines(address)), frozenset(whose)


def _bare(text: str) -> str:
    text = re.sub(r"(tmp|acc|_ptr|welford|per|helper|recps|weight)\w*?\d+\w*", r"\1", text.strip())
    return re.sub(r", eviction_policy='\w+'", "", text)


def faults(first: list[Written], second: list[Written], line: int, without: bool) -> tuple[list[str], int]:
    """Return the faults in the links of ``first`` (``second`` differs from it in one line), and how many lines changed.

    If the other capture has a text fewer times, the line causes it, so that many of its lines have to lead to it.
    ``without`` the line, its derivative and everything recomputed for it are gone as well; then every kernel line that
    leads to the line alone has to be gone.
    """
    found = []
    changed = 0
    there, elsewhere = _counts(first), _counts(second)
    for (phase, text), count in there.items():
        lines = [w for w in first if (w.phase, w.text) == (phase, text)]
        gone = count - elsewhere[phase, text]
        changed += max(gone, 0)
        linked = sum(line in w.lines or (without and line in w.derivatives) for w in lines)
        if gone > linked:
            found.append(
                f"{phase}: {gone} of {count} changed with line {line}, {linked} lead to it: {lines[0].shown}"
            )
        alone = sum(w.lines == {line} and w.derivatives <= {line} for w in lines)
        if without and alone > max(gone, 0):
            found.append(
                f"{phase}: {alone} of {count} lead to line {line} alone, {gone} went with it: {lines[0].shown}"
            )
        for w in lines:
            if not w.lines:
                found.append(f"{phase}: computes and leads to no line: {w.shown}")
    return found, changed


def _counts(lines: list[Written]) -> Counter[tuple[str, str]]:
    return Counter((w.phase, w.text) for w in lines)


def _blocks() -> list[str]:
    text = (Path(__file__).parent / "line_programs.txt").read_text("utf-8")
    return re.split(r"\n(?=\S)", text.strip())


PROGRAMS = [Program.read(block) for block in _blocks()]
