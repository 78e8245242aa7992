"""A capture as HTML: one self-contained fragment for a notebook cell, and a page of its own around it.

The fragment has two layers. The static one is right without any script, style sheet, id or outside file, as
in an untrusted notebook or on a code host. Where scripts run, the second one (``viewer``) takes its place.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.source_units import instances
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame

from ...findings import findings, unknown
from ...findings.target import KEY as TARGET
from ...findings.target import figures
from ...live.embed import live
from ...live.parts import no_collection
from ...story.between import TITLE as BETWEEN
from ...story.between import between
from ...words import flow as way
from ...words import kernels, outcome, outline, quantities, sentences, stamp
from ...words.characters import short
from ...words.palette import INK
from .dark import wished
from .flow import flow
from .left_to_python import eager
from .listing import listing, source_head
from .markup import (
    FAINT,
    GROUND,
    MONO,
    STATE_COLOURS,
    Budget,
    block,
    div,
    faint,
    fold,
    frame,
    heading,
    mono,
    note,
    span,
    tag,
    text,
)
from .sheet import around
from .stages import Stages
from .tables import figures_table, guards_list, ledger_table, savings

_MANY = 40
"""Compilations, inputs, sources and notes shown one by one before the rest is only counted."""

_FEW = 3
"""Compilations whose strips stand at the top; with more of them each strip stands in its own section."""

_BRIEF = 8
"""Lines of one finding before the rest is only counted."""


def fragment(capture: Record, *, standalone: bool = False) -> str:
    """The capture as one ``<div class="compile-lens">``. The same capture gives the same text.

    ``standalone`` says that it has a page of its own, whose address may remember what is open and pinned.
    """
    own = " data-standalone" if standalone else ""
    # Both wait for Graphviz, each for a process of its own.
    with no_collection(), ThreadPoolExecutor(max_workers=1) as beside:
        alive = beside.submit(live, capture)
        page = static(capture, standalone)
        return f'<div class="compile-lens"{own}>\n{page}{alive.result()}</div>\n'


def static(capture: Record, standalone: bool = False) -> str:
    """The layer that needs no script: one ``<div class="cl-static">``. On a page of its own it has the first heading;
    in a notebook, whose headings are the author's, it has none."""
    budget = Budget()
    ledger = ledger_of(capture)
    by_id = dict(ledger.graphs)
    parts = [_header(capture, standalone), _outcome(capture), savings(capture, ledger), eager(capture)]
    parts.append(_sources(capture, budget))
    shown = capture.compilations[:_MANY]
    few = len(shown) <= _FEW
    for compilation in shown if few else ():
        detail = text(short(_where(compilation), 300)) if len(shown) > 1 else way.ABOUT
        parts.append(heading(way.TITLE, detail, "flow-heading"))
        parts.append(flow(capture, compilation, by_id[compilation.id]) + _banner(compilation))
    if len(capture.compilations) > _MANY:
        more = quantities.plural(len(capture.compilations) - _MANY, "compilation")
        parts.append(note(f"and {more} more: capture.compilations"))
    parts += [_between(capture), _kernels(capture)]
    if ledger.rows:
        parts.append(heading("Ledger", sentences.LEDGER, "ledger-heading"))
        parts.append(ledger_table(ledger))
    parts += [_target(capture), _findings(capture)]
    stages = Stages(capture, shown, budget, listed=len(capture.kernels) <= _MANY)
    for index, compilation in enumerate(shown):
        above = "" if few else flow(capture, compilation, by_id[compilation.id]) + _banner(compilation)
        if len(shown) > 1:
            above += ledger_table(by_id[compilation.id], explain=False)
        parts.append(_compilation(compilation, stages, above, first=index == 0, alone=len(shown) == 1))
    parts.append(_rest(capture))
    return (
        f'<div class="cl-static" style="{frame(1280)}">\n' + "\n".join(p for p in parts if p) + "\n</div>\n"
    )


def document(capture: Record) -> str:
    """The capture as a page of its own: the fragment, and a policy that forbids outside requests."""
    env = capture.environment
    facts = [capture.function, f"torch {env.torch}", stamp.device(capture), capture.created[:10]]
    title = " · ".join(text(short(f, 120)) for f in facts if f)
    page = fragment(capture, standalone=True)
    generator = f'<meta name="generator" content="compile_lens {text(env.compile_lens)}">\n'
    return around(page, title, f"{generator}<style>\n{wished('.compile-lens')}</style>\n")


