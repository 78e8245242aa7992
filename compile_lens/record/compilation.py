"""One compile: the stages that a function passed through, and the observations on the way."""

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
    """One condition for reusing the compiled code.

    Attributes:
        text: the check as torch writes it; ``kind`` if torch has no text. For a tensor: its class, dispatch keys,
            type, device, whether it needs a gradient, sizes and strides (``None``: any).
        source: the checked value, ``L['x']`` for a local; ``""``: none.
        kind: torch's name of the check.
    """

    text: str
    source: str = ""
    kind: str = ""


@dataclass(frozen=True)
class DynamicDim:
    """A size, or a number of the program, that was compiled as a symbol: the variant also serves other values.

    Attributes:
        source: torch's name for it (``L['x'].size(0)``, ``L['scale']``).
        symbol: torch's symbol.
        hint: the observed integer; ``None`` if not known.
        value: the observed number of the program if it is no integer, as Python writes it (``3.0``); else ``""``, and
            ``""`` in older records.
        constraints: conditions of the variant's guards on it, in the program's words (``2 <= x.size(0) <= 1024``);
            ``None`` if not known.
    """

    source: str
    symbol: str
    hint: int | None = None
    value: str = ""
    constraints: tuple[str, ...] | None = None

    @property
    def is_dimension(self) -> bool:
        """True for a size or a stride of a tensor, False for a number of the program."""
        return ".size(" in self.source or ".stride(" in self.source

    @property
    def observed(self) -> str:
        """The observed size or number, as Python writes it; ``""`` if not known."""
        return self.value if self.hint is None else str(self.hint)


@dataclass(frozen=True)
class EagerOp:
    """An operator that eager PyTorch would dispatch for a phase, its count, and the bytes it reads and writes.

    ``copied`` of these bytes copy a tensor in which a part is then overwritten or added to.
    """

    phase: str
    name: str
    count: int
    nbytes: int | None = None
    copied: int = 0


class Stages(Mapping[str, Graph]):
    """The graphs of a compilation by stage key, in order. A missing stage raises ``StageMissing`` with its reason."""

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

    Frames are numbered from 0 in each capture. ``eager`` is ``None`` if the eager operators could not be counted;
    ``eager_note`` gives the reason, or a caveat on the count. ``decisions`` are the scheduler's, by phase; an absent
    phase was not observed. ``lowered`` has the result of lowering each ATen node, ``passes`` the changes by Inductor's
    passes, ``memory`` the buffers of the generated code, ``partition`` the tensors that the forward saves for the
    backward, ``autotuning`` the candidates that ``max-autotune`` would time on an absent device, ``cuda_graphs`` the
    parts that torch would record as CUDA graphs. ``parameters`` has the parameter names of arguments that a decorator
    passes on: ``L['args'][1]``, ``w``.
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
        """Generated modules by phase. An absent one raises ``StageMissing`` with the reason."""
        absent = {s.stage.removesuffix(".code"): s for s in self.stages if isinstance(s, AbsentStage)}
        return CodeByPhase({s.phase: s for s in self.stages if isinstance(s, Code)}, absent)

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The stages that could not be observed."""
        return tuple(s for s in self.stages if isinstance(s, Missing))

    @property
    def not_applicable(self) -> tuple[NotApplicable, ...]:
        """The stages that the function does not have, or that were not requested; these do not count as missing."""
        return tuple(s for s in self.stages if isinstance(s, NotApplicable))

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases with at least one observed stage."""
        seen = {s.phase for s in self.stages if not isinstance(s, AbsentStage)}
        seen |= {s.stage for s in self.stages if isinstance(s, Graph)}
        return tuple(p for p in PHASES if p in seen)
