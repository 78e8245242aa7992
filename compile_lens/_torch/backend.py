"""The inspect backend: compiles a Dynamo graph with Inductor and records every stage.

*Code only*: lowering, fusion and codegen run for forward and backward, and nothing is built. Eager PyTorch runs the
graph that Dynamo captured for the call's result, bit for bit that of the function without a compiler, with autograd as
usual. *Built*: the result comes from the compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ..record import claims
from ..record.divergence import OPERATOR
from . import targets
from .frames import dynamo, graph_breaks, skipped_frames
from .graphs import (
    aot,
    compile_shortcuts,
    cpu_execution,
    decompositions,  # noqa: F401  importing it registers its hook
    eager_count,
    fx,
    partial_graph,
    passes,
)
from .graphs.graph_chain import CHAIN, GraphChain
from .graphs.provenance import Lineage
from .ground import hook_points, hooks
from .ground.recorder import Draft, Recorder
from .ground.transformations import LIMIT
from .ground.undo import Undo
from .inductor import pipeline

GRAPH_OF_DYNAMO = "graph of Dynamo, compiled and run eagerly"
"""Name of a backend that compiles with AOTAutograd but runs the graph from Dynamo. With the backend ``eager`` that
graph may be another one, since AOTAutograd can make Dynamo trace again."""


def make(recorder: Recorder) -> Callable[..., Any]:
    """Return a Dynamo backend that records into ``recorder``."""

    def compile_lens_backend(gm: torch.fx.GraphModule, example_inputs: list[Any], **ignored: Any) -> Any:
        code = getattr(translator(), "f_code", None)
        draft = _fresh_draft(recorder, code)
        try:
            with hooks.compiling(draft):
                return _with_run_notes(recorder, draft, _compile(recorder, draft, gm, example_inputs))
        except torch._dynamo.exc.RestartAnalysis:
            recorder.restart(draft)
            raise
        except torch._dynamo.exc.SkipFrame as error:  # no graph of the frame is compiled
            recorder.restart(draft)
            skipped_frames.skip_by_compiler(recorder, code, error)
            raise
        except BaseException as error:
            if graph_breaks.becomes_break(error, translator()):
                recorder.restart(draft)  # Dynamo compiles up to an earlier line, or nothing
            else:
                recorder.fail(draft)
            raise

    setattr(compile_lens_backend, dynamo.RECORDER_ATTRIBUTE, recorder)
    return compile_lens_backend


def _with_run_notes(recorder: Recorder, draft: Draft, compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``compiled``, in a capture of several calls wrapped so that each run is noted."""
    if not recorder.frames.calls:
        return compiled

    def run(*args: Any) -> Any:
        recorder.note_run(draft)
        return compiled(*args)

    return run


def _fresh_draft(recorder: Recorder, code: Any) -> Draft:
    """Return a draft for this compile. If Dynamo calls the backend several times for one compile (for a graph that is
    split, as for DDP's buckets), each part gets a draft."""
    for part in range(1_000_000):
        draft = dynamo.current_draft(recorder, code, part)
        if "dynamo" not in draft.stages and "dynamo" not in draft.lost:
            return draft
    raise AssertionError("a frame with a million graphs")