def _header(capture: Record, standalone: bool) -> str:
    brand = span("compile_lens", f"font-size:12px;font-weight:600;letter-spacing:.4px;color:{FAINT}")
    when = span(text(short(capture.created, 40)), f"font-size:12px;color:{FAINT}") if capture.created else ""
    top = div(brand + when, "display:flex;justify-content:space-between;flex-wrap:wrap;gap:8px")
    name = tag(
        "h1" if standalone else "div",
        mono(short(capture.function, 300), "font-weight:600"),
        "margin:2px 0 6px;font-size:22px;line-height:1.3",
    )
    told = [text(short(f, 300)) for f in outline.environment(capture)]
    said = stamp.of_capture(capture)
    told += [f"code {text(short(said, 300))}"] if said else []
    asked = outline.asked(capture)
    told += [f"options: {text(short(asked, 1000))}"] if asked else []
    facts = faint(" · ".join(told), "font-size:13px")
    return div(top + name + div(facts) + _inputs(capture), "", "header")


def _inputs(capture: Record) -> str:
    lines = [div(mono(i, "font-size:13px"), "padding:1px 0") for i in capture.inputs[:_MANY]]
    if len(capture.inputs) > _MANY:
        lines.append(
            note(f"and {quantities.plural(len(capture.inputs) - _MANY, 'input')} more: capture.inputs")
        )
    if not lines:
        lines = [faint("no inputs", "font-size:13px")]
    return div("".join(lines), "margin:6px 0 0", "inputs")


def _outcome(capture: Record) -> str:
    state = outcome.state(capture)
    ink, ground, edge = STATE_COLOURS[state]
    said = div(text(short(outcome.verdict(capture), 1000)), f"font-weight:600;color:{ink}")
    failure = capture.failure
    if failure is not None:
        look = f"{MONO};font-size:12px;line-height:1.5;white-space:pre-wrap"
        look += f";margin:6px 0 0;border:0;color:{INK};background:{ground};padding:0"
        said += tag("pre", block(short(failure.message)), look, "failure-message")
        if failure.traceback:
            shown = tag("pre", block(short(failure.traceback, 20_000)), look.replace(ground, GROUND))
            said += fold("traceback", shown, "traceback", level=1)
    if below := sentences.below(capture):
        said += div(below, f"margin-top:{6 if failure else 4}px;font-size:13px;color:{ink}")
    look = f"margin:12px 0 0;padding:9px 14px;border:1px solid {edge};border-radius:8px;background:{ground}"
    return div(said, look, f"outcome cl-{state}")


def _between(capture: Record) -> str:
    """What happened from the operators to the kernels, in the story's words."""
    found = between(capture)
    if not found:
        return ""
    lines = []
    for (cid, phase), said in list(found.items())[:_MANY]:
        where = f"{cid} {phase}" if len(capture.compilations) > 1 else phase
        words = " ".join(text(sentence.text) for sentence in said)
        lines.append(div(f"{tag('b', text(where))}: {words}", "padding:2px 0"))
    return heading(BETWEEN, "", "between-heading") + div("".join(lines), "", "between")


def _kernels(capture: Record) -> str:
    every = list(kernels.rows(capture))
    if not every:
        return ""
    page = figures_table(kernels.HEAD, [row.cells for row in every[:_MANY]])
    if len(every) > _MANY:
        page += note(f"and {quantities.plural(len(every) - _MANY, 'kernel')} more: capture.kernels")
    return heading("Kernels", "their code is below", "kernels-heading") + page


def _target(capture: Record) -> str:
    """The device model, each of its figures with its source, and how the function came to be compiled for it."""
    found = capture.target
    if found is None:
        return ""
    said = [text(short(words, 1000)) for words in (found.model.flops_note, stamp.how(found)) if words]
    table = figures_table(
        ("figure", "value", "source"), [quantities.cells(row) for row in figures(found.model)]
    )
    about = "what stood for the device, and who says so"
    head = heading("Device model", about, "target-heading") + fold(
        text(short(stamp.device(capture), 300)), table + "".join(div(words) for words in said), "target"
    )
    differences = stamp.of_target(found)
    if not differences:
        return head
    lines = "".join(div(text(short(words, 1000)), "padding:1px 0") for words in differences[:_MANY])
    if len(differences) > _MANY:
        left = quantities.plural(len(differences) - _MANY, "thing")
        lines += note(f"and {left} more: capture.target.may_differ and .queries")
    title = f"{stamp.MAY_DIFFER}: {quantities.plural(len(differences), 'thing')}"
    return head + fold(text(title), lines, "may-differ", open=bool(stamp.answered_otherwise(found)))


