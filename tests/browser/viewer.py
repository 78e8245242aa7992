"""Actions and observations of tests in the viewer: its panes, their lit items, its pins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from compile_lens import Capture
from compile_lens.measures.chain import PYTHON, Address
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Code
from compile_lens.views.live.items import Items, SeenStage

from .pages import APP, alive
from .settling import settle

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Page

ROOM = 3
"""Maximum number of panes side by side."""

WHOLE = 60
"""Nodes of the largest graph that opens without closed boxes."""

Lit = dict[str, list[str]]
"""Lit items by stage (``"0/0 forward"``): names of nodes and kernels, and lines of a module."""

_FRAME = """
const frameOf = (app, place) => [...app.shadowRoot.querySelectorAll(".frame")].find(
  (frame) => frame.dataset.stage === String(place.stage) && ("fusion" in frame.dataset) === place.fusion);
"""

_ARRANGE = """
(app, places) => {
  const cards = [...app.shadowRoot.querySelectorAll("button.card")];
  const wanted = (card) => places.some((p) => String(p.stage) === card.dataset.stage && p.fusion === card.matches(".card-fusion"));
  // Below one that is closed there may be a tab.
  let open;
  while ((open = cards.find((card) => card.ariaPressed === "true" && !wanted(card)))) open.click();
  for (const card of cards) if (card.ariaPressed === "false" && wanted(card)) card.click();
}
"""  # noqa: E501

# Drawings and listings are built in pieces.
_READY = f"""
([app, places]) => {{
  {_FRAME}
  return places.every((place) => {{
    const frame = frameOf(app, place);
    if (!frame || frame.querySelector(".frame-wait, .frame-error")) return false;
    const drawn = frame.querySelector(".graph-svg");
    const folded = [...frame.querySelectorAll(".graph-tools [aria-pressed=true]")].some((b) => b.textContent === "modules");
    const scene = +(frame.querySelector(".graph-scene")?.value ?? 0);
    if (drawn && drawn.querySelectorAll(".node").length < (folded ? 1 : place.nodes[scene])) return false;
    return [...frame.querySelectorAll(".listing-body")].every(
      (body) => body.querySelectorAll(".listing-number").length >= +body.dataset.rows);
  }});
}}
"""  # noqa: E501

_LIT = f"""
(app, [places, lit]) => {{
  {_FRAME}
  return places.map((place) => {{
    const frame = frameOf(app, place);
    const all = (selector) => [...frame.querySelectorAll(selector)].filter((e) => e.matches(lit));
    const code = frame.querySelector(".code-pane") !== null;
    const kernels = ":is(.code-tab, .code-kernels)[data-item]";
    const things = ".node, .fusion-card, " + kernels + (code ? "" : ", .listing-line[data-item]");
    return {{
      items: all(things).map((e) => +e.dataset.item),
      lines: code ? all(".listing-number").map((e) => +e.dataset.number) : [],
    }};
  }});
}}
"""

_MODULE = """
app => {
  for (const tab of app.shadowRoot.querySelectorAll(".code-module[aria-pressed=false]")) tab.click();
}
"""

# Each node alone, and the whole module: these show everything.
_WHOLE = """
app => {
  for (const tab of app.shadowRoot.querySelectorAll(".code-module[aria-pressed=false]")) tab.click();
  for (const button of app.shadowRoot.querySelectorAll(".graph-tools button[aria-pressed=true]")) {
    if (button.textContent === "modules" && !button.hidden) button.click();
  }
}
"""

_UNFOLD = f"""
(app, places) => {{
  {_FRAME}
  for (const frame of places.map((place) => frameOf(app, place))) {{
    let fold;
    while ((fold = frame.querySelector(".code-pane .listing-fold[aria-expanded=false]"))) fold.click();
  }}
}}
"""


class Viewer:
    """One capture's app on a page, once it is interactive.

    Attributes:
        app: its host element.
        items: the page's numbers of the capture's items.
    """

    def __init__(self, page: Page, capture: Capture, number: int = 0, count: int = 1) -> None:
        alive(page, count)
        self.page = page
        self.capture = capture
        self.items = Items(capture)
        self.app = page.locator(APP).nth(number)
        self._compilations = {c.id: n for n, c in enumerate(capture.compilations)}

    def find(self, selector: str) -> Locator:
        """Return elements of the app."""
        return self.app.locator(selector)

    # Stages and items

    def seen(self, key: str, compilation: int = 0) -> SeenStage:
        """Return a stage of the page by its key."""
        stage = self.items.seen(compilation, key)
        if stage is None:
            raise LookupError(f"compilation {compilation} has no stage {key!r}")
        return stage

    def number(self, key: str, compilation: int = 0) -> int:
        """Return the number of a stage; 0 is Python."""
        return 0 if key == PYTHON else self.seen(key, compilation).number

    def item(self, address: Address) -> int:
        """Return the number of an address."""
        compilation, key, name = address
        if key != PYTHON:
            return self.seen(key, self._compilations[compilation]).item(name)
        file, _, line = name.rpartition(":")
        item = self.items.line(file, int(line))
        if item is None:
            raise LookupError(name)
        return item

    def address(self, item: int) -> Address:
        """Return the address of a number."""
        if item < len(self.items.lines):
            return self.items.lines[item]
        for seen in self.items.stages:
            if item < seen.start + len(seen.names):
                return seen.id, seen.stage.key, seen.names[item - seen.start]
        raise LookupError(item)

    # Panes

    def card(self, key: str, compilation: int = 0, fusion: bool = False) -> Locator:
        """Return the card of a stage in the strip; for a phase's groups also that of its fusion."""
        kind = ".card-fusion" if fusion else ":not(.card-fusion)"
        return self.find(f"button.card[data-stage='{self.number(key, compilation)}']{kind}")

    def chip(self, key: str, compilation: int = 0) -> Locator:
        """Return the chip of a stage in the stage row."""
        return self.find(f".flow-noun[data-stage='{self.number(key, compilation)}']")

    def press(self, key: str, compilation: int = 0, fusion: bool = False) -> None:
        """Open or close a stage from the list of all stages, without opening that list."""
        self.card(key, compilation, fusion).dispatch_event("click")

    def unfold(self) -> None:
        """Open the list of the chain below the stage row."""
        if self.find(".flow-chain[aria-expanded=false]:visible").count():
            self.find(".flow-chain").click()

    def fold(self) -> None:
        """Close it again."""
        if self.find(".flow-chain[aria-expanded=true]:visible").count():
            self.find(".flow-chain").click()

    def pane(self, key: str, compilation: int = 0, fusion: bool = False) -> Locator:
        """Return the pane of a stage, if it is open."""
        kind = "[data-fusion]" if fusion else ":not([data-fusion])"
        return self.find(f".frame[data-stage='{self.number(key, compilation)}']{kind}")

    def shown(self) -> list[tuple[int, bool]]:
        """Return the number of each open pane's stage, and whether it is a fusion; left to right."""
        read = "frames => frames.map(f => [+f.dataset.stage, 'fusion' in f.dataset])"
        return [(stage, fusion) for stage, fusion in self.find(".frame").evaluate_all(read)]

    def open(self, *keys: str, compilation: int = 0) -> None:
        """Open exactly these stages, at most three; a key such as ``"forward.groups fusion"`` is a fusion."""
        assert len(keys) <= ROOM, "a fourth would be a tab of one of them"
        self.app.evaluate(_ARRANGE, [self._place(key, compilation) for key in keys])
        self.ready(*keys, compilation=compilation)
        self.whole()
        self.ready(*keys, compilation=compilation)
        assert sorted(self.shown()) == sorted(self._pair(key, compilation) for key in keys)

    def whole(self) -> None:
        """Show whole modules, which open with one of their kernels."""
        self.app.evaluate(_MODULE)

    def ready(self, *keys: str, compilation: int = 0) -> None:
        """Wait until open panes have rendered completely."""
        places = [self._place(key, compilation) for key in keys]
        self.page.wait_for_function(_READY, arg=[self.app.element_handle(), places], timeout=60_000)

    def kernel(self, key: str, number: int = 1, compilation: int = 0) -> None:
        """Show a kernel of an open module, counted from 1."""
        pane = self.pane(key, compilation)
        rows = pane.locator(".code-tab")
        row = rows.nth(number - 1) if rows.count() else pane.locator(".code-kernels")
        # Equal library calls are one row, that of the first.
        if row.is_visible():
            row.click()
        else:
            row.dispatch_event("click")

    def view(self, key: str, view: str, compilation: int = 0) -> None:
        """Show an open graph as ``graph`` or as ``text``."""
        self.pane(key, compilation).locator(f".frame-view:text-is('{view}')").click()
        self.ready(key, compilation=compilation)

    def choose(self, compilation: int) -> None:
        """Show another compilation."""
        self.find(".tab").nth(compilation).dispatch_event("click")

    def _pair(self, key: str, compilation: int) -> tuple[int, bool]:
        stage, _, fusion = key.partition(" ")
        return self.number(stage, compilation), fusion == "fusion"

    def _place(self, key: str, compilation: int) -> dict[str, Any]:
        stage, fusion = self._pair(key, compilation)
        graph = self.items.stages[stage - 1].stage if stage and not fusion else None
        nodes = _nodes(graph) if isinstance(graph, Graph) else []
        # A large graph opens with its boxes closed.
        return {"stage": stage, "fusion": fusion, "nodes": [n if n <= WHOLE else 1 for n in nodes]}

    # Items in panes

    def thing(self, address: Address) -> Locator:
        """Return the element for an address in an open pane: a box, a line, a card of the fusion view."""
        compilation, key, name = address
        number = self._compilations.get(compilation, 0)
        stage = self.seen(key, number).stage if key != PYTHON else None
        pane = self.pane(key, number)
        if isinstance(stage, Code):
            kernels = {kernel.name: kernel for kernel in stage.kernels}
            if name in kernels:
                return self.line(key, kernels[name].launch_lines[0], number)
            kernel, _, line = name.rpartition(":")
            return self.line(key, kernels[kernel].first_line + int(line) - 1, number)
        item = self.item(address)
        return pane.locator(
            f".node[data-item='{item}'] > .graph-stop, .listing-line[data-item='{item}']"
        ).first

    def line(self, key: str, number: int, compilation: int = 0) -> Locator:
        """Return a line of the module in an open code pane, counted from 1."""
        pane = self.pane(key, compilation)
        if pane.locator(f".listing-number[data-number='{number}']").count() == 0:
            self._open_folds([key], compilation)
        row = pane.locator(f".listing-number[data-number='{number}']").get_attribute("data-row")
        return pane.locator(f".listing-code > [data-row='{row}']")

    def click(self, thing: Locator) -> None:
        """Click on a box or line, and move the pointer away."""
        thing.click(**self.spot(thing))
        self.leave()

    def pin(self, address: Address) -> None:
        """Open only the pane of an address and click on it there."""
        compilation, key, _ = address
        self.open(key, compilation=self._compilations.get(compilation, 0))
        self.click(self.thing(address))

    def leave(self) -> None:
        """Move the pointer to an empty place."""
        self.page.mouse.move(1, 1)

    def spot(self, thing: Locator) -> Any:
        # A line is as wide as the longest one: its middle may be out of view.
        return (
            {"position": {"x": 30, "y": 9}} if "listing-line" in (thing.get_attribute("class") or "") else {}
        )

    # Lit items

    def lit(self, key: str, compilation: int = 0, by: str = ".lit") -> list[str]:
        """Return names of the lit items in an open pane; for code also the module's lines, as ``"line 46"``.

        ``by`` is the class of another highlight: ``.lit-hover``, ``.lit-pin-1``.
        """
        return self._lit([key], compilation, by)[0]

    def everything_lit(self) -> Lit:
        """Return the lit items of every stage, read by opening one pane after the other."""
        lit: Lit = {}
        for number, compilation in enumerate(self.capture.compilations):
            keys = [s.stage.key for s in self.items.stages if s.compilation == number]
            if len(self.capture.compilations) > 1:
                self.choose(number)
            if number == 0:
                keys.insert(0, PYTHON)
            for first in range(0, len(keys), ROOM):
                some = keys[first : first + ROOM]
                self.open(*some, compilation=number)
                self.app.evaluate(_WHOLE)
                for key, names in zip(some, self._lit(some, number, ".lit"), strict=True):
                    if names:
                        lit[key if key == PYTHON else f"{compilation.id} {key}"] = names
        return lit

    def _open_folds(self, keys: Sequence[str], compilation: int) -> None:
        """Open every code fold; those of blocks that are still being rendered are included."""
        closed = ".code-pane .listing-fold[aria-expanded=false]"
        while True:
            self.app.evaluate(_UNFOLD, [self._place(key, compilation) for key in keys])
            self.ready(*keys, compilation=compilation)
            if not any(self.pane(*_key(key, compilation)).locator(closed).count() for key in keys):
                return

    def _lit(self, keys: Sequence[str], compilation: int, by: str) -> list[list[str]]:
        places = [self._place(key, compilation) for key in keys]
        self._open_folds(keys, compilation)
        read = self.app.evaluate(_LIT, [places, by])
        return [
            sorted(self.address(item)[2] for item in names["items"])
            + [f"line {number}" for number in names["lines"]]
            for names in read
        ]

    def dots(self) -> set[str]:
        """Return stages whose card in the strip has the dot of a pin; not those of fusions."""
        cards = self.find("button.card:not(.card-fusion):has(.strip-dot)")
        numbers = cards.evaluate_all("cards => cards.map(card => +card.dataset.stage)")
        return {self.items.stages[number - 1].stage.key if number else PYTHON for number in numbers}

    def listed(self) -> set[Address]:
        """Return everything that the chain of the focused pin names."""
        self.frame()
        self.unfold()
        while self.find(".chain-rest").count():
            self.find(".chain-rest").first.click()
        self.leave()
        items = self.find(".chain-list [data-item]").evaluate_all("all => all.map(e => +e.dataset.item)")
        self.fold()
        return {self.address(item) for item in items}

    def reasons(self) -> dict[str, str]:
        """Return why stages have nothing in the focused pin's chain, by the titles of the rows."""
        self.frame()
        read = "rows => rows.map(row => ['.chain-title', '.chain-why'].map(s => row.querySelector(s).textContent))"
        return dict(self.find(".chain-none").evaluate_all(read))

    def why(self, title: str) -> str:
        """Return why a stage has nothing in the focused pin's chain. Neighbours with one reason share a row."""
        return next(
            why for row, why in self.reasons().items() if row == title or row.startswith(f"{title} …")
        )

    def facts(self) -> dict[str, str]:
        """Return the panel's facts about the focused pin, by label."""
        self.frame()
        self.unfold()
        self.find(".facts-label").first.wait_for()
        read = "all => all.map(label => [label.innerText, label.nextElementSibling.innerText])"
        texts = dict(self.find(".facts-label").evaluate_all(read))
        self.fold()
        return texts

    def pins(self) -> list[str]:
        """Return the names on the chips of the pins."""
        self.frame()
        return self.find(".chip-name").all_inner_texts()

    def opened(self) -> None:
        """Wait for the initial view of the page."""
        self.page.wait_for_function(
            "app => app.shadowRoot.querySelector('.frame') && !app.shadowRoot.querySelector('.frame-wait')",
            arg=self.app.element_handle(),
        )
        self.frame()

    def frame(self) -> None:
        """Wait until the page has finished its pending work: texts follow the lit items, views scroll."""
        settle(self.page)


