"""Facts of a capture for exercises and questions, by name: each a number, or the reason why it is not known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..measures.ledger import ROW_FIGURES
from ..measures.operators import base_name, called
from ..measures.quantities import graphs
from ..measures.roofline import COMPUTE, MEMORY
from ..record.compilation import PHASES
from ..record.figures import AtLeast, Figure
from ..record.kernel import Kernel
from ..record.memory import Partition, saved_bytes
from ..results.capture import Capture
from ..views.words.quantities import counted
from .reference import LOOP
from .vector_loops import LoopBlock, loop_blocks, without_tails
from .wording import chinese, message

Number = int | Figure | AtLeast | None


@dataclass(frozen=True)
class Fact:
    """A number of a capture: its function, its noun in singular and plural, and the stages from which it is read
    (``"*.code"``: that of each phase)."""

    of: Callable[[Capture], Number]
    one: str
    many: str
    stages: tuple[str, ...] = ()


def _column(name: str, row: str = "total") -> Callable[[Capture], Number]:
    def of(capture: Capture) -> Number:
        phase_row = getattr(capture.ledger, row)
        value: Number = getattr(phase_row, name) if phase_row.exists else 0
        return value

    return of


def _saved(capture: Capture) -> Number:
    return sum(len(graph.saved) for c in capture.compilations if (graph := c.graphs.get("forward")))


def _partitions(of: Callable[[Partition], int | None]) -> Callable[[Capture], Number]:
    """Return a fact that sums a number over partitions; None if any is unknown."""

    def number(capture: Capture) -> Number:
        counts = [
            None if c.partition is None else of(c.partition)
            for c in capture.compilations
            if "forward" in c.graphs or c.partition is not None
        ]
        return None if None in counts else sum(n for n in counts if n is not None)

    return number


def _dynamo_calls(capture: Capture) -> Number:
    return sum(len(graph.calls) for c in capture.compilations if (graph := c.graphs.get("dynamo")))


def _patterns(capture: Capture) -> Number:
    rewrites = (rewrite for c in capture.compilations for step in c.passes for rewrite in step.rewrites)
    return sum(bool(rewrite.pattern) for rewrite in rewrites)


def _step(capture: Capture) -> Number:
    """Return the numbers per step of the widest block in the C++ kernels; None without a loop."""
    widths = [block.width for block in _cpp_blocks(capture) if block.width is not None]
    return max(widths, default=None)


def _tails(capture: Capture) -> Number:
    return sum(block.tail for block in _cpp_blocks(capture))


def _cpp_blocks(capture: Capture) -> list[LoopBlock]:
    return [block for kernel in _cpp(capture) for block in loop_blocks(kernel.source)]


def _sines(capture: Capture) -> Number:
    """Return the number of sines in the C++ kernels, without their tail loops, which repeat the body."""
    return sum(len(re.findall(r"\.sin\(\)|std::sin\(", without_tails(k.source))) for k in _cpp(capture))


def _intermediate(capture: Capture) -> Number:
    """Return the size of the largest intermediate buffer in elements of 4 bytes; None if a size is unknown."""
    if any(not {*c.code} <= {m.phase for m in c.memory} for c in capture.compilations):
        return None
    memory = (m for c in capture.compilations for m in c.memory)
    sizes = [b.nbytes for m in memory for b in m.buffers if b.kind == "intermediate"]
    return None if None in sizes else max((size // 4 for size in sizes if size is not None), default=0)


def _in_triton(pattern: str) -> Callable[[Capture], Number]:
    """Return a fact that counts a pattern in the Triton kernels."""

    def of(capture: Capture) -> Number:
        return sum(len(re.findall(pattern, k.source)) for k in capture.kernels if k.language == "triton")

    return of


def _cpp(capture: Capture) -> list[Kernel]:
    return [kernel for kernel in capture.kernels if kernel.language == "cpp"]


def _externs(capture: Capture) -> Number:
    return sum(kernel.launches for kernel in _library(capture))


def _library(capture: Capture) -> list[Kernel]:
    return [kernel for kernel in capture.kernels if kernel.language == "extern"]


def _library_calls_of(*functions: str) -> Callable[[Capture], Number]:
    """Return a fact that counts calls of library functions, by their bare names."""

    def of(capture: Capture) -> Number:
        return sum(k.launches for k in _library(capture) if base_name(called(k.name)) in functions)

    return of


_adding_calls = _library_calls_of("addmm", "baddbmm")
"""Library calls that multiply and add: Inductor turns ``x @ y + z`` into one."""

_det_calls = _library_calls_of("_linalg_det")


def _repeated(capture: Capture) -> Number:
    """Return how often a backward expands the gradient of one number to many, as for a sum."""
    backward = (graph for c in capture.compilations if (graph := c.graphs.get("backward")))
    return sum(node.target.startswith("aten.expand.") for graph in backward for node in graph.nodes)


def _not_modelled(capture: Capture) -> Number:
    """Return the number of kernels without a roofline verdict because their arithmetic is not known."""
    return sum(bound.kernel.flops is None for bound in capture.roofline().bounds)


def _short_products(capture: Capture) -> Number:
    """Return the number of memory-bound kernels with products of numbers of 16 bits or fewer."""
    bounds = (bound for bound in capture.roofline().bounds if bound.bound == MEMORY and bound.kernel.products)
    return sum(bound.kernel.dtype.startswith(_SHORT_TYPES) for bound in bounds)


_SHORT_TYPES = ("float16", "bfloat16", "float8", "int8", "uint8")


def _tensors(dtype: str) -> Callable[[Capture], Number]:
    """Return a fact that counts results of operators in ATen graphs whose type begins with ``dtype``."""

    def of(capture: Capture) -> Number:
        graphs = (
            c.graphs.get(name) for c in capture.compilations for name in ("inference", "forward", "backward")
        )
        outputs = (tensor for graph in graphs if graph for call in graph.calls for tensor in call.outputs)
        return sum(tensor.dtype.startswith(dtype) for tensor in outputs)

    return of


def _roundings(capture: Capture) -> Number:
    """Return the number of roundings to bfloat16 in the C++ kernels, without their tail loops."""
    return sum(len(_ROUNDING.findall(without_tails(kernel.source))) for kernel in _cpp(capture))


_ROUNDING = re.compile(r"\bconvert<at::BFloat16,|\bstatic_cast<at::BFloat16>\(tmp")
"""Conversion of a register or a number to bfloat16."""


def _graph_parts(recorded: bool) -> Callable[[Capture], Number]:
    """Return a fact that counts the parts that a GPU would record as CUDA graphs, or those that it could not."""

    def of(capture: Capture) -> Number:
        outcomes = [outcome for c in capture.compilations for outcome in c.cuda_graphs]
        if not outcomes or any(outcome.unknown_reason for outcome in outcomes):
            return None
        whole = 0 if recorded else sum(bool(outcome.skip_reason) for outcome in outcomes)
        return whole + sum(p.recorded == recorded for outcome in outcomes for p in outcome.partitions)

    return of


def _breaks(capture: Capture) -> Number:
    return sum(not (ending.frames and ending.frames[-1].file == LOOP) for ending in capture.breaks)


def _skipped(capture: Capture) -> Number:
    return sum(skip.file != LOOP for skip in capture.skipped)


_NOUNS = {
    "eager_ops": ("operator of eager PyTorch", "operators of eager PyTorch"),
    "aten_ops": ("ATen operator", "ATen operators"),
    "loops": ("loop before fusion", "loops before fusion"),
    "groups": ("group after fusion", "groups after fusion"),
    "launches": ("launch", "launches"),
    "bytes_before": ("byte before fusion", "bytes before fusion"),
    "bytes_after": ("byte after fusion", "bytes after fusion"),
}

_CODE = ("*.code",)

_STAGES = {
    "aten_ops": ("*",),
    "loops": ("*.loops",),
    "groups": ("*.groups",),
    "launches": _CODE,
    "bytes_before": ("*",),
    "bytes_after": ("*.groups",),
}
"""Stages from which the columns of the ledger are read."""

FACTS: dict[str, Fact] = {
    **{name: Fact(_column(name), *_NOUNS[name], _STAGES.get(name, ())) for name in ROW_FIGURES},
    "forward_launches": Fact(
        _column("launches", "forward"), "launch in the forward", "launches in the forward", ("forward.code",)
    ),
    "backward_launches": Fact(
        _column("launches", "backward"),
        "launch in the backward",
        "launches in the backward",
        ("backward.code",),
    ),
    "backward_ops": Fact(
        _column("aten_ops", "backward"),
        "ATen operator in the backward",
        "ATen operators in the backward",
        ("backward",),
    ),
    "saved": Fact(_saved, "value saved for the backward", "values saved for the backward", ("forward",)),
    "kept_by_default": Fact(
        _partitions(lambda cut: None if cut.default is None else len(cut.default)),
        "value saved by the default partitioner",
        "values saved by the default partitioner",
        ("forward",),
    ),
    "kept_bytes": Fact(
        _partitions(lambda cut: saved_bytes(cut.saved)),
        "byte saved besides inputs and results",
        "bytes saved besides inputs and results",
        ("forward",),
    ),
    "recomputed": Fact(
        _partitions(lambda cut: len(cut.recomputed)),
        "operator computed in both halves",
        "operators computed in both halves",
        ("forward",),
    ),
    "dynamo_calls": Fact(_dynamo_calls, "call of Dynamo", "calls of Dynamo", ("dynamo",)),
    "patterns": Fact(_patterns, "pattern that matched", "patterns that matched"),
    "apart_by_size": Fact(
        lambda capture: sum(not d.fused and d.reason == "different sizes" for d in capture.decisions),
        "pair of loops not fused because of their sizes",
        "pairs of loops not fused because of their sizes",
        ("*.groups",),
    ),
    "step": Fact(_step, "number at a time", "numbers at a time", _CODE),
    "tails": Fact(_tails, "tail", "tails", _CODE),
    "sines": Fact(_sines, "sine in the kernels", "sines in the kernels", _CODE),
    "masks": Fact(
        _in_triton(r"mask = \w+ < \w+"),
        "comparison with the number of elements",
        "comparisons with the number of elements",
        _CODE,
    ),
    "tiles": Fact(
        _in_triton(r"YBLOCK : tl\.constexpr"),
        "kernel with blocks of two dimensions",
        "kernels with blocks of two dimensions",
        _CODE,
    ),
    "triton_loops": Fact(
        _in_triton(r"\n +for \w+ in (?:tl\.)?range\("),
        "loop in Triton kernels",
        "loops in Triton kernels",
        _CODE,
    ),
    "own_kernels": Fact(
        lambda capture: sum(kernel.language != "extern" for kernel in capture.kernels),
        "kernel of the compiler's own",
        "kernels of the compiler's own",
        _CODE,
    ),
    "intermediate": Fact(
        _intermediate, "number in an intermediate result", "numbers in an intermediate result", _CODE
    ),
    "library_calls": Fact(_externs, "library call", "library calls", _CODE),
    "graphs": Fact(graphs, "graph", "graphs"),
    "handed": Fact(
        lambda capture: sum(bool(c.code) for c in capture.compilations),
        "graph compiled by itself",
        "graphs compiled by themselves",
        _CODE,
    ),
    "compute_bound": Fact(
        lambda capture: sum(one.bound == COMPUTE for one in capture.roofline().bounds),
        "compute-bound kernel",
        "compute-bound kernels",
        _CODE,
    ),
    "compilations": Fact(lambda capture: len(capture.compilations), "compilation", "compilations"),
    "det_calls": Fact(_det_calls, "call of the library's det", "calls of the library's det", _CODE),
    "adding_calls": Fact(_adding_calls, "library call that also adds", "library calls that also add", _CODE),
    "repeated": Fact(
        _repeated, "gradient repeated in the backward", "gradients repeated in the backward", ("backward",)
    ),
    "not_modelled": Fact(
        _not_modelled,
        "kernel whose arithmetic is not modelled",
        "kernels whose arithmetic is not modelled",
        _CODE,
    ),
    "short_products": Fact(
        _short_products,
        "memory-bound product of short numbers",
        "memory-bound products of short numbers",
        _CODE,
    ),
    "complex_values": Fact(_tensors("complex"), "complex tensor", "complex tensors", ("*",)),
    "bfloat16_values": Fact(
        _tensors("bfloat16"),
        "ATen operator with a bfloat16 result",
        "ATen operators with a bfloat16 result",
        ("*",),
    ),
    "roundings": Fact(
        _roundings, "rounding to bfloat16 in the kernels", "roundings to bfloat16 in the kernels", _CODE
    ),
    "user_launches": Fact(
        lambda capture: sum(
            k.launches for k in capture.kernels if "@triton_heuristics.user_autotune" in k.source
        ),
        "launch of a Triton kernel of yours",
        "launches of Triton kernels of yours",
        _CODE,
    ),
    "recorded_parts": Fact(
        _graph_parts(True), "part recorded as a CUDA graph", "parts recorded as CUDA graphs", _CODE
    ),
    "unrecorded_parts": Fact(
        _graph_parts(False),
        "part that no CUDA graph can record",
        "parts that no CUDA graph can record",
        _CODE,
    ),
    "breaks": Fact(_breaks, "graph break", "graph breaks"),
    "skipped": Fact(_skipped, "part that runs eagerly", "parts that run eagerly"),
}
"""All facts by name."""


def not_observed(name: str, capture: Capture) -> str:
    """Return why a fact is not known for a capture: one of its stages was not observed, or eager PyTorch may run other
    operators; ``""`` if it is known."""
    if name == "eager_ops" and capture.ledger.total.as_captured:
        return next(c.eager_note for c in capture.compilations if c.eager_note)
    wanted = {
        stage.replace("*", phase)
        for stage in FACTS[name].stages
        for phase in (PHASES if "*" in stage else ("",))
    }
    reasons = (m.message for c in capture.compilations for m in c.missing if m.stage in wanted)
    return next(reasons, "")


def absent(name: str, capture: Capture) -> str:
    """Return why a capture has no answer to a question about a fact; ``""`` if it has."""
    if capture.failure is not None:
        return message("capture failed")
    for stage in FACTS[name].stages:
        phase = stage.partition(".")[0]
        if phase in PHASES and not getattr(capture.ledger, phase).exists:
            return message("no backward")
        if phase == "*" and not capture.ledger.total.exists:
            return message("no graph")
    if name in _OF_CPP and capture.kernels and not _cpp(capture):
        return message("no C++")
    return not_observed(name, capture)


_OF_CPP = ("step", "tails", "sines", "roundings")
"""Facts that are read from C++ kernels."""


def value_text(name: str, value: Number) -> str:
    """Return the value of a fact with its noun."""
    one = many = _in_chinese(name)
    if not many:
        one, many = FACTS[name].one, FACTS[name].many
    if value is None and name == "step":
        return message("no loop")
    if value is None:
        return message("not known", noun=many.lstrip(MEASURES))
    return counted(value if isinstance(value, AtLeast) else Figure(value), one, many)


MEASURES = "个次对处 "
"""Chinese measure words, which are only used between a number and its noun."""


def _in_chinese(name: str) -> str:
    from .chinese import FACTS as nouns

    return nouns[name] if chinese() else ""
