"""Capture of one graph of a watched program after the run, for its own device or for another."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..engine.call import Call
from ..engine.environment import environment
from ..engine.options import CaptureOptions
from ..engine.record import recorded
from ..engine.remote import dispatch
from ..errors import UsageError
from ..measures.address import walk
from ..record import claims
from ..record.capture import Options
from ..record.graph import Frame, Graph, Source
from ..record.missing import Missing
from ..results.capture import Capture, CaptureError
from ..results.program import Program

if TYPE_CHECKING:
    from .._torch.watch.retained_graphs import RetainedGraph

ONE_GRAPH = "this is a capture of one graph: the program knows what else became of its function"
_NOT_OBSERVED = tuple(
    Missing(claim, ONE_GRAPH)
    for claim in (claims.BREAKS, claims.SKIPS, claims.RECOMPILES, claims.GUARDS, claims.EVALUATIONS)
)


def capture_graph(
    program: Program, number: int, kept: RetainedGraph, codes: list[str], target: Any = None
) -> Capture:
    """Return the capture of a retained graph (see ``Program.capture``)."""
    from .._torch.frames.failure import failure
    from .._torch.watch.retained_graphs import lower
    from ..record.messages import plain_name

    if target is not None:
        return _for_target(program, number, kept, target)
    graph = program.graphs[number]
    recorder, error = lower(kept, codes, graph.id)
    session_target = recorder.target
    capture = recorded(
        recorder,
        plain_name(kept.code.co_name),
        environment(session_target.device or "cpu", session_target.isa),
        Options(),
        not_observed=_NOT_OBSERVED,
        inputs=graph.inputs,
        failure=None if error is None else failure(recorder, error),
    )
    if error is None:
        return capture
    raise CaptureError(f"graph {number} ({graph.id}) could not be lowered again: {error}", capture) from error


def _for_target(program: Program, number: int, kept: RetainedGraph, target: Any) -> Capture:
    """Return the capture of a retained graph for another device; the graph is captured as a function."""
    from .._torch.watch import retained_graphs
    from ..devices import models

    graph, model = program.graphs[number], models.resolve(target)
    if any(on for _, on, _ in kept.autocast):
        raise UsageError(
            f"graph {number} ({graph.id}) was compiled inside a torch.autocast region, which belongs to one "
            "device: capture the function for the target, with the region in it"
        )
    called = retained_graphs.as_call(kept, "cpu" if model.device == "cpu" else "meta", model.device)
    if called is None:
        raise UsageError(
            f"graph {number} ({graph.id}) has an input whose size is known only when it runs: capture the function "
            "for the target"
        )
    options = CaptureOptions("auto" if kept.grad else False, options=kept.patches or None, target=target)
    try:
        with retained_graphs.settings_of(kept):
            capture = dispatch(Call.read(called.module, called.args, None, options))
    except CaptureError as error:
        message = f"graph {number} ({graph.id}) could not be lowered for {model.name}: {error}"
        raise CaptureError(
            message, _with_program_names(program, number, kept, error.capture)
        ) from error.__cause__
    capture = _with_program_names(program, number, kept, capture)
    if called.fixed and capture.target is not None:
        sizes = ", ".join(f"{symbol} = {size}" for symbol, size in called.fixed)
        note = f"symbols of the program's graph are numbers here, those that were observed: {sizes}"
        capture = dataclasses.replace(
            capture, target=dataclasses.replace(capture.target, may_differ=(*capture.target.may_differ, note))
        )
    return capture


def _with_program_names(program: Program, number: int, kept: RetainedGraph, capture: Capture) -> Capture:
    """Return a capture of a graph's code, with the program's names and lines in place of those of the graph's code."""
    from .._torch.graphs import fx
    from ..record.messages import plain_name

    graph = program.graphs[number]
    traced = f"when the program ran (graph {number}, {graph.id}), and its graph once more as on the device"
    if capture.target is not None:
        differs = (*capture.target.may_differ, *_devices(kept, capture.target.model.device))
        capture = dataclasses.replace(
            capture, target=dataclasses.replace(capture.target, tracing=traced, may_differ=differs)
        )
    capture = dataclasses.replace(
        capture,
        function=plain_name(kept.code.co_name),
        inputs=graph.inputs,
        notes=(*capture.notes, ONE_GRAPH),
        not_observed=(*_NOT_OBSERVED, *capture.not_observed),
        # These guards are for the graph's code, not for the program's.
        compilations=tuple(dataclasses.replace(one, guards=()) for one in capture.compilations),
    )
    if len(capture.compilations) == 1:
        capture = dataclasses.replace(
            capture, compilations=(dataclasses.replace(capture.compilations[0], id=graph.id),)
        )
    lines = _lines(fx.convert(kept.gm, stage="dynamo"), capture)
    if lines is None:
        mismatch = "traced again, the graph came out differently: lines are those of the graph's own code"
        return dataclasses.replace(capture, notes=(*capture.notes, mismatch))
    compilations = tuple(
        dataclasses.replace(
            one,
            function=kept.code.co_name,
            file=kept.code.co_filename,
            line=kept.code.co_firstlineno,
            stages=tuple(_graph_with_frames(s, lines) if isinstance(s, Graph) else s for s in one.stages),
        )
        for one in capture.compilations
    )
    sources = _sources_with(program.record.sources, lines.values())
    return dataclasses.replace(capture, compilations=compilations, sources=sources)


