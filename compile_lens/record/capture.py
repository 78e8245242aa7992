"""The record: the observations of one capture, as frozen plain data.

Measures and views read a record and nothing else. No torch is needed to open, measure or draw it. Users get a
``results.Capture``: a record with its measures and views as methods.
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
"""Version of the JSON form. Records with another version are refused, since fields were renamed."""


@dataclass(frozen=True)
class Timing:
    """Wall time of one part of the capture, in seconds. ``stage`` is a stage key or a part's name."""

    stage: str
    seconds: float


@dataclass(frozen=True)
class Failure:
    """The error that ended a capture.

    Attributes:
        stage: the stage in which it occurred; ``run``: the program raised it while it ran.
        frames: the program's stack, callers first, as far as known.
        hint, link: the compiler's advice, and its page about the error.
    """

    stage: str
    type: str
    message: str
    traceback: str = ""
    frames: tuple[Frame, ...] = ()
    hint: str = ""
    link: str = ""


THREADS = "threads"
"""The setting ``torch.get_num_threads()``, on which code for a CPU depends."""

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
    """Environment of a capture. ``triton`` is ``""`` without Triton; ``target`` is the device of the code.

    ``settings`` are torch's global settings when the function was called, each a name of ``SETTINGS`` and its value; a
    setting that is absent is not known. Then follow torch's configs that differ from their defaults, by full name
    (``"torch._inductor.config.split_reductions"``).
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
    """The same function compiled with fewer steps: ``step`` is one of ``ABLATIONS``, ``settings`` achieve it."""

    step: str
    settings: tuple[tuple[str, str], ...] = ()
    compilations: tuple[Compilation, ...] = ()
    notes: tuple[str, ...] = ()


ABLATIONS = ("nothing inlined or fused", "inlined", "fused")
"""Steps of an ablation, from least to most; ``"fused"`` is plain ``torch.compile``."""


@dataclass(frozen=True, repr=False)
class Record:
    """All observations of one call of ``capture``.

    Attributes:
        function: name of the captured callable.
        inputs: a line for each argument (``x: float32[1000] cpu``) of the first call.
        calls: the calls with their compilations, if ``capture`` was given several.
        sources: text of every observed function of the user.
        nothing_compiled: why nothing was compiled, ``""`` if something was.
        failure: the error that ended the capture, if any.
        notes: remarks for the reader (a warning of the compiler, a stage order).
        ablations: the steps that ``ablate`` ran, from least to most.
        benchmark: measurements of ``benchmark``.
        profile: times from torch's profiler, joined from a trace.
        budget_curve: memory by ``activation_memory_budget``; ``None`` until ``memory_curve`` was called.
        skipped: parts of the program that were not compiled, and why. If there are none and ``breaks`` is empty,
            everything was compiled.
        not_observed: the claims (``record.claims``) that are not or only partly known, each with the reason: torch
            lacks an observation point, or the record only has the graphs handed to the named backend.
        target: the model of the absent device; ``None``: the code is for a device of the machine.
        unknown_fields: fields of the JSON that this version does not know, as ``path: count`` (on load only).
        environment: versions and device, an ``Environment``.
        options: options of the call, an ``Options``.
        compilations: a ``Compilation`` for each Dynamo compile, with ``graphs`` and ``code`` by stage, and more.
        timings: wall time of each part, a ``Timing``.
        created: time of creation, in UTC.
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
    # Not hashed: it is added after the capture was made.
    budget_curve: MemoryCurveRecord | None = field(default=None, hash=False)
    schema_version: int = SCHEMA_VERSION
    unknown_fields: tuple[str, ...] = field(default=(), compare=False)

    def lacks(self, *claims: str) -> str:
        """Return why one of these claims (``record.claims``) is not or only partly known; ``""`` if all are known."""
        return next(filter(None, (reason_for(self.not_observed, claim) for claim in claims)), "")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of every compilation and phase, in order."""
        return tuple(k for c in self.compilations for code in c.code.values() for k in code.kernels)

    @property
    def code(self) -> dict[str, str]:
        """Text of the generated modules by phase; with several compilations the keys read ``"0/0 forward"``.

        An absent one raises ``StageMissing`` with the reason.
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
        """Every stage that could not be observed; with several compilations the stage reads ``"0/0 joint"``."""
        if len(self.compilations) == 1:
            return self.compilations[0].missing
        return tuple(Missing(f"{c.id} {m.stage}", m.reason) for c in self.compilations for m in c.missing)

    @property
    def not_applicable(self) -> tuple[NotApplicable, ...]:
        """Every stage that the function does not have, named as in ``missing``; this is no defect."""
        if len(self.compilations) == 1:
            return self.compilations[0].not_applicable
        return tuple(
            NotApplicable(f"{c.id} {m.stage}", m.reason) for c in self.compilations for m in c.not_applicable
        )

    @property
    def breaks(self) -> tuple[Ending, ...]:
        """The graph breaks: those that ended a graph, then those that caused a function to be ``skipped``."""
        endings = [c.ending for c in self.compilations if c.ending is not None]
        endings += [s.cause for s in self.skipped if not (s.kind == REST and s.compilation)]
        return tuple(e for e in endings if e.kind == BREAK)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Guards of every compilation."""
        return tuple(g for c in self.compilations for g in c.guards)

    @property
    def recompiles(self) -> tuple[Recompile, ...]:
        """The recompiles, each with the guards that failed."""
        return tuple(
            Recompile(c.id, c.function, c.recompile_reasons) for c in self.compilations if c.recompile_reasons
        )

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every pair of loops that the scheduler considered for fusion, in order, with the outcome."""
        return tuple(d for c in self.compilations for _, of_phase in c.decisions for d in of_phase)

    @property
    def autotuning(self) -> tuple[Autotuning, ...]:
        """Operators that ``max-autotune`` would time on an absent device."""
        return tuple(one for c in self.compilations for one in c.autotuning)
