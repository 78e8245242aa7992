"""Drawing of a graph as SVG from Graphviz's coordinates: small, self-contained and deterministic.

The document has no ids, scripts or outside references, so that a page can have several, inline or as ``<img>``. Nodes
are ``<g class="node kind-…" data-node="…">`` and edges ``<g class="edge" data-from="…" data-to="…">``, to which a
viewer can attach behaviour. A collapsed box lists its nodes in ``data-members``, separated by spaces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compile_lens.errors import LayoutError, UsageError
from compile_lens.layout import Box, Edge, Layout, OverBudget, Stub, place, place_all
from compile_lens.layout.plan import LABEL_SIZE, LINE_HEIGHT, SMALL_SIZE
from compile_lens.layout.text import clean, columns, one_line, shorten, width
from compile_lens.record.graph import Graph, Node
from compile_lens.record.messages import first_names

from ..words.derivatives import DERIVED
from ..words.labels import SAVED
from ..words.palette import COLOURS, known_kind
from .sheet import style

MARGIN = 16.0
"""Blank border of the document, in pixels."""

NARROWEST = 360.0
"""Minimum width of the document in pixels, for the caption."""

CELL = 840.0
"""Width of a notebook cell in a window of 1280 pixels."""

MAX_NAMED_CALLS = 12
"""Maximum number of calls that the alternative text names."""

_TITLE_SIZE = 14.0
_CAPTION_SIZE = 11.0
_ARROW = 4.5
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def to_svg(graph: Graph, *, title: str = "", layout: Layout | None = None) -> str:
    """Return ``graph`` as an SVG document.

    Args:
        title: heading; default: the stage's key.
        layout: coordinates from ``compile_lens.layout.place``; computed if not given.

    Raises:
        LayoutError: the graph could not be placed.
    """
    return _document(graph, place(graph) if layout is None else layout, title)


def for_cell(graph: Graph) -> str:
    """Return ``to_svg(graph)``, shrunk to the width of a notebook cell if it is wider."""
    return _document(graph, place(graph), "", widest=CELL)


def to_svgs(
    graphs: Sequence[Graph],
    *,
    titles: Sequence[str] | None = None,
    limit: int = 1500,
    most: int | None = None,
    plain: bool = False,
) -> list[str]:
    """Return each graph as an SVG document, all placed in one child process.

    A graph that cannot be placed gives a document with the reason. ``limit`` is the maximum number of boxes in one
    drawing, ``most`` that of boxes, edges and stubs in all drawings; a graph beyond it gives ``""``. ``plain`` omits
    what an ``<img>`` on a light page does not need: tooltips, names for scripts, dark styles. Raises ``UsageError`` if
    there are not as many ``titles`` as ``graphs``.
    """
    if titles is None:
        titles = [""] * len(graphs)
    if len(titles) != len(graphs):
        raise UsageError(f"{len(titles)} titles for {len(graphs)} graphs; give one title for each graph")
    documents = []
    for graph, layout, title in zip(graphs, place_all(graphs, limit=limit, most=most), titles, strict=True):
        if isinstance(layout, OverBudget):
            documents.append("")
        elif isinstance(layout, LayoutError):
            documents.append(_document(graph, Layout(0.0, 0.0), title, failure=str(layout), plain=plain))
        else:
            documents.append(_document(graph, layout, title, plain=plain))
    return documents


def escape(text: str) -> str:
    """Return ``text`` escaped for XML text and quoted attributes; characters that XML forbids become U+FFFD."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    # Character references, since a parser would normalize the characters themselves.
    return text.replace("\r", "&#13;").replace("\n", "&#10;").replace("\t", "&#9;")


