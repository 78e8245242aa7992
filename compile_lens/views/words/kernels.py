"""Kernels one by one in a few words: what each is, and what it computes."""

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
        where: its phase; with the compile id before it where several compilations have kernels.
        launches: ``1 launch``.
        size: bytes read and written, modelled; ``""`` where unknown.
        computes: ``sin, pow_1 ← model.py:5``.
        again: what it computes that others compute too; ``""`` if nothing.
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
        """The row of a table under ``HEAD``."""
        computes = f"{self.computes}; {self.again}" if self.again else self.computes
        return self.kernel.name, self.language, self.where, self.launches, self.size, computes


def rows(capture: Record) -> Iterator[Row]:
    """Every kernel of a capture, in order."""
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
