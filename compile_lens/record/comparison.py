"""One function compiled for several targets: the kernels of each Python line, and why they differ. No torch needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .capture import Record
from .figures import ONE, AtLeast, Figure

KINDS = {
    "failed": "no code",
    "graphs": "other graphs",
    "operators": "other operators",
    "pattern": "a pass rewrote it",
    "library": "library call",
    "split": "split reduction",
    "fusion": "fusion",
    "unexplained": "not explained",
}
"""Kinds of differences in compiler order, each with a short title."""

UNEXPLAINED = "Not explained by what was seen."
"""Sentence of a difference that no fact of the records explains."""


@dataclass(frozen=True, repr=False)
class Column:
    """One target of a comparison: its capture, or why there is none.

    Attributes:
        target: the requested target (``"h100"``).
        capture: the capture for it; after a failure the observed part, if any.
        failure: why the capture failed, ``""`` if it did not.
        features: features of Inductor's backend for that device (``"SCAN"``, ``"SORT"``), by torch's own names;
            ``None`` if they could not be read.
    """

    target: str
    capture: Record | None = None
    failure: str = ""
    features: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"<Column {self.target}: {self.failure or repr(self.capture)}>"


@dataclass(frozen=True)
class Use:
    """One kernel in one cell.

    Attributes:
        compilation: compile id (``"0/0"``).
        name: the kernel's name; ``language`` and ``kind`` as in ``Kernel``.
        called: function of a library call, ``""`` for generated kernels.
        launches: how often one call of the compiled function launches it.
        nodes: ATen nodes of ``"<phase>.post_grad"`` of this row that it computes.
        lines: other Python lines that it also computes (``"model.py:7"``).
    """

    compilation: str
    name: str
    language: str
    kind: str
    called: str = ""
    launches: Figure | AtLeast = ONE
    nodes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """The kernels of one Python line in one phase, for one target.

    ``operators`` are the ATen operators that were handed to Inductor, in order; ``note`` says why there is no kernel.
    """

    target: str
    operators: tuple[str, ...] = ()
    kernels: tuple[Use, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One Python line in one phase, with a cell for each target that has code.

    ``file`` is ``""`` for operators without a known Python line. ``alike`` is True if the kernels of all targets agree:
    in number, lines, library calls and the number of separate loops.
    """

    phase: str
    file: str
    line: int
    text: str
    cells: tuple[Cell, ...]
    alike: bool

    @property
    def place(self) -> str:
        """The line as ``"model.py:7"``, without the folder."""
        return place(self.file, self.line)


@dataclass(frozen=True)
class Fact:
    """A fact from the record of a target; ``target`` is ``""`` for a fact about all."""

    target: str
    text: str

    def __str__(self) -> str:
        return f"{self.target}: {self.text}" if self.target else self.text


@dataclass(frozen=True)
class TargetDifference:
    """One way in which targets differ, and why.

    Attributes:
        kind: a key of ``KINDS``.
        phase: ``forward``, ``backward`` or ``inference``; ``""`` if it concerns the whole.
        places: the Python lines that it concerns (``"model.py:7"``).
        sentence: the difference in a plain sentence.
        facts: evidence from the records.
    """

    kind: str
    phase: str
    places: tuple[str, ...]
    sentence: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, repr=False)
class ComparisonRecord:
    """Result of ``compile_lens.compare``, as plain data.

    Attributes:
        function: name of the compared callable.
        columns: one for each target, in the requested order.
        rows: one for each phase and Python line, in program order.
        differences: where the targets differ, and why, by phase and line.
    """

    function: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    differences: tuple[TargetDifference, ...] = ()

    @property
    def captures(self) -> Mapping[str, Record]:
        """Captures by target, for the targets that did not fail."""
        return {c.target: c.capture for c in self.columns if c.capture is not None and not c.failure}

    @property
    def failures(self) -> dict[str, str]:
        """Reasons why targets have no code, by target."""
        return {c.target: c.failure for c in self.columns if c.failure}


def place(file: str, line: int) -> str:
    """Return a line as ``name.py:7``, without its folder."""
    name = file.replace("\\", "/").rpartition("/")[2] or file
    return f"{name}:{line}" if file else "no Python line"