def _findings(capture: Record) -> str:
    """Each finding in a few lines: the rest of it is for the interactive page."""
    found = findings(capture)
    if not found:
        return ""
    parts = [heading("Why", "what stayed apart, what was rewritten, what is in memory", "why-heading")]
    for finding in found:
        if finding.missing or finding.key == TARGET:  # which has a section of its own
            continue
        lines = [text(short(words, 300)) for words in finding.brief[:_BRIEF]]
        left = len(finding.brief) - len(lines)
        lines.append(faint(f"{f'and {left} more: ' if left > 0 else 'all of it: '}{text(finding.where)}"))
        head = tag("b", text(finding.title)) + " " + faint(text(finding.fact))
        parts.append(fold(head, "".join(div(line) for line in lines), "finding"))
    parts += [note(f"{text(', '.join(titles))}: {text(why)}") for why, titles in unknown(found)]
    return "".join(parts)


def _sources(capture: Record, budget: Budget) -> str:
    if not capture.sources:
        why = sentences.no_source(capture)
        return note(text(why)) if why else ""
    parts = [heading("Source", sentences.SOURCES, "sources-heading")]
    for source in capture.sources[:_MANY]:
        parts.append(source_head(source, instances(capture).get(source, ())))
        parts.append(listing(source.text, "python", budget, source.first_line, height=320))
    if len(capture.sources) > _MANY:
        parts.append(
            note(f"and {quantities.plural(len(capture.sources) - _MANY, 'function')} more: capture.sources")
        )
    return div("".join(parts), "", "sources")


def _compilation(compilation: Compilation, stages: Stages, above: str, first: bool, alone: bool) -> str:
    content = _recompile(compilation)
    content += above + stages.of(compilation, open=first) + _guards(compilation)
    if alone:
        return heading("Graphs and code", "open a stage", "graphs-heading") + div(content, "", "compilation")
    summary = span(text(short(_where(compilation), 300)), "font-weight:600;font-size:15px")
    broken = compilation.ending is not None and compilation.ending.kind == "graph break"
    summary += faint(f" {sentences.BROKE}", "font-size:13px") if broken else ""
    summary += faint(" a recompile", "font-size:13px") if compilation.recompile_reasons else ""
    return div(fold(summary, content, "compilation", open=first), "margin:18px 0 0")


def _banner(compilation: Compilation) -> str:
    ink, ground, edge = STATE_COLOURS["nothing"]
    said = []
    if compilation.recompile_reasons:
        said.append(f"a recompile: {text(short(compilation.recompile_reasons[0], 400))}")
    if compilation.ending is not None and compilation.ending.kind == "graph break":
        said.append(f"{sentences.BROKE}: {text(short(outcome.reason(compilation.ending).what, 400))}")
    look = f"font-size:13px;color:{ink};background:{ground};border-left:3px solid {edge};padding:3px 10px"
    return "".join(div(s, f"{look};margin:0 0 6px 84px", "banner") for s in said)


def _where(compilation: Compilation) -> str:
    place = outline.place(Frame(compilation.file, compilation.line, "")) if compilation.file else ""
    return f"{compilation.id} {outline.readable(compilation.function)}" + (f", {place}" if place else "")


def _guards(compilation: Compilation) -> str:
    parts = ""
    if compilation.dynamic:
        rows = "".join(div(mono(sentences.symbol(d), "font-size:13px")) for d in compilation.dynamic)
        parts += fold(
            f"{_strong('Dynamic dimensions')} {faint(str(len(compilation.dynamic)))}",
            rows,
            "dynamic",
            open=True,
        )
    if compilation.guards:
        count = faint(sentences.guards(compilation))
        parts += fold(f"{_strong('Guards')} {count}", guards_list(compilation.guards), "guards")
    return parts


def _recompile(compilation: Compilation) -> str:
    if not compilation.recompile_reasons:
        return ""
    rows = "".join(
        div(mono(short(r), "font-size:13px"), "margin:2px 0") for r in compilation.recompile_reasons[:_MANY]
    )
    return fold(f"{_strong('Recompile')} {faint(sentences.RECOMPILE)}", rows, "recompile", open=True)


def _rest(capture: Record) -> str:
    parts = []
    unplaced = outline.unplaced(capture)
    if unplaced:
        said = ", ".join(
            f"{text(short(name))} {quantities.duration(time)}" for name, time in unplaced[:_MANY]
        )
        parts.append(div(f"Time elsewhere: {said}", f"font-size:13px;color:{FAINT}"))
    notes = list(capture.notes)
    notes += [f"fields of the record that this version does not know: {f}" for f in capture.unknown_fields]
    parts += [note(text(short(n))) for n in notes[:_MANY]]
    if len(notes) > _MANY:
        parts.append(note(f"and {quantities.plural(len(notes) - _MANY, 'note')} more: capture.notes"))
    return div("".join(parts), "margin:18px 0 0", "rest") if parts else ""


def _strong(words: str) -> str:
    return span(words, f"font-weight:600;color:{FAINT};margin-right:6px")
