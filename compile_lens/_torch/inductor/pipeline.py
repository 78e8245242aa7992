"""Inductor: what is lowered, its loops before fusion, its groups after, and the code it writes.

With *code only* the module that Inductor wrote is kept as text and never imported: nothing is built.
"""

from __future__ import annotations

import dataclasses
import types
from typing import Any

from ...record.graph import Graph
from ...record.kernel import Code
from .. import targets
from ..code import cpu_assembly, memory
from ..code import wrapper as code_text
from ..graphs import fx, passes
from ..graphs.provenance import Lineage
from ..ground.hooks import current, hook
from ..ground.recorder import Draft
from . import fusion, line_origins, loop_text, lowered_nodes, scheduler_nodes

RUN = "torch._inductor.graph:GraphLowering.run"
CODEGEN = "torch._inductor.scheduler:Scheduler.codegen"
MODULE = "torch._inductor.graph:GraphLowering._compile_to_module_lines"
KERNEL_ORIGINS = (
    "torch._inductor.debug:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.cpp:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.triton:set_kernel_post_grad_provenance_tracing",
)
BEFORE_FUSION = "torch._inductor.config:_pre_fusion_custom_pass"


def begin(draft: Draft, phase: str, lineage: Lineage) -> None:
    """Start recording the lowering of one phase."""
    draft.scratch["phase"] = {
        "lineage": lineage,
        "loops": [],
        "groups": [],
        "kernels": [],
        "loops text": [],
        "groups text": [],
    }
    line_origins.begin(draft)
    fusion.begin(draft)
    lowered_nodes.begin(draft)


def end(draft: Draft, phase: str) -> None:
    """Close the recording of one phase: loops and groups become graphs."""
    state = draft.scratch.pop("phase", None)
    line_origins.end(draft)
    fusion.end(draft, phase, state["groups"] if state is not None else ())
    lowered_nodes.end(draft, phase, state["loops"] if state is not None else ())
    if state is None:
        return
    for stage, before in (("loops", f"{phase}.post_grad"), ("groups", f"{phase}.loops")):
        if state[stage]:
            text = "\n".join(state[f"{stage} text"])
            draft.put(Graph(stage, phase, before, tuple(state[stage]), text))


