"""Sentences of the story about Inductor: lowering, fusion, kernels, launches and memory of each graph."""

from __future__ import annotations

from collections.abc import Mapping

from compile_lens.measures.control_flow import GENERATED, walk
from compile_lens.measures.fusion_answer import DECISIONS_NOT_SEEN, LIBRARY_CALL_BETWEEN, NOT_PROPOSED
from compile_lens.measures.ledger import Row
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.record import claims
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS
from compile_lens.record.figures import MODELLED, AtLeast, Figure
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.lowering import REALIZED
from compile_lens.record.memory import Partition, saved_bytes
from compile_lens.record.missing import AbsentStage

from ..words.labels import Origins, phase_of
from .frames import STAGES, passes
from .model import BYTES, MEMORY, Amount, Names, Teller, Value, Word

MAX_PAIRS = 3
"""Maximum pairs not fused and operators shared by kernels that are described; the rest is only counted."""


def inductor(teller: Teller, compilation: Compilation) -> None:
    """Describe each phase of a compilation."""
    ledgers = dict(ledger_of(teller.capture).graphs)
    origins = Origins(teller.capture) if compilation.code else None
    for phase in PHASES:
        row: Row = getattr(ledgers[compilation.id], phase)
        absent = [s for s in compilation.stages if isinstance(s, AbsentStage) and phase_of(s.stage) == phase]
        if not row.exists and not absent:
            continue
        here = teller.at(compilation, phase)
        if row.exists:
            _phase(here, compilation, phase, row, origins)
        here.absent([s.stage for s in absent].__contains__)
        messages = [s.message for s in absent]
        for note in row.notes if row.exists else ():
            if not any(message in note for message in messages):
                here.say("unknown", phase, note=note)


def _phase(here: Teller, compilation: Compilation, phase: str, row: Row, origins: Origins | None) -> None:
    if row.aten_ops == 0:
        here.say("idle", phase)
        if not row.eager_ops and not row.launches and not row.bytes_after:
            return
    elif row.aten_ops is not None:
        here.say("handed", phase, n=Amount(row.aten_ops, "aten"))
    if row.eager_ops is not None:
        here.say("eager", phase, n=Amount(row.eager_ops, "operator"))
    passes(here, phase)
    passes(here, f"{phase}.post_grad")
    _lowering(here, compilation, phase, row)
    _fusion(here, compilation, phase, row)
    code = compilation.code.get(phase)
    if code is not None and origins is not None:
        _kernels(here, code, origins)
    if row.launches is not None:
        here.say("launches", f"{phase}.code", n=Amount(row.launches))
    if code is not None:
        _counts(here, code, compilation.graphs.get(f"{phase}.groups"), row)
    _memory(here, compilation, phase)
    _traffic(here, phase, row)


def _lowering(here: Teller, compilation: Compilation, phase: str, row: Row) -> None:
    loops = compilation.graphs.get(f"{phase}.loops")
    if loops is not None and row.loops:
        names = [node.name for node in loops.calls if node.kind != "nop"]
        here.say("lowered", loops.key, names, n=Amount(row.loops, "loop"))
        calls = [node for node in walk(loops) if node.op == "extern" and node.kind != "nop"]
        steering = [node.name for node in calls if node.target in GENERATED]
        externs = [node.name for node in calls if node.target not in GENERATED]
        if steering:
            here.say("steered", loops.key, steering, n=Amount(len(steering)))
        if externs and row.loops == 1:
            here.say("extern", loops.key, externs)
        elif externs:
            here.say("externs", loops.key, externs, n=Amount(len(externs)))
    lowered = [one for one in compilation.lowered if one.phase == phase]
    stage = f"{phase}.post_grad"
    inlined = tuple(one.node for one in lowered if one.loops and not one.buffer and not one.parts)
    if inlined:
        here.say("inlined", stage, inlined, n=Amount(len(inlined), "operator"), names=Names(inlined))
    for reason in dict.fromkeys(one.reason for one in lowered if one.buffer):
        nodes = tuple(one.node for one in lowered if one.buffer and one.reason == reason)
        clause = Word(f"realised.{reason if reason in REALIZED else 'other'}")
        here.say("buffered", stage, nodes, n=Amount(len(nodes), "value"), names=Names(nodes), clause=clause)
    for one in lowered:
        parts = tuple(dict.fromkeys((*one.parts, *((one.buffer,) if one.buffer else ()))))
        if one.parts and len(parts) > 1:
            here.say(
                "parted", stage, (one.node,), node=one.node, n=Amount(len(parts), "loop"), names=Names(parts)
            )


