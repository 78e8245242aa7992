"""Switches of Inductor and of ``torch.compile`` that can change what is launched or moved, and when they cannot.

And the code that turns one in a program.
"""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from ..measures.chain import walk
from ..measures.quantities import OF_ALL
from ..record import syntax
from ..record.autotuning import TEMPLATES, no_template_reason
from ..record.capture import Record
from ..record.figures import Figure
from ..record.graph import Node
from ..views.words.quantities import plural


@dataclass(frozen=True)
class Switch:
    """One setting: options of Inductor's, arguments of ``capture``, settings of the partitioner, or arguments of
    ``torch.compile`` that ``capture`` has not; what it does, and why it cannot matter.

    ``idle`` gives, for what a capture holds, the reason why turning it changes nothing; ``""`` where it may. ``run`` is
    a figure that is measured for this switch alone, in a run: it is in no pair. ``parts`` are the names of those that
    were ``merged``.
    """

    name: str
    meaning: str
    options: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    partitioner: dict[str, Any] = field(default_factory=dict)
    compiling: dict[str, Any] = field(default_factory=dict)
    run: str = ""
    idle: Callable[[CaptureContents], str] = lambda contents: ""
    parts: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings of the switch, as ``name=value``."""
        return tuple(f"{name}={value!r}" for name, value in self.values.items())

    @property
    def values(self) -> dict[str, Any]:
        """Value of each setting."""
        return {**self.options, **self.arguments, **self.partitioner, **self.compiling}


class CaptureContents:
    """Contents of a capture that switches depend on."""

    def __init__(self, capture: Record) -> None:
        graphs = [g for c in capture.compilations for g in c.graphs.values()]
        nodes = [(g.stage, n) for g in graphs for _, n in walk(g)]
        self.device = (
            capture.environment.target.partition(":")[0] or capture.environment.device.partition(":")[0]
        )
        if capture.target is not None:
            self.device = capture.target.model.device
        computing = [n for stage, n in nodes if stage in ("forward", "backward", "inference", "post_grad")]
        self.operators = {n.target for n in computing}
        self.dtypes = {o.dtype for n in computing if n.op == "call_function" for o in n.outputs}
        self.model = capture.target.model if capture.target is not None else None
        self.products = {
            (name, n.outputs[0].dtype if n.outputs else "")
            for n in computing
            if n.op == "call_function"
            for name in TEMPLATES
            if f".{name}." in f".{n.target}."
        }
        self.loops: list[Node] = [n for stage, n in nodes if stage == "loops" and n.op == "loop"]
        self.groups = sum(n.kind != "nop" for stage, n in nodes if stage == "groups" and n.op == "group")
        self.known = not any(m.stage.endswith(("loops", "groups")) for m in capture.missing)
        self.calls = {k.name for k in capture.kernels if k.language == "extern"}
        self.reasons = {d.reason for d in capture.decisions if not d.fused}
        self.buffers = {entry.reason for c in capture.compilations for entry in c.lowered}
        self.recompiled = bool(capture.recompiles)
        kept = OF_ALL["saved"](capture)
        self.kept = not isinstance(kept, Figure) or int(kept) > 0
        self.backward = any("backward" in c.phases for c in capture.compilations)

    def has(self, *names: str) -> bool:
        """Return True if an operator of one of these names is in the graphs."""
        return any(f".{name}." in f".{op}." for op in self.operators for name in names)


def _no_reduction(contents: CaptureContents) -> str:
    return "" if any(n.kind == "reduction" for n in contents.loops) else "nothing reduces"


def _alone(contents: CaptureContents) -> str:
    return "" if contents.groups > 1 else "there is no more than one group: nothing is left to fuse"


def _only_on(
    device: str, devices: str, then: Callable[[CaptureContents], str]
) -> Callable[[CaptureContents], str]:
    return lambda contents: (
        then(contents)
        if contents.device == device
        else f"it is for {devices}, and the code is for {contents.device}"
    )


_gpu = partial(_only_on, "cuda", "GPUs")
_cpu = partial(_only_on, "cpu", "CPUs")


def _without(what: str, *names: str) -> Callable[[CaptureContents], str]:
    return lambda contents: "" if contents.has(*names) else f"there is no {what}"


_no_scattered_sum = _without("scattered sum", "scatter_reduce", "scatter_add", "index_put")


def _all_inlined(contents: CaptureContents) -> str:
    large = contents.buffers & {"many readers", "many operations", "many reads"}
    return "" if large else "no value was given a buffer for the size of its expression"


def _few_loops(contents: CaptureContents) -> str:
    return (
        ""
        if len(contents.loops) > FUSED
        else f"there {'is' if len(contents.loops) == 1 else 'are'} {plural(len(contents.loops), 'loop')}, and one "
        f"kernel may hold {FUSED}"
    )


def _not_compiled_again(contents: CaptureContents) -> str:
    return "" if contents.recompiled else "nothing was compiled again for another size"


def _nothing_kept(contents: CaptureContents) -> str:
    if not contents.backward:
        return "there is no backward to save anything for"
    return "" if contents.kept else "nothing is saved for the backward but what the function was given"


def _no_half(contents: CaptureContents) -> str:
    return "" if contents.dtypes & {"float16", "bfloat16"} else "nothing is computed in float16 or bfloat16"


def _no_kernel_of_the_users(contents: CaptureContents) -> str:
    return "" if contents.has("triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional") or any(
        "triton_kernel_wrapper" in op for op in contents.operators
    ) else "no Triton kernel of your own is called"  # fmt: skip


FUSED = 64
"""Loops that one kernel holds by default (``max_fusion_size``)."""

_OF_WHAT = "of what the backward needs is saved, and the rest computed again"

SWITCHES = (
    Switch(
        "split_reductions", "a long reduction stays one loop, in place of two steps",
        {"split_reductions": False}, idle=_no_reduction,
    ),
    Switch(
        "combo_kernels", "kernels that do not wait for each other share one launch; each still reads for itself",
        {"combo_kernels": True}, idle=_gpu(_alone),
    ),
    Switch(
        "score_fusion_memory_threshold", "loops fuse however few bytes they share",
        {"score_fusion_memory_threshold": 0}, idle=_alone,
    ),
    Switch("aggressive_fusion", "loops fuse that share no data", {"aggressive_fusion": True}, idle=_alone),
    Switch(
        "max_fusion_size", "one kernel may hold more loops", {"max_fusion_size": 512}, idle=_few_loops,
    ),
    Switch(
        "realize_reads_threshold", "a value that is read more than once stays inlined, however much it reads",
        {"realize_reads_threshold": 64}, idle=_all_inlined,
    ),
    Switch(
        "realize_opcount_threshold", "a value that is read more than once stays inlined, however long its expression",
        {"realize_opcount_threshold": 1000}, idle=_all_inlined,
    ),
    Switch(
        "force_pointwise_cat", "a concatenation is computed in one kernel, piece by piece",
        {"force_pointwise_cat": True}, idle=_without("concatenation", "cat"),
    ),
    Switch(
        "layout_optimization", "convolutions keep the layout of their inputs",
        {"layout_optimization": False}, idle=_without("convolution", "convolution"),
    ),
    Switch(
        "shape_padding", "matrix products are not padded to sizes that a device likes",
        {"shape_padding": False}, idle=_gpu(_without("matrix product", "mm", "addmm", "bmm")),
    ),
    Switch(
        "triton.persistent_reductions", "no reduction is kept whole in registers",
        {"triton.persistent_reductions": False}, idle=_gpu(_no_reduction),
    ),
    Switch(
        "triton.cooperative_reductions", "several blocks work at one reduction, and wait for each other",
        {"triton.cooperative_reductions": True}, idle=_gpu(_no_reduction),
    ),
    Switch(
        "epilogue_fusion_user_defined_triton_kernel", "what follows a Triton kernel of your own is added to it",
        {"epilogue_fusion_user_defined_triton_kernel": True}, idle=_gpu(_no_kernel_of_the_users),
    ),
    Switch(
        "cpp.fallback_scatter_reduce_sum", "a scattered sum is generated, in place of a library call",
        {"cpp.fallback_scatter_reduce_sum": False}, idle=_cpu(_no_scattered_sum),
    ),
    Switch(
        "cpp.max_horizontal_fusion_size", "more independent loops share a loop nest",
        {"cpp.max_horizontal_fusion_size": 64}, idle=_cpu(_alone),
    ),
    Switch(
        "reorder_for_peak_memory", "kernels run in the order of the program, not in that of the least memory",
        {"reorder_for_peak_memory": False}, idle=_alone,
    ),
    *(
        Switch(name, saved, partitioner={"activation_memory_budget": budget}, idle=_nothing_kept)
        for name, budget, saved in (
            ("activation_memory_budget=0.75", 0.75, f"at most three quarters {_OF_WHAT}"),
            ("activation_memory_budget", 0.5, f"at most half {_OF_WHAT}"),
            ("activation_memory_budget=0.25", 0.25, f"at most a quarter {_OF_WHAT}"),
            ("activation_memory_budget=0", 0.0, "only inputs are saved, and all that is needed computed again"),
        )
    ),
    Switch("pattern_matcher", "no pattern of operators is rewritten", {"pattern_matcher": False}),
    Switch(
        "dynamic", "one variant for every size, instead of one for each",
        arguments={"dynamic": True}, idle=_not_compiled_again,
    ),
    Switch(
        "emulate_precision_casts", "half precision is rounded where eager rounds it: nearer to eager, not to the truth",
        {"emulate_precision_casts": True}, run="disagreement", idle=_no_half,
    ),
    Switch(
        "isolate_recompiles", "cache entries of its own, which others with the same code neither meet nor fill",
        compiling={"isolate_recompiles": True}, run="recompiles",
    ),
)  # fmt: skip
"""Each is a change of the default: what is not listed changes neither launches nor bytes, or breaks code."""


def only_run(contents: CaptureContents) -> tuple[tuple[str, str], ...]:
    """Return the questions that only a run can answer, and why; max-autotune too where it has no choice."""
    graphs = (
        "it replays the launches that there are as one CUDA graph, which saves the time between them: "
        'benchmark(f, x, mode="reduce-overhead") times it'
        if contents.device == "cuda"
        else f"it makes CUDA graphs, and the code is for {contents.device}"
    )
    questions = [("mode='max-autotune'", _autotune(contents)), ("mode='reduce-overhead'", graphs)]
    if _tf32(contents):
        questions.append(_PRECISION)
    if contents.device == "cpu":
        questions.append(_VECTORS)
    return tuple(questions)


def _tf32(contents: CaptureContents) -> bool:
    """Return True if a float32 product or convolution may be computed in lower precision: not on GPUs before sm_80."""
    major = contents.model.figure("major") if contents.model is not None else None
    old = contents.device == "cuda" and isinstance(major, int) and major < 8
    return (
        contents.device != "mps"
        and not old
        and any(dtype in ("float32", "") for _, dtype in contents.products)
    )


def _autotune(contents: CaptureContents) -> str:
    if contents.device == "mps":
        return f"{no_template_reason('mps', contents.model, 'mm')}, nor launch configurations: there is nothing to time"
    reasons = [no_template_reason(contents.device, contents.model, *one) for one in sorted(contents.products)]
    if reasons and all(reasons):
        if contents.device == "cpu":
            return f"it has nothing to time: {reasons[0]}"
        return f"{reasons[0]}: it chooses launch configurations alone, by timing on the device: {_TIMES}"
    if not reasons:
        if contents.device == "cpu":
            return "it times templates of matrix products on a CPU, and there is no matrix product"
        return (
            "there is no matrix product, convolution or attention of which it would time templates: it chooses "
            f"launch configurations alone, by timing on the device: {_TIMES}"
        )
    return f"it chooses by timing on the device, which the code alone does not show: {_TIMES}"


_TIMES = 'benchmark(f, x, mode="max-autotune") times it'
_PRECISION = (
    "precision of matrix products (TF32)",
    "it changes time and accuracy, no launch and no byte: benchmark it without and with "
    'torch.set_float32_matmul_precision("high") before it',
)
_VECTORS = (
    "width of vectors (cpp.simdlen)",
    "it changes time, no launch and no byte: benchmark it without and with "
    'options={"cpp.simdlen": 256}, or another number of bits',
)


def merged(some: Iterable[Switch]) -> Switch:
    """Several switches as one."""
    every = tuple(some)
    return Switch(
        " + ".join(s.name for s in every),
        "; ".join(s.meaning for s in every),
        {k: v for s in every for k, v in s.options.items()},
        {k: v for s in every for k, v in s.arguments.items()},
        {k: v for s in every for k, v in s.partitioner.items()},
        {k: v for s in every for k, v in s.compiling.items()},
        parts=tuple(s.name for s in every),
    )


TAKEN = ("dynamic", "mode", "fullgraph")
"""Arguments that ``torch.compile`` shares with ``capture``, beside ``options``."""


def applied(fn: Any, switch: Switch, given: Mapping[str, Any]) -> str:
    """Return the code that compiles ``fn`` with a switch turned, and with the options given to ``capture``.

    The last line is the call, on one line. A value among Inductor's options that cannot be written as a literal, such
    as a pass, stands in a name, ``options``: what was given.
    """
    lines = []
    if switch.partitioner:
        lines.append("import torch._functorch.config")
        lines += [f"torch._functorch.config.{name} = {_text(v)}" for name, v in switch.partitioner.items()]
    parts = [_name(fn)]
    own = dict(given.get("options") or {})
    if own or switch.options:
        parts.append(f"options={_options(own, switch.options)}")
    more = {name: given[name] for name in TAKEN if given.get(name) not in (None, False)}
    if given.get("dynamic") is False:
        more["dynamic"] = False
    parts += [
        f"{name}={_text(value)}" for name, value in {**more, **switch.arguments, **switch.compiling}.items()
    ]
    return "\n".join((*lines, f"torch.compile({', '.join(parts)})"))


def _name(fn: Any) -> str:
    """Return the name of a function in its source, or one for a function that has none."""
    name = getattr(fn, "__name__", "")
    if isinstance(fn, torch.nn.Module):
        return "model"
    return name if inspect.isfunction(fn) and name.isidentifier() and not keyword.iskeyword(name) else "f"


def _options(own: dict[str, Any], turned: dict[str, Any]) -> str:
    literal = all(_literal(value) for value in own.values())
    written = {**own, **turned} if literal else turned
    items = [f"{json.dumps(name)}: {_text(value)}" for name, value in written.items()]
    return "{" + ", ".join(items if literal else ("**options", *items)) + "}"


def _literal(value: Any) -> bool:
    try:
        same = syntax.literal(repr(value))
    except (ValueError, SyntaxError):
        return False
    return type(same) is type(value) and bool(same == value)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)
