"""The text page: a capture on a terminal, compact and never wider than it."""

from __future__ import annotations

from compile_lens.measures.ledger import Ledger
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Code
from compile_lens.record.messages import plain

from .findings import findings, unknown
from .findings.target import KEY as TARGET
from .findings.target import figures
from .render.text import Paper, paper_of
from .story.between import TITLE as BETWEEN
from .story.between import between
from .words import flow, kernels, machine, outcome, outline, quantities, savings, sentences, stamp
from .words.characters import cells, flat, pad

MANY = 12
"""Kernels, breaks, recompiles and notes listed one by one before the rest is only counted."""

FEW = 5
"""Notes under the ledger: a failure takes many figures away for one reason, said above already."""

SOME = 3
"""Lines of one finding before the rest is only counted."""


def page(capture: Record, width: int | None = None, ascii: bool | None = None) -> str:
    """The page as text, ending in a newline.

    Args:
        width: cells of the longest line; the terminal's if ``None`` (at most 100 where it does not say), and
            never under 40.
        ascii: whether only ASCII may be used; ``None`` asks standard output.
    """
    paper = paper_of(width, ascii)
    ledger = ledger_of(capture)
    _header(paper, capture)
    _outcome(paper, capture, ledger)
    _eager(paper, capture)
    by_id = dict(ledger.graphs)
    for compilation in capture.compilations[:MANY]:
        _flow(paper, capture, compilation, by_id[compilation.id])
    paper.more(len(capture.compilations) - MANY, "compilation", "capture.compilations")
    _between(paper, capture)
    _kernels(paper, capture)
    _ledger(paper, ledger)
    _target(paper, capture)
    _findings(paper, capture)
    _rest(paper, capture)
    return paper.text()


def line(capture: Record) -> str:
    """The capture in one short line: function and outcome."""
    return f"<Capture of {flat(capture.function)}: {flat(outcome.verdict(capture))}>"


def _header(paper: Paper, capture: Record) -> None:
    paper.section(f"compile_lens: {capture.function}", capture.created)
    facts = " · ".join(outline.environment(capture))
    paper.text_block(facts, "  ", limit=3)
    said = stamp.of_capture(capture)
    if said:
        paper.text_block(f"code {said}", "  ", limit=2)
    asked = outline.asked(capture)
    if asked:
        paper.text_block(f"options: {asked}", "  ", "    ", limit=4)
    if not capture.inputs:
        paper.line("  no inputs")
    for text in capture.inputs[:MANY]:
        paper.text_block(text, "  ", "      ", limit=2)
    paper.more(len(capture.inputs) - MANY, "input", "capture.inputs")


def _outcome(paper: Paper, capture: Record, ledger: Ledger) -> None:
    mark = {"compiled": "✓", "partial": "◐", "nothing": "·", "failed": "✗"}[outcome.state(capture)]
    paper.line()
    paper.text_block(outcome.verdict(capture), f"  {mark} ", "    ", limit=6)
    for saving in savings.saving(ledger):
        paper.text_block(savings.saved(saving), "    ", "      ", limit=3)
    if why := sentences.no_source(capture):
        paper.text_block(why, "    ", "      ")
    if capture.failure is not None:
        paper.text_block(capture.failure.message, "    ")
        if capture.compilations:
            paper.line("    every stage before the failure is below")


def _flow(paper: Paper, capture: Record, compilation: Compilation, ledger: Ledger) -> None:
    where = f"{outline.place(Frame(compilation.file, compilation.line, ''))}" if compilation.file else ""
    paper.section(f"flow of {compilation.id} {outline.readable(compilation.function)}", where)
    for way in flow.ways(capture, compilation, ledger):
        paper.text_block(str(way), "  ", "    ", limit=6)
    rows = []
    for lane in outline.lanes(capture, compilation):
        for step in lane.steps:
            name = step.title
            if lane.phase and step.key != lane.phase:
                name = f"  ↳ {step.title}"
            if step.missing:
                rows.append((name, "missing:", step.missing, ""))
            elif step.none:
                rows.append((name, "none:", step.none, ""))
            else:
                facts = (*step.facts, "")[:2]
                rows.append((name, facts[0], facts[1], quantities.duration(step.seconds)))
    if not rows:
        paper.line(f"  {sentences.NO_STAGE}")
        return
    plain = [row for row in rows if row[1] not in ("missing:", "none:")]
    widths = [max((cells(paper.say(r[i])) for r in plain), default=0) for i in range(4)]
    widths[0] = max(cells(paper.say(r[0])) for r in rows)
    for row in rows:
        cell = [paper.say(c) for c in row]
        if row[1] in ("missing:", "none:"):
            start = f"  {pad(cell[0], widths[0])}  {row[1]} "
            paper.text_block(row[2], start, " " * 6, limit=3)
        else:
            shown = "  ".join(pad(c, w, i > 0) for i, (c, w) in enumerate(zip(cell, widths, strict=True)))
            paper.line(f"  {shown}")
    if compilation.dynamic:
        dims = ", ".join(map(sentences.symbol, compilation.dynamic))
        paper.text_block(f"dynamic: {dims}", "  ", "    ", limit=4)


