"""Explanations of graphs, eager parts, recompiles, memory and missing operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compile_lens.measures.chain import Address, Chain
from compile_lens.measures.operators import Use
from compile_lens.record.capture import Record
from compile_lens.record.graph import Frame
from compile_lens.record.memory import Memory

from ..findings.places import in_memory, places, title
from ..words import labels, outcome
from . import MAX_LINES, Explanation, few
from .kernels import ended, hints, lines, recompiled


def compilations(capture: Record, again: bool = False) -> Explanation:
    """Return every compilation, and why there are several; with ``again`` only recompiles."""
    facts = [
        f"{c.id}: {labels.readable(c.function)}{_place(c.file, c.line)}"
        for c in capture.compilations
        if c.recompile_reasons or not again
    ]
    if again:
        why = few(recompiled(capture), "reasons", "capture.recompiles")
        tried = (of_guard(guard) for one in capture.recompiles for guard in one.guards)
        return Explanation(
            few(facts, "compilations", "capture.compilations"), why, tuple(dict.fromkeys(filter(None, tried)))
        )
    why = few(ended(capture), "reasons", "capture.breaks, capture.recompiles")
    return Explanation(few(facts, "compilations", "capture.compilations"), why, tuple(hints(capture)))


def of_guard(guard: str) -> str:
    """Return the remedy for a failed guard that avoids the recompile; ``""`` if none is known."""
    if size := _SIZE.search(guard):
        return (
            f"give {size[1]} one size, mark the dimension before the first call (torch._dynamo.mark_dynamic({size[1]}, "
            f"{size[2]})), or compile with dynamic=True"
        )
    if _KIND.search(guard):
        return "call it with one kind of tensor"
    return ""


_SIZE = re.compile(r"tensor '([^']+)' (?:size|stride) mismatch at index (\d+)")
_KIND = re.compile(r"tensor '[^']+' (?:dtype|rank|requires_grad|dispatch key set) mismatch")


def left_to_python(capture: Record) -> Explanation:
    """Return the parts of the program that ran eagerly, with the reasons."""
    every = outcome.eager(capture)
    facts = [f"{e.head}{lines(e.ending.frames[-1:])}" for e in every]
    return Explanation(
        few(facts, "places", "capture.breaks, capture.skipped"),
        few(_reasons(capture), "reasons", "capture.breaks, capture.skipped"),
        tuple(dict.fromkeys(hints(capture))),
    )


def _reasons(capture: Record) -> Iterator[str]:
    for one in outcome.eager(capture):
        reason = outcome.reason(one.ending)
        yield ": ".join(filter(None, (reason.what, reason.why.partition("\n")[0], one.why)))


def _place(file: str, line: int) -> str:
    return f" ← {labels.place(Frame(file, line, ''))}" if file else ""


WHERE = "capture.compilations[i].memory"


SWITCHES = (
    "compile_lens.what_if turns the switches of the compiler one at a time, and says which lower the peak"
)

LESS = (
    "torch._functorch.config.activation_memory_budget below 1 saves less and computes more again (what_if tries it), "
    "and so does torch.utils.checkpoint around a part"
)


def live_memory(capture: Record, phase: str = "") -> Explanation:
    """Return the buffers of each graph, and the place of its peak."""
    facts: list[str] = []
    why: list[str] = []
    chain = Chain(capture)
    for place in places(capture):
        for memory in place.compilation.memory:
            if memory.phase != place.phase or (phase and phase != place.phase):
                continue
            if memory.peak is None:
                why.append(f"{place.title}: the peak is not known: {memory.note}")
                continue
            at = f"at line {memory.peak_line} of the module" if memory.peak_line else "on entry"
            why.append(f"{place.title}: at most {in_memory(memory.peak)} are live at once, {at} (modelled)")
            then = _then(memory)
            if then:
                why.append(f"{place.title}: live then: {', '.join(then)}")
            own = sorted((b for b in memory.buffers if not b.base), key=lambda b: -(b.nbytes or 0))
            for buffer in own:
                frames = [
                    f
                    for o in buffer.origins
                    for f in _lines(chain, place.at("post_grad", o))
                    if buffer.kind != "input"
                ]
                facts.append(
                    f"{place.title}: {buffer.name}, {buffer.kind}, {in_memory(buffer.nbytes)}{lines(frames)}"
                )
    return Explanation(few(facts, "buffers", WHERE), tuple(why), (SWITCHES,) if facts else ())


def _lines(chain: Chain, address: Address) -> tuple[Frame, ...]:
    """Return the lines of a node; none if its stage was not observed."""
    return chain.lines(address) if address in chain else ()


def _then(memory: Memory) -> list[str]:
    """Return the buffers live at the peak, largest first; none unless they add up to the peak."""
    line = memory.peak_line
    there = [
        b
        for b in memory.buffers
        if not b.base and b.nbytes and b.alloc_line <= line and (not b.free_line or b.free_line >= line)
    ]
    taken_over = {b.reuses for b in there}  # reused memory, under two names
    there = [b for b in there if b.name not in taken_over]
    if sum(b.nbytes or 0 for b in there) != memory.peak:
        return []
    names = [b.name for b in sorted(there, key=lambda b: -(b.nbytes or 0))]
    return names if len(names) <= MAX_LINES else [*names[:MAX_LINES], f"… and {len(names) - MAX_LINES} more"]


def saved_tensors(capture: Record) -> Explanation:
    """Return the tensors saved for the backward, and those that the default partitioner would save."""
    facts: list[str] = []
    why: list[str] = []
    chain = Chain(capture)
    for compilation in capture.compilations:
        if compilation.partition is None:
            continue
        where = title(capture, compilation, "forward")
        for one in sorted(compilation.partition.saved, key=lambda k: -(k.nbytes or 0)):
            shares = f", no memory of its own: in {one.alias_of}" if one.alias_of else ""
            frames = [f for o in one.origins for f in _lines(chain, (compilation.id, "joint", o))]
            facts.append(f"{where}: {one.node}, {in_memory(one.nbytes)}{shares}{lines(frames)}")
        why.append(
            f"{where}: the min-cut partitioner saves what costs more to compute again than to save; "
            f"{len(compilation.partition.recomputed):,} nodes are computed again in the backward"
        )
    return Explanation(
        few(facts, "tensors", "capture.compilations[i].partition"), tuple(why), (LESS,) if facts else ()
    )


def where_used(capture: Record, uses: Iterable[Use], types: bool = False) -> Explanation:
    """Return each place with its Python lines; with ``types`` also the dtypes of its results."""
    chain = Chain(capture)
    facts: list[str] = []
    came: list[str] = []
    for use in uses:
        cid, key, name = use.address
        where = f"{cid} {key}" if len(capture.compilations) > 1 else key
        outputs = use.node.outputs if use.node is not None and types else ()
        dtypes = f" makes {', '.join(dict.fromkeys(t.dtype for t in outputs))}" if outputs else ""
        facts.append(f"{where}: {name}, {use.name}{dtypes}{lines(chain.lines(use.address))}")
        source = _sources(capture, chain, use) if not types else ""
        if source:
            came.append(f"{where}: {use.name} comes of {source}")
    return Explanation(few(facts, "places", "capture.compilations[i].graphs"), few(came, "places"))


def _sources(capture: Record, chain: Chain, use: Use) -> str:
    """Return the calls recorded by Dynamo that became an operator; ``""`` if unknown."""
    cid = use.address[0]
    graph = next((c.graphs.get("dynamo") for c in capture.compilations if c.id == cid), None)
    if graph is None or use.node is None or use.address not in chain:
        return ""
    names = {name for one, key, name in chain.ancestors(use.address) if (one, key) == (cid, "dynamo")}
    calls = [n.target for n in graph.nodes if n.name in names and n.op.startswith("call_")]
    return ", ".join(dict.fromkeys(calls))
