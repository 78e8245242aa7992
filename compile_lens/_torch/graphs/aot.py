"""Observers of AOTAutograd: the graph after pre-grad passes, the joint graph, and the graphs passed to Inductor."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ...record import claims
from ..ground.hooks import hook
from ..ground.recorder import Draft
from . import fx, partitioner, passes, rewrite_origins
from . import graph_chain as following
from .graph_chain import InferenceTrace
from .provenance import Lineage, joint_origins, modules


@hook("torch._inductor.compile_fx:_recursive_pre_grad_passes", claims.PRE_GRAD, claims.REWRITES)
def pre_grad(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Record Inductor's pre-grad passes over the Dynamo graph, but not those over nested bodies."""
    chain = following.chain_of(draft)
    if chain.in_pre_grad:
        return real(gm, *args, **kwargs)
    draft.current_stage = "pre_grad"
    chain.in_pre_grad = True
    chain.current = lineage = chain.captured or Lineage(gm)
    try:
        with lineage.watching(gm), passes.record(draft, "pre_grad", gm, lineage.origins) as left:
            result = left(real(gm, *args, **kwargs))
    finally:
        chain.in_pre_grad = False
        chain.current = None
    origins = lineage.origins if lineage.follows(result.graph) else lineage.copied(result)
    draft.put(fx.convert(result, stage="pre_grad", before="dynamo", origins=origins))
    chain.prepared = Lineage(result)
    draft.lap("pre_grad")
    draft.current_stage = "joint"
    return result


