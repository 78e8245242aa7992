"""Generated code: the module that Inductor wrote for a phase, its kernels, and where each line came from."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import StageMissing

LINE_FORMS = frozenset(
    "barrier|branch|comment|declaration|directive|error flag|include|index arithmetic|loop header|mask|parallel region|"
    "signature".split("|")
)
"""``no_origin`` of lines that compute, load, store and reduce nothing: what they are instead."""

UNSAID = "Inductor did not report which operation it is of"
"""``no_origin`` of every other line that has no origin."""

SAME_CODE = "same code, verified"
"""Prefix of the stamp of code that was generated again and equals the text of what ran."""

UNREACHED = "?"
"""In ``Kernel.launch_functions``: no call leads to the line."""

UNKNOWN_KIND = "unknown"
"""``Kernel.kind`` where no group of the kernel was seen."""

NO_LINES = "the lines of kernels have no origins"
"""Prefix of the note of a capture whose kernel lines could not be traced."""


@dataclass(frozen=True)
class LineOrigin:
    """Origin of one line of a kernel: names of nodes in ``"<phase>.post_grad"``, or why there is none.

    ``line`` counts from 1 in the kernel's ``source``. Blank lines and lone brackets have no entry.
    """

    line: int
    origins: tuple[str, ...] = ()
    no_origin: str = ""


@dataclass(frozen=True)
class Flow:
    """Control flow of the generated code: what one call runs, per loop iteration and per branch.

    Attributes:
        functions: functions of the module that run each time (``""`` is ``call``); one that is called twice stands
            twice.
        iterations: for each loop, what one turn of it runs.
        branches: for each choice, what its two ways run: a call takes one of them.
    """

    functions: tuple[str, ...] = ("",)
    iterations: tuple[Flow, ...] = ()
    branches: tuple[tuple[Flow, Flow], ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One generated kernel, or one library function that the generated code calls.

    Attributes:
        language: ``cpp``, ``triton``, ``metal`` or ``extern`` (a library call: it has no source here).
        kind: ``pointwise``, ``reduction``, ``scan``, ``template``, ``extern`` or ``copy``; ``unknown`` if no group of
            it was seen.
        source: its own text; ``first_line`` and ``last_line`` are where that stands in the wrapper module
            (1-based; 0 where it does not).
        launch_lines: lines of the wrapper module that launch it, one for each launch; 0 if not found there.
        groups: names of the nodes of ``"<phase>.groups"`` that it runs.
        origins: names of the nodes of ``"<phase>.post_grad"`` that it computes, in execution order.
        reads, writes: modelled bytes of external memory traffic over all launches, each made once; ``None`` where
            unknown.
        lines: where each line of ``source`` came from; empty where they were not followed (library calls,
            templates; otherwise a note says why).
        candidates: launch configurations that Inductor offers for it (Triton).
        machine: what the device's compiler made of it; ``None`` where that was not asked for, or could not be
            had: ``machine_note`` says why.
        launch_functions: the function of the module that holds each of ``launch_lines`` (``""``: ``call``); empty where
            a call runs all of them once. How often it runs each function is in ``Code.flow``.
    """

    name: str
    phase: str
    language: str
    kind: str
    source: str
    first_line: int = 0
    last_line: int = 0
    launch_lines: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    no_origin: str = ""
    reads: int | None = None
    writes: int | None = None
    lines: tuple[LineOrigin, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    machine: Machine | None = None
    machine_note: str = ""
    launch_functions: tuple[str, ...] = ()

    @property
    def launches(self) -> int:
        """In how many places the generated code launches it: as often as one call does, unless a place is in a loop
        or a branch (``within``), of which ``capture.ledger`` says what is known."""
        return len(self.launch_lines)

    @property
    def ttir(self) -> str:
        """Triton's own form of it, before anything of a device. As the next ones: raises ``StageMissing``, with the
        reason, where it was not made."""
        return self._form("ttir")

    @property
    def ttgir(self) -> str:
        """Triton's form for GPUs, with layouts of threads."""
        return self._form("ttgir")

    @property
    def llir(self) -> str:
        """Its LLVM IR."""
        return self._form("llir")

    @property
    def ptx(self) -> str:
        """Its PTX, NVIDIA's assembly that later drivers translate."""
        return self._form("ptx")

    @property
    def sass(self) -> str:
        """Its SASS, the instructions that an NVIDIA GPU of that generation runs."""
        return self._form("sass")

    @property
    def amdgcn(self) -> str:
        """Its assembly for AMD's GPUs."""
        return self._form("amdgcn")

    @property
    def assembly(self) -> str:
        """Its assembly for the CPU."""
        return self._form("assembly")

    def _form(self, kind: str) -> str:
        if self.machine is None:
            raise StageMissing(
                f"{self.name} has no {kind}: "
                + (self.machine_note or "the code was only generated; capture with build=True")
            )
        form = self.machine.form(kind)
        if form is None:
            reason = dict(self.machine.missing).get(kind) or (
                f"there is {', '.join(f.kind for f in self.machine.forms) or 'no other form'} of it"
            )
            raise StageMissing(f"{self.name} has no {kind}: {reason}")
        return form.text


@dataclass(frozen=True)
class Code:
    """The module that Inductor wrote for one phase.

    ``stamp`` says what became of it: ``generated only``, ``built`` or ``ran``. ``model`` is the name of the device
    model that stood for the device (``""``: the device itself was there), ``may_differ`` what may be otherwise on the
    real one, a sentence each. ``flow`` says what a call runs where it loops or branches; ``None``: all of it, once.
    """

    phase: str
    text: str
    stamp: str
    device: str
    kernels: tuple[Kernel, ...] = ()
    model: str = ""
    may_differ: tuple[str, ...] = ()
    flow: Flow | None = None

    @property
    def key(self) -> str:
        """Its stage key, such as ``"forward.code"``."""
        return f"{self.phase}.code"


FORMS = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "assembly")
"""Kinds of ``Form``, in the order in which compilers make them: Triton's two dialects, LLVM's, and then what
the device's assembler reads (PTX) and runs (SASS), of AMD's devices (``amdgcn``), and of CPUs (``assembly``)."""


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
    """Output of the device's compiler for one kernel. None of it needs the device.

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