def _document(
    graph: Graph,
    layout: Layout,
    title: str,
    failure: str = "",
    plain: bool = False,
    widest: float = math.inf,
) -> str:
    saved = frozenset(graph.saved)
    kinds = {known_kind(box.kind) for box in layout.boxes}
    marked = any(name in saved for box in layout.boxes for name in box.members)
    across = max(layout.width, NARROWEST)
    heading = one_line(title) or graph.key
    head = _caption(graph, layout, heading, failure, across)
    top = MARGIN + sum(height for _, _, height in head) + (14 if layout.boxes else 0)
    nodes = {node.name: node for node in graph.nodes}
    derived = frozenset(name for name, node in nodes.items() if node.derivative)
    below = top + layout.height + 18
    legend, legend_height = _legend(set() if plain else kinds, marked, bool(derived), across, below)
    total_x, total_y = across + 2 * MARGIN, top + layout.height + legend_height + MARGIN
    left = MARGIN + (across - layout.width) / 2
    shown = f'width="{px(total_x)}" height="{px(total_y)}"' if total_x <= widest else 'width="100%"'
    size = f'{shown} viewBox="0 0 {px(total_x)} {px(total_y)}"'
    label = (
        "" if plain else f' role="img" aria-label="{escape(f"{heading}: {_counts(graph)}{_order(graph)}")}"'
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lens-graph" {size}{label} font-family="{_FONT}">',
        f"<style>{style(kinds, marked, dark=not plain, stubs=bool(layout.stubs), derived=bool(derived))}</style>",
        '<rect class="paper" width="100%" height="100%" rx="8"/>',
    ]
    y = MARGIN
    for text, name, height in head:
        y += height
        parts.append(
            f'<text class="{name}" x="{px(MARGIN)}" y="{px(y - height * 0.28)}">{escape(text)}</text>'
        )
    name = "" if plain else ' class="drawing"'
    parts.append(f'<g{name} transform="translate({px(left)} {px(top)})">')
    parts += _lines(layout.edges) if plain else [_edge(edge) for edge in layout.edges]
    parts += [_stub(stub, plain) for stub in layout.stubs]
    parts += (
        _cards(layout.boxes, saved, derived)
        if plain
        else [_node(box, nodes, saved, derived) for box in layout.boxes]
    )
    parts.append("</g>")
    parts += legend
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _caption(
    graph: Graph, layout: Layout, heading: str, failure: str, across: float
) -> list[tuple[str, str, float]]:
    """Return the lines above the drawing: text, class, and height in pixels."""
    rows = [(shorten(heading, _room(across, _TITLE_SIZE)), "title", _TITLE_SIZE * 1.5)]
    counts = _counts(graph)
    sentences = [f"{graph.key}: {counts}" if heading != graph.key else counts]
    if graph.subgraphs:
        inner = ", ".join(f"{one_line(name)} ({_nodes(len(sub.nodes))})" for name, sub in graph.subgraphs)
        number = len(graph.subgraphs)
        these = "1 subgraph is" if number == 1 else f"{number} subgraphs are"
        sentences.append(f"{these} not drawn here: {inner}")
    sentences += layout.notes
    if failure:
        sentences.append(f"Not drawn: {one_line(failure)}")
    elif not graph.nodes:
        sentences.append("This graph has no nodes: there is nothing to draw.")
    height = _CAPTION_SIZE * 1.45
    for sentence in sentences:
        rows += [(line, "caption", height) for line in _wrap(sentence, _room(across, _CAPTION_SIZE))]
    return rows


def _room(across: float, size: float) -> int:
    return int(across / width("x", size))


def _wrap(text: str, limit: int) -> list[str]:
    """Return ``text`` wrapped to lines of at most ``limit`` columns, with longer words shortened; at most 12 lines."""
    lines: list[str] = []
    for word in one_line(text).split(" "):
        word = shorten(word, limit)
        if lines and columns(lines[-1]) + 1 + columns(word) <= limit:
            lines[-1] += f" {word}"
        elif len(lines) == 12:
            lines[-1] = shorten(lines[-1], limit - 2) + " …"
            break
        else:
            lines.append(word)
    return lines


def _counts(graph: Graph) -> str:
    calls = len(graph.calls)
    derived = sum(node.derivative for node in graph.calls)
    suffix = f", {derived} of them {DERIVED}" if derived else ""
    saved = f", {len(graph.saved)} {SAVED}" if graph.saved else ""
    return f"{_nodes(len(graph.nodes))}, {calls} {'call' if calls == 1 else 'calls'}{suffix}{saved}"


def _order(graph: Graph) -> str:
    """Return the first calls, or loops with their operations, for screen readers."""
    names = [
        one_line(node.name) if node.op.startswith("call_") else f"{node.name} ({one_line(node.target)})"
        for node in graph.calls
    ]
    return f"; in order {first_names(names, MAX_NAMED_CALLS)}" if names else ""


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"


def _node(box: Box, nodes: dict[str, Node], saved: frozenset[str], derived: frozenset[str]) -> str:
    kept = [name for name in box.members if name in saved]
    several = len(box.members) > 1
    members = f' data-members="{escape(" ".join(box.members))}"' if several else ""
    about = _about_many(box, kept) if several else _about(nodes[box.name], bool(kept))
    names = f'class="{_classes(box, kept, derived)}" data-node="{escape(box.name)}"{members}'
    return f"<g {names}><title>{escape(about)}</title>{_card(box, kept)}</g>"


