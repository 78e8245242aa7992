"""Generated code, and compiles that no call requested, from a torch log."""

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
        name: name in the module, with torch's number of the launch if the log has it (``triton_poi_fused_mul_1:2``).
        nodes: names of the post-grad nodes that it computes; empty if the log has no provenance.
        lines: the program's lines of these nodes, as far as the log has them.
    """

    name: str
    nodes: tuple[str, ...] = ()
    lines: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class GeneratedModule:
    """A module of code that Inductor generated or loaded from its cache.

    Attributes:
        id: compile id; ``""`` if it belongs to no call.
        file: torch's file of it.
        code_lines: number of lines; ``None`` if the log's text cannot be read.
        kernels: kernels in order of the code, or of the log's provenance.
        collectives: names of the collectives that it issues in each call, in order, from the log; ``None`` if the text
            cannot be read.
    """

    id: str
    file: str = ""
    code_lines: int | None = None
    kernels: tuple[LoggedKernel, ...] = ()
    collectives: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class ExportCondition:
    """A condition that export checked, assumed or found violated.

    Attributes:
        kind: ``checked``, ``assumed`` or ``wrong``.
        text: the condition.
        line: the line of the program; ``None`` if the log has none.
    """

    kind: str
    text: str
    line: Frame | None = None


@dataclass(frozen=True)
class AheadCompilation:
    """A compile without a Dynamo id, since no call requested it: an export or an ahead-of-time compile.

    Attributes:
        kind: ``AOTInductor``, ``torch.export``, ``Inductor`` or ``AOTAutograd``: its last part in the log.
        operators: number of calls in its graph; ``None`` if not in the log.
        inputs: a description of each input of the graph.
        modules: numbers in ``ProgramRecord.modules``.
        conditions: conditions of export, each with the line of the program.
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
        name: name of the pass, with vLLM's number (``0.NoOpEliminationPass``).
        operators: number of calls in the graph after it; ``None`` if not in the log.
        changed_lines: number of new lines in the printed graph; ``None`` if the graph before it is not known.
    """

    name: str
    operators: int | None = None
    changed_lines: int | None = None


@dataclass(frozen=True)
class VllmPiece:
    """A compile of one piece of a model for a range of sizes.

    Attributes:
        submodule: name of the piece in the split graph.
        compile_range: smallest and largest number of tokens of the compile.
        cudagraph_size: whether it is a single size that vLLM compiles separately.
        operators: number of calls in the piece; ``None`` if not in the log.
        modules: numbers in ``ProgramRecord.modules``.
        passes: passes in order, if vLLM logged the graph after each.
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
        id: Dynamo's compile id; ``""`` if the log has none.
        event: vLLM's kind of compile (``fresh_compile``); ``""`` if not in the log.
        settings: vLLM's configuration, as name and value.
        submodules: pieces that the split graph calls, in order, including those that are not compiled (attention).
        pieces: the compiled pieces, in compile order.
        passes: passes over graphs whose piece is not in the log.
    """

    id: str
    event: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    submodules: tuple[str, ...] = ()
    pieces: tuple[VllmPiece, ...] = ()
    passes: tuple[VllmPass, ...] = ()
