"""Generated code, and compiles that no call requested, as a log of torch's holds them."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame

AOT_INDUCTOR = "AOTInductor"
EXPORT = "torch.export"
INDUCTOR = "Inductor"
AOT_AUTOGRAD = "AOTAutograd"
"""Values of ``AheadCompilation.kind``."""


@dataclass(frozen=True)
class LoggedKernel:
    """A kernel, or a library call, of a generated module.

    Attributes:
        name: in the module; with torch's number of the launch where the log has it (``triton_poi_fused_mul_1:2``).
        nodes: names of the post-grad nodes that it computes; empty where the log has no provenance.
        lines: the lines of the program that they came from, as far as the log has them.
    """

    name: str
    nodes: tuple[str, ...] = ()
    lines: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class GeneratedModule:
    """A module of code that Inductor generated, or took from its cache.

    Attributes:
        id: compile id; ``""`` where it is of no call.
        file: where torch wrote it.
        code_lines: how many lines its texts have; ``None`` where the log's text cannot be read.
        kernels: in the order of the code, or of the log's provenance.
        collectives: names of the collectives that it issues at each call, in order, as the log has them;
            ``None`` where its text of them cannot be read.
    """

    id: str
    file: str = ""
    code_lines: int | None = None
    kernels: tuple[LoggedKernel, ...] = ()
    collectives: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class ExportCondition:
    """What export checked, assumed or found wrong.

    Attributes:
        kind: ``checked``, ``assumed`` or ``wrong``.
        text: the condition.
        line: the line of the program that it is of; ``None`` where the log has none.
    """

    kind: str
    text: str
    line: Frame | None = None


@dataclass(frozen=True)
class AheadCompilation:
    """A compile that Dynamo gave no number, since no call requested it: a model is exported, or compiled ahead of time.

    Attributes:
        kind: ``AOTInductor``, ``torch.export``, ``Inductor`` or ``AOTAutograd``: what the log has of it last.
        operators: calls in its graph; ``None`` where the log does not say.
        inputs: what each input of the graph is.
        modules: numbers in ``ProgramRecord.modules``.
        conditions: what export assumed, or what it found wrong, each with the line of the program.
    """

    kind: str
    operators: int | None = None
    inputs: tuple[str, ...] = ()
    modules: tuple[int, ...] = ()
    conditions: tuple[ExportCondition, ...] = ()


@dataclass(frozen=True)
class VllmPass:
    """A pass of vLLM over the graph of a piece.

    Attributes:
        name: of the pass, with its number as vLLM writes it (``0.NoOpEliminationPass``).
        operators: calls in the graph after it; ``None`` where the log does not say.
        changed_lines: lines of the printed graph that are new after it; ``None`` where the graph before is not known.
    """

    name: str
    operators: int | None = None
    changed_lines: int | None = None


@dataclass(frozen=True)
class VllmPiece:
    """A compile of one piece of a model for one range of sizes.

    Attributes:
        submodule: name of the piece in the split graph.
        compile_range: first and last number of tokens that it is compiled for.
        cudagraph_size: whether it is a size that vLLM compiles for alone.
        operators: calls in the piece; ``None`` where the log does not say.
        modules: numbers in ``ProgramRecord.modules``.
        passes: in order, where vLLM logged the graph after each.
    """

    submodule: str
    compile_range: tuple[int, int]
    cudagraph_size: bool = False
    operators: int | None = None
    modules: tuple[int, ...] = ()
    passes: tuple[VllmPass, ...] = ()


@dataclass(frozen=True)
class VllmCompilation:
    """A model that vLLM compiled.

    Attributes:
        id: compile id of Dynamo; ``""`` where the log has none.
        event: how it came about (``fresh_compile``); ``""`` where the log does not say.
        settings: vLLM's configuration, as name and value.
        submodules: pieces that the split graph calls, in order; those that are not compiled (attention) among them.
        pieces: in the order in which they were compiled.
        passes: those over graphs of which the log does not say the piece.
    """

    id: str
    event: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    submodules: tuple[str, ...] = ()
    pieces: tuple[VllmPiece, ...] = ()
    passes: tuple[VllmPass, ...] = ()
