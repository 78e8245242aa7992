"""Sentences of the story about Dynamo: traced graphs, graph breaks, skipped frames, and passes."""

from __future__ import annotations

from compile_lens.measures.address import line_address
from compile_lens.record import guard_values
from compile_lens.record.breaks import BREAK, LIMIT, NEVER_RAN, REST, WHOLE, Skip
from compile_lens.record.compilation import Compilation, DynamicDim
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.lowering import MERGING
from compile_lens.record.messages import in_program_words, plain_source

from ..words.compile_reasons import recompile_remedy
from ..words.labels import each_place, place
from ..words.outcome import reason
from .model import Amount, Names, Teller, Word

STAGES = ("dynamo", "pre_grad")

_SKIPS = {WHOLE: "left", REST: "rest", LIMIT: "limit", NEVER_RAN: "never"}

_BODIES = {"autograd_function_apply": "functions", "tag_activation_checkpoint": "checkpoints"}
"""Higher-order operators whose bodies have their own sentence."""


def left_to_python(teller: Teller) -> None:
    """Describe the parts of the program that were not compiled."""
    for skip in teller.capture.skipped:
        at = Frame(skip.file, skip.line, skip.function)
        name = teller.language.function(skip.function)
        why = reason(skip.cause).what
        if skip.kind == NEVER_RAN:
            why = skip.consequence or why
        key = _SKIPS.get(skip.kind, "skip")
        about = (line_address(skip.file, skip.line),)
        if key == "left" and skip.count > 1:
            teller.say(
                "left_often", "", about, function=name, place=_lines(skip, at), reason=why,
                n=Amount(skip.count, "time"),
            )  # fmt: skip
            continue
        teller.say(
            key,
            "",
            about,
            function=name,
            place=_lines(skip, at),
            reason=why,
            kind=skip.kind,
        )


def _lines(skip: Skip, at: Frame) -> str:
    if not skip.lines:
        return place(at)
    ranges = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in skip.lines[:6])
    return f"{place(at).rpartition(':')[0]}:{ranges}{', …' if len(skip.lines) > 6 else ''}"


def dynamo(teller: Teller, compilation: Compilation) -> None:
    """Describe the graph that Dynamo recorded, its guards, and its end."""
    here = teller.at(compilation, "dynamo")
    if not compilation.stages:
        here.say("empty")
    graph = compilation.graphs.get("dynamo")
    if graph is not None:
        _graph(here, compilation, graph)
    if compilation.recompile_reasons:
        here.say("again")
    for failed in compilation.recompile_reasons:
        here.say("guard_failed", guard=failed)
    if remedy := recompile_remedy(compilation):
        here.say("recompile_remedy", clause=Word(f"recompile.{remedy}"))
    for dim in guard_values.constrained_dims(compilation):
        _symbol(here, dim)
    if compilation.guards:
        here.say("guards", n=Amount(len(compilation.guards), "condition"))
    passes(here, "pre_grad")
    here.absent(lambda stage: stage in STAGES)
    _ending(here, compilation)


def _symbol(here: Teller, dim: DynamicDim) -> None:
    """Describe a size or number that is a symbol, and its guards, since no variant accepts every value."""
    source = in_program_words(plain_source(dim.source))
    if not dim.is_dimension:
        here.say("number", source=source, symbol=dim.symbol)
    elif dim.hint is None:
        here.say("dynamic", source=source, symbol=dim.symbol)
    else:
        here.say("dynamic_seen", source=source, symbol=dim.symbol, n=Amount(dim.hint))
    if dim.constraints:
        here.say("asked", conditions=Names(dim.constraints))
    else:
        here.say("asked_unknown" if dim.constraints is None else "asked_nothing")


def _graph(here: Teller, compilation: Compilation, graph: Graph) -> None:
    calls = graph.calls
    count = Amount(len(calls), "call")
    names = [node.name for node in calls]
    if compilation.file:
        at = place(Frame(compilation.file, compilation.line, compilation.function))
        here.say(
            "read", graph.key, names, function=here.language.function(compilation.function), place=at, n=count
        )
    else:
        here.say(
            "read_nowhere", graph.key, names, function=here.language.function(compilation.function), n=count
        )
    frames = _innermost(calls)
    if frames:
        about = [line_address(frame.file, frame.line) for frame in frames]
        key = "line" if len(calls) == 1 else "lines"
        lines = each_place(sorted(frames, key=lambda f: (f.file, f.line)))
        here.say(key, graph.key, about, n=Amount(len(frames), "line"), places=Names(lines))
    lineless = [node.name for node in calls if not node.frames]
    if lineless:
        here.say("lineless", graph.key, lineless, n=Amount(len(lineless), "call"))
    for key, inner in _bodies(graph).items():
        here.say(key, graph.key, n=Amount(inner, "call"))


def _bodies(graph: Graph) -> dict[str, int]:
    """Return the number of calls in bodies, by the key of the sentence for their owner."""
    held = {node.target: node.name for node in graph.nodes if node.op == "get_attr"}
    counts: dict[str, int] = {}
    for path, body in graph.subgraphs:
        name = held.get(path)
        users = {node.target.rpartition(".")[2] for node in graph.calls if name in node.inputs}
        key = _BODIES.get(users.pop(), "bodies") if len(users) == 1 else "bodies"
        counts[key] = counts.get(key, 0) + _calls(body)
    return counts


def _calls(graph: Graph) -> int:
    """Return the number of calls in a body, including nested bodies."""
    return len(graph.calls) + sum(_calls(body) for _, body in graph.subgraphs)


def _innermost(calls: tuple[Node, ...]) -> tuple[Frame, ...]:
    """Return the Python lines of calls, without duplicates."""
    return tuple({(f.file, f.line): f for node in calls for f in node.innermost}.values())


def _ending(here: Teller, compilation: Compilation) -> None:
    ending = compilation.ending
    if ending is None or ending.kind == "return":
        return
    reason_of = reason(ending)
    if ending.kind != BREAK:
        here.say("ended", kind=ending.kind, reason=reason_of.what)
    elif ending.frames:
        frame = ending.frames[-1]
        here.say(
            "break", "", (line_address(frame.file, frame.line),), place=place(frame), reason=reason_of.what
        )
    else:
        here.say("break_nowhere", reason=reason_of.what)
    if reason_of.hint:
        here.say("avoided", hint=" ".join(reason_of.hint.splitlines()).removesuffix("."))


MAX_NEAR_MISSES = 2
"""Maximum near matches of patterns that are described; pages have the rest."""


def passes(here: Teller, stage: str) -> None:
    """Describe the changes before ``stage``: their number, the patterns that matched, and near matches."""
    changes = [p for p in here.compilation.passes if p.stage == stage] if here.compilation else []
    merged = [rewrite for p in changes if p.name == MERGING for rewrite in p.rewrites]
    if merged:
        pairs = Names(tuple(f"{', '.join(r.before)} → {', '.join(r.after)}" for r in merged))
        here.say("merged", stage, stage_key=stage, n=Amount(len(merged), "call"), names=pairs)
    rewrites = [rewrite for p in changes if p.name != MERGING for rewrite in p.rewrites]
    if rewrites:
        here.say("rewritten", stage, stage_key=stage, n=Amount(len(rewrites), "change"))
    patterns = tuple(dict.fromkeys(r.pattern for r in rewrites if r.pattern))
    if patterns:
        here.say("patterns", stage, n=Amount(len(patterns), "pattern"), names=Names(patterns))
    for miss in [miss for p in changes for miss in p.near_misses][:MAX_NEAR_MISSES]:
        here.say("miss", stage, miss=miss)
