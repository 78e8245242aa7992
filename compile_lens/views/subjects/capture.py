"""The Document of a capture: verdict, eager parts, flow, kernels, ledger, device, findings, graphs and code."""

from __future__ import annotations

from compile_lens.measures.ledger import Ledger
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.source_units import instances
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Code

from ..document import (
    ANY,
    NAME,
    NUMBER,
    PAGE,
    TERMINAL,
    TEXT,
    Compiled,
    Document,
    Entries,
    Entry,
    Finding,
    Flow,
    Group,
    Listing,
    Listings,
    Prose,
    Row,
    Section,
    Table,
)
from ..findings import findings, unknown
from ..findings.target import INTRO as TARGET_INTRO
from ..findings.target import KEY as TARGET
from ..findings.target import figures
from ..story.whole import TITLE as BETWEEN
from ..story.whole import between
from ..words import flow, kernels, labels, machine, outcome, quantities, sentences, stamp
from ..words.characters import flat
from ..words.ledger import ledger_table
from ..words.quantities import duration, more, plural

COMPILATIONS = 40
"""Maximum compilations shown; the rest is only counted."""

MAX_FLOWS = 3
"""Maximum compilations whose flow is at the top of a page; with more, each flow is in its own section."""

MAY_DIFFER = 40
"""Maximum differences of the real device shown; the rest is only counted."""

KERNELS = 30
"""Maximum kernels on a terminal; the rest is only counted."""

GUARDS = 3
"""Maximum guards of one recompile; the rest is only counted."""


def document(capture: Record) -> Document:
    """Return the Document of a capture."""
    code, options = stamp.of_capture(capture), labels.asked(capture)
    details = [("", f"code {code}")] if code else []
    details += [("options", options)] if options else []
    no_source = sentences.no_source(capture)
    return Document(
        "capture",
        capture.function,
        outcome.state(capture),
        outcome.verdict(capture),
        capture.created,
        labels.environment(capture),
        tuple(details),
        outcome.saving(ledger_of(capture)),
        capture.inputs,
        capture.failure,
        (no_source,) if no_source else (),
        sentences.below(capture),
        findings=tuple(_findings(capture)),
        also=_also(capture),
        notes=sentences.all_notes(capture.notes, capture.unknown_fields),
        notes_where="capture.notes",
    )


def line(capture: Record) -> str:
    """Return the capture in one short line: function and outcome."""
    return f"<Capture of {flat(capture.function)}: {flat(outcome.verdict(capture))}>"


def _findings(capture: Record) -> list[Finding]:
    ledger = ledger_of(capture)
    every = [_eager(capture), _recompiles(capture), _sources(capture), *_flows(capture, ledger)]
    every += [_between(capture), _kernels(capture), _ledger(capture, ledger), _target(capture), _why(capture)]
    every += _compilations(capture, ledger)
    return [finding for finding in every if finding is not None]


def _eager(capture: Record) -> Finding | None:
    """Return the finding of the places where the program continued eagerly."""
    places = outcome.eager(capture)
    if not places:
        return None
    entries = []
    for place in places:
        reason = outcome.reason(place.ending)
        lines = [("because", reason.what), ("", " ".join(reason.why.splitlines())), ("", place.why)]
        lines += [*(("hint", hint) for hint in reason.hint.splitlines()), ("more", reason.link)]
        shown = tuple((label, text) for label, text in lines if text)
        entries.append(Entry(place.head, "", shown, place.ending.frames, reason.whole))
    where = "capture.breaks, capture.skipped"
    section = Entries(tuple(entries), "break", where, open=len(entries) <= 3)
    aside = "what Python ran in place of compiled code, and why"
    return Finding("eager", "Ran eagerly", "", sections=(section,), open=True, aside=aside)


def _recompiles(capture: Record) -> Finding | None:
    if not capture.recompiles:
        return None
    call = {id: f"call {i}  " for i, one in enumerate(capture.calls, 1) for id in one.compiled}
    entries = []
    for one in capture.recompiles:
        guards = [("", guard) for guard in one.guards[1:GUARDS]]
        left = len(one.guards) - GUARDS
        guards += [("", f"… and the guards of {left} more of its variants")] if left > 0 else []
        detail = one.guards[0] if one.guards else ""
        entries.append(Entry(f"{call.get(one.id, '')}{one.id}", detail, tuple(guards)))
    section = Entries(tuple(entries), "recompile", "capture.recompiles", TERMINAL)
    return Finding("recompiles", "Recompiles", "", sections=(section,), room=TERMINAL)