@hook("torch._inductor.compile_fx:partition_fn", claims.JOINT, claims.SAVED, claims.REWRITES)
def partition(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Record the joint graph before Inductor's joint passes and the partitioner change it."""
    chain = following.chain_of(draft)
    lineage, key = chain.traced
    origins = joint_origins(lineage, gm) if lineage else None
    draft.put(fx.convert(gm, stage="joint", before=key, origins=origins))
    draft.lap("joint")
    draft.current_stage = "forward"
    chain.joint = chain.current = joint = Lineage(gm)
    _trace(draft, gm)
    with joint.watching(gm):
        forward, backward = real(gm, *args, **kwargs)
    count = kwargs.get("num_fwd_outputs")
    if isinstance(count, int):
        chain.saved = _saved(forward, count)
    chain.results = count
    partitioner.record(draft, forward, backward, count)
    draft.lap("forward")
    return forward, backward


@hook("torch._inductor.compile_fx:_recursive_joint_graph_passes", claims.REWRITES, claims.ORIGINS)
def joint_passes(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Record the joint passes; without a backward there is no joint graph, and they run over AOTAutograd's traced
    graph."""
    chain = following.chain_of(draft)
    lineage, _ = chain.traced
    joint = chain.joint
    inside = passes.PASSES.of(draft) is not None or chain.current is not joint
    if joint is not None and not inside:  # the joint graph itself, not a nested body
        with passes.record(draft, "forward", gm, joint.origins) as left:
            return left(real(gm, *args, **kwargs))
    if joint is not None or chain.inference_trace is not None or lineage is None:
        return real(gm, *args, **kwargs)
    origins = joint_origins(lineage, gm)
    chain.current = now = Lineage(gm)
    _trace(draft, gm)
    known = {path + n.name: origins(n) for path, module in modules(gm) for n in module.graph.nodes}
    chain.inference_trace = untouched = InferenceTrace(now, known)
    with now.watching(gm), passes.record(draft, "inference", gm, _inference_origins(untouched)) as left:
        return left(real(gm, *args, **kwargs))


def _trace(draft: Draft, gm: torch.fx.GraphModule) -> None:
    """Pass the graph before Inductor's passes to the launch probe, if there is one."""
    probe = draft.recorder.spec.launch_probe
    if probe is not None:
        with draft.recording("values of the graph"):
            probe.trace(draft.id, gm)


def _inference_origins(untouched: InferenceTrace) -> fx.Origins:
    """Return the origins of the traced graph's nodes after the joint passes."""
    known = untouched.origins

    def origins(node: torch.fx.Node) -> tuple[tuple[str, ...], str]:
        names, reason = untouched.lineage.origins(node)
        nodes = tuple(dict.fromkeys(o for n in names for o in known.get(n, ((), ""))[0]))
        reasons = [known[n][1] for n in names if n in known and known[n][1]]
        return nodes, "" if nodes else reason or (reasons[0] if reasons else "its origin has none itself")

    return origins


def _saved(forward: torch.fx.GraphModule, outputs: int) -> tuple[str, ...]:
    """Return the names of the values that the forward returns after the function's ``outputs``, for the backward."""
    output = next(n for n in reversed(forward.graph.nodes) if n.op == "output")
    kept = output.args[0][outputs:] if isinstance(output.args[0], (tuple, list)) else ()
    return tuple(dict.fromkeys(n.name for n in kept if isinstance(n, torch.fx.Node)))


@hook("torch._functorch._aot_autograd.graph_compile:_aot_stage2b_bw_compile")
def lower_backward(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Let the compiled backward run even if autograd keeps its graph (``create_graph``, ``retain_graph``).

    Torch lowers a backward on its first run, and donates no buffers if the graph is kept. A capture lowers it earlier,
    with donated buffers, and torch would refuse to run that code. With symbolic sizes torch itself lowers it early, and
    refuses too.
    """
    info, compiled = real(*args, **kwargs)
    spec = draft.recorder.spec
    given = inspect.signature(real).bind(*args, **kwargs).arguments
    metadata, config = given.get("fw_metadata"), given.get("aot_config")
    compiler = given.get("bw_compiler") or getattr(config, "bw_compiler", None)
    runs = spec.build or spec.interpret is not None
    donated = getattr(metadata, "bw_donated_idxs", None)
    if compiled is None or not runs or not donated or given.get("num_symints_saved_for_bw") != 0:
        return info, compiled
    graph, inputs = getattr(info, "bw_module", None), getattr(info, "placeholder_list", None)
    if compiler is None or graph is None or inputs is None:
        return info, compiled

    def lower_to_keep() -> Callable[..., Any]:
        return _lowered_to_keep(info, compiler, graph, inputs)

    assert metadata is not None
    metadata.bw_donated_idxs = []  # from here on only read to decide on refusal
    return info, _either_variant(compiled, lower_to_keep)


def _lowered_to_keep(info: Any, compiler: Any, graph: Any, inputs: Any) -> Callable[..., Any]:
    context = info.saved_context
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []
    with torch._guards.tracing(context), torch._guards.compile_context(info.saved_compile_context):
        lowered: Callable[..., Any] = compiler(copy.deepcopy(graph), inputs)
    return lowered


def _either_variant(compiled: Any, lower_to_keep: Callable[[], Any]) -> Callable[..., Any]:
    """Return a backward that selects between two variants; the one for a kept graph is lowered on first use."""
    kept: list[Any] = []

    def run(args: list[Any]) -> Any:
        variant = compiled
        if torch._C._autograd._get_current_graph_task_keep_graph():
            if not kept:
                kept.append(lower_to_keep())
            variant = kept[0]
        return variant(args) if getattr(variant, "_boxed_call", False) else variant(*args)

    either: Any = torch.compiler.disable(run)
    either._boxed_call = True
    return either  # type: ignore[no-any-return]


def handed_over(draft: Draft, phase: str, gm: torch.fx.GraphModule) -> Lineage:
    """Record the graph that AOTAutograd passes to Inductor for a phase; return its new lineage."""
    draft.phase = phase
    draft.current_stage = phase
    chain = following.chain_of(draft)
    joint = chain.joint
    with draft.recording(phase):
        if phase == "inference" or joint is None:
            lineage, key = chain.traced
            origins: fx.Origins | None = None
            if chain.inference_trace is not None:
                origins = _inference_origins(chain.inference_trace)
            elif lineage is not None:
                origins = joint_origins(lineage, gm)
            graph = fx.convert(gm, stage=phase, before=key, origins=origins)
        else:
            graph = fx.convert(gm, stage=phase, before="joint", origins=joint.copied(gm))
        if phase == "forward" and chain.saved is not None:
            object.__setattr__(graph, "saved", chain.saved)  # a new record, not shared yet
        draft.put(graph)
    rewrite_origins.clear_tags(gm)
    draft.lap(phase)
    draft.current_stage = f"{phase}.post_grad"
    chain.current = lineage = Lineage(gm)
    return lineage
