"""Short texts about single kernels: their kind and the values they compute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.messages import first_names

from . import labels
from .quantities import launched

HEAD = ("kernel", "what it is", "of", "launches", "memory traffic, modelled", "computes ← from")
"""Titles of ``Row.cells``."""


@dataclass(frozen=True)
class Row:
    """A kernel.

    Attributes:
        language: ``C++ pointwise``.
        where: its phase, after the compile id if several compilations have kernels.
        launches: ``1 launch``.
        size: modelled bytes read and written; ``""`` if unknown.
        computes: ``sin, pow_1 ← model.py:5``.
        again: values that other kernels also compute; ``""`` if none.
    """

    code: Code
    kernel: Kernel
    language: str
    where: str
    launches: str
    size: str
    computes: str
    again: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the row of a table with the titles ``HEAD``."""
        computes = f"{self.computes}; {self.again}" if self.again else self.computes
        return self.kernel.name, self.language, self.where, self.launches, self.size, computes


def rows(capture: Record) -> Iterator[Row]:
    """Yield the rows of all kernels of a capture, in order."""
    parts = [c for c in capture.compilations if c.code]
    origins = labels.Origins(capture) if parts else None
    for compilation in parts:
        for code in compilation.code.values():
            for kernel in code.kernels:
                assert origins is not None
                origin = origins.of(kernel)
                language = labels.LANGUAGES.get(kernel.language, kernel.language)
                kind = "" if kernel.kind == kernel.language else f" {kernel.kind}"
                chain = [first_names(origin.operators)] if origin.operators else []
                chain += [labels.places(origin.lines)] if origin.lines else []
                chain += [f"unknown: {origin.unknown}"] if origin.unknown else []
                yield Row(
                    code,
                    kernel,
                    f"{language}{kind}",
                    f"{compilation.id} {kernel.phase}" if len(parts) > 1 else kernel.phase,
                    launched(code, kernel),
                    labels.traffic(kernel),
                    " ← ".join(chain),
                    labels.again(origin),
                )
