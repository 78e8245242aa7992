"""Machine code of a kernel, and the forms on the way to it: what the device's own compiler makes of the source."""

from __future__ import annotations

from dataclasses import dataclass

FORMS = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "assembly")
"""Kinds of ``Form``, in the order in which compilers make them: Triton's two dialects, LLVM's, and then what the
device's assembler reads (PTX) and runs (SASS), of AMD's devices (``amdgcn``), and of CPUs (``assembly``)."""


@dataclass(frozen=True)
class Form:
    """One form of a kernel.

    ``links`` pairs lines of ``text`` with lines of the kernel's ``source``, both counted from 1, by the compiler's
    own debug locations. A line without one is not there. A line may stand in several pairs.
    """

    kind: str
    text: str
    links: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A launch configuration that Inductor offers for a kernel: sizes of the blocks, warps, stages.

    ``settings`` are names and numbers (``("XBLOCK", 256)``). A device that runs the kernel times all of them once and
    keeps the fastest.
    """

    settings: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Machine:
    """What the device's compiler made of one kernel. Nothing of it needs the device.

    Attributes:
        arch: what it was compiled for (``sm_90a``, ``avx512``).
        compiler: who compiled it, with versions.
        candidate: index of the launch configuration in ``Kernel.candidates``; -1 where there are none.
        forms: its forms, in the order of ``FORMS``.
        registers: for each thread. ``shared``: bytes of shared memory for each block. ``spills``: bytes of registers
            that do not fit and live in memory, for each thread. ``instructions``: of the last form, as text.
            ``vector_bits``: width of the widest vector register that the code computes with (CPU; 0: it has none).
            ``None`` where unknown.
        missing: kind and reason of each form that could not be had.
    """

    arch: str
    compiler: str
    candidate: int = -1
    forms: tuple[Form, ...] = ()
    registers: int | None = None
    shared: int | None = None
    spills: int | None = None
    instructions: int | None = None
    vector_bits: int | None = None
    missing: tuple[tuple[str, str], ...] = ()

    def form(self, kind: str) -> Form | None:
        """The form of that kind, ``None`` if there is none."""
        return next((f for f in self.forms if f.kind == kind), None)
