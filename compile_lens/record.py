"""The record: what one capture saw, as frozen plain data.

Everything to the right of ``capture`` in the flow of data (measures, views) reads this and nothing else. No
torch is needed to open, measure or draw a record. The few methods that hand out measures and views bind them
late, so that importing this module loads nothing else of the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from .absent import Absent as Absent
from .absent import Codes
from .absent import Missing as Missing
from .absent import NotApplicable as NotApplicable
from .breaks import BREAK
from .breaks import REST as REST
from .breaks import Ending as Ending
from .breaks import Recompile as Recompile
from .breaks import Skip as Skip
from .decision import Decision
from .device_model import Target
from .errors import StageMissing
from .graph import Frame, Graph, Source
from .kernel import LINE_FORMS as LINE_FORMS
from .kernel import NO_LINES as NO_LINES
from .kernel import UNSAID as UNSAID
from .kernel import Code as Code
from .kernel import Flow as Flow
from .kernel import Kernel as Kernel
from .kernel import LineOrigin as LineOrigin
from .late import late
from .lowered import Lowered
from .measurement import Benchmark, DeviceSpeed
from .memory import Memory, Partition
from .rewrite import Pass

if TYPE_CHECKING:
    from .agreement import Verification
    from .implementation import Lacking
    from .measures.chain import Chain
    from .measures.coverage import Coverage
    from .measures.fusion import Why
    from .measures.ledger import Ledger
    from .measures.roofline import Roofline
    from .measures.traffic import Traffic

SCHEMA_VERSION = 1
"""Version of the JSON form. A record with a greater number is refused."""

PHASES = ("forward", "backward", "inference")
"""Names of the graphs that Inductor compiles. ``inference``: nothing in the graph needs a gradient."""

LOWERED_STAGES = ("post_grad", "loops", "groups", "code")
"""Stages that each phase passes through inside Inductor, in order; keys such as ``"forward.loops"``."""


Stage = Union[Graph, Code, Missing, NotApplicable]  # noqa: UP007


@dataclass(frozen=True)
class Guard:
    """One condition under which the compiled code may be used again."""

    text: str
    source: str = ""
    kind: str = ""


@dataclass(frozen=True)
class DynamicDim:
    """A dimension that was compiled for any size: ``symbol`` stands for it, ``hint`` is the size seen."""

    source: str
    symbol: str
    hint: int | None = None


@dataclass(frozen=True)
class EagerOp:
    """An operator that eager PyTorch would dispatch for a phase, how often, and bytes it reads and writes."""

    phase: str
    name: str
    count: int
    nbytes: int | None = None


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


class Stages(Mapping[str, Graph]):
    """The graphs of a compilation by stage key, in order. A stage that is missing raises with its reason."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self._graphs = {s.key: s for s in stages if isinstance(s, Graph)}
        self._absent = {s.stage: s for s in stages if isinstance(s, Absent)}

    def __getitem__(self, key: str) -> Graph:
        if key in self._graphs:
            return self._graphs[key]
        if key in self._absent:
            raise StageMissing(self._absent[key].said)
        raise StageMissing(f"no stage {key!r}; this compilation has {', '.join(self._graphs) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._graphs)

    def __len__(self) -> int:
        return len(self._graphs)

    def __contains__(self, key: object) -> bool:
        return key in self._graphs


@dataclass(frozen=True)
class Compilation:
    """One Dynamo compile: id ``"0/0"``; ``"0/1"`` is a recompile, ``"1/0"`` another frame.

    Frames are numbered from 0 in each capture. ``eager`` is ``None`` when the eager operators could not be
    counted (``eager_note`` says why). ``decisions`` are those of the scheduler, by phase; a phase that is not
    there was not overheard. ``lowered`` says what lowering made of each ATen node, ``passes`` what Inductor's
    passes changed in the graphs, ``memory`` which buffers the generated code holds, ``partition`` what the
    forward keeps for the backward.
    """

    id: str
    function: str
    file: str
    line: int
    stages: tuple[Stage, ...] = ()
    guards: tuple[Guard, ...] = ()
    ending: Ending | None = None
    recompile_reasons: tuple[str, ...] = ()
    dynamic: tuple[DynamicDim, ...] = ()
    eager: tuple[EagerOp, ...] | None = None
    eager_note: str = ""
    decisions: tuple[tuple[str, tuple[Decision, ...]], ...] = ()
    lowered: tuple[Lowered, ...] = ()
    passes: tuple[Pass, ...] = ()
    memory: tuple[Memory, ...] = ()
    partition: Partition | None = None

    @property
    def graphs(self) -> Stages:
        """Graphs by stage key: ``"dynamo"``, ``"joint"``, ``"forward"``, ``"forward.loops"``, …"""
        return Stages(self.stages)

    @property
    def code(self) -> dict[str, Code]:
        """Generated modules by phase. One that is not there raises ``StageMissing`` with the reason."""
        absent = {s.stage.removesuffix(".code"): s for s in self.stages if isinstance(s, Absent)}
        return Codes({s.phase: s for s in self.stages if isinstance(s, Code)}, absent)

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The stages that could not be seen."""
        return tuple(s for s in self.stages if isinstance(s, Missing))

    @property
    def not_applicable(self) -> tuple[NotApplicable, ...]:
        """The stages that the function does not have, or that were not asked for: none of them is missing."""
        return tuple(s for s in self.stages if isinstance(s, NotApplicable))

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of which at least one stage was seen."""
        seen = {s.phase for s in self.stages if not isinstance(s, Absent)}
        seen |= {s.stage for s in self.stages if isinstance(s, Graph)}
        return tuple(p for p in PHASES if p in seen)


@dataclass(frozen=True)
class Environment:
    """Where the capture was made. ``triton`` is ``""`` without it; ``target`` the device code is for."""

    compile_lens: str
    torch: str
    triton: str
    python: str
    platform: str
    device: str
    target: str
    isa: str = ""


@dataclass(frozen=True)
class Options:
    """What ``capture`` was asked for; ``options`` are Inductor's, as Python text."""

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
class Capture:
    """Everything that one call of ``capture`` saw.

    Attributes:
        function: name of the captured callable.
        inputs: a line for each argument (``x: float32[1000] cpu``).
        sources: text of every function of the user's that was seen.
        nothing: why nothing was compiled, ``""`` if something was.
        failure: the error that ended the capture, if one did.
        notes: things that a reader should know (a warning of the compiler, a stage order).
        ablations: the steps that ``ablate`` ran, from least to most.
        benchmark: what ``benchmark`` measured.
        skipped: what of the program was not compiled, and why. With neither one of these nor a graph break in
            ``breaks``, all of it was.
        unseen: why what ran eagerly is not known: the record is of graphs alone, which the named backend was handed.
            ``""`` for a capture of a call, which sees everything that Dynamo did with it.
        target: the device model that stood for the device; ``None``: the code is for what is in the machine.
        unknown_fields: fields of the JSON that this version does not know, as ``path: count`` (on load only).
        environment: where it was made, an ``Environment``.
        options: what was asked for, an ``Options``.
        compilations: a ``Compilation`` for each Dynamo compile, with ``graphs`` and ``code`` by stage, and more.
        timings: wall time of each part, a ``Timing``.
        created: when, in UTC.
        schema_version: version of the JSON form.

    ``failure`` is a ``Failure``, ``benchmark`` a ``Benchmark``, ``target`` a ``Target``; ``sources`` hold ``Source``,
    ``skipped`` ``Skip``, ``ablations`` ``Ablation``. From these follow ``ledger`` (``Ledger``), ``chain`` (``Chain``),
    ``kernels`` (``Kernel``), ``code`` (texts by phase), ``breaks`` (``Ending``), ``recompiles`` (``Recompile``),
    ``guards`` (``Guard``), ``decisions`` (``Decision``), ``missing`` (``Missing``), ``not_applicable``
    (``NotApplicable``), and by a call ``why`` (``Why``), ``traffic`` (``Traffic``), ``roofline`` (``Roofline``),
    ``coverage`` (``Coverage``), ``unsupported`` (``Lacking``), ``verify`` (``Verification``), ``save``, ``to_json``
    and ``from_json``. ``help(type(capture.ledger))`` and the like tell more of each.
    """

    function: str
    environment: Environment
    options: Options = Options()
    inputs: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    timings: tuple[Timing, ...] = ()
    nothing: str = ""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    created: str = ""
    ablations: tuple[Ablation, ...] = ()
    benchmark: Benchmark | None = None
    target: Target | None = None
    skipped: tuple[Skip, ...] = ()
    unseen: str = ""
    schema_version: int = SCHEMA_VERSION
    unknown_fields: tuple[str, ...] = field(default=(), compare=False)

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
        stages = [(c, s) for c in self.compilations for s in c.stages if isinstance(s, Absent)]
        one = len(self.compilations) == 1
        return Codes(
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
        return tuple(d for c in self.compilations for _, found in c.decisions for d in found)

    @property
    def ledger(self) -> Ledger:
        """Operators, loops, groups, launches and bytes, before and after."""
        made: Ledger = late("measures.ledger:ledger")(self)
        return made

    @property
    def chain(self) -> Chain:
        """The links between stages, both ways."""
        made: Chain = late("measures.chain:Chain")(self)
        return made

    def coverage(self) -> Coverage:
        """How much of the generated code reaches a Python line: a figure that the tool reports about itself."""
        made: Coverage = late("measures.coverage:coverage")(self)
        return made

    def why(self, a: Kernel | str | int, b: Kernel | str | int, phase: str = "") -> Why:
        """Why ``a`` and ``b`` are one kernel, or are not (see ``compile_lens.measures.fusion``).

        Each is a kernel or its name, the name of an ATen node, a loop or a group, or a Python line
        (``"model.py:7"``; a number where there is one file). ``phase`` (``"backward"``, ``"0/1 forward"``)
        picks one where they are in several. Raises ``UsageError`` for what is unknown or ambiguous.
        """
        made: Why = late("measures.fusion:why")(self, a, b, phase)
        return made

    def traffic(self) -> Traffic:
        """Bytes and arithmetic of each kernel, modelled (see ``compile_lens.measures.traffic``)."""
        made: Traffic = late("measures.traffic:traffic")(self)
        return made

    def roofline(self, speed: DeviceSpeed | None = None) -> Roofline:
        """Whether memory or arithmetic bounds each kernel on a device of that ``speed``.

        Without one: the speed that ``benchmark`` measured, or the published peaks of the capture's device.
        """
        made: Roofline = late("measures.roofline:roofline")(self, speed)
        return made

    def unsupported(self, target: str) -> Lacking:
        """Which of its operators and types a target lacks, by torch's own tables (see ``compile_lens.support``)."""
        made: Lacking = late("support:lacking")(self, target)
        return made

    def to_json(self) -> str:
        """The record as JSON text; ``from_json`` gives an equal record back."""
        made: str = late("codec:to_json")(self)
        return made

    @classmethod
    def from_json(cls, text: str) -> Capture:
        """A record from its JSON text. Runs no code. Raises ``RecordError`` if it is not one, or is newer."""
        made: Capture = late("codec:from_json")(text)
        return made

    def save(self, path: str | Path) -> Path:
        """Write the capture to ``path``; the ending chooses the form: .html .json .svg .md .txt.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        made: Path = late("views.files:save")(self, path)
        return made

    def verify(
        self, fn: Any = None, *args: Any, kwargs: dict[str, Any] | None = None, target: Any = None
    ) -> Verification:
        """Build the code, run it, and compare results and gradients with eager PyTorch.

        Without arguments it uses the function and inputs of the capture while the caller still holds them. Triton
        code for a GPU that is not there runs in Triton's interpreter; ``target`` asks for such a device where the
        capture is not for one. Returns a ``Verification`` (see ``compile_lens.verify``).
        """
        made: Verification = late("verify:verify")(self, fn, args, kwargs, target)
        return made

    def __repr__(self) -> str:
        made: str = late("views.text:line")(self)
        return made

    def __str__(self) -> str:
        made: str = late("views.text:page")(self)
        return made

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        made: dict[str, str] = late("views.notebook:mimebundle")(self, include, exclude)
        return made
