"""Inductor's stages: the lowered graph, its loops before fusion, its groups after, and the generated code.

In a code-only capture the generated module is kept as text and never imported, and nothing is built.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

from ...record import claims
from ...record.graph import Graph, Node
from ...record.kernel import Code
from ...versions import torch_version
from .. import targets
from ..code import buffer_lifetimes, cpu_assembly
from ..code import wrapper as code_text
from ..graphs import fx, passes
from ..graphs.graph_chain import CHAIN
from ..graphs.provenance import Lineage
from ..ground import hook_points
from ..ground.hook_calls import passing
from ..ground.hooks import current, factory_hook, failed, in_slot, slot_hook
from ..ground.recorder import Draft, Slot
from . import (
    contests,  # noqa: F401  its hook is there once it is imported
    cuda_graphs,
    fusion,
    line_origins,
    lowered_nodes,
    saved_storage,
    scheduler_nodes,
    symbolic_values,  # noqa: F401  its hooks are there once it is imported
)

RUN = "torch._inductor.graph:GraphLowering.run"
CODEGEN = "torch._inductor.scheduler:Scheduler.codegen"
MODULE = "torch._inductor.graph:GraphLowering._compile_to_module_lines"
KERNEL_ORIGINS = (
    "torch._inductor.debug:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.cpp:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.triton:set_kernel_post_grad_provenance_tracing",
)
BEFORE_FUSION = hook_points.declare("torch._inductor.config:_pre_fusion_custom_pass", claims.LOOPS)


@dataclasses.dataclass
class StageNodes:
    """The recorded nodes of a stage in order, with the lines of its text."""

    nodes: list[Node] = dataclasses.field(default_factory=list)
    lines: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Lowering:
    """The stages of one phase recorded so far.

    Attributes:
        lineage: the lineage of the graph being lowered.
        order: position of each node in that graph after the post-grad passes.
        known: the recorded loops by name.
        kernels: names of each generated kernel and its loops, in the order of the text.
        static: positions of inputs whose address is fixed, as torch reports them.
    """

    draft: Draft
    lineage: Lineage
    order: dict[str, int] = dataclasses.field(default_factory=dict)
    loops: StageNodes = dataclasses.field(default_factory=StageNodes)
    groups: StageNodes = dataclasses.field(default_factory=StageNodes)
    known: dict[str, scheduler_nodes.RecordedLoop] = dataclasses.field(default_factory=dict)
    kernels: list[tuple[str, tuple[str, ...]]] = dataclasses.field(default_factory=list)
    static: tuple[int, ...] = ()


LOWERING: Slot[Lowering] = Slot()


def begin(draft: Draft, phase: str, lineage: Lineage, static: Sequence[int]) -> None:
    """Start recording the lowering of one phase."""
    LOWERING.put(draft, Lowering(draft, lineage, static=tuple(static)))
    draft.drop_lowering(phase)
    line_origins.begin(draft)
    fusion.begin(draft)
    lowered_nodes.begin(draft)


def end(draft: Draft, phase: str) -> None:
    """Finish recording one phase: turn loops and groups into graphs."""
    stages = LOWERING.take(draft)
    loops, groups = (stages.loops, stages.groups) if stages is not None else (StageNodes(), StageNodes())
    line_origins.end(draft)
    fusion.end(draft, phase, groups.nodes)
    lowered_nodes.end(draft, phase, loops.nodes)
    for stage, nodes, before in (
        ("loops", loops, f"{phase}.post_grad"),
        ("groups", groups, f"{phase}.loops"),
    ):
        if nodes.nodes:
            draft.put(Graph(stage, phase, before, tuple(nodes.nodes), "\n".join(nodes.lines)))


@slot_hook(RUN, LOWERING, claims.POST_GRAD)
def run(stages: Lowering, real: Any, lowering: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the graph after the post-grad passes when lowering starts; bodies of ``cond`` are lowered in nested
    runs."""
    if scheduler_nodes.prefix(lowering):
        return real(lowering, *args, **kwargs)
    draft = stages.draft
    gm = lowering.module
    passes.end(draft, gm)
    draft.put(
        fx.convert(
            gm, stage="post_grad", phase=draft.phase, before=draft.phase, origins=stages.lineage.origins
        )
    )
    stages.order = {n.name: i for i, n in enumerate(gm.graph.nodes)}
    draft.lap(f"{draft.phase}.post_grad")
    draft.current_stage = f"{draft.phase}.loops"
    return real(lowering, *args, **kwargs)


def before_fusion(users_pass: Any) -> Any:
    """Return a value for Inductor's ``_pre_fusion_custom_pass`` that records the loops and runs the user's own pass."""

    def record(nodes: list[Any]) -> list[Any]:
        if users_pass is not None:
            nodes = users_pass(nodes)
        stages = in_slot(LOWERING)
        if stages is None:
            return nodes
        try:
            _record_loops(stages, nodes)
        except Exception as error:
            failed(BEFORE_FUSION, error)
            stages.loops = StageNodes()
        draft = stages.draft
        draft.lap(f"{draft.phase}.loops")
        draft.current_stage = f"{draft.phase}.groups"
        return nodes

    return record


