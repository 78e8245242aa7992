"""The record: what one capture saw, as frozen plain data.

Everything to the right of ``capture`` in the flow of data (measures, views) reads this and nothing else. No
torch is needed to open, measure or draw a record. What users hold is a ``results.Capture``: a record with its
measures and views at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .autotuning import Autotuning
from .benchmark import Benchmark, Profile
from .breaks import BREAK, REST, CapturedCall, Ending, Recompile, Skip
from .compilation import Compilation, Guard
from .decision import Decision
from .device import Target
from .graph import Frame, Source
from .kernel import Kernel
from .memory_curve import MemoryCurveRecord
from .missing import AbsentStage, CodeByPhase, Missing, NotApplicable, reason_for

SCHEMA_VERSION = 3
"""Version of the JSON form. A record with another number is refused: fields were renamed in version 2."""


@dataclass(frozen=True)
class Timing:
    """Wall time of one part of the capture, in seconds. ``stage`` is a stage key or a part's name."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class Failure:
    """The error that ended a capture.

    Attributes:
        stage: the stage it happened in; ``run``: the program raised it while it ran.
        frames: the stack of the program there, callers first, as far as it is known.
        hint, link: what the compiler advises, and its page about it.
    """

    stage: str
    type: str
    message: str
    traceback: str = ""
    frames: tuple[Frame, ...] = ()
    hint: str = ""
    link: str = ""


THREADS = "threads"
"""The setting ``torch.get_num_threads()``, by which code for a CPU is chosen."""

SETTINGS = (
    "float32 matmul precision",
    "deterministic algorithms",
    "grad mode",
    "autocast",
    "default dtype",
    THREADS,
)
"""Torch's global settings that change the code, as ``Environment.settings`` names them."""


@dataclass(frozen=True)
class Environment:
    """Environment of a capture. ``triton`` is ``""`` without it; ``target`` is the device that the code is for.

    ``settings`` are torch's global ones when the function was called, each a name of ``SETTINGS`` and its value; one
    that is not there is not known. After them what was set in torch's configurations otherwise than torch has it, by
    its whole name (``"torch._inductor.config.split_reductions"``).
    """

    compile_lens: str
    torch: str
    triton: str
    python: str
    platform: str
    device: str
    target: str
    isa: str = ""
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Options:
    """Options of a capture; ``options`` are Inductor's, as Python text."""

    backward: str = "auto"
    dynamic: bool | None = None
    mode: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    fullgraph: bool = False
    build: bool = False
    target: str = ""


@dataclass(frozen=True)
class Ablation:
    """The same function compiled with less: ``step`` is one of ``ABLATIONS``, ``settings`` how it was had."""

    step: str
    settings: tuple[tuple[str, str], ...] = ()
    compilations: tuple[Compilation, ...] = ()
    notes: tuple[str, ...] = ()


ABLATIONS = ("nothing inlined or fused", "inlined", "fused")
"""Steps of an ablation, from least to most; ``"fused"`` is what ``torch.compile`` does."""


