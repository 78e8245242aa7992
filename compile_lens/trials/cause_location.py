"""Location of the cause of a difference: its kernels, nodes and Python lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from .._torch.ground.limit import Limit
from ..measures.address import Address
from ..measures.chain import Chain
from ..record.compilation import Compilation
from ..record.divergence import OPERATOR, PASS, RootCause, Transformation
from ..record.graph import Frame
from ..record.kernel import Kernel
from ..record.lowering import Rewrite
from ..results.capture import Capture


def located(built: Capture, transformation: Transformation) -> RootCause:
    """Return the cause with its kernels, and for a rewrite with the nodes before and after it."""
    kernels: tuple[Kernel, ...] = ()
    chain = Chain(built)
    stages = [
        transformation.phase,
        f"{transformation.phase}.post_grad",
        "forward",
        "inference",
        "pre_grad",
    ]
    addresses: list[Address] = [
        (transformation.compile_id, stage, node)
        for node in transformation.nodes
        for stage in stages
        if (transformation.compile_id, stage, node) in chain
    ]
    if addresses:
        every = [k for address in addresses for k in chain.kernels(address)]
        kernels = tuple({id(k): k for k in every}.values())
        if not transformation.frames:  # a replaced node: its origin has the line
            frames = {f for a in addresses for f in chain.lines(a, derivatives=False) if not f.of_torch}
            transformation = dataclasses.replace(transformation, frames=_in_order(frames))
    before = after = where = ""
    if transformation.kind == PASS:
        rewrites = list(_rewrites(built, transformation))
        before = "\n".join(filter(None, (rewrite.before_text for _, rewrite in rewrites)))
        after = "\n".join(filter(None, (rewrite.after_text for _, rewrite in rewrites)))
        where = next((rewrite.where for _, rewrite in rewrites), "")
        if rewrites and not transformation.frames:  # a whole pass with all its rewrites
            taken = dict.fromkeys(node for _, rewrite in rewrites for node in rewrite.before)
            names = {*taken, *(node for _, rewrite in rewrites for node in rewrite.origins)}
            transformation = dataclasses.replace(
                transformation,
                nodes=tuple(taken),
                frames=_lines(rewrites[0][0], names),
                operators=_operators(before),
            )
    return RootCause(transformation.kind, transformation, kernels, before, after, where)


def _rewrites(built: Capture, one: Transformation) -> Iterator[tuple[Compilation, Rewrite]]:
    """Yield each rewrite of a pass or a pattern, with its compilation."""
    for compilation in built.compilations:
        if compilation.id != one.compile_id:
            continue
        for run in compilation.passes:
            for rewrite in run.rewrites:
                if one.pattern:
                    same = rewrite.pattern == one.pattern and set(one.nodes) <= set(rewrite.before)
                else:
                    same = run.name == one.name
                if same:
                    yield compilation, rewrite


def _lines(compilation: Compilation, names: set[str]) -> tuple[Frame, ...]:
    """Return the Python lines of nodes of a compilation."""
    lines: dict[Frame, None] = {}
    for graph in compilation.graphs.values():
        for node in graph.nodes:
            if node.name in names and node.op.startswith("call_"):
                lines.update(dict.fromkeys(f for f in node.innermost if not f.of_torch))
    return _in_order(lines)


def _in_order(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    return tuple(sorted(frames, key=lambda f: (f.file, f.line, f.column or 0)))


def _operators(text: str) -> tuple[str, ...]:
    """Return the operators in the text of a rewrite; removed nodes are in no recorded graph."""
    calls = (line.partition(" = ")[2].partition("(") for line in text.splitlines())
    return tuple(dict.fromkeys(name for name, call, _ in calls if call))


def operators_of_graphs(capture: Capture) -> list[str]:
    """Return the names of the operators of the graphs that Dynamo captured."""
    graphs = (c.graphs.get("dynamo") for c in capture.compilations)
    return [n.name for graph in graphs if graph is not None for n in graph.nodes if n.op.startswith("call_")]


def joined(limit: Limit) -> Transformation:
    """Return the first and the last operator within a limit as one transformation."""
    first, last = limit.first[OPERATOR], limit.last[OPERATOR]
    if limit.most - limit.least == 1:
        return last
    frames = dict.fromkeys((*first.frames, *last.frames))
    return dataclasses.replace(
        first,
        name=f"{first.name} … {last.name}",
        nodes=(*first.nodes, *last.nodes),
        frames=_in_order(frames),
        operators=tuple(dict.fromkeys((*first.operators, *last.operators))),
    )