def _between(paper: Paper, capture: Record) -> None:
    found = between(capture)
    if found:
        paper.section(BETWEEN.lower())
    for (cid, phase), said in list(found.items())[:MANY]:
        where = f"{cid} {phase}" if len(capture.compilations) > 1 else phase
        paper.text_block(f"{where}: {' '.join(s.text for s in said)}", "  ", "    ")


def _ledger(paper: Paper, ledger: Ledger) -> None:
    if not ledger.rows:
        return
    paper.section("ledger")
    head = ["", *outline.COLUMN_TITLES.values()]
    rows = [head] + [[row.name, *map(quantities.figure, row.figures)] for row in ledger.rows]
    if len(ledger.graphs) > 1:
        parts = [(name, part.total) for name, part in ledger.graphs[:MANY] if part.rows]
        rows += [[f"  of which {name}", *map(quantities.figure, row.figures)] for name, row in parts]
    right = [False] + [True] * (len(head) - 1)
    # On a narrow terminal the same table stands on its side, or else as a line for each figure.
    if not paper.table(rows, right) and not paper.table(
        [list(c) for c in zip(*rows, strict=True)], [False] + [True] * (len(rows) - 1)
    ):
        for row in rows[1:]:
            for name, value in zip(head[1:], row[1:], strict=True):
                paper.line(f"  {row[0]} {name}: {value}")
    paper.text_block(outline.basis_note(ledger.rows), "  ", limit=3)
    notes = tuple(dict.fromkeys(note for row in ledger.rows[:-1] for note in row.notes))
    for note in notes[:FEW]:
        paper.text_block(note, "  · ", "    ", limit=3)
    paper.more(len(notes) - FEW, "note", "capture.ledger.total.notes")


def _kernels(paper: Paper, capture: Record) -> None:
    every = list(kernels.rows(capture))
    if not every:
        return
    paper.section("kernels")
    last: Code | None = None
    for row in every[:MANY]:
        if row.code is not last and (row.code.model or row.code.may_differ):
            _stamp(paper, row.code, last, row.where)
        last = row.code
        _kernel(paper, row)
    paper.more(len(every) - MANY, "kernel", "capture.kernels")


def _stamp(paper: Paper, code: Code, before: Code | None, where: str) -> None:
    paper.text_block(f"{where}: {stamp.of_code(code)}", "  ", "    ", limit=2)
    if not code.may_differ:
        return
    if before is not None and before.may_differ == code.may_differ:
        paper.line(f"    {stamp.MAY_DIFFER}: the same as of {before.phase}")
        return
    paper.line(f"    {stamp.MAY_DIFFER}:")
    for words in stamp.differences(code, FEW):
        paper.text_block(words, "    · ", "      ", limit=3)


def _kernel(paper: Paper, row: kernels.Row) -> None:
    kernel = row.kernel
    said = " · ".join(filter(None, (row.language, row.where, row.launches, row.size)))
    if cells(paper.say(kernel.name)) + cells(paper.say(said)) + 5 <= paper.width:
        paper.line(f"  {kernel.name}   {said}")
    else:
        paper.line(f"  {kernel.name}")
        paper.text_block(said, "    ", limit=2)
    paper.text_block(row.computes, "    ← ", "      ", limit=4)
    if row.again:
        paper.text_block(row.again, "    ", "      ", limit=2)
    found = machine.facts(kernel)
    if kernel.machine is not None:
        said = f"machine code by {kernel.machine.compiler}: {' · '.join(found)}"
        paper.text_block(said, "    ", "      ", limit=3)
        paper.text_block(f"in Python: {machine.names(kernel)}", "    ", "      ", limit=2)
    for remark in machine.remarks(kernel):
        lines = f": {'; '.join(remark.lines)}" if remark.lines else ""
        paper.text_block(remark.title + lines, "    ", "      ", limit=4)


