"""Generated code: Inductor's module for a phase, its kernels, and the origin of each line."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import StageMissing

LINE_FORMS = frozenset(
    "barrier|branch|comment|declaration|directive|error flag|include|index arithmetic|loop header|mask|parallel region|"
    "signature".split("|")
)
"""``no_origin`` of lines that do not compute, load, store or reduce: their role instead."""

UNSAID = "Inductor did not report which operation it is of"
"""``no_origin`` of every other line without an origin."""

SAME_CODE = "same code, verified"
"""Prefix of the stamp of regenerated code that equals the code that ran."""

UNREACHED = "?"
"""Entry of ``Kernel.launch_functions`` for a line that no call reaches."""

UNKNOWN_KIND = "unknown"
"""``Kernel.kind`` if no group of the kernel was observed."""

USER_WRITTEN = "user-written"
"""``Kernel.kind`` of a Triton kernel that the program wrote itself."""
USER_KERNEL = "UserDefinedTritonKernel"
"""Target of the loop and the group that launch such a kernel."""

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
    """Control flow of the generated code: functions that one call runs, per loop iteration and per branch.

    Attributes:
        functions: functions of the module that run in each call (``""`` is ``call``); one called twice is listed twice.
        iterations: for each loop, the flow of one iteration.
        branches: for each choice, the flows of its two branches, of which a call takes one.
    """

    functions: tuple[str, ...] = ("",)
    iterations: tuple[Flow, ...] = ()
    branches: tuple[tuple[Flow, Flow], ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One generated kernel, or one library function that the generated code calls.

    Attributes:
        language: ``cpp``, ``triton``, ``metal`` or ``extern`` (a library call: it has no source here).
        kind: ``pointwise``, ``reduction``, ``scan``, ``template``, ``extern`` or ``copy``; ``user-written`` for the
            program's own Triton kernel; ``unknown`` if no group of it was observed.
        source: its own text; ``first_line`` and ``last_line`` are the lines of that text in the wrapper module
            (1-based; 0 if it is not there).
        launch_lines: lines of the wrapper module that launch it, one for each launch; 0 if not found there.
        groups: names of the nodes of ``"<phase>.groups"`` that it runs.
        origins: names of the nodes of ``"<phase>.post_grad"`` that it computes, in execution order.
        reads, writes: modelled bytes of external memory traffic, summed over launch sites, each counted once; ``None``
            if unknown.
        lines: the origin of each line of ``source``; empty if lines were not traced (library calls, templates;
            otherwise a note says why).
        candidates: launch configurations that Inductor offers for it (Triton).
        machine: output of the device's compiler; ``None`` if not requested or not available, and then
            ``machine_note`` says why.
        launch_functions: the function of the module that contains each of ``launch_lines`` (``""``: ``call``); empty if
            a call runs all of them once. ``Code.flow`` has how often a call runs each function.
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
        """Number of launch sites in the generated code. This is the number of launches per call unless a site is in a
        loop or a branch (``launch_functions``); ``capture.ledger`` accounts for these."""
        return len(self.launch_lines)

    @property
    def ttir(self) -> str:
        """The kernel in Triton's device-independent IR. This and the following properties raise ``StageMissing``, with
        the reason, if the form does not exist."""
        return self._form("ttir")

    @property
    def ttgir(self) -> str:
        """The kernel in Triton's GPU IR, with thread layouts."""
        return self._form("ttgir")

    @property
    def llir(self) -> str:
        """The kernel's LLVM IR."""
        return self._form("llir")

    @property
    def ptx(self) -> str:
        """The kernel's PTX, NVIDIA's virtual assembly, which drivers translate."""
        return self._form("ptx")

    @property
    def sass(self) -> str:
        """The kernel's SASS, the instructions of an NVIDIA GPU of that generation."""
        return self._form("sass")

    @property
    def amdgcn(self) -> str:
        """The kernel's assembly for AMD GPUs."""
        return self._form("amdgcn")

    @property
    def assembly(self) -> str:
        """The kernel's assembly for the CPU."""
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
    """The module that Inductor generated for one phase.

    ``stamp`` is ``generated only``, ``built`` or ``ran``. ``model`` is the name of the model of an absent device
    (``""``: the device was present), ``may_differ`` are sentences on what may differ on the real one. ``flow`` is the
    control flow of a call; ``None``: everything runs once.
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
        """Stage key, such as ``"forward.code"``."""
        return f"{self.phase}.code"


FORMS = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn", "assembly")
"""Kinds of ``Form`` in compilation order: Triton's two dialects, LLVM IR, NVIDIA's PTX and SASS, and the assembly of
AMD GPUs (``amdgcn``) and CPUs (``assembly``)."""


@dataclass(frozen=True)
class Form:
    """One form of a kernel.

    ``links`` pairs lines of ``text`` with lines of the kernel's ``source``, both counted from 1, by the compiler's
    debug locations. A line may be in several pairs, or in none.
    """

    kind: str
    text: str
    links: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A launch configuration that Inductor offers for a kernel: block sizes, warps, stages.

    ``settings`` are names and numbers (``("XBLOCK", 256)``). A device that runs the kernel times all of them once and
    keeps the fastest.
    """

    settings: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Machine:
    """Output of the device's compiler for one kernel, obtained without the device.

    Attributes:
        arch: the target architecture (``sm_90a``, ``avx512``).
        compiler: the compilers, with versions.
        candidate: index of the launch configuration in ``Kernel.candidates``; -1 if there are none.
        forms: its forms, in the order of ``FORMS``.
        registers: registers per thread. ``shared``: bytes of shared memory per block. ``spills``: bytes of registers
            spilled to memory per thread. ``instructions``: number of instructions in the last form.
            ``vector_bits``: width of the widest vector register that the code computes with (CPU; 0: none).
            ``None`` if unknown.
        missing: kind and reason of each unavailable form.
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
        """Return the form of that kind, ``None`` if there is none."""
        return next((f for f in self.forms if f.kind == kind), None)