def _sources(capture: Record) -> Finding | None:
    if not capture.sources:
        return None
    listings = tuple(Listing(source, instances(capture).get(source, ())) for source in capture.sources)
    section = Listings(listings, where="capture.sources")
    return Finding(
        "sources", "Source", "", sections=(section,), open=True, aside=sentences.SOURCES, room=PAGE
    )


def _flows(capture: Record, ledger: Ledger) -> list[Finding]:
    shown = capture.compilations[:COMPILATIONS]
    by_id = dict(ledger.graphs)
    many = len(capture.compilations) > 1
    room = ANY if len(shown) <= MAX_FLOWS else TERMINAL
    flows = []
    for compilation in shown:
        title = f"{flow.TITLE} of {compilation.id} {labels.readable(compilation.function)}"
        sections = (flow_of(capture, compilation, by_id[compilation.id]),)
        place = _place(compilation)
        aside = place if many else flow.ABOUT
        flows.append(Finding("flow", title, "", place, sections=sections, open=True, aside=aside, room=room))
    left = len(capture.compilations) - len(shown)
    if words := more(left, "compilation", "capture.compilations"):
        flows.append(Finding("more", "", "", sections=(Prose("", (words,)),), open=True))
    return flows


def flow_of(capture: Record, compilation: Compilation, ledger: Ledger) -> Flow:
    """Return the stages of one compilation; ``ledger`` is its ledger."""
    lines = tuple((way.phase, way.words) for way in flow.ways(capture, compilation, ledger))
    dynamic = tuple(map(sentences.symbol, compilation.dynamic))
    return Flow(lines, labels.lanes(capture, compilation), dynamic)


def _place(compilation: Compilation) -> str:
    return labels.place(Frame(compilation.file, compilation.line, "")) if compilation.file else ""


def _between(capture: Record) -> Finding | None:
    phases = between(capture)
    if not phases:
        return None
    many = len(capture.compilations) > 1
    sections = tuple(
        Prose(f"{cid} {phase}" if many else phase, (" ".join(one.text for one in sentences_of),), True)
        for (cid, phase), sentences_of in phases.items()
    )
    return Finding("between", BETWEEN, "", sections=sections, open=True)


def _kernels(capture: Record) -> Finding | None:
    rows = list(kernels.rows(capture))
    if not rows:
        return None
    entries: list[Entry] = []
    last = None
    for row in rows[:KERNELS]:
        if row.code is not last and (row.code.model or row.code.may_differ):
            entries.append(_stamp(row, last))
        last = row.code
        entries.append(_kernel(row))
    kinds = (NAME, TEXT, TEXT, TEXT, TEXT, NAME)
    table = Table("", kernels.HEAD, kinds, tuple(Row(row.cells) for row in rows), room=PAGE)
    sections = (
        Entries(tuple(entries), "kernel", "capture.kernels", TERMINAL, left=len(rows) - KERNELS),
        table,
    )
    return Finding(
        "kernels",
        "Kernels",
        "",
        where="capture.kernels",
        sections=sections,
        open=True,
        few=2 * KERNELS,
        aside="their code is below",
    )


def _stamp(row: kernels.Row, before: Code | None) -> Entry:
    """Return the stamp of a module, and what may differ on the real device."""
    code = row.code
    lines: list[str] = []
    if code.may_differ and before is not None and before.may_differ == code.may_differ:
        lines = [f"{stamp.MAY_DIFFER}: the same as of {before.phase}"]
    elif code.may_differ:
        lines = [f"{stamp.MAY_DIFFER}:", *(f"· {words}" for words in stamp.differences(code, 5))]
    return Entry(f"{row.where}: {stamp.of_code(code)}", lines=tuple(("", line) for line in lines))


