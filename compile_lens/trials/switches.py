"""Switches of Inductor and ``torch.compile`` that may change launches or bytes, when they cannot, and the code that
sets one.
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
    """One setting: Inductor options, arguments of ``capture``, partitioner settings, or arguments of ``torch.compile``
    that ``capture`` lacks (``compiling``); and its effect.

    ``idle`` returns why the switch changes nothing for a capture's contents; ``""`` if it may. ``run`` names a figure
    that is measured by a run, for this switch alone and not in pairs. ``parts`` are the names of ``merged`` switches.
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

    def in_force(self, settings: Mapping[str, str]) -> str:
        """Return why the switch changes nothing where torch's configs have its values; ``""`` if they have not."""
        values = {
            **{f"torch._inductor.config.{name}": value for name, value in self.options.items()},
            **{f"torch._functorch.config.{name}": value for name, value in self.partitioner.items()},
        }
        if not values or any(settings.get(name) != repr(value) for name, value in values.items()):
            return ""
        return f"it is set already: {', '.join(f'{name} = {value!r}' for name, value in values.items())}"

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
        self.settings = dict(capture.environment.settings)
        self.known = not any(m.stage.endswith(("loops", "groups")) for m in capture.missing)
        self.calls = {k.name for k in capture.kernels if k.language == "extern"}
        self.reasons = {d.reason for d in capture.decisions if not d.fused}
        self.buffers = {entry.reason for c in capture.compilations for entry in c.lowered}
        self.recompiled = bool(capture.recompiles)
        saved = OF_ALL["saved"](capture)
        self.saves_values = not isinstance(saved, Figure) or int(saved) > 0
        self.backward = any("backward" in c.phases for c in capture.compilations)

    def has(self, *names: str) -> bool:
        """Return True if an operator of one of these names is in the graphs."""
        return any(f".{name}." in f".{op}." for op in self.operators for name in names)


def _no_reduction(contents: CaptureContents) -> str:
    return "" if any(n.kind == "reduction" for n in contents.loops) else "nothing reduces"


def _single_group(contents: CaptureContents) -> str:
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
    most = contents.settings.get("torch._inductor.config.max_fusion_size", str(MAX_FUSED_LOOPS))
    return (
        ""
        if not most.isdigit() or len(contents.loops) > int(most)
        else f"there {'is' if len(contents.loops) == 1 else 'are'} {plural(len(contents.loops), 'loop')}, and one "
        f"kernel may hold {most}"
    )


def _not_compiled_again(contents: CaptureContents) -> str:
    return "" if contents.recompiled else "nothing was compiled again for another size"


def _nothing_saved(contents: CaptureContents) -> str:
    if not contents.backward:
        return "there is no backward to save anything for"
    return (
        "" if contents.saves_values else "nothing is saved for the backward but what the function was given"
    )


def _no_half(contents: CaptureContents) -> str:
    return "" if contents.dtypes & {"float16", "bfloat16"} else "nothing is computed in float16 or bfloat16"


def _no_user_kernel(contents: CaptureContents) -> str:
    return "" if contents.has("triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional") or any(
        "triton_kernel_wrapper" in op for op in contents.operators
    ) else "no Triton kernel of your own is called"  # fmt: skip


MAX_FUSED_LOOPS = 64
"""Maximum number of loops in one kernel by default (``max_fusion_size``)."""

_SAVED_SHARE = "of what the backward needs is saved, and the rest computed again"

