"""Phases of compilations, with the names and addresses that findings use for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.measures.chain import Address
from compile_lens.measures.ledger import MODELLED, AtLeast, Figure
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph

from ..document import BYTES, MEMORY, Absence, Cell, Quantity, quantity
from ..words import quantities


@dataclass(frozen=True)
class Place:
    """One phase of one compilation; ``title`` names the compilation only if there are several."""

    compilation: Compilation
    phase: str
    title: str

    def at(self, stage: str, name: str) -> Address:
        """Return the address of an item in a lowered stage of the phase (``"loops"``)."""
        return self.compilation.id, f"{self.phase}.{stage}", name

    def graph(self, stage: str) -> Graph | None:
        """Return a graph of the phase, if it was seen."""
        return self.compilation.graphs.get(f"{self.phase}.{stage}")


def places(capture: Record) -> Iterator[Place]:
    """Yield all observed phases of all compilations."""
    for compilation in capture.compilations:
        for phase in compilation.phases:
            yield Place(compilation, phase, title(capture, compilation, phase))


def title(capture: Record, compilation: Compilation, key: str) -> str:
    """Return the name of a phase or stage, with the compilation if there are several."""
    return f"{compilation.id} {key}" if len(capture.compilations) > 1 else key


def memory_cell(nbytes: int | None) -> Cell:
    """Return modelled bytes of memory as a cell."""
    return Absence("bytes", "not known") if nbytes is None else Quantity(nbytes, MEMORY, MODELLED)


def bytes_cell(nbytes: int | AtLeast | None, what: str = "bytes") -> Cell:
    """Return modelled moved bytes as a cell."""
    return quantity(Figure(nbytes, MODELLED) if isinstance(nbytes, int) else nbytes, BYTES, what)


def in_memory(nbytes: int | None) -> str:
    """Return modelled bytes of memory as text, ``~4.2 MiB``; a dash if unknown."""
    return quantities.printed(memory_cell(nbytes))


def size(nbytes: int | AtLeast | None) -> str:
    """Return modelled moved bytes as text, ``~4.2 MB``; a dash if unknown."""
    return quantities.printed(bytes_cell(nbytes))