def _key(key: str, compilation: int) -> tuple[str, int, bool]:
    stage, _, fusion = key.partition(" ")
    return stage, compilation, fusion == "fusion"


def _nodes(graph: Graph) -> list[int]:
    """Return the number of nodes of a graph, and each one within it."""
    return [len(graph.nodes), *(count for _, body in graph.subgraphs for count in _nodes(body))]


def through(capture: Capture, addresses: Iterable[Address]) -> set[Address]:
    """Return the record's links of some addresses, in both directions, and the addresses themselves."""
    chain = capture.chain
    linked: set[Address] = set()
    for address in addresses:
        linked |= {address, *chain.ancestors(address), *chain.descendants(address)}
    return linked


def expected(capture: Capture, addresses: Iterable[Address]) -> Lit:
    """Return what has to be lit in every stage while these addresses are pinned together."""
    linked = through(capture, addresses)
    wanted: Lit = {}
    lines = sorted(name for _, key, name in linked if key == PYTHON)
    if lines:
        wanted[PYTHON] = lines
    for compilation in capture.compilations:
        for stage in compilation.stages:
            if not isinstance(stage, Graph | Code):
                continue
            names = {name for cid, key, name in linked if (cid, key) == (compilation.id, stage.key)}
            shown = _shown_code(stage, names) if isinstance(stage, Code) else sorted(names)
            if shown:
                wanted[f"{compilation.id} {stage.key}"] = shown
    return wanted