def _target(paper: Paper, capture: Record) -> None:
    """The device model: its figures by source, and how the function came to where it was compiled."""
    found = capture.target
    if found is None:
        return
    paper.section("device model", stamp.device(capture))
    sources: dict[str, list[str]] = {}
    for row in figures(found.model):
        name, value, source = quantities.cells(row)
        sources.setdefault(source, []).append(f"{name} {value}")
    for source, figures_of in sources.items():
        paper.text_block(" · ".join(figures_of), "  ", limit=5)
        paper.text_block(source or "no source is named", "    source: ", "      ", limit=3)
    if found.model.flops_note:
        paper.text_block(found.model.flops_note, "  ", limit=4)
    if said := stamp.how(found):
        paper.text_block(said, "  ", limit=4)
    differences = stamp.of_target(found)
    if differences:
        paper.line(f"  {stamp.MAY_DIFFER}:")
    for words in differences[:MANY]:
        paper.text_block(words, "    · ", "      ", limit=3)
    paper.more(len(differences) - MANY, "thing", "capture.target.may_differ and .queries", "    ")


def _findings(paper: Paper, capture: Record) -> None:
    found = findings(capture)
    if not found:
        return
    paper.section("why")
    for finding in found:
        if finding.missing or finding.key == TARGET:  # which has a section of its own
            continue
        paper.line(f"  {finding.title}: {finding.fact}")
        for said in finding.brief[:SOME]:
            room = 2 * (paper.width - 8)
            paper.text_block(said if len(said) <= room else f"{said[: room - 1]}…", "    · ", "      ")
        left = len(finding.brief) - SOME
        paper.line(f"    {f'… and {left} more: ' if left > 0 else ''}{finding.where}")
    for why, names in unknown(found):
        paper.text_block(f"{', '.join(names)}: {why}", "  ", "    ", limit=2)


def _eager(paper: Paper, capture: Record) -> None:
    found = outcome.eager(capture)
    if found:
        paper.section("ran eagerly")
    for one in found[:MANY]:
        _place(paper, one)
    paper.more(len(found) - MANY, "place", "capture.breaks, capture.skipped")
    if capture.recompiles:
        paper.section("recompiles")
    called = {id: f"call {i}  " for i, call in enumerate(capture.calls, 1) for id in call.compiled}
    for made in capture.recompiles[:MANY]:
        start = f"  {called.get(made.id, '')}{made.id}  "
        for guard in made.guards[:SOME]:
            paper.text_block(guard, start, "         ", limit=4)
            start = " " * len(start)
        if len(made.guards) > SOME:
            paper.line(f"{start}… and the guards of {len(made.guards) - SOME} more of its forms")
    paper.more(len(capture.recompiles) - MANY, "recompile", "capture.recompiles")


def _place(paper: Paper, one: outcome.Eager) -> None:
    reason = outcome.reason(one.ending)
    paper.text_block(one.head, "  ", "    ", limit=4)
    paper.text_block(reason.what, "    because: ", "      ", limit=6)
    for said in (reason.why, one.why):
        if said:
            paper.text_block(said, "    ", limit=6)
    if reason.hint:
        paper.text_block(reason.hint, "    hint: ", "      ", limit=6)
    if reason.link:
        paper.text_block(reason.link, "    more: ", "      ", limit=2)
    for frame in one.ending.frames[-5:]:
        paper.line(f"    at {frame.file}:{frame.within} in {plain(frame.function)}")
        if frame.text.strip():
            paper.line(f"       {frame.text.strip()}")


def _rest(paper: Paper, capture: Record) -> None:
    total = sum(len(c.guards) for c in capture.compilations)
    notes = list(capture.notes)
    notes += [f"fields of the record that this version does not know: {f}" for f in capture.unknown_fields]
    timings = ", ".join(
        f"{name} {quantities.duration(time)}" for name, time in outline.unplaced(capture)[:MANY]
    )
    if not (total or notes or timings):
        return
    paper.section("also")
    if total:
        paper.line(f"  {quantities.plural(total, 'guard')} (capture.guards)")
    if timings:
        paper.text_block(f"time: {timings}", "  ", "    ", limit=4)
    for note in notes[:MANY]:
        paper.text_block(note, "  note: ", "    ", limit=4)
    paper.more(len(notes) - MANY, "note", "capture.notes")
