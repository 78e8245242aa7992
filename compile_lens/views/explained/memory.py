"""Which buffers the code holds, and what the forward keeps for the backward; the largest first."""

from __future__ import annotations

from compile_lens.measures.chain import Chain
from compile_lens.record.capture import Record
from compile_lens.record.memory import Memory

from ..findings.places import held as in_memory
from ..findings.places import places, title
from .kernels import lines
from .model import FEW, Explained, few

WHERE = "capture.compilations[i].memory"


SWITCHES = (
    "compile_lens.what_if turns the switches of the compiler one at a time, and says which lower the peak"
)

LESS = (
    "torch._functorch.config.activation_memory_budget below 1 keeps less and computes more again (what_if tries it), "
    "and so does torch.utils.checkpoint around a part"
)


def held(capture: Record, phase: str = "") -> Explained:
    """The buffers of each graph, and where its peak is."""
    found: list[str] = []
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
            why.append(f"{place.title}: at most {in_memory(memory.peak)} are held at once, {at} (modelled)")
            then = _then(memory)
            if then:
                why.append(f"{place.title}: held then: {', '.join(then)}")
            own = sorted((b for b in memory.buffers if not b.base), key=lambda b: -(b.nbytes or 0))
            for buffer in own:
                frames = [
                    f
                    for o in buffer.origins
                    for f in chain.lines(place.at("post_grad", o))
                    if buffer.kind != "input"
                ]
                found.append(
                    f"{place.title}: {buffer.name}, {buffer.kind}, {in_memory(buffer.nbytes)}{lines(frames)}"
                )
    return Explained(few(found, "buffers", WHERE), tuple(why), (SWITCHES,) if found else ())


def _then(memory: Memory) -> list[str]:
    """The buffers that are held at the peak, the largest first; none unless they sum up to it."""
    line = memory.peak_line
    there = [
        b
        for b in memory.buffers
        if not b.base and b.nbytes and b.alloc_line <= line and (not b.free_line or b.free_line >= line)
    ]
    taken_over = {b.reuses for b in there}  # two names of one memory
    there = [b for b in there if b.name not in taken_over]
    if sum(b.nbytes or 0 for b in there) != memory.peak:
        return []
    names = [b.name for b in sorted(there, key=lambda b: -(b.nbytes or 0))]
    return names if len(names) <= FEW else [*names[:FEW], f"… and {len(names) - FEW} more"]


def kept(capture: Record) -> Explained:
    """What the forward keeps, and what the default partitioner would have kept."""
    found: list[str] = []
    why: list[str] = []
    chain = Chain(capture)
    for compilation in capture.compilations:
        if compilation.partition is None:
            continue
        where = title(capture, compilation, "forward")
        for one in sorted(compilation.partition.saved, key=lambda k: -(k.nbytes or 0)):
            shares = f", no memory of its own: in {one.alias_of}" if one.alias_of else ""
            frames = [f for o in one.origins for f in chain.lines((compilation.id, "joint", o))]
            found.append(f"{where}: {one.node}, {in_memory(one.nbytes)}{shares}{lines(frames)}")
        why.append(
            f"{where}: the min-cut partitioner keeps what costs more to compute again than to keep; "
            f"{len(compilation.partition.recomputed):,} nodes are computed again in the backward"
        )
    return Explained(
        few(found, "tensors", "capture.compilations[i].partition"), tuple(why), (LESS,) if found else ()
    )