@hook(RUN)
def run(draft: Draft, real: Any, lowering: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowering starts: the graph is what post-grad passes left. Bodies of ``cond`` lower in their own run."""
    state = draft.scratch.get("phase")
    if state is None or scheduler_nodes.prefix(lowering):
        return real(lowering, *args, **kwargs)
    lineage: Lineage = state["lineage"]
    gm = lowering.module
    passes.end(draft, gm)
    draft.put(
        fx.convert(gm, stage="post_grad", phase=draft.phase, before=draft.phase, origins=lineage.origins)
    )
    state["order"] = {n.name: i for i, n in enumerate(gm.graph.nodes)}
    draft.lap(f"{draft.phase}.post_grad")
    draft.doing = f"{draft.phase}.loops"
    return real(lowering, *args, **kwargs)


def before_fusion(users_pass: Any) -> Any:
    """A value for Inductor's ``_pre_fusion_custom_pass`` that records the loops; the user's own still runs."""

    def record(nodes: list[Any]) -> list[Any]:
        if users_pass is not None:
            nodes = users_pass(nodes)
        draft = current()
        state = draft.scratch.get("phase") if draft is not None else None
        if draft is None or state is None:
            return nodes
        lowering = _graph_in_progress()
        state["loops"] += scheduler_nodes.inputs(lowering, state["loops"])
        makers = scheduler_nodes.makers(nodes)
        for node in nodes:
            for part in scheduler_nodes.parts(node):
                loop = scheduler_nodes.loop(part, makers, lowering, state)
                state["loops"].append(loop)
                lowered_nodes.record(draft, part)
                state["loops text"].append(loop_text.describe(loop, part))
        draft.lap(f"{draft.phase}.loops")
        draft.doing = f"{draft.phase}.groups"
        return nodes

    return record


@hook(CODEGEN)
def codegen(draft: Draft, real: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    """Code generation starts: the scheduler's nodes are the groups that fusion made."""
    state = draft.scratch.get("phase")
    if state is not None:
        lowering = _graph_in_progress()
        state["groups"] += scheduler_nodes.inputs(lowering, state["groups"])
        makers = scheduler_nodes.makers(scheduler.nodes)
        for node in scheduler.nodes:
            group = scheduler_nodes.group(node, makers, lowering)
            state["groups"].append(group)
            state["groups text"].append(scheduler_nodes.summary(group))
        draft.lap(f"{draft.phase}.groups")
        draft.doing = f"{draft.phase}.code"
    return real(scheduler, *args, **kwargs)


def _kernel_origins(
    draft: Draft, real: Any, schedule: Any, kernel_name: Any, *args: Any, **kwargs: Any
) -> Any:
    state = draft.scratch.get("phase")
    if state is not None and kernel_name:
        nodes = schedule if isinstance(schedule, (list, tuple)) else [schedule]
        names = [n for node in nodes for n in _operations(node)]
        state["kernels"].append((str(kernel_name), tuple(dict.fromkeys(names))))
    return real(schedule, kernel_name, *args, **kwargs)


for _path in KERNEL_ORIGINS:
    hook(_path)(_kernel_origins)


@hook("torch._inductor.scheduler:Scheduler.codegen_extern_call")
def extern_call(draft: Draft, real: Any, scheduler: Any, node: Any, *args: Any, **kwargs: Any) -> Any:
    """A library call is written. Of some (scatters) Inductor does not say which node the call runs."""
    state = draft.scratch.get("phase")
    said = len(state["kernels"]) if state is not None else 0
    result = real(scheduler, node, *args, **kwargs)
    if state is not None and len(state["kernels"]) == said and not _graph_in_progress().cpp_wrapper:
        called = getattr(node.node, "op_overload", None) or getattr(node.node, "python_kernel_name", None)
        if called:
            state["kernels"].append((str(called), tuple(_operations(node))))
    return result


def _operations(node: Any) -> list[str]:
    """Names of the loops behind an entry of a kernel's schedule (which also holds markers)."""
    if hasattr(node, "get_nodes"):
        return [part.get_name() for part in node.get_nodes()]
    if hasattr(node, "get_operation_name"):
        return [node.get_operation_name()]
    return []


@hook(MODULE)
def module(draft: Draft, real: Any, lowering: Any, wrapper_code: Any, *args: Any, **kwargs: Any) -> Any:
    """The wrapper module is written: keep it, and stop here unless it is to be built."""
    state = draft.scratch.get("phase")
    if state is None:
        return real(lowering, wrapper_code, *args, **kwargs)
    phase = draft.phase
    text = code_text.repeatable(wrapper_code.value, list(draft.recorder.drafts.values()).index(draft))
    tree = code_text.parsed(text)
    kernels, flow, note = code_text.kernels(
        text, phase, state["kernels"], state["groups"], state["loops"], tree
    )
    kernels = line_origins.resolve(draft, kernels)
    draft.recorder.note(note)
    stamp = "built" if draft.recorder.build else "generated only"
    model, may_differ = targets.said_of(draft.recorder, kernels)
    written = Code(phase, text, stamp, _device(lowering), kernels, model, may_differ, flow)
    draft.put(written)
    memory.record(draft, lowering, tree or text)
    draft.lap(f"{phase}.code")
    if draft.recorder.build:
        result = real(lowering, wrapper_code, *args, **kwargs)
        draft.put(dataclasses.replace(written, kernels=cpu_assembly.built(result, kernels)))
        draft.lap(f"{phase}.build")
        return result
    if draft.recorder.interpret is not None:
        return _importable(lowering, draft.recorder.interpret(wrapper_code.value, lowering))
    return _not_built(lowering)


def _not_built(lowering: Any) -> Any:
    from ..code import not_built

    return _importable(
        lowering, types.SimpleNamespace(call=not_built.call, __file__=not_built.__file__, runner=None)
    )


def _importable(lowering: Any, made: Any) -> Any:
    """Inductor reads the file of the module it believes to have imported: one of ours, which says what it is."""
    from ..code import not_built

    lowering.cache_key = "compile_lens"
    lowering.cache_path = not_built.__file__
    lowering.cache_linemap = []
    return made


def _device(lowering: Any) -> str:
    kinds = [d for d in dict.fromkeys(getattr(lowering, "device_types", ())) if d != "meta"]
    ranked = [d for d in kinds if d != "cpu"] or kinds
    return str(ranked[0]) if ranked else "cpu"


def _graph_in_progress() -> Any:
    from torch._inductor.virtualized import V

    return V.graph