def _shown_code(code: Code, names: set[str]) -> list[str]:
    kernels = [kernel for kernel in code.kernels if kernel.name in names]
    lines = {number for kernel in kernels for number in kernel.launch_lines}
    for kernel in code.kernels:
        lines |= {
            kernel.first_line + line.line - 1
            for line in kernel.lines
            if f"{kernel.name}:{line.line}" in names
        }
    return sorted(kernel.name for kernel in kernels) + [f"line {number}" for number in sorted(lines)]


def keys(lit: Lit) -> set[str]:
    """Return the keys of the stages with lit items."""
    return {stage.rpartition(" ")[2] for stage in lit}


def python_line(capture: Capture, text: str) -> Address:
    """Return the Python line that contains a text, among those that the record links."""
    for _, key, name in capture.chain.addresses():
        if key != PYTHON:
            continue
        file, _, number = name.rpartition(":")
        for source in capture.sources:
            lines: Sequence[str] = source.text.split("\n")
            at = int(number) - source.first_line
            if source.file == file and 0 <= at < len(lines) and text in lines[at]:
                return ("", PYTHON, name)
    raise LookupError(text)


def kernel_line(capture: Capture, key: str, text: str, compilation: int = 0) -> Address:
    """Return the first line of a kernel that contains a text and has an origin."""
    one = capture.compilations[compilation]
    for kernel in one.code[key.partition(".")[0]].kernels:
        lines = kernel.source.split("\n")
        for mark in kernel.lines:
            if mark.origins and text in lines[mark.line - 1]:
                return (one.id, key, f"{kernel.name}:{mark.line}")
    raise LookupError(text)


def box(thing: Locator) -> FloatRect:
    """Return the position of an element on the page."""
    bounds = thing.bounding_box()
    if bounds is None:
        raise LookupError(f"not on the page: {thing}")
    return bounds