def _fusion(here: Teller, compilation: Compilation, phase: str, row: Row) -> None:
    groups = compilation.graphs.get(f"{phase}.groups")
    if groups is None or not row.groups or not row.loops:
        return
    if row.loops == 1 and row.groups == 1:
        here.say("one_loop", groups.key)
        return
    _joined(here, groups, row.groups)
    pairs = unfused_pairs(here.capture, compilation.id, phase)
    for pair in pairs[:MAX_PAIRS]:
        about = (pair.first, pair.second)
        clause = _in_language(_SENTENCES, pair.why.sentence)
        here.say("apart", groups.key, about, first=pair.first, second=pair.second, clause=clause)
    if len(pairs) > MAX_PAIRS:
        here.say("apart_more", groups.key, n=Amount(len(pairs) - MAX_PAIRS, "pair"))
    for remedy in dict.fromkeys(pair.remedy for pair in pairs[:MAX_PAIRS] if pair.remedy):
        alike = [pair for pair in pairs[:MAX_PAIRS] if pair.remedy == remedy]
        apart = tuple(dict.fromkeys(name for pair in alike for name in (pair.first, pair.second)))
        here.say("to_try", groups.key, apart, names=Names(apart), clause=_in_language(_REMEDIES, remedy))


def _joined(here: Teller, groups: Graph, count: Figure | AtLeast) -> None:
    merged = [node for node in walk(groups) if len(node.members) > 1 and node.kind != "nop"]
    if not merged:
        here.say("unfused", groups.key, n=Amount(count, "group"))
        return
    members = sum(len(node.members) for node in merged)
    names = [node.name for node in merged]
    here.say("fused", groups.key, names, loops=Amount(members, "loop"), n=Amount(len(merged), "group"))
    if count != len(merged):
        here.say("groups", groups.key, n=Amount(count, "group"))


_SENTENCES = {
    **{reason.sentence: f"apart.{key}" for key, reason in REASONS.items()},
    LIBRARY_CALL_BETWEEN: "apart.wall",
    NOT_PROPOSED: "apart.never proposed",
    DECISIONS_NOT_SEEN: "apart.not seen",
}
"""Keys, in a language's table, of the sentences why two groups were not fused."""

_REMEDIES = {
    **{reason.remedy: f"try.{key}" for key, reason in REASONS.items() if reason.remedy},
    CUSTOM_REMEDY: "try.custom",
}
"""Keys, in a language's table, of the remedies."""


def _in_language(names: Mapping[str, str], sentence: str) -> Value:
    """Return a sentence of the record in the language, or unchanged if it has no translation."""
    return Word(names[sentence]) if sentence in names else sentence


def _kernels(here: Teller, code: Code, origins: Origins) -> None:
    for language in dict.fromkeys(k.language for k in code.kernels):
        own = [k for k in code.kernels if k.language == language]
        names = [k.name for k in own]
        if language == "extern":
            _calls(here, code, own)
            continue
        word: Value = Word(language) if language in here.language.words else language
        here.say(
            "kernels",
            code.key,
            names,
            n=Amount(len(names), "kernel"),
            language=word,
            names=Names(tuple(names)),
        )
    for key, which in (("together", "parts"), ("computed_again", "again")):
        shared: dict[str, tuple[str, ...]] = {}
        for kernel in code.kernels:
            for name, others in getattr(origins.of(kernel), which):
                shared.setdefault(name, (kernel.name, *others))
        for name, kernels in list(shared.items())[:MAX_PAIRS]:
            here.say(key, code.key, kernels, name=name, kernels=Names(kernels))