def _devices(kept: RetainedGraph, device: str) -> Iterable[str]:
    """Yield notes on devices that the graph has as constants: code that read a tensor's device was traced with the old
    one."""
    import torch

    from .._torch.ground import source_places

    for node in kept.gm.graph.nodes:
        for given in (*node.args, *node.kwargs.values()):
            if isinstance(given, torch.device) and given.type != device:
                at = "".join(
                    f", {os.path.basename(f.file)}:{f.line}"
                    for f in source_places.frames(node.stack_trace)[-1:]
                )
                yield (
                    f"{given} is written in the graph as it was traced ({node.name}{at}): "
                    f"where the program asks a tensor for its device, it would be {device}"
                )


def _lines(kept: Graph, capture: Capture) -> dict[tuple[str, int], tuple[Frame, ...]] | None:
    """Map file and line in the code of the graph and its subgraphs, where each operation has its own line, to the
    program's stack. None if the operations or their order differ."""
    if len(capture.compilations) != 1 or "dynamo" not in capture.compilations[0].graphs:
        return None
    own, other = (
        [n for _, n in walk(g) if n.op.startswith("call_")]
        for g in (kept, capture.compilations[0].graphs["dynamo"])
    )
    if [(n.op, n.target) for n in own] != [(n.op, n.target) for n in other]:
        return None
    return {
        (there.frames[-1].file, there.frames[-1].line): here.frames
        for here, there in zip(own, other, strict=True)
        if there.frames
    }


def _graph_with_frames(graph: Graph, lines: dict[tuple[str, int], tuple[Frame, ...]]) -> Graph:
    nodes = tuple(
        dataclasses.replace(node, frames=lines.get((node.frames[-1].file, node.frames[-1].line), ()))
        if node.frames
        else node
        for node in graph.nodes
    )
    bodies = tuple((name, _graph_with_frames(body, lines)) for name, body in graph.subgraphs)
    return dataclasses.replace(graph, nodes=nodes, subgraphs=bodies)


def _sources_with(sources: Iterable[Source], stacks: Iterable[tuple[Frame, ...]]) -> tuple[Source, ...]:
    """Return the sources that contain a line of any of the stacks."""
    at = {(frame.file, frame.line) for stack in stacks for frame in stack}

    def lines(source: Source) -> Iterable[tuple[str, int]]:
        return ((source.file, source.first_line + i) for i in range(source.text.count("\n") + 1))

    return tuple(source for source in sources if any(line in at for line in lines(source)))