@dataclass(frozen=True, repr=False)
class Record:
    """Everything that one call of ``capture`` saw.

    Attributes:
        function: name of the captured callable.
        inputs: a line for each argument (``x: float32[1000] cpu``), of the first call.
        calls: each call with what was compiled in it and what it ran, where ``capture`` was given several.
        sources: text of every function of the user's that was seen.
        nothing_compiled: why nothing was compiled, ``""`` if something was.
        failure: the error that ended the capture, if one did.
        notes: things that a reader should know (a warning of the compiler, a stage order).
        ablations: the steps that ``ablate`` ran, from least to most.
        benchmark: what ``benchmark`` measured.
        profile: times that torch's profiler measured, joined from a trace.
        budget_curve: memory by ``activation_memory_budget``; ``None`` until ``memory_curve`` was called.
        skipped: what of the program was not compiled, and why. With neither one of these nor a graph break in
            ``breaks``, all of it was.
        not_observed: the claims (``record.claims``) that are not known, or only in part, each with the reason: torch
            lacks what we observe, or the record is of graphs alone, which the named backend was handed.
        target: the device model that stood for the device; ``None``: the code is for what is in the machine.
        unknown_fields: fields of the JSON that this version does not know, as ``path: count`` (on load only).
        environment: where it was made, an ``Environment``.
        options: what was asked for, an ``Options``.
        compilations: a ``Compilation`` for each Dynamo compile, with ``graphs`` and ``code`` by stage, and more.
        timings: wall time of each part, a ``Timing``.
        created: when, in UTC.
        schema_version: version of the JSON form.
    """

    function: str
    environment: Environment
    options: Options = Options()
    inputs: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    timings: tuple[Timing, ...] = ()
    nothing_compiled: str = ""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    created: str = ""
    ablations: tuple[Ablation, ...] = ()
    benchmark: Benchmark | None = None
    target: Target | None = None
    skipped: tuple[Skip, ...] = ()
    not_observed: tuple[Missing, ...] = ()
    calls: tuple[CapturedCall, ...] = ()
    profile: Profile | None = None
    # Not hashed: it comes after the capture was made.
    budget_curve: MemoryCurveRecord | None = field(default=None, hash=False)
    schema_version: int = SCHEMA_VERSION
    unknown_fields: tuple[str, ...] = field(default=(), compare=False)

    def lacks(self, *claims: str) -> str:
        """Return why one of these claims (``record.claims``) is not known, or only in part; ``""`` if all was seen."""
        return next(filter(None, (reason_for(self.not_observed, claim) for claim in claims)), "")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of every compilation and phase, in order."""
        return tuple(k for c in self.compilations for code in c.code.values() for k in code.kernels)

    @property
    def code(self) -> dict[str, str]:
        """Text of the generated modules by phase; with several compilations the keys read ``"0/0 forward"``.

        One that is not there raises ``StageMissing`` with the reason.
        """
        many = sum(1 for c in self.compilations if c.code) > 1
        texts = {
            (f"{c.id} {phase}" if many else phase): code.text
            for c in self.compilations
            for phase, code in c.code.items()
        }
        stages = [(c, s) for c in self.compilations for s in c.stages if isinstance(s, AbsentStage)]
        one = len(self.compilations) == 1
        return CodeByPhase(
            texts, {("" if one else f"{c.id} ") + s.stage.removesuffix(".code"): s for c, s in stages}
        )

    @property
    def missing(self) -> tuple[Missing, ...]:
        """Every stage that could not be seen; with several compilations the stage reads ``"0/0 joint"``."""
        if len(self.compilations) == 1:
            return self.compilations[0].missing
        return tuple(Missing(f"{c.id} {m.stage}", m.reason) for c in self.compilations for m in c.missing)

    @property
    def not_applicable(self) -> tuple[NotApplicable, ...]:
        """Every stage that there is not, named as in ``missing``: that is no defect."""
        if len(self.compilations) == 1:
            return self.compilations[0].not_applicable
        return tuple(
            NotApplicable(f"{c.id} {m.stage}", m.reason) for c in self.compilations for m in c.not_applicable
        )

    @property
    def breaks(self) -> tuple[Ending, ...]:
        """The graph breaks: those that a graph ended in, then those for which a function was ``skipped``."""
        endings = [c.ending for c in self.compilations if c.ending is not None]
        endings += [s.cause for s in self.skipped if not (s.kind == REST and s.compilation)]
        return tuple(e for e in endings if e.kind == BREAK)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Guards of every compilation."""
        return tuple(g for c in self.compilations for g in c.guards)

    @property
    def recompiles(self) -> tuple[Recompile, ...]:
        """The times that a function was compiled again, each with the guards that failed."""
        return tuple(
            Recompile(c.id, c.function, c.recompile_reasons) for c in self.compilations if c.recompile_reasons
        )

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every pair of loops that the scheduler considered for fusion, in order, and what became of it."""
        return tuple(d for c in self.compilations for _, of_phase in c.decisions for d in of_phase)

    @property
    def autotuning(self) -> tuple[Autotuning, ...]:
        """Operators that ``max-autotune`` would time on an absent device."""
        return tuple(one for c in self.compilations for one in c.autotuning)
