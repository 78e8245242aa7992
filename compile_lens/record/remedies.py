"""Remedies of a program that are settings of torch's, and the runs of the program that tried them."""

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
"""Settings of ``torch._dynamo.config`` that are turned on."""

SETTING = "setting "
"""Begins the stage of what is missing of a run whose setting was not in force all the time."""

NEVER_IN_FORCE = "never in force"
"""Begins the reason where it was not in force at all."""


@dataclass(frozen=True)
class DimensionMark:
    """A dimension that ``mark_dynamic`` marks before a function is called.

    Attributes:
        function, file, line: the function and where it begins.
        tensor: the tensor, as the function names it (``x``, ``batch['ids']``).
        dim: the dimension.
    """

    function: str
    file: str
    line: int
    tensor: str
    dim: int


@dataclass(frozen=True)
class Remedy:
    """A setting of torch's.

    Attributes:
        kind: its name, one of the constants of this module.
        code: how a program has it: ``torch.compile(…, dynamic=True)``.
        value: of a limit, the number.
        functions: of ``reorderable_logging_functions``, names of those that are added.
        marks: of ``mark_dynamic``, the dimensions.
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
    """Figures of one run; ``None`` where one was not observed in full.

    Attributes:
        graphs, breaks, recompiles: as torch counts them.
        eager: what ran eagerly.
    """

    graphs: int | None
    breaks: int | None
    recompiles: int | None
    eager: tuple[EagerPart, ...] | None


@dataclass(frozen=True)
class RemedyRun:
    """One run of the program with one remedy, or with several.

    Attributes:
        remedies: those that were set.
        figures: what was counted; ``None`` where ``missing`` says why there is no run.
        agrees: whether the results are those of the run without a remedy; ``None`` where that is not known.
        comparison: what was compared and what differs, or why nothing was compared.
        missing: why it was not run, or why its figures are not known.
        notes: things that a reader should know.
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
        base: the run without a remedy; ``None`` where ``missing`` says why there is none.
        runs: one for each remedy, those that did not take place included.
        together: the run with all remedies that helped; ``None`` where fewer than two did.
        count: how many times the program ran in all.
        result: what was compared: ``output and exit code``, ``returned value``.
        missing: why nothing was tried.
    """

    base: RunFigures | None = None
    runs: tuple[RemedyRun, ...] = ()
    together: RemedyRun | None = None
    count: int = 0
    result: str = ""
    missing: Missing | None = None