def _cards(boxes: Sequence[Box], saved: frozenset[str], derived: frozenset[str]) -> list[str]:
    """Return all nodes grouped by class, for an image whose nodes are not addressed individually."""
    by_class: dict[str, list[str]] = {}
    for box in boxes:
        kept = [name for name in box.members if name in saved]
        by_class.setdefault(_classes(box, kept, derived), []).append(_card(box, kept, plain=True))
    return [f'<g class="{names}">{"".join(cards)}</g>' for names, cards in by_class.items()]


def _classes(box: Box, kept: Sequence[str], derived: frozenset[str]) -> str:
    """Return the CSS classes of a box; it is ``derived`` (dashed) if all its nodes are for derivatives."""
    suffix = " derived" if derived.issuperset(box.members) else ""
    return f"node kind-{known_kind(box.kind)}" + (" saved" if kept else "") + suffix


def _card(box: Box, kept: Sequence[str], plain: bool = False) -> str:
    several = len(box.members) > 1
    parts = []
    if several:  # a second outline, as of a stack of cards
        parts.append(f"<rect {_rectangle(box.x + 4, box.y + 4, box.width, box.height, 6)}/>")
    parts.append(f"<rect {_rectangle(box.x, box.y, box.width, box.height, 6)}/>")
    y = box.y + (box.height - sum(line.size * LINE_HEIGHT for line in box.lines)) / 2
    middle = px(box.x + box.width / 2)
    for line in box.lines:
        y += line.size * LINE_HEIGHT
        baseline = px(y - line.size * 0.36)
        # The style sheet has no rule for a target.
        role = "" if plain and line.role == "target" else f' class="{line.role}"'
        parts.append(f'<text{role} x="{middle}" y="{baseline}">{escape(line.text)}</text>')
    if kept:
        parts.append(_badge(box, "saved" if not several else f"{len(kept)} saved"))
    return "".join(parts)


def _badge(box: Box, text: str) -> str:
    """Return a badge at the upper right corner of a box."""
    across = width(text, 8.5) + 8
    x, y = box.x + box.width - across + 7, box.y - 7
    tag = f'<rect class="badge" {_rectangle(x, y, across, 12, 6)}/>'
    return f'{tag}<text class="on-badge" x="{px(x + across / 2)}" y="{px(y + 9)}">{text}</text>'


def _about(node: Node, kept: bool) -> str:
    """Return the tooltip of a node: all facts about it, one per line."""
    lines = [node.name, f"{node.op} {node.target}" if node.target != node.name else node.op]
    for tensor in node.outputs:
        shape = ", ".join(str(s) for s in tensor.shape)
        stride = "" if tensor.stride is None else f" stride ({', '.join(str(s) for s in tensor.stride)})"
        lines.append(f"{tensor.dtype}[{shape}]{stride} {tensor.device}")
    if node.module:
        lines.append(f"module {node.module}" + (f" ({node.module_type})" if node.module_type else ""))
    if node.members:
        lines.append(f"members {', '.join(node.members)}")
    for frame in node.innermost:
        file = frame.file.replace("\\", "/").rsplit("/", 1)[-1]
        lines.append(
            f"{file}:{frame.line} in {frame.function}" + (f": {frame.text.strip()}" if frame.text else "")
        )
    if node.derivative:
        lines.append(DERIVED)
    if kept:
        lines.append(SAVED)
    return "\n".join(lines)


def _about_many(box: Box, kept: list[str]) -> str:
    lines = [box.name, f"holds {len(box.members)} nodes: {first_names(box.members)}"]
    if kept:
        lines.append(f"{len(kept)} of them {SAVED}")
    return "\n".join(lines)


def _edge(edge: Edge) -> str:
    ends = f'data-from="{escape(edge.source)}" data-to="{escape(edge.target)}"'
    return f'<g class="edge" {ends}><path d="{_path(edge.points)}"/>{_label(edge)}</g>'


def _lines(edges: Sequence[Edge]) -> list[str]:
    """Return all edges as one path, for an image whose edges are not addressed individually."""
    if not edges:
        return []
    path = "".join(_relative(edge.points) for edge in edges)
    return [f'<g class="edge"><path d="{path}"/>', *map(_label, edges), "</g>"]