def _record_loops(stages: Lowering, nodes: list[Any]) -> None:
    draft, loops = stages.draft, stages.loops
    lowering = _graph_in_progress()
    loops.nodes += scheduler_nodes.inputs(lowering, loops.nodes)
    makers = scheduler_nodes.makers(nodes)
    parts = [part for node in nodes for part in scheduler_nodes.parts(node)]
    for part in parts:
        lowered_nodes.record(draft, part)
    recorded = [scheduler_nodes.loop(part, makers, lowering, stages.order) for part in parts]
    for part, loop in zip(parts, lowered_nodes.without_foreign_origins(draft, recorded)):
        loops.nodes.append(loop)
        stages.known[loop.name] = scheduler_nodes.recorded_loop(part, loop)
        loops.lines.append(scheduler_nodes.describe(loop, part))


@slot_hook(CODEGEN, LOWERING, claims.GROUPS)
def codegen(stages: Lowering, real: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the scheduler's nodes after fusion when codegen starts."""
    draft, groups = stages.draft, stages.groups
    lowering = _graph_in_progress()
    groups.nodes += scheduler_nodes.inputs(lowering, groups.nodes)
    makers = scheduler_nodes.makers(scheduler.nodes)
    for node in scheduler.nodes:
        group = scheduler_nodes.group(node, makers, lowering, stages.known)
        groups.nodes.append(group)
        groups.lines.append(scheduler_nodes.summary(group))
    if not scheduler_nodes.prefix(lowering):  # a branch's body belongs to the outer graph's partitions
        cuda_graph = cuda_graphs.recordable_parts(draft.phase, scheduler, lowering, stages.static)
        draft.cuda_graphs += [cuda_graph] if cuda_graph is not None else []
    draft.lap(f"{draft.phase}.groups")
    draft.current_stage = f"{draft.phase}.code"
    spec = draft.recorder.spec
    if claims.CODE in draft.recorder.lacking and not (spec.build or spec.interpret):
        raise Stopped
    return real(scheduler, *args, **kwargs)


def _kernel_origins(
    stages: Lowering, real: Any, schedule: Any, kernel_name: Any, *args: Any, **kwargs: Any
) -> Any:
    if kernel_name:
        nodes = schedule if isinstance(schedule, (list, tuple)) else [schedule]
        names = [n for node in nodes for n in _operations(node)]
        stages.kernels.append((str(kernel_name), tuple(dict.fromkeys(names))))
    return real(schedule, kernel_name, *args, **kwargs)


for _path in KERNEL_ORIGINS:
    slot_hook(_path, LOWERING, claims.KERNELS)(_kernel_origins)


@slot_hook(
    "torch._inductor.scheduler:Scheduler.codegen_extern_call", LOWERING, claims.KERNELS, claims.REFUSALS
)
def extern_call(stages: Lowering, real: Any, scheduler: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a generated library call; for some (scatters) Inductor does not report the node."""
    targets.check_library_call(stages.draft, node.node, scheduler_nodes.prefix(_graph_in_progress()))
    count = len(stages.kernels)
    result = real(scheduler, node, *args, **kwargs)
    if len(stages.kernels) == count and not _graph_in_progress().cpp_wrapper:
        called = _kernel_for_call(node.node) or getattr(node.node, "op_overload", None)
        called = called or getattr(node.node, "python_kernel_name", None)
        if called:
            stages.kernels.append((str(called), tuple(_operations(node))))
    return result


@slot_hook(
    "torch._inductor.codegen.simd:SIMDScheduling._codegen_mix_order_reduction", LOWERING, claims.KERNELS
)
def mix_order_reduction(
    stages: Lowering, real: Any, scheduling: Any, rows: Any, columns: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record a kernel that reduces rows and columns at once, and the library calls that combine its partial results.

    Inductor reports neither of them. Gradients of a normalisation's weights are an example.
    """
    wrapper = _graph_in_progress().wrapper_code
    first, count = len(wrapper.lines), len(stages.kernels)
    loops = dict.fromkeys([*_operations(rows), *_operations(columns)])
    result = real(scheduling, rows, columns, *args, **kwargs)
    lines = wrapper.lines[first:]
    name = next((n for line in lines if (n := getattr(line, "kernel_name", ""))), "")
    if not name:
        return result
    others = {loop for _, members in stages.kernels[count:] for loop in members}
    launched = [(str(name), tuple(loop for loop in loops if loop not in others))]
    for line in lines:
        buffer = re.match(r"\w+", line) if isinstance(line, str) else None
        written = buffer and scheduling.scheduler.name_to_buf.get(buffer[0])
        if written:
            writers = (written.defining_op_name(),)
            launched += [(call, writers) for call in code_text.library_calls(line)]
    stages.kernels[count:count] = launched
    return result


def _kernel_for_call(node: Any) -> str | None:
    """Return the name of the kernel generated for a node that the scheduler treats as a library call (Metal's
    FlexAttention)."""
    source = getattr(node, "shader_source", None)
    name = getattr(_graph_in_progress().wrapper_code, "src_to_kernel", {}).get(source) if source else None
    return None if name is None else str(name)


def _operations(node: Any) -> list[str]:
    """Return the names of the loops of an entry in a kernel's schedule, which also has markers."""
    if hasattr(node, "get_nodes"):
        return [part.get_name() for part in node.get_nodes()]
    if hasattr(node, "get_operation_name"):
        return [node.get_operation_name()]
    return []


@slot_hook(MODULE, LOWERING, claims.CODE)
def module(stages: Lowering, real: Any, lowering: Any, wrapper_code: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the generated wrapper module, and stop unless it is to be built."""
    draft, spec = stages.draft, stages.draft.recorder.spec
    written = None
    try:
        written = _record_code(stages, lowering, wrapper_code.value)
    except Exception as error:
        failed(MODULE, error)
    probe = spec.launch_probe if written is not None else None
    if probe is not None and written is not None:
        wrapper_code.value = probe.instrumented(wrapper_code.value, written, draft, lowering)
    if spec.build:
        result = real(lowering, wrapper_code, *args, **kwargs)
        if probe is not None:
            probe.attach(result, draft.id, draft.phase)
        if written is not None:
            kernels = cpu_assembly.with_assembly(result, written.kernels)
            draft.put(dataclasses.replace(written, kernels=kernels))
        draft.lap(f"{draft.phase}.build")
        return result
    if spec.interpret is not None:
        with passing():
            generated = spec.interpret(wrapper_code.value, lowering)
            if probe is not None:
                probe.attach(generated, draft.id, draft.phase)
        return _importable(lowering, generated)
    return _not_built(lowering)


def _record_code(stages: Lowering, lowering: Any, text: str) -> Code:
    draft, phase = stages.draft, stages.draft.phase
    text = code_text.repeatable(text, list(draft.recorder.drafts.values()).index(draft))
    tree = code_text.syntax_of(text)
    launched = [] if claims.KERNELS in draft.recorder.lacking else stages.kernels
    kernels, flow, note = code_text.kernels(
        text, phase, launched, stages.groups.nodes, stages.loops.nodes, tree
    )
    kernels = line_origins.resolve(draft, kernels)
    draft.recorder.note(note)
    stamp = "built" if draft.recorder.spec.build else "generated only"
    model, may_differ = targets.model_and_caveats(draft, kernels)
    written = Code(phase, text, stamp, _device(lowering), kernels, model, may_differ, flow)
    draft.put(written)
    followed = CHAIN.of(draft)
    results = followed.results if followed is not None and phase == "forward" else None
    buffer_lifetimes.record(draft, lowering, tree or text, results, stages.loops.nodes)
    if results is not None:
        saved_storage.reconcile(draft, lowering)
    draft.lap(f"{phase}.code")
    return written


class Stopped(BaseException):
    """Raised to stop before codegen if torch's build of the code could not be prevented."""


def not_built(*args: Any) -> Any:
    """Raise RuntimeError; replaces the compiled code of a graph for which none was built."""
    raise RuntimeError("the generated code was not built")


not_built._boxed_call = True  # type: ignore[attr-defined]


def _not_built(lowering: Any) -> Any:
    from torch._inductor import config

    from ..code import unbuilt_module

    first = config.cpp_wrapper and not lowering.cpp_wrapper
    call = unbuilt_module.call_before_cpp if first else unbuilt_module.call
    return _importable(
        lowering, types.SimpleNamespace(call=call, __file__=unbuilt_module.__file__, runner=None)
    )


def _importable(lowering: Any, generated: Any) -> Any:
    """Return the module, and set our file as its path in Inductor, which reads the file."""
    from ..code import unbuilt_module

    lowering.cache_key = "compile_lens"
    lowering.cache_path = unbuilt_module.__file__
    lowering.cache_linemap = []
    return generated


def _device(lowering: Any) -> str:
    kinds = [d for d in dict.fromkeys(getattr(lowering, "device_types", ())) if d != "meta"]
    ranked = [d for d in kinds if d != "cpu"] or kinds
    return str(ranked[0]) if ranked else "cpu"


def _graph_in_progress() -> Any:
    from torch._inductor.virtualized import V

    return V.graph


DTYPE_RULES = "torch._inductor.dtype_propagation:DtypePropagationOpsHandler.__init__"


def cached_dtype_rules(real: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return an ``__init__`` that sets up torch's rules for result dtypes only the first time, or if one was added
    since.

    The handler is a singleton, but Python runs its ``__init__`` at each request, thousands of times in a compile, which
    takes a twentieth of its time. Torch 2.15 itself skips it if no rule was added.
    """
    from torch._inductor.utils import op_dtype_propagation_rules as rules

    initialised: list[Any] = []

    def init(handler: Any) -> None:
        if current() is not None:
            now = [handler, *rules.values()]  # list equality compares identical elements by identity only
            if now == initialised:
                return
            initialised[:] = now
        real(handler)

    return init


if torch_version() < (2, 15):
    factory_hook(DTYPE_RULES)(cached_dtype_rules)