SWITCHES = (
    Switch(
        "split_reductions", "a long reduction stays one loop, in place of two steps",
        {"split_reductions": False}, idle=_no_reduction,
    ),
    Switch(
        "combo_kernels", "kernels that do not wait for each other share one launch; each still reads for itself",
        {"combo_kernels": True}, idle=_gpu(_single_group),
    ),
    Switch(
        "score_fusion_memory_threshold", "loops fuse however few bytes they share",
        {"score_fusion_memory_threshold": 0}, idle=_single_group,
    ),
    Switch("aggressive_fusion", "loops fuse that share no data", {"aggressive_fusion": True}, idle=_single_group),
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
        "shape_padding", "matrix products are not padded to sizes that suit the device",
        {"shape_padding": False}, idle=_gpu(_without("matrix product", "mm", "addmm", "bmm")),
    ),
    Switch(
        "triton.persistent_reductions", "no reduction is kept whole in registers",
        {"triton.persistent_reductions": False}, idle=_gpu(_no_reduction),
    ),
    Switch(
        "triton.cooperative_reductions", "several blocks work on one reduction, and wait for each other",
        {"triton.cooperative_reductions": True}, idle=_gpu(_no_reduction),
    ),
    Switch(
        "epilogue_fusion_user_defined_triton_kernel", "what follows a Triton kernel of your own is added to it",
        {"epilogue_fusion_user_defined_triton_kernel": True}, idle=_gpu(_no_user_kernel),
    ),
    Switch(
        "cpp.fallback_scatter_reduce_sum", "a scattered sum is generated, in place of a library call",
        {"cpp.fallback_scatter_reduce_sum": False}, idle=_cpu(_no_scattered_sum),
    ),
    Switch(
        "cpp.max_horizontal_fusion_size", "more independent loops share a loop nest",
        {"cpp.max_horizontal_fusion_size": 64}, idle=_cpu(_single_group),
    ),
    Switch(
        "reorder_for_peak_memory", "kernels run in the order of the program, not in that of the least memory",
        {"reorder_for_peak_memory": False}, idle=_single_group,
    ),
    *(
        Switch(name, saved, partitioner={"activation_memory_budget": budget}, idle=_nothing_saved)
        for name, budget, saved in (
            ("activation_memory_budget=0.75", 0.75, f"at most three quarters {_SAVED_SHARE}"),
            ("activation_memory_budget", 0.5, f"at most half {_SAVED_SHARE}"),
            ("activation_memory_budget=0.25", 0.25, f"at most a quarter {_SAVED_SHARE}"),
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
"""Switches that change a default. Settings that affect neither launches nor bytes, or break code, are left out."""


def only_run(contents: CaptureContents) -> tuple[tuple[str, str], ...]:
    """Return the settings whose effect only a run shows, each with the reason; max-autotune even if it has no
    choice."""
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
    """Return True if a float32 product or convolution may use lower precision, which GPUs before sm_80 lack."""
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
        return f"{reasons[0]}: it chooses only launch configurations, by timing on the device: {_TIMES}"
    if not reasons:
        if contents.device == "cpu":
            return "it times templates of matrix products on a CPU, and there is no matrix product"
        return (
            "there is no matrix product, convolution or attention of which it would time templates: it chooses only "
            "launch configurations, by timing on the device: {_TIMES}"
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
    """Return several switches as one."""
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


SHARED_ARGUMENTS = ("dynamic", "mode", "fullgraph")
"""Arguments that ``torch.compile`` shares with ``capture``, in addition to ``options``."""


def applied(fn: Any, switch: Switch, given: Mapping[str, Any]) -> str:
    """Return the code that compiles ``fn`` with a switch and with the options given to ``capture``.

    The last line is the call. If an Inductor option is not a literal, such as a pass, the code refers to the given
    options as ``options``.
    """
    lines = []
    if switch.partitioner:
        lines.append("import torch._functorch.config")
        lines += [f"torch._functorch.config.{name} = {_text(v)}" for name, v in switch.partitioner.items()]
    parts = [_name(fn)]
    own = dict(given.get("options") or {})
    if own or switch.options:
        parts.append(f"options={_options(own, switch.options)}")
    more = {name: given[name] for name in SHARED_ARGUMENTS if given.get(name) not in (None, False)}
    if given.get("dynamic") is False:
        more["dynamic"] = False
    parts += [
        f"{name}={_text(value)}" for name, value in {**more, **switch.arguments, **switch.compiling}.items()
    ]
    return "\n".join((*lines, f"torch.compile({', '.join(parts)})"))


def _name(fn: Any) -> str:
    """Return the name of a function in its source; ``model`` for a module, ``f`` if there is no name."""
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