def _kernel(row: kernels.Row) -> Entry:
    kernel = row.kernel
    lines = [f"← {row.computes}", row.again]
    if kernel.machine is not None:
        lines.append(f"machine code by {kernel.machine.compiler}: {' · '.join(machine.facts(kernel))}")
        lines.append(f"in Python: {machine.names(kernel)}")
    for remark in machine.remarks(kernel):
        lines.append(remark.title + (f": {'; '.join(remark.lines)}" if remark.lines else ""))
    detail = " · ".join(filter(None, (row.language, row.where, row.launches, row.size)))
    return Entry(kernel.name, detail, tuple(("", line) for line in lines if line))


def _ledger(capture: Record, ledger: Ledger) -> Finding | None:
    if not ledger.rows:
        return None
    every = capture.compilations
    sections = (
        ledger_table(capture, ledger, every, 12, TERMINAL),
        ledger_table(capture, ledger, every, 0, PAGE),
    )
    where = "capture.ledger.total.notes"
    return Finding(
        "ledger", "Ledger", "", where=where, sections=sections, few=5, open=True, aside=sentences.LEDGER
    )


def _target(capture: Record) -> Finding | None:
    """Return the finding on the device model: its figures with their sources, and how the function was compiled for
    it."""
    target = capture.target
    if target is None:
        return None
    rows = figures(target.model)
    by_source: dict[str, list[str]] = {}
    for row in rows:
        name, value, source = quantities.cells(row)
        by_source.setdefault(source, []).append(f"{name} {value}")
    entries = tuple(
        Entry(" · ".join(words), lines=(("source", source or "no source is named"),))
        for source, words in by_source.items()
    )
    named = f"{stamp.device(capture)}, requested as {target.requested!r}"
    table = Table("", ("figure", "value", "source"), (NAME, NUMBER, TEXT), rows, (named,), room=PAGE)
    words = tuple(filter(None, (target.model.flops_note, stamp.how(target))))
    sections: list[Section] = [Entries(entries, "source", room=TERMINAL), table]
    sections += [Prose("", words)] if words else []
    if differences := stamp.of_target(target):
        where = "capture.target.may_differ and .queries"
        rest = more(len(differences) - MAY_DIFFER, "thing", where)
        shown = (*differences[:MAY_DIFFER], *([f"… {rest}"] if rest else []))
        sections.append(Prose(stamp.MAY_DIFFER, shown))
    aside = "the model of the device, and its sources"
    return Finding(
        "target",
        "Device model",
        TARGET_INTRO,
        stamp.device(capture),
        sections=tuple(sections),
        open=True,
        aside=aside,
    )


def _why(capture: Record) -> Finding | None:
    every = findings(capture)
    if not every:
        return None
    # The device model has its own section.
    shown = tuple(finding for finding in every if not finding.missing and finding.key != TARGET)
    group = Group(shown, unknown(every))
    aside = "what stayed separate, what was rewritten, what is in memory"
    return Finding("why", "Why", "", sections=(group,), open=True, aside=aside)


def _compilations(capture: Record, ledger: Ledger) -> list[Finding]:
    shown = capture.compilations[:COMPILATIONS]
    by_id = dict(ledger.graphs)
    alone = len(shown) == 1
    listed = len(capture.kernels) <= COMPILATIONS
    compiled = []
    for number, compilation in enumerate(shown):
        part = by_id[compilation.id]
        above: list[Flow | Table] = []
        if len(shown) > MAX_FLOWS:
            above.append(flow_of(capture, compilation, part))
        if not alone and part.rows:
            above.append(ledger_table(capture, part, [compilation]))
        section = Compiled(capture, compilation, listed, alone, number == 0, tuple(above))
        title = f"{compilation.id} {labels.readable(compilation.function)}"
        compiled.append(Finding("compilation", title, "", sections=(section,), open=True, room=PAGE))
    return compiled


def _also(capture: Record) -> tuple[str, ...]:
    guards = sum(len(compilation.guards) for compilation in capture.compilations)
    times = ", ".join(f"{name} {duration(time)}" for name, time in labels.unplaced(capture)[:12])
    return (
        *((f"{plural(guards, 'guard')} (capture.guards)",) if guards else ()),
        *((f"time: {times}",) if times else ()),
    )
