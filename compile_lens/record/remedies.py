"""Remedies for a program that are torch settings, and runs of the program that tried them."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame
from .missing import Missing

DYNAMIC = "dynamic"
MARK_DYNAMIC = "mark_dynamic"
CAPTURE_SCALARS = "capture_scalar_outputs"
CAPTURE_SHAPES = "capture_dynamic_output_shape_ops"
UNSPECIALIZED_INTS = "allow_unspec_int_on_nn_module"
REORDER_LOGGING = "reorderable_logging_functions"
ISOLATE = "isolate_recompiles"
LIMIT = "recompile_limit"
TOTAL_LIMIT = "accumulated_recompile_limit"
FLAGS = (CAPTURE_SCALARS, CAPTURE_SHAPES, UNSPECIALIZED_INTS)
"""Boolean settings of ``torch._dynamo.config`` that are turned on."""

SETTING = "setting "
"""Prefix of the ``Missing`` stage of a run whose setting was not in force all the time."""

NEVER_IN_FORCE = "never in force"
"""Prefix of the reason if it was never in force."""


@dataclass(frozen=True)
class DimensionMark:
    """A dimension to mark with ``mark_dynamic`` before a function is called.

    Attributes:
        function, file, line: the function and its first line.
        tensor: the tensor in the function (``x``, ``batch['ids']``).
        dim: the dimension.
    """

    function: str
    file: str
    line: int
    tensor: str
    dim: int


@dataclass(frozen=True)
class Remedy:
    """A torch setting.

    Attributes:
        kind: its name, one of the constants of this module.
        code: code that applies it: ``torch.compile(…, dynamic=True)``.
        value: the number of a limit.
        functions: names of the functions added to ``reorderable_logging_functions``.
        marks: dimensions for ``mark_dynamic``.
    """

    kind: str
    code: str
    value: int = 0
    functions: tuple[str, ...] = ()
    marks: tuple[DimensionMark, ...] = ()


@dataclass(frozen=True)
class EagerPart:
    """Code that ran eagerly: ``kind`` is one of ``measures.causes.KINDS``, ``place`` its line."""

    kind: str
    place: Frame | None
    function: str = ""


@dataclass(frozen=True)
class RunFigures:
    """Figures of one run; ``None`` for a figure that was not fully observed.

    Attributes:
        graphs, breaks, recompiles: as torch counts them.
        eager: code that ran eagerly.
    """

    graphs: int | None
    breaks: int | None
    recompiles: int | None
    eager: tuple[EagerPart, ...] | None


@dataclass(frozen=True)
class RemedyRun:
    """One run of the program with one remedy, or with several.

    Attributes:
        remedies: the remedies in force.
        figures: the figures; ``None`` if there was no run, and ``missing`` says why.
        agrees: whether the results equal those of the run without a remedy; ``None`` if not known.
        comparison: what was compared and what differs, or why nothing was compared.
        missing: why it was not run, or why its figures are not known.
        notes: remarks for the reader.
    """

    remedies: tuple[Remedy, ...]
    figures: RunFigures | None = None
    agrees: bool | None = None
    comparison: str = ""
    missing: Missing | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgramRemedies:
    """Runs of a program with each remedy that is a setting, and with all that helped.

    Attributes:
        base: the run without a remedy; ``None`` if there is none, and ``missing`` says why.
        runs: one for each remedy, including those that did not run.
        together: the run with all remedies that helped; ``None`` if fewer than two did.
        count: total number of runs of the program.
        result: the compared result: ``output and exit code``, ``returned value``.
        missing: why nothing was tried.
    """

    base: RunFigures | None = None
    runs: tuple[RemedyRun, ...] = ()
    together: RemedyRun | None = None
    count: int = 0
    result: str = ""
    missing: Missing | None = None
