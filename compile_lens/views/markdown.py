"""A capture as Markdown, for issues, reviews and notes: header, ledger, stages, kernels with their code."""

from __future__ import annotations

from compile_lens.measures.ledger import Ledger
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.record.breaks import BREAK
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import plain

from .findings import findings, unknown
from .render.markdown import CODE_LIMIT, TEXT_LIMIT, Out, code, escape, line_of, show
from .story.between import TITLE as BETWEEN
from .story.between import between
from .words import flow, kernels, machine, outcome, outline, quantities, savings, sentences, stamp
from .words.launches import launched

_MANY = 100


def page(capture: Record) -> str:
    """The capture as Markdown, ending in a newline. Every string of the user's is escaped or fenced."""
    out = Out()
    ledger = ledger_of(capture)
    _header(out, capture, ledger)
    _eager(out, capture)
    _flow(out, capture, ledger)
    _between(out, capture)
    _kernels(out, capture)
    _ledger(out, ledger)
    _findings(out, capture)
    for compilation in capture.compilations[:_MANY]:
        _compilation(out, capture, compilation)
    out.more(len(capture.compilations) - _MANY, "compilation")
    notes = [*capture.notes, *(f"unknown field of the record: {f}" for f in capture.unknown_fields)]
    if notes:
        out.add("## Notes")
        out.add("\n".join(f"- {escape(n)}" for n in notes[:_MANY]))
        out.more(len(notes) - _MANY, "note")
    return out.text()


def _header(out: Out, capture: Record, ledger: Ledger) -> None:
    out.add(f"# {escape(capture.function)}")
    out.add(f"**{escape(outcome.verdict(capture))}**")
    facts = [*outline.environment(capture)]
    said = stamp.of_capture(capture)
    facts += [f"code {said}"] if said else []
    asked = outline.asked(capture)
    facts += [f"options: {asked}"] if asked else []
    facts += [capture.created] if capture.created else []
    lines = [f"- {escape(fact)}" for fact in facts]
    lines += [f"- {savings.saved(saving)}" for saving in savings.saving(ledger)]
    lines += [f"- input {code(text)}" for text in capture.inputs[:_MANY]]
    out.add("\n".join(lines))
    out.more(len(capture.inputs) - _MANY, "input")
    failure = capture.failure
    if failure is not None:
        out.listing(failure.message, "text", TEXT_LIMIT)
        if failure.traceback:
            out.listing(failure.traceback, "text", TEXT_LIMIT)
    if why := sentences.no_source(capture):
        out.add(escape(why))
    for source in capture.sources[:_MANY]:
        out.add(f"{code(source.name)} in {code(f'{source.file}:{source.first_line}')}:")
        out.listing(source.text, "python", TEXT_LIMIT)


def _eager(out: Out, capture: Record) -> None:
    """Every place where Python took over, whole."""
    found = outcome.eager(capture)
    if not found:
        return
    out.add("## Ran eagerly")
    for one in found[:_MANY]:
        reason = outcome.reason(one.ending)
        out.add(f"### {escape(one.head)}")
        said = [f"Because: {escape(reason.what)}", escape(reason.why), escape(one.why)]
        said += [f"Hint: {escape(reason.hint)}"] if reason.hint else []
        said += [f"More: {escape(reason.link)}"] if reason.link else []
        out.add("\n\n".join(words for words in said if words))
        lines = [
            f"- {code(f'{f.file}:{f.within}')} in {code(plain(f.function))}"
            + (f": {code(f.text.strip())}" if f.text.strip() else "")
            for f in one.ending.frames
        ]
        if lines:
            out.add("\n".join(lines))
    out.more(len(found) - _MANY, "place")


def _flow(out: Out, capture: Record, ledger: Ledger) -> None:
    by_id = dict(ledger.graphs)
    for compilation in capture.compilations[:_MANY]:
        many = len(capture.compilations) > 1
        name = f": {escape(f'{compilation.id} {outline.readable(compilation.function)}')}" if many else ""
        out.add(f"## {flow.TITLE}{name}")
        said = flow.ways(capture, compilation, by_id[compilation.id])
        out.add("\n".join(f"- {escape(str(way))}" for way in said) or escape(sentences.NO_STAGE))
        if not said:
            continue
        lines = ["| stage | holds | time |", "| --- | --- | ---: |"]
        for lane in outline.lanes(capture, compilation):
            for step in lane.steps:
                holds = f"missing: {step.missing}" if step.missing else ", ".join(step.facts)
                holds = f"none: {step.none}" if step.none else holds
                lines.append(
                    f"| {escape(step.key)} | {escape(holds)} | {quantities.duration(step.seconds)} |"
                )
        out.add("\n".join(lines))


def _between(out: Out, capture: Record) -> None:
    found = between(capture)
    if not found:
        return
    out.add(f"## {BETWEEN}")
    for (cid, phase), said in list(found.items())[:_MANY]:
        where = f"{cid} {phase}" if len(capture.compilations) > 1 else phase
        out.add(f"**{escape(where)}**: {escape(' '.join(s.text for s in said))}")


def _kernels(out: Out, capture: Record) -> None:
    every = list(kernels.rows(capture))
    if not every:
        return
    out.add("## Kernels")
    lines = [line_of(kernels.HEAD), "|" + " --- |" * len(kernels.HEAD)]
    out.add("\n".join((*lines, *(line_of(row.cells) for row in every[:_MANY]))))
    out.more(len(every) - _MANY, "kernel")


