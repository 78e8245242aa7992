"""Rendering of a compilation's stages as HTML: each graph as a picture with its text, and the code by kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compile_lens.record.compilation import Compilation, Stage
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.messages import first_names
from compile_lens.record.missing import AbsentStage

from ...document import Compiled, Step
from ...drawing.svg import to_svgs
from ...words import labels, outcome, quantities, sentences, stamp
from ...words.characters import short
from ...words.quantities import launched
from .listing import MachineCode, kernel_origins, listing
from .markup import (
    DRAWN_ALL,
    DRAWN_BOXES,
    EDGE,
    FAINT,
    GROUND,
    KERNELS,
    MISSING_INK,
    PHASE_COLOURS,
    PICTURE_ONE,
    PICTURE_TOTAL,
    STATE_COLOURS,
    WHOLE,
    Budget,
    div,
    faint,
    fold,
    heading,
    mono,
    note,
    picture,
    span,
    tag,
    text,
)
from .tables import guards_list

_OPEN = ("forward", "inference", "forward.code", "inference.code")
"""Stages of the first compilation that are initially open."""


MAX_REASONS = 40
"""Maximum reasons shown for a recompile."""

_OPEN_NODES = 300
_OPEN_KERNELS = 8
"""Sizes above which a stage is initially closed, to keep the page short."""

_BESIDE = 640.0
"""Maximum width in pixels of a drawing beside its text; a wider one is above it."""

_SHRINKABLE = 1500.0
"""Maximum width in pixels of a drawing that is shrunk to fit; a wider one scrolls."""


class Stages:
    """HTML of the stages of several compilations, whose graphs are drawn together."""

    def __init__(self, sections: Sequence[Compiled], budget: Budget) -> None:
        self._capture = sections[0].capture
        # Kernel facts are not repeated if a table above lists every kernel.
        self._listed = sections[0].listed
        self._budget = budget
        self._origins = labels.Origins(self._capture)
        self._machine = MachineCode(self._capture, budget)
        wanted = [
            (section.compilation, stage)
            for section in sections
            for stage in section.compilation.stages
            if isinstance(stage, Graph) and stage.nodes and not _elsewhere(section.compilation, stage)
        ]
        wanted.sort(key=lambda pair: _drawing_order(pair[1]))
        # One child process draws all.
        drawn = to_svgs([stage for _, stage in wanted], limit=DRAWN_BOXES, most=budget.drawn, plain=True)
        self._pictures = {(c.id, s.key): svg for (c, s), svg in zip(wanted, drawn, strict=True)}

    def of(self, section: Compiled) -> str:
        """Return the HTML of every stage of one compilation, in order; the main stages of the first compilation are
        open."""
        compilation, open = section.compilation, section.first
        parts = []
        for lane in labels.lanes(self._capture, compilation):
            for step in lane.steps:
                if step.stage is not None:
                    parts.append(self._stage(compilation, step, step.stage, open and _opens(step)))
        return "".join(parts)

    def _stage(self, compilation: Compilation, step: Step, stage: Stage, open: bool) -> str:
        phase = labels.phase_of(step.key)
        colour = PHASE_COLOURS[phase]
        title = step.title if step.key == phase or not phase else f"{phase} {step.title}"
        facts = "not seen" if step.missing else "none" if step.none else ", ".join(step.facts)
        about = " · ".join(text(words) for words in (facts, labels.meaning(step.key)) if words)
        summary = tag("b", text(title), f"color:{colour}") + " " + faint(about)
        if isinstance(stage, Graph) and (elsewhere := _nothing_new(compilation, stage)):
            return div(f"{summary} {faint(elsewhere)}", "padding:4px 13px")
        if isinstance(stage, AbsentStage):
            ink = MISSING_INK if step.missing else FAINT
            body = div(text(step.missing or step.none), f"color:{ink}")
        elif isinstance(stage, Code):
            body = self._code(stage)
        else:
            body = self._graph(compilation, stage)
        last = step.key.rpartition(".")[2].replace("_", "-")
        return fold(
            summary, body, f"stage cl-stage-{last if last.replace('-', '').isalpha() else 'other'}", open
        )

    def _graph(self, compilation: Compilation, graph: Graph) -> str:
        source = listing(graph.text, "", self._budget, height=560, numbered=False)
        if not graph.nodes:
            return note("this graph holds no node") + source
        elsewhere = _elsewhere(compilation, graph)
        if elsewhere:
            return note(elsewhere) + source + self._subgraphs(graph)
        saved = ""
        if graph.saved:
            saved = div(
                faint(f"{labels.SAVED}: ", "font-size:13px")
                + mono(first_names(graph.saved, 24), "font-size:13px"),
                "margin:0 0 8px 0",
            )
        drawing, wide = self._picture(compilation, graph)
        look = "overflow:auto;max-height:640px;" + (
            "flex:1 1 100%" if wide else "flex:1 1 340px;min-width:280px"
        )
        left = tag("div", drawing, look, "picture", 'tabindex="0"')  # focusable, since it scrolls
        right = div(source + self._subgraphs(graph), "flex:2 1 460px;min-width:300px")
        both = "display:flex;flex-wrap:wrap;gap:14px;align-items:flex-start"
        return saved + div(left + right, both, "stage-both")

    def _picture(self, compilation: Compilation, graph: Graph) -> tuple[str, bool]:
        """Return the drawing, or why there is none, and True if it is too wide to be beside the text."""
        svg = self._pictures[compilation.id, graph.key]
        if not svg:
            reason = (
                f"not drawn here: the drawings of one page are limited to {DRAWN_ALL} boxes and lines in all"
            )
            return note(f"{reason}; where scripts run this page draws it, and so does graph.to_svg()"), True
        size = len(svg.encode("utf-8", "backslashreplace"))
        if not self._budget.draw(size):
            limit = f"{PICTURE_ONE / 1e6:.1f} MB for one, {PICTURE_TOTAL / 1e6:.1f} MB for all"
            reason = f"the drawing ({size / 1e6:.1f} MB) is left out to keep the page small ({limit})"
            return note(f"{reason}; graph.to_svg() gives it, {WHOLE}"), True
        width = _width(svg)
        calls = quantities.plural(len(graph.calls), "operation")
        alt = f"graph of stage {graph.key}: {quantities.plural(len(graph.nodes), 'node')}, {calls}"
        return picture(svg, alt, shrink=width <= _SHRINKABLE), width > _BESIDE

    def _subgraphs(self, graph: Graph) -> str:
        parts = ""
        for name, body in graph.subgraphs:
            head = mono(name, "font-weight:600;font-size:13px") + faint(
                f" {quantities.plural(len(body.nodes), 'node')}"
            )
            parts += fold(head, listing(body.text, "python", self._budget), "subgraph", level=1)
        return parts

    def _code(self, code: Code) -> str:
        parts = [_stamp(code)] if code.model or code.may_differ else []
        parts += [self._kernel(code, kernel) for kernel in code.kernels[:KERNELS]]
        if len(code.kernels) > KERNELS:
            parts.append(
                note(f"and {quantities.plural(len(code.kernels) - KERNELS, 'kernel')} more; {WHOLE}")
            )
        if not code.kernels:
            parts.append(note("this module launches no kernel"))
        lines = quantities.plural(code.text.count("\n") + (not code.text.endswith("\n")), "line")
        state = text(stamp.of_code(code)) + ("" if code.model else f", for {text(code.device)}")
        parts.append(note(f"the whole module ({lines}, {state}): capture.code['{text(code.phase)}']"))
        return "".join(parts)

    def _kernel(self, code: Code, kernel: Kernel) -> str:
        name = mono(kernel.name, "font-size:14px;font-weight:600")
        language = labels.LANGUAGES.get(kernel.language, kernel.language)
        facts = [text(language)] + ([text(kernel.kind)] if kernel.kind != kernel.language else [])
        facts.append(launched(code, kernel))
        facts.append(sentences.moved(kernel))
        if self._listed:
            facts = [facts[0], launched_in] if (launched_in := _launched_in(kernel)) else facts[:1]
        head = div(f"{name} {faint(' · '.join(facts), 'font-size:13px')}")
        if kernel.source.strip():
            first = kernel.first_line or 1
            origin = self._origins.of(kernel)
            links = kernel_origins(kernel, {name for name, _ in origin.again}, origin.whose)
            body = listing(kernel.source, kernel.language, self._budget, first, links, height=520)
        else:
            body = note(sentences.sourceless(kernel))
        frame = f"border-left:3px solid {PHASE_COLOURS.get(code.phase, EDGE)};padding:2px 0 2px 12px"
        page = head + ("" if self._listed else self._origin(kernel)) + body + self._machine.of(kernel)
        return div(page, f"{frame};margin:4px 0 16px 0;background:{GROUND}", "kernel")

    def _origin(self, kernel: Kernel) -> str:
        origin = self._origins.of(kernel)
        steps = []
        if origin.operators:
            steps.append(mono(first_names(origin.operators, 24), "font-size:13px"))
        if origin.lines:
            full = ", ".join(f"{f.file}:{f.line}" for f in origin.lines[:24])
            lines = mono(labels.places(origin.lines, 12), "font-size:13px")
            steps.append(tag("span", lines, extra=f'title="{text(full)}"'))
        if origin.unknown:
            steps.append(faint(text(origin.unknown)))
        launched = ""
        if launched_in := _launched_in(kernel):
            launched = faint(launched_in, "font-size:12px;margin-left:12px")
        words = labels.again(origin)
        again = div(faint(text(words), "font-size:13px")) if words else ""
        arrow = span("← ", f"color:{FAINT}")
        return div(
            arrow + f" {arrow}".join(steps) + launched + again,
            "margin:2px 0 6px",
            "origin",
        )


def _launched_in(kernel: Kernel) -> str:
    """Return the lines of the module that launch a kernel, in words."""
    if not kernel.launch_lines:
        return ""
    some = ", ".join(str(n) for n in kernel.launch_lines[:12])
    more = len(kernel.launch_lines) - 12
    some += f" and {more} more" if more > 0 else ""
    word = "line" if len(kernel.launch_lines) == 1 else "lines"
    return f"launched in {word} {some} of the module"


def _stamp(code: Code) -> str:
    """Return the stamp of the code, and what may differ on the absent device."""
    head = div(text(stamp.of_code(code)), "font-weight:600;font-size:13px", "stamp")
    if not code.may_differ:
        return head
    lines = "".join(div(text(short(words, 1000))) for words in stamp.differences(code, 40))
    return head + fold(text(stamp.may_differ(code)), lines, "may-differ", level=1)


def _opens(step: Step) -> bool:
    stage = step.stage
    if isinstance(stage, Graph) and len(stage.nodes) > _OPEN_NODES:
        return False
    if isinstance(stage, Code) and len(stage.kernels) > _OPEN_KERNELS:
        return False
    return step.key in _OPEN


def _drawing_order(graph: Graph) -> int:
    """Return the priority of a graph if not all can be drawn."""
    order = (
        "forward",
        "inference",
        "backward",
        "dynamo",
        "groups",
        "loops",
        "joint",
        "post_grad",
        "pre_grad",
    )
    return order.index(graph.stage) if graph.stage in order else len(order)


def _unchanged(compilation: Compilation, graph: Graph) -> bool:
    before = compilation.graphs
    return labels.unchanged(graph, before[graph.before] if graph.before in before else None)


def _nothing_new(compilation: Compilation, graph: Graph) -> str:
    """Return the reason, as HTML, why another stage already shows a graph; ``""`` if none does."""
    if _unchanged(compilation, graph):
        return f"{sentences.same_as(text(_name(graph.before)))}: {sentences.UNCHANGED}"
    if graph.stage == "groups" and f"{graph.phase}.loops" in compilation.graphs and _alone(graph):
        return "nothing was fused: each loop is a group of its own"
    if graph.stage == "joint" and {"forward", "backward"} <= set(compilation.graphs) and not graph.subgraphs:
        return "its two halves follow, forward and backward; graph.text is the whole"
    return ""


def _elsewhere(compilation: Compilation, graph: Graph) -> str:
    """Return where a graph is already drawn; ``""`` if it needs its own drawing."""
    graphs = compilation.graphs
    if _unchanged(compilation, graph):
        return f"drawn under {_name(graph.before)}"
    handed = next((key for key in ("forward", "inference") if key in graphs), "")
    if graph.stage in ("dynamo", "pre_grad") and handed and not graph.subgraphs:
        return f"drawn as {handed}, in ATen operators"
    if len(graph.calls) == 1:
        return f"one operation, {text(short(graph.calls[0].name, 200))}: the text says it all"
    if graph.stage == "joint" and "forward" in graphs and "backward" in graphs:
        return "drawn in its two halves: forward and backward"
    if graph.stage == "groups" and f"{graph.phase}.loops" in graphs and _alone(graph):
        return "drawn under loops"
    return ""


def _alone(groups: Graph) -> bool:
    """Return True if each group is one loop."""
    return all(len(node.members) <= 1 for node in groups.nodes)


def _name(key: str) -> str:
    return labels.TITLES.get(key, key.replace(".", " "))


def _width(svg: str) -> float:
    match = re.search(r'<svg [^>]*?width="([0-9.]+)"', svg)
    return float(match.group(1)) if match else 0.0


def compilation(section: Compiled, stages: Stages, above: str) -> str:
    """Return the HTML of one compilation: why it exists, the HTML ``above`` its stages, the stages, its guards."""
    compilation = section.compilation
    content = _recompile(compilation) + above
    content += stages.of(section) + _guards(compilation)
    if section.alone:
        content = _banner(compilation) + content
        return heading("Graphs and code", "open a stage", "graphs-heading") + div(content, "", "compilation")
    place = labels.place(Frame(compilation.file, compilation.line, "")) if compilation.file else ""
    name = f"{compilation.id} {labels.readable(compilation.function)}" + (f", {place}" if place else "")
    summary = span(text(short(name, 300)), "font-weight:600;font-size:15px")
    broken = compilation.ending is not None and compilation.ending.kind == "graph break"
    summary += faint(f" {sentences.BROKE}", "font-size:13px") if broken else ""
    summary += faint(" a recompile", "font-size:13px") if compilation.recompile_reasons else ""
    content = _banner(compilation) + content
    return div(fold(summary, content, "compilation", open=section.first), "margin:18px 0 0")


def _banner(compilation: Compilation) -> str:
    ink, ground, edge = STATE_COLOURS["nothing"]
    lines = []
    if compilation.recompile_reasons:
        lines.append(f"a recompile: {text(short(compilation.recompile_reasons[0], 400))}")
    if compilation.ending is not None and compilation.ending.kind == "graph break":
        lines.append(f"{sentences.BROKE}: {text(short(outcome.reason(compilation.ending).what, 400))}")
    look = f"font-size:13px;color:{ink};background:{ground};border-left:3px solid {edge};padding:3px 10px"
    return "".join(div(s, f"{look};margin:0 0 6px 84px", "banner") for s in lines)


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
        div(mono(short(r), "font-size:13px"), "margin:2px 0")
        for r in compilation.recompile_reasons[:MAX_REASONS]
    )
    return fold(f"{_strong('Recompile')} {faint(sentences.RECOMPILE)}", rows, "recompile", open=True)


def _strong(words: str) -> str:
    return span(words, f"font-weight:600;color:{FAINT};margin-right:6px")
