"""One compile: the stages that a function passed through, and what was seen on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Union

from ..errors import StageMissing
from .autotuning import Autotuning
from .breaks import Ending
from .cuda_graphs import CudaGraphs
from .decision import Decision
from .graph import Graph
from .kernel import Code
from .lowering import Lowered, Pass
from .memory import Memory, Partition
from .missing import AbsentStage, CodeByPhase, Missing, NotApplicable

PHASES = ("forward", "backward", "inference")
"""Names of the graphs that Inductor compiles. ``inference``: nothing in the graph needs a gradient."""


LOWERED_STAGES = ("post_grad", "loops", "groups", "code")
"""Stages that each phase passes through inside Inductor, in order; keys such as ``"forward.loops"``."""


Stage = Union[Graph, Code, Missing, NotApplicable]  # noqa: UP007


@dataclass(frozen=True)
class Guard:
    """One condition under which the compiled code may be used again.

    Attributes:
        text: what is checked, as torch writes it; ``kind`` where torch has no text of it. Of a tensor: its class,
            dispatch keys, type, device, whether it needs a gradient, sizes and strides (``None``: any).
        source: the value that it is about, ``L['x']`` for a local; ``""``: none.
        kind: torch's name of the check.
    """

    text: str
    source: str = ""
    kind: str = ""


@dataclass(frozen=True)
class DynamicDim:
    """A size, or a number of the program's, that was compiled as a symbol: the form is for others than the one seen.

    Attributes:
        source: what it is, as torch names it (``L['x'].size(0)``, ``L['scale']``).
        symbol: of torch's.
        hint: the whole number that was seen; ``None`` where that is not known.
        value: the number of the program's that was seen, where it is none of those, as Python writes it (``3.0``);
            ``""`` of all else, and of what was written before it was kept.
        constraints: what the guards of the form ask of it, in the program's words (``2 <= x.size(0) <= 1024``);
            ``None`` where that is not known.
    """

    source: str
    symbol: str
    hint: int | None = None
    value: str = ""
    constraints: tuple[str, ...] | None = None

    @property
    def is_dimension(self) -> bool:
        """True for a size or a stride of a tensor, False for a number of the program's."""
        return ".size(" in self.source or ".stride(" in self.source

    @property
    def observed(self) -> str:
        """The size or number that was seen, as Python writes it; ``""`` where that is not known."""
        return self.value if self.hint is None else str(self.hint)


@dataclass(frozen=True)
class EagerOp:
    """An operator that eager PyTorch would dispatch for a phase, how often, and bytes it reads and writes.

    Of these bytes ``copied`` only move a tensor into a new one, in which a part is then replaced or added to.
    """

    phase: str
    name: str
    count: int
    nbytes: int | None = None
    copied: int = 0


class Stages(Mapping[str, Graph]):
    """The graphs of a compilation by stage key, in order. A stage that is missing raises with its reason."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self._graphs = {s.key: s for s in stages if isinstance(s, Graph)}
        self._absent = {s.stage: s for s in stages if isinstance(s, AbsentStage)}

    def __getitem__(self, key: str) -> Graph:
        if key in self._graphs:
            return self._graphs[key]
        if key in self._absent:
            raise StageMissing(self._absent[key].message)
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
    counted; ``eager_note`` says why, or what else to know of the count. ``decisions`` are those of the scheduler, by
    phase; a phase that is not there was not overheard. ``lowered`` says what lowering made of each ATen node,
    ``passes`` what Inductor's passes changed in the graphs, ``memory`` which buffers the generated code holds,
    ``partition`` what the forward keeps for the backward, ``autotuning`` what ``max-autotune`` would time on a device
    that was not there, ``cuda_graphs`` which parts torch would record as CUDA graphs. ``parameters`` has the names of
    parameters for arguments that a decorator hands on: ``L['args'][1]``, ``w``.
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
    autotuning: tuple[Autotuning, ...] = ()
    cuda_graphs: tuple[CudaGraphs, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def graphs(self) -> Stages:
        """Graphs by stage key: ``"dynamo"``, ``"joint"``, ``"forward"``, ``"forward.loops"``, …"""
        return Stages(self.stages)

    @property
    def code(self) -> dict[str, Code]:
        """Generated modules by phase. One that is not there raises ``StageMissing`` with the reason."""
        absent = {s.stage.removesuffix(".code"): s for s in self.stages if isinstance(s, AbsentStage)}
        return CodeByPhase({s.phase: s for s in self.stages if isinstance(s, Code)}, absent)

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
        seen = {s.phase for s in self.stages if not isinstance(s, AbsentStage)}
        seen |= {s.stage for s in self.stages if isinstance(s, Graph)}
        return tuple(p for p in PHASES if p in seen)