def translator() -> Any:
    """Return Dynamo's ``InstructionTranslator`` of the frame that it is compiling, or None outside of Dynamo."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    try:
        return InstructionTranslator.current_tx()
    except AttributeError:  # the backend was called outside of Dynamo
        return None


def _compile(recorder: Recorder, draft: Draft, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
    from torch._inductor.compile_fx import compile_fx

    with draft.recording("dynamo"):
        draft.put(fx.convert(gm, stage="dynamo"))
    if draft.ending is None:
        with draft.recording("why the graph ends", claims.BREAKS):
            draft.ending = graph_breaks.ending(getattr(gm, "compile_subgraph_reason", None))
    with draft.recording("sizes", claims.SIZES):
        context = torch._guards.TracingContext.try_get()
        shapes = getattr(getattr(context, "fake_mode", None), "shape_env", None)
        draft.dynamic = dynamo.with_environment_symbols(dynamo.dynamic_dims(gm), shapes)
    with draft.recording("aliases of inputs"):
        draft.aliased = fx.aliases_inputs(gm)
    CHAIN.put(draft, GraphChain(Lineage(gm)))
    targets.check_devices(draft, gm)
    draft.lap("dynamo")
    spec = recorder.spec
    if spec.limit is not None:
        LIMIT.put(draft, spec.limit)
    # Ablation steps, and attempts of a search for a cause, compile the same graph as their capture.
    if not (spec.step or spec.limit or spec.backend):
        stand_in = recorder.target.stand_in
        device = None if stand_in is None else stand_in.device
        draft.eager_note = "eager operators were not counted"
        with draft.recording("eager operators"):
            draft.eager, draft.eager_note = eager_count.count(
                gm, example_inputs, recorder.spec.backward, device
            )
            if draft.eager is not None:
                draft.eager_note = draft.eager_note or _other_path(recorder)
    recorder.clock.lap("eager count")
    runnable = None if recorder.spec.build or recorder.spec.interpret is not None else copy_graph(gm)
    with Undo() as undo, undo:
        if recorder.spec.backward:
            # Lower the backward with the forward, in this thread and under these hooks, not at .backward().
            undo.enter(torch._functorch.config.patch(force_non_lazy_backward_lowering=True))
        draft.current_stage = "pre_grad"
        if spec.limit is not None and spec.limit.kind == OPERATOR:
            return partial_graph.partly_compiled(
                gm, spec.limit, draft, lambda *part: _compile_unrecorded(recorder, *part)
            )
        if spec.backend:
            return _compile_unrecorded(recorder, gm, example_inputs)
        compiled = compile_fx(
            gm,
            example_inputs,
            inner_compile=_inner_compile(recorder, draft),
            config_patches=patches(recorder),
        )
    if runnable is not None:  # built code may lower its backward later
        draft.slots.clear()
    recorder.clock.lap("rest of the compile")
    if runnable is None:
        return compiled
    stand_in = recorder.target.stand_in
    if stand_in is None:
        return runnable.forward
    return _raise_if_refused(draft, cpu_execution.runnable(runnable, stand_in.device, stand_in.queries))


def _other_path(recorder: Recorder) -> str:
    """Return a sentence on a program that may run other operators where it is not compiled; ``""`` for others."""
    if function := recorder.frames.current.other_path:
        return f"of the captured graph; {function} asks whether it is compiled: eager PyTorch may run other operators"
    if claims.OTHER_PATHS in recorder.lacking:
        return "of the captured graph; whether the program asks if it is compiled was not observed"
    return ""


def _compile_unrecorded(
    recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[Any]
) -> Callable[..., Any]:
    """Compile a graph with the backend of an attempt, without recording; return the compiled callable."""
    from torch._inductor.compile_fx import compile_fx

    name = recorder.spec.backend
    compiled: Callable[..., Any]
    if name == GRAPH_OF_DYNAMO:
        compiled = copy_graph(gm).forward
        torch._dynamo.lookup_backend("aot_eager_default_partitioner")(gm, inputs)
    elif name:
        compiled = torch._dynamo.lookup_backend(name)(gm, inputs)
    else:
        compiled = compile_fx(gm, inputs, config_patches=patches(recorder))
    return compiled


def _raise_if_refused(draft: Draft, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run``; if the generated code has a call that the device refuses, a function that raises the device's
    error."""
    if not draft.refused:
        return run

    def refused(*args: Any) -> Any:
        raise draft.refused[0].error

    return refused


def patches(recorder: Recorder) -> dict[str, Any]:
    """Return Inductor's settings for a capture: the caller's, without caches, which could hide a stage, and without
    probes of the compiler unless it builds."""
    import torch._inductor.config as config

    ours = dict(recorder.spec.patches)
    ours["force_disable_caches"] = True
    ours["save_args"] = False  # it would pickle the graph to a file, which a capture's hooks prevent
    if not recorder.spec.build:
        ours["cpp.vec_isa_ok"] = True
        ours["compile_threads"] = 1
    if recorder.target.stand_in is not None:
        ours |= recorder.target.stand_in.settings(ours)
    if hook_points.find(pipeline.BEFORE_FUSION) is not None:
        users = ours.get("_pre_fusion_custom_pass", config._pre_fusion_custom_pass)
        ours["_pre_fusion_custom_pass"] = pipeline.before_fusion(users)
    return ours


def _inner_compile(recorder: Recorder, draft: Draft) -> Callable[..., Any]:
    """Return a replacement for Inductor's ``compile_fx_inner``, which AOTAutograd calls with each graph."""

    def inner_compile(gm: torch.fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
        from torch._inductor.compile_fx import compile_fx_inner

        phase = (
            "backward"
            if kwargs.get("is_backward")
            else "inference"
            if kwargs.get("is_inference")
            else "forward"
        )
        with hooks.compiling(draft):
            lineage = aot.handed_over(draft, phase, gm)
            if recorder.spec.traced is not None and phase != "backward":
                with draft.recording("an early report"):
                    recorder.spec.traced(recorder, draft)
                recorder.clock.lap("early report")
            pipeline.begin(draft, phase, lineage, kwargs.get("static_input_idxs") or ())
            passes.begin(draft, f"{phase}.post_grad", gm, lineage.origins)
            try:
                with lineage.watching(gm):
                    return compile_fx_inner(gm, example_inputs, **kwargs)
            except torch._dynamo.exc.RestartAnalysis:
                raise
            except pipeline.Stopped:
                return pipeline.not_built
            except BaseException as error:
                if isinstance(inner := getattr(error, "inner_exception", None), torch._dynamo.exc.SkipFrame):
                    raise inner from None  # torch wraps it if its caches are off, as they are here
                recorder.fail(draft)
                raise
            finally:
                passes.end(draft)
                pipeline.end(draft, phase)
                recorder.clock.lap("rest of the compile")

    # A backward that is lowered on its first run is lowered beneath the program's own frames.
    undisturbed: Callable[..., Any] = torch.compiler.disable(inner_compile)
    return undisturbed


def copy_graph(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of the graph that shares the tensors of the original, since Inductor modifies its input graph."""
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    value = output[0] if isinstance(output, tuple) else output
    graph.output(value)
    graph._codegen = gm.graph._codegen
    copied = compile_shortcuts.LazyModule(gm, graph)
    for node in graph.nodes:
        if node.op == "get_attr":
            inner = getattr(gm, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule):
                setattr(copied, str(node.target), copy_graph(inner))
    copied.meta = dict(gm.meta)
    return copied
