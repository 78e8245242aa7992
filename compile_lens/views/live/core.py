"""Page part "core": the content shown before any stage is opened."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.ledger import Ledger
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.program import is_library
from compile_lens.measures.source_units import instances
from compile_lens.measures.unfused_pairs import unfused_pairs
from compile_lens.record.breaks import Ending
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES, Compilation
from compile_lens.record.graph import Frame, Graph, Source
from compile_lens.record.kernel import Code
from compile_lens.record.messages import plain_name

from ..document import Step
from ..findings import findings
from ..words import labels, outcome, quantities, sentences, stamp
from ..words.characters import block, line
from ..words.compile_reasons import after, compile_reason
from ..words.ledger import ledger_table
from ..words.sentences import ENGLISH, in_language
from .costs import Costs
from .findings import finding_head
from .index import full_title
from .items import Items
from .opening import opening
from .texts import Texts

VERSION = 1

MAX_ENTRIES = 40
"""Maximum inputs, reasons and notes shown; the rest is only counted."""

SOURCES = 200
GUARDS = 200


def core(capture: Record, items: Items, texts: Texts) -> dict[str, object]:
    """Return the ``Core`` of the page."""
    env = capture.environment
    facts = [capture.function, f"torch {env.torch}", stamp.device(capture), capture.created[:10]]
    ledger = ledger_of(capture)
    by_id = dict(ledger.graphs)
    costs = Costs(capture)
    return {
        "version": VERSION,
        "function": line(capture.function),
        "title": " · ".join(line(f) for f in facts if f),
        "created": line(capture.created),
        "environment": [line(fact) for fact in labels.environment(capture)],
        "stamp": line(stamp.of_capture(capture)),
        "shortStamp": line(stamp.short(capture)),
        "asked": line(labels.asked(capture)),
        "device": line(stamp.device(capture)),
        "inputs": _some(capture.inputs, "input", "capture.inputs"),
        "outcome": _outcome(capture),
        "eager": _eager(capture),
        "breaks": _breaks(capture),
        "answers": opening(capture, items),
        "savings": [[*map(line, saving[:3]), saving.large] for saving in outcome.saving(ledger)],
        "ledger": _ledger(capture, ledger, capture.compilations),
        "noSource": line(sentences.no_source(capture)),
        "sources": [
            _source(source, texts.sources[number], items, instances(capture).get(source, ()), costs)
            for number, source in enumerate(capture.sources[:SOURCES])
        ],
        "compilations": [
            _compilation(capture, items, index, compilation, by_id[compilation.id])
            for index, compilation in enumerate(items.compilations)
        ],
        "first": min(outcome.first(capture), max(len(items.compilations) - 1, 0)),
        "phase": (outcome.stopped(capture) or (0, ""))[1],
        "cost": costs.core(),
        "findings": [finding_head(finding) for finding in findings(capture)],
        "notes": _notes(capture, items),
        "words": in_language(sentences.PAGE, ENGLISH, "text of the live page"),
    }


def _outcome(capture: Record) -> dict[str, object]:
    failure = capture.failure
    data = failure and {
        "stage": line(failure.stage),
        "type": line(failure.type),
        "message": block(failure.message),
        "traceback": block(failure.traceback, 20_000),
        "reason": line(outcome.raised(failure)),
        "hint": block(failure.hint),
        "frames": [
            {"file": line(f.file), "line": f.line, "start": f.column, "end": f.end_column}
            for f in reversed(failure.frames)
        ],
    }
    return {
        "state": outcome.state(capture),
        "verdict": line(outcome.verdict(capture)),
        "failure": data,
        "below": sentences.below(capture),
        "warnings": [[line(words), more] for words, more in outcome.warnings(capture)],
    }


def _ledger(capture: Record, ledger: Ledger, compilations: Sequence[Compilation]) -> dict[str, object]:
    table = ledger_table(capture, ledger, compilations)
    basis, *notes = table.notes
    return {
        "columns": [
            {"title": title, "meaning": definition}
            for title, definition in zip(table.head[1:], table.definitions, strict=True)
        ],
        "rows": [{"name": name, "figures": figures} for name, *figures in map(quantities.cells, table.rows)],
        "notes": ([basis] if basis else []) + _some(tuple(notes), "note", table.where),
    }


def _source(
    source: Source, code: dict[str, object], items: Items, modules: tuple[str, ...], costs: Costs
) -> dict[str, object]:
    count = source.text.count("\n") + 1
    numbers = range(source.first_line, source.first_line + count)
    known = ((number, items.line(source.file, number)) for number in numbers)
    of_library = is_library(Frame(source.file, source.first_line, source.name))
    facts = ("library", costs.of_source(source.file, source.first_line, count))
    return {
        "file": line(source.file),
        "first": source.first_line,
        "name": line(source.name),
        "ran": [line(words) for words in sentences.ran_by(modules)],
        "share": [line(words) for words in costs.of_modules(modules)],
        "library": ", ".join(filter(None, facts)) if of_library else "",
        "code": code,
        "items": [[number, item] for number, item in known if item is not None],
        "costs": costs.lines(source.file, source.first_line, count),
    }


def _compilation(
    capture: Record, items: Items, index: int, compilation: Compilation, ledger: Ledger
) -> dict[str, object]:
    place = labels.place(Frame(compilation.file, compilation.line, "")) if compilation.file else ""
    return {
        "id": line(compilation.id),
        "function": line(compilation.function),
        "name": line(labels.readable(compilation.function)),
        "place": line(place),
        "began": _began(capture, index),
        "recompile": _some(compilation.recompile_reasons, "reason", "capture.recompiles"),
        "ending": _ending(compilation.ending),
        "dynamic": [line(sentences.symbol(d)) for d in compilation.dynamic],
        "guards": [[line(guard.kind), line(guard.text)] for guard in compilation.guards[:GUARDS]],
        "guardsMeaning": sentences.guards(compilation),
        "guardsLeft": quantities.more(len(compilation.guards) - GUARDS, "guard", "capture.guards"),
        "lanes": [
            {
                "phase": lane.phase,
                "steps": [_step(items, index, step) for step in lane.steps],
                "notFused": len(unfused_pairs(capture, compilation.id, lane.phase)) if lane.phase else 0,
            }
            for lane in labels.lanes(capture, compilation)
        ],
        "ledger": _ledger(capture, ledger, [compilation]),
    }


def _began(capture: Record, index: int) -> dict[str, object]:
    why = compile_reason(capture, index)
    return {"short": line(why.short), "whole": block(why.whole), "again": why.again}


def _ending(ending: Ending | None) -> dict[str, object] | None:
    if ending is None or ending.kind != "graph break":
        return None
    return _reason(ending)


def _eager(capture: Record) -> list[dict[str, object]]:
    """Return the first places where the program continued eagerly."""
    return [
        {"head": line(one.head), "became": block(one.why), **_reason(one.ending)}
        for one in outcome.eager(capture)[:MAX_ENTRIES]
    ]


def _breaks(capture: Record) -> list[dict[str, object]]:
    """Return the first places of graph breaks, each with the number of breaks."""
    breaks = []
    for ending, count in outcome.broken(capture)[:MAX_ENTRIES]:
        reason = outcome.reason(ending)
        where = ending.frames[-1] if ending.frames else Frame("", 0, "")
        where_it_broke = {
            "file": line(where.file),
            "line": where.line,
            "count": count,
            "start": where.column,
            "end": where.end_column,
            "next": after(capture, ending),
        }
        breaks.append({**where_it_broke, "what": block(reason.what), "hint": block(reason.hint)})
    return breaks


def _reason(ending: Ending) -> dict[str, object]:
    reason = outcome.reason(ending)
    return {
        "what": block(reason.what),
        "why": block(reason.why),
        "hint": block(reason.hint),
        "link": line(reason.link),
        "whole": block(reason.whole),
        "frames": [frame_line(frame) for frame in ending.frames],
        "file": line(ending.frames[-1].file) if ending.frames else "",
        "line": ending.frames[-1].line if ending.frames else 0,
    }


def frame_line(frame: Frame) -> str:
    """Return a frame in one line: ``"/home/ada/f.py:5 in f: return x.sin()"``."""
    text = frame.text.strip()
    return line(f"{frame.file}:{frame.line} in {plain_name(frame.function)}" + (f": {text}" if text else ""))


def _step(items: Items, index: int, step: Step) -> dict[str, object]:
    seen = None if step.missing or step.none else items.seen(index, step.key)
    stage = seen.stage if seen is not None else None
    unchanged = ""
    if seen is not None and isinstance(stage, Graph):
        before = items.before(seen)
        if before is not None and labels.unchanged(stage, before):
            unchanged = full_title(before.key)
    kind = "code" if isinstance(stage, Code) else "graph" if stage is not None else "missing"
    kind = "none" if step.none else kind
    return {
        "key": line(step.key),
        # The graph of a phase itself is the one in ATen operators.
        "title": "ATen" if step.key in PHASES else line(step.title),
        "meaning": labels.meaning(step.key),
        "facts": [line(fact) for fact in step.facts],
        "time": quantities.duration(step.seconds),
        "missing": block(step.missing or step.none or ("" if seen else labels.UNSAID)),
        "kind": kind,
        "stage": seen.number if seen is not None else -1,
        "unchanged": unchanged,
        "same": sentences.same_as(unchanged) if unchanged else "",
    }


def _notes(capture: Record, items: Items) -> list[str]:
    notes: list[str] = []
    left = len(capture.compilations) - len(items.compilations)
    notes += filter(None, [quantities.more(left, "compilation", "capture.compilations")])
    if len(capture.sources) > SOURCES:
        more = quantities.plural(len(capture.sources) - SOURCES, "function")
        notes.append(f"and the source of {more} more: capture.sources")
    unplaced = labels.unplaced(capture)
    if unplaced:
        times = ", ".join(
            f"{line(name)} {quantities.duration(time)}" for name, time in unplaced[:MAX_ENTRIES]
        )
        notes.append(f"Time elsewhere: {times}")
    return notes + _some(sentences.all_notes(capture.notes, capture.unknown_fields), "note", "capture.notes")


def _some(values: Sequence[str], what: str, where: str) -> list[str]:
    """Return the first strings, and a note on the number of others."""
    left = quantities.more(len(values) - MAX_ENTRIES, what, where)
    return [*map(block, values[:MAX_ENTRIES]), *([left] if left else [])]