def _counts(here: Teller, code: Code, graph: Graph | None, row: Row) -> None:
    """Explain why the numbers of groups, kernels and launches of a phase differ, by the groups of its kernels."""
    kernels = code.kernels
    if graph is None or not isinstance(row.groups, Figure) or not isinstance(row.launches, Figure):
        return
    if row.groups == len(kernels) == row.launches or here.capture.lacks(claims.KERNELS):
        return
    named = [name for kernel in kernels for name in dict.fromkeys(kernel.groups)]
    groups = [node.name for node in walk(graph) if node.compute and node.kind != "nop"]
    groups_of = {
        "again": [k.name for k in kernels if k.launches > 1],
        "gathered": [k.name for k in kernels if len(k.groups) > max(k.launches, 1)],
        "parted": [name for name in dict.fromkeys(named) if named.count(name) > 1],
        "beside": [k.name for k in kernels if not k.groups],
        "unseen": [name for name in groups if name not in named],
    }
    language = here.language
    parts = [
        language.counted(len(names), *language.noun(f"counts.{key}"))
        for key, names in groups_of.items()
        if names
    ]
    if parts:
        here.say(
            "counts",
            code.key,
            [name for key in ("again", "gathered", "beside") for name in groups_of[key]],
            groups=Amount(row.groups, "group"),
            kernels=Amount(len(kernels), "kernel"),
            launches=Amount(row.launches, "launch"),
            clause=language.separator.join(parts),
        )


def _calls(here: Teller, code: Code, kernels: list[Kernel]) -> None:
    """Describe the library calls, without the numbers that distinguish calls of the same function."""
    functions = tuple(dict.fromkeys(kernel.name.partition("#")[0] for kernel in kernels))
    places = sum(kernel.launches for kernel in kernels)
    about = [kernel.name for kernel in kernels]
    here.say("calls", code.key, about, n=Amount(places, "library"), names=Names(functions))


def _memory(here: Teller, compilation: Compilation, phase: str) -> None:
    for memory in compilation.memory:
        if memory.phase != phase:
            continue
        if memory.peak is not None:
            here.say("peak", f"{phase}.code", bytes=Amount(Figure(memory.peak, MODELLED), MEMORY))
        if memory.reused:
            here.say("reused", f"{phase}.code", n=Amount(len(memory.reused), "buffer"))


def _traffic(here: Teller, phase: str, row: Row) -> None:
    before, after, eager = row.bytes_before, row.bytes_after, row.eager_bytes
    stage = f"{phase}.groups"
    of_eager = eager is not None and eager != before
    moved = eager if of_eager else before
    if moved is not None and after is not None:
        key = "traffic_eager" if of_eager else "traffic"
        here.say(key, stage, before=Amount(moved, BYTES), after=Amount(after, BYTES))
    elif moved is not None:
        here.say("moved_eager" if of_eager else "moved_before", stage, bytes=Amount(moved, BYTES))
    elif after is not None:
        here.say("moved_after", stage, bytes=Amount(after, BYTES))


def autograd(teller: Teller, compilation: Compilation) -> None:
    """Describe the joint graph and its two halves, or the single inference graph."""
    here = teller.at(compilation, "autograd")
    graphs = compilation.graphs
    joint, forward, backward = (graphs.get(key) for key in ("joint", "forward", "backward"))
    if joint is not None:
        here.say("joint", "joint", [n.name for n in joint.calls], n=Amount(len(joint.calls), "call"))
        derivatives = [n.name for n in joint.calls if n.derivative]
        if derivatives:
            here.say("derivatives", "joint", derivatives, n=Amount(len(derivatives)))
    if joint is not None and forward is not None and backward is not None:
        halves = (Amount(len(half.calls), "call") for half in (forward, backward))
        here.say("cut", "joint", forward=next(halves), backward=next(halves))
    inference = graphs.get("inference")
    if inference is not None:
        here.say("one_graph", "inference", n=Amount(len(inference.calls), "call"))
    if forward is not None and forward.saved:
        kept = Names(forward.saved)
        here.say("saved", "forward", forward.saved, n=Amount(len(forward.saved), "value"), names=kept)
    if compilation.partition is not None:
        _partition(here, compilation.partition)
    here.absent(lambda stage: stage not in STAGES and not phase_of(stage))


def _partition(here: Teller, partition: Partition) -> None:
    if not partition.saved:
        here.say("saved_none", "joint")
    own = saved_bytes(partition.saved)
    if partition.saved and own is not None:
        if own:
            here.say("keeps", "joint", bytes=Amount(own, MEMORY))
        else:
            here.say("keeps_free", "joint")
    if partition.default is not None:
        names = tuple(kept.node for kept in partition.default)
        if names:
            here.say("default", "joint", n=Amount(len(names), "value"), names=Names(names))
    if partition.recomputed:
        names = partition.recomputed
        here.say("recomputed", "joint", names, names=Names(names), n=Amount(len(names), "operator"))