def _label(edge: Edge) -> str:
    if edge.label_at is None:
        return ""
    x, y = edge.label_at
    return f'<text x="{px(x)}" y="{px(y + LABEL_SIZE * 0.34)}">{escape(edge.label)}</text>'


def _stub(stub: Stub, plain: bool) -> str:
    side = "data-from" if stub.outgoing else "data-to"
    others = escape("to: " if stub.outgoing else "from: ") + escape(", ".join(stub.others))
    about = "" if plain else f' {side}="{escape(stub.box)}"><title>{others}</title'
    parts = [f'<g class="stub"{about}>']
    parts.append(f'<path d="{_path(stub.points)}"/>')
    parts.append(f"<rect {_rectangle(stub.x, stub.y, stub.width, stub.height, 4)}/>")
    y = stub.y + 3
    for line in stub.lines:
        y += LABEL_SIZE * LINE_HEIGHT
        x = stub.x + 7 + width(" " * (columns(line) - columns(line.lstrip(" "))), LABEL_SIZE)
        parts.append(f'<text x="{px(x)}" y="{px(y - LABEL_SIZE * 0.36)}">{escape(line.strip())}</text>')
    return "".join([*parts, "</g>"])


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Return the path of a curve with an open arrowhead; SVG markers would need ids."""
    start = f"M{px(points[0][0])} {px(points[0][1])}"
    curve = "C" + " ".join(f"{px(x)} {px(y)}" for x, y in points[1:])
    (x0, y0), (x1, y1), (x2, y2) = _head(points)
    return f"{start}{curve}M{px(x0)} {px(y0)}L{px(x1)} {px(y1)} {px(x2)} {px(y2)}"


def _relative(points: Sequence[tuple[float, float]]) -> str:
    """Return the same path in relative coordinates, a third shorter and within 0.1 pixel."""
    tenths = [(round(x * 10), round(y * 10)) for x, y in (*points, *_head(points))]
    x, y = tenths[0]
    path = f"M{px(x / 10)} {px(y / 10)}c"
    for number, point in enumerate(tenths[1:], 1):
        path += "m" if number == len(points) else "l" if number == len(points) + 1 else ""
        for step in (point[0] - x, point[1] - y):
            text = f"{step / 10:g}".replace("0.", ".", 1) if abs(step) < 10 else px(step / 10)
            path += text if path[-1].isalpha() or text.startswith("-") else f" {text}"
        # The points of a Bézier curve are relative to its start.
        if number >= len(points) - 1 or number % 3 == 0:
            x, y = point
    return path


def _head(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the arrowhead: one wing, the tip, the other wing."""
    (x1, y1), (x0, y0) = points[-1], next(p for p in (*points[-2::-1], (0.0, 0.0)) if p != points[-1])
    angle = math.atan2(y1 - y0, x1 - x0)
    wings = [
        (x1 - _ARROW * math.cos(angle + turn) * 1.3, y1 - _ARROW * math.sin(angle + turn) * 1.3)
        for turn in (-0.5, 0.5)
    ]
    return [wings[0], (x1, y1), wings[1]]


def _legend(
    kinds: set[str], marked: bool, derived: bool, across: float, top: float
) -> tuple[list[str], float]:
    """Return the legend of the kinds present, in rows below the drawing, and its height."""
    entries = [(f"kind-{kind}", colour.meaning) for kind, colour in COLOURS.items() if kind in kinds]
    if marked:
        entries.append(("saved", SAVED))
    if derived:
        entries.append(("derived", DERIVED))
    if not entries:
        return [], 0.0
    parts = ['<g class="legend">']
    x, y = MARGIN, top
    for name, meaning in entries:
        step = 18 + width(meaning, SMALL_SIZE) + 16
        if x > MARGIN and x + step - 16 > MARGIN + across:
            x, y = MARGIN, y + 18
        tag = " badge" if name == "saved" else ""
        swatch = f'<rect class="swatch{tag}" {_rectangle(x, y, 12, 12, 3)}/>'
        text = f'<text x="{px(x + 18)}" y="{px(y + 9.5)}">{meaning}</text>'
        parts.append(f'<g class="{name}">{swatch}{text}</g>')
        x += step
    return [*parts, "</g>"], y + 12 - top + 18


def _rectangle(x: float, y: float, across: float, down: float, round_by: float) -> str:
    return f'x="{px(x)}" y="{px(y)}" width="{px(across)}" height="{px(down)}" rx="{px(round_by)}"'


def px(value: float) -> str:
    """Return a number with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