def _ledger(out: Out, ledger: Ledger) -> None:
    rows = ledger.rows
    if not rows:
        return
    out.add("## Ledger")
    titles = list(outline.COLUMN_TITLES.values())
    lines = ["| | " + " | ".join(titles) + " |", "| --- |" + " ---: |" * len(titles)]
    for row in rows:
        figures = [quantities.figure(f).replace("~", "\\~") for f in row.figures]
        lines.append(f"| {escape(row.name)} | " + " | ".join(figures) + " |")
    out.add("\n".join(lines))
    out.add(escape(outline.basis_note(rows)) + ".")
    notes = tuple(dict.fromkeys(n for row in rows[:-1] for n in row.notes))
    if notes:
        out.add("\n".join(f"- {escape(n)}" for n in notes[:_MANY]))


def _findings(out: Out, capture: Record) -> None:
    found = findings(capture)
    if not found:
        return
    out.add("## Why")
    for finding in found:
        if finding.missing:
            continue
        out.add(f"### {escape(finding.title)}: {escape(finding.fact)}")
        out.add(escape(finding.intro))
        for section in finding.sections:
            show(out, section)
        out.add(f"All of it: {code(finding.where)}; the .html report shows it with code and pictures.")
    for why, titles in unknown(found):
        out.add(f"{escape(', '.join(titles))}: {escape(why)}.")


def _compilation(out: Out, capture: Record, compilation: Compilation) -> None:
    where = f"{compilation.file}:{compilation.line}" if compilation.file else "an unknown place"
    out.add(f"## {escape(f'{compilation.id} {outline.readable(compilation.function)}')}")
    out.add(f"From {code(where)}.")
    for reason in compilation.recompile_reasons[:_MANY]:
        out.add(f"A recompile: {escape(reason)}")
    if compilation.ending is not None and compilation.ending.kind == BREAK:
        out.add(f"Ended in a graph break: {escape(outcome.reason(compilation.ending).what)}")
    _stages(out, compilation)
    origins = outline.Origins(capture)
    for phase, module in compilation.code.items():
        out.add(f"### {phase} kernels")
        if module.model:
            out.add(f"{escape(stamp.of_code(module))}.")
        if module.may_differ:
            lines = [f"- {escape(words)}" for words in stamp.differences(module, _MANY)]
            out.add("\n".join(("May differ on the real device:\n", *lines)))
        if not module.kernels:
            out.add("This module launches no kernel.")
        for kernel in module.kernels:
            _kernel(out, kernel, launched(module, kernel), origins.of(kernel))
        around = quantities.plural(len(module.text.splitlines()), "line")
        out.add(f"The module around them ({around}) is in the .html report.")
    if compilation.guards:
        out.add(f"### {quantities.plural(len(compilation.guards), 'guard')}")
        out.add("\n".join(f"- {code(g.text)}" for g in compilation.guards[:_MANY]))
        out.more(len(compilation.guards) - _MANY, "guard")


def _stages(out: Out, compilation: Compilation) -> None:
    shown = [graph for graph in compilation.graphs.values() if graph.text.strip()]
    if shown:
        out.add("### Stages")
    graphs = compilation.graphs
    for graph in shown:
        before = graphs[graph.before] if graph.before in graphs else None
        if outline.unchanged(graph, before):
            out.add(f"#### {escape(graph.key)}\n\nThe same operations as in {escape(graph.before)}.")
            continue
        out.add(f"#### {escape(graph.key)}")
        out.listing(graph.text, "python", TEXT_LIMIT)


def _kernel(out: Out, kernel: Kernel, launches: str, origin: outline.Origin) -> None:
    language = outline.LANGUAGES.get(kernel.language, kernel.language)
    facts = [language] if kernel.kind == kernel.language else [language, kernel.kind]
    facts.append(launches)
    size = outline.traffic(kernel)
    facts += [f"{size} read and written"] if size else []
    out.add(f"#### {code(kernel.name)}")
    chain = [", ".join(code(o) for o in origin.operators)] if origin.operators else []
    chain += [code(outline.places(origin.lines))] if origin.lines else []
    chain += [escape(origin.unknown)] if origin.unknown else []
    said = escape(" · ".join(facts)) + "\\\n← " + " ← ".join(chain)
    out.add(said + ("\\\n" + escape(again) if (again := outline.again(origin)) else ""))
    if kernel.source.strip():
        out.listing(
            kernel.source, {"triton": "python", "metal": "cpp"}.get(kernel.language, "cpp"), CODE_LIMIT
        )
    _machine(out, kernel)


def _machine(out: Out, kernel: Kernel) -> None:
    shown = [
        (name, value) for name, value in zip(machine.HEAD, machine.figures(kernel), strict=True) if value
    ]
    if shown:
        names, values = zip(*shown, strict=True)
        out.add("\n".join((line_of(names), "|" + " --- |" * len(names), line_of(values))))
    found = machine.configurations(kernel)
    if found is not None:
        lines = [f"- {code(line)}" for line in found.lines]
        out.add("\n".join((f"{escape(found.title)}.", "", *lines)).rstrip())
    for words in machine.missing(kernel):
        out.add(f"{escape(words)}.")
    if forms := machine.names(kernel):
        out.add(f"The code itself: {', '.join(code(name) for name in forms.split(', '))}.")
