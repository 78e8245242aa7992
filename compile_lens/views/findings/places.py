"""Phases of compilations, their names and the names of what is in them, as findings say them."""

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
    """One phase of one compilation; ``title`` names the compilation only where there are several."""

    compilation: Compilation
    phase: str
    title: str

    def at(self, stage: str, name: str) -> Address:
        """The address of something in one of its lowered stages (``"loops"``)."""
        return self.compilation.id, f"{self.phase}.{stage}", name

    def graph(self, stage: str) -> Graph | None:
        """One of its graphs, if it was seen."""
        return self.compilation.graphs.get(f"{self.phase}.{stage}")


def places(capture: Record) -> Iterator[Place]:
    """Every phase of every compilation that was seen."""
    for compilation in capture.compilations:
        for phase in compilation.phases:
            yield Place(compilation, phase, title(capture, compilation, phase))


def title(capture: Record, compilation: Compilation, key: str) -> str:
    """A phase or stage by name, with its compilation where there are several."""
    return f"{compilation.id} {key}" if len(capture.compilations) > 1 else key


def memory_cell(nbytes: int | None) -> Cell:
    """Modelled bytes of memory as a cell."""
    return Absence("bytes", "not known") if nbytes is None else Quantity(nbytes, MEMORY, MODELLED)


def bytes_cell(nbytes: int | AtLeast | None, what: str = "bytes") -> Cell:
    """Modelled bytes moved as a cell."""
    return quantity(Figure(nbytes, MODELLED) if isinstance(nbytes, int) else nbytes, BYTES, what)


def in_memory(nbytes: int | None) -> str:
    """Modelled bytes of memory, ``~4.2 MiB``; a dash for what is not known."""
    return quantities.printed(memory_cell(nbytes))


def size(nbytes: int | AtLeast | None) -> str:
    """Modelled bytes moved, ``~4.2 MB``; a dash for what is not known."""
    return quantities.printed(bytes_cell(nbytes))
