"""Linked highlighting on real captures: the lit items of every stage are the record's links, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from compile_lens import Capture
from compile_lens.measures.chain import PYTHON, Address
from compile_lens.views.live.index import modules

from . import captures
from .settling import settle
from .viewer import Viewer, box, expected, kernel_line, keys, python_line, through

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Standalone = Callable[..., "Page"]
Made = Callable[[], Capture]


def _node(key: str, name: str, compilation: str = "0/0") -> Callable[[Capture], Address]:
    return lambda capture: (compilation, key, name)


def _line(text: str) -> Callable[[Capture], Address]:
    return lambda capture: python_line(capture, text)


def _code(key: str, text: str, compilation: int = 0) -> Callable[[Capture], Address]:
    return lambda capture: kernel_line(capture, key, text, compilation)


def _kernel(key: str, of: str, compilation: str = "0/0") -> Callable[[Capture], Address]:
    """Return the kernel that computes a post-grad node."""

    def found(capture: Capture) -> Address:
        node = (compilation, key.replace(".code", ".post_grad"), of)
        names = [a for a in capture.chain.down(node) if a[1] == key and ":" not in a[2]]
        assert len(names) == 1, names
        return names[0]

    return found


CHAINS: dict[str, tuple[Made, Callable[[Capture], Address]]] = {
    "dynamo node": (captures.sin_cos, _node("dynamo", "sin")),
    "joint node of the backward": (captures.sin_cos, _node("joint", "mul_5")),
    "ATen node of the backward": (captures.sin_cos, _node("backward", "neg")),
    "loop of the forward": (captures.sin_cos, _node("forward.loops", "op0")),
    "line of C++": (captures.sin_cos, _code("forward.code", ".sin()")),
    "line of C++ of two operators": (captures.sin_cos, _code("backward.code", "in_ptr1 + ")),
    "python line": (captures.sin_cos, _line("torch.sin(x)")),
    "decomposition 1→n": (captures.softmax, _node("dynamo", "softmax")),
    "one of n": (captures.softmax, _node("inference", "amax")),
    "fusion n→1": (captures.softmax, _node("inference.groups", "op0_op1_op2_op3")),
    "one loop of a fusion": (captures.softmax, _node("inference.loops", "op2")),
    "decomposition with a backward": (captures.layer_norm, _line("layer_norm(x")),
    "rematerialised operator": (captures.rematerialised, _node("dynamo", "relu")),
    "two loops in a group of the backward": (captures.rematerialised, _node("backward.groups", "op0_op1")),
    "library call": (captures.mlp, _node("forward.post_grad", "addmm")),
    "mm of the backward": (captures.mlp, _node("backward", "mm_1")),
    "launch line": (captures.mlp, _kernel("backward.code", "sum_1")),
    "launch line of a library call": (captures.mlp, _kernel("forward.code", "addmm_1")),
    "line of the outer module": (captures.mlp, _line("self.second(self.first(x))")),
    "after a graph break": (captures.graph_break, _node("dynamo", "cos", "1/0")),
    "python line after a graph break": (captures.graph_break, _line("torch.cos(y)")),
    "kernel line after a graph break": (captures.graph_break, _code("backward.code", ".sin()", 1)),
}


Open = Callable[[Capture], Viewer]


@pytest.mark.cases(full=4)
@pytest.mark.parametrize(("made", "of"), CHAINS.values(), ids=CHAINS)
def test_a_pinned_chain_is_lit_in_every_stage(
    viewer: Open, made: Made, of: Callable[[Capture], Address]
) -> None:
    capture = made()
    address = of(capture)
    wanted = expected(capture, [address])
    page = viewer(capture)
    at = next((n for n, c in enumerate(capture.compilations) if c.id == address[0]), 0)
    if at:
        page.choose(at)
    page.pin(address)
    assert page.listed() == through(capture, [address])
    # The strip shows one compilation at a time: if the first has nothing for a line, the one that has.
    ids = [c.id for c in capture.compilations[at:]]
    shown = next(id for id in ids if any(stage.startswith(f"{id} ") for stage in wanted))
    here = {stage for stage in wanted if stage == PYTHON or stage.startswith(shown)}
    assert page.dots() == keys({stage: wanted[stage] for stage in here})
    assert page.everything_lit() == wanted


def test_chains_are_of_the_kinds_that_they_stand_for() -> None:
    """The table's description of its chains matches these captures: forward, backward, n→1, 1→n, in two kernels."""

    def lit(name: str) -> dict[str, list[str]]:
        make, of = CHAINS[name]
        return expected(make(), [of(make())])

    both = {
        "python",
        "0/0 dynamo",
        "0/0 forward.code",
        "0/0 backward.code",
        "0/0 backward.loops",
        "0/0 joint",
    }
    assert both <= set(lit("dynamo node")) and both <= set(lit("python line"))
    upwards = lit("line of C++")
    assert len(upwards["0/0 forward.post_grad"]) == 1 and upwards[PYTHON]
    assert upwards["0/0 forward.loops"] == upwards["0/0 forward.groups"] == ["op0"]
    assert len(lit("line of C++ of two operators")["0/0 backward.post_grad"]) == 2
    assert not any("backward" in stage for stage in upwards)
    assert lit("ATen node of the backward")[PYTHON]
    assert len(lit("fusion n→1")["0/0 inference.loops"]) == 4
    assert len(lit("two loops in a group of the backward")["0/0 backward.loops"]) == 2
    assert len(lit("decomposition 1→n")["0/0 inference"]) == 5
    assert len(lit("decomposition with a backward")["0/0 backward"]) > 5
    remade = lit("rematerialised operator")
    for phase in ("forward", "backward"):
        assert "relu" in remade[f"0/0 {phase}"] and remade[f"0/0 {phase}.code"]
    assert "extern_kernels.addmm" in lit("library call")["0/0 forward.code"]
    broken = lit("after a graph break")
    assert set(broken) >= {"1/0 forward.code", "1/0 backward.code"}
    assert not any(stage.startswith("0/0") for stage in broken)


def test_hovering_lights_the_chain_until_the_pointer_leaves(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    stages = ("python", "dynamo", "backward.code")
    page.open(*stages)
    for address in (
        ("0/0", "dynamo", "sin"),
        python_line(capture, "torch.sin(x)"),
        kernel_line(capture, "backward.code", ".cos()"),
    ):
        wanted = expected(capture, [address])
        thing = page.thing(address)
        thing.hover(**page.spot(thing))
        for stage in stages:
            name = stage if stage == PYTHON else f"0/0 {stage}"
            assert page.lit(stage, by=".lit-hover") == wanted.get(name, []), (address, stage)
        page.frame()
        assert address[2].rpartition("/")[2].partition(":")[0] in page.find(
            ".inspector-hover"
        ).inner_text() or ("line" in page.find(".inspector-hover").inner_text())
        assert page.find(".strip-dot-hover").count() > 0
        page.leave()
        assert all(page.lit(stage) == [] for stage in stages)
        assert page.find(".strip-dot-hover").count() == 0
    assert page.pins() == []


UNDER = """
(app, [x, y]) => {
  const row = app.shadowRoot.elementFromPoint(x, y)?.closest(".listing-line, .node");
  return row ? row.matches(".linked, .node") === row.matches(".lit-self") : null;
}
"""


def test_what_is_taken_away_under_the_pointer_is_not_lit_any_more(viewer: Open) -> None:
    """Browsers send no event for a removed element: the page checks what is under the unmoved pointer."""
    page = viewer(captures.sin_cos())
    node = page.pane("forward").locator(".node", has_text="cos").first.locator(".graph-stop")
    at = box(node)
    place = [at["x"] + at["width"] / 2, at["y"] + at["height"] / 2]
    page.page.mouse.move(*place)
    page.frame()
    assert page.app.evaluate(UNDER, place) is True
    assert page.find(".lit-hover").count() > 0
    for stage in ("forward", "forward.code"):
        page.press(stage)
        page.page.wait_for_function(
            """() => !document.querySelector(".cl-app").shadowRoot.querySelector(".frame .lit-hover")"""
        )
    assert page.find(".shell.spot").count() == 0
    assert page.find(".strip-dot-hover").count() == 0
    # The check covers the element that takes its place.
    page.press("forward")
    page.ready("forward")
    settle(page.page)
    assert page.app.evaluate(UNDER, place) is not False


def test_to_press_in_another_pane_does_not_put_the_light_out(viewer: Open) -> None:
    """The clicked line loses the focus, but the pointer is on the node, so its chain stays lit."""
    page = viewer(captures.sin_cos())
    page.frame()
    page.find(".listing-line.calls .call").first.click()
    page.page.keyboard.press("Escape")
    page.pane("forward").locator(".node", has_text="cos").first.locator(".graph-stop").hover()
    lit = page.find(".lit-hover")
    lit.first.wait_for()
    settle(page.page)  # updates that follow the highlight
    page.find(".shell").evaluate(
        """
        (shell) => {
          window.changed = [];
          new MutationObserver((all) => window.changed.push(...all.map((one) => one.target.className))).observe(
            shell, { subtree: true, attributeFilter: ["class"], attributes: true });
        }
        """
    )
    before = lit.count()
    page.page.mouse.down()
    settle(page.page)
    assert before > 3 and lit.count() == before
    assert page.page.evaluate("() => window.changed.length") == 0, "nothing is painted twice for a click"
    page.page.mouse.up()
    page.find(".lit-pin-0").first.wait_for()


def test_a_pin_is_a_spotlight_and_several_keep_their_colours(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    sin, cos = (("0/0", "dynamo", name) for name in ("sin", "cos"))
    page.open("dynamo", "joint", "forward.code")
    fill = "e => getComputedStyle(e).fill"
    faces = {
        name: page.pane("dynamo").locator(f"[data-item='{page.item(address)}'] > .graph-stop > .face")
        for name, address in {"sin": sin, "cos": cos, "add": ("0/0", "dynamo", "add")}.items()
    }
    before = {name: face.evaluate(fill) for name, face in faces.items()}
    assert len(set(before.values())) == 3
    page.click(page.thing(sin))
    lit = {name: face.evaluate(fill) for name, face in faces.items()}
    assert lit["sin"] == before["sin"], "what is pinned keeps its colour"
    assert lit["cos"] == lit["add"] not in before.values(), "the rest has none"
    page.click(page.thing(cos))
    assert page.pins() == ["sin", "cos"]
    both = {name: face.evaluate(fill) for name, face in faces.items()}
    assert both == {**before, "add": lit["add"]}
    for colour, address in enumerate((sin, cos)):
        wanted = expected(capture, [address])
        assert page.lit("forward.code", by=f".lit-pin-{colour}") == wanted["0/0 forward.code"]
    # A second click removes a pin; the other stays.
    page.click(page.thing(sin))
    assert page.pins() == ["cos"]
    assert page.lit("joint") == expected(capture, [cos])["0/0 joint"]
    page.page.keyboard.press("Escape")
    assert page.pins() == [] and page.dots() == set()
    assert all(page.lit(stage) == [] for stage in ("dynamo", "joint", "forward.code"))
    assert {name: face.evaluate(fill) for name, face in faces.items()} == before


def test_what_two_chains_share_is_said(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    pinned = [("0/0", "dynamo", "sin"), ("0/0", "dynamo", "cos")]
    page.open("dynamo")
    for address in pinned:
        page.click(page.thing(address))
    shared = set.intersection(*(through(capture, [address]) for address in pinned))
    text = page.find(".inspector-shared").inner_text()
    assert ("0/0", "forward.loops", "op0") in shared and "forward loops: op0" in text
    assert [key for _, key, _ in shared if key == "dynamo"] == [] and "Dynamo:" not in text


@pytest.mark.exhaustive
def test_a_collapsed_box_lights_the_chains_of_all_that_it_holds(viewer: Open) -> None:
    capture = captures.mlp()
    page = viewer(capture)
    page.open("forward")
    page.pane("forward").locator(".graph-tools button:text-is('modules')").click()
    box = page.pane("forward").locator(".node:has(> .graph-opener) > .graph-stop[aria-label^='first']").first
    name, _, held = box.get_attribute("aria-label").partition(", holds ")  # type: ignore[union-attr]
    # The weights that a module reads count as its own.
    seen, paths = page.seen("forward"), modules(page.items)
    members = [n for n in seen.names if paths[seen.item(n)][0].partition(".")[0] == name]
    assert f"{len(members)} nodes" in held.split(", ")
    graph = capture.compilations[0].graphs["forward"]
    assert {n.name for n in graph.nodes if n.module.partition(".")[0] == name} < set(members)
    page.click(box)
    assert box.get_attribute("aria-pressed") == "true"
    addresses = [("0/0", "forward", member) for member in members]
    assert page.listed() == through(capture, addresses)
    assert page.everything_lit() == expected(capture, addresses)


def test_the_fusion_view_lights_up_too(viewer: Open) -> None:
    capture = captures.rematerialised()
    page = viewer(capture)
    page.open("dynamo", "backward.groups fusion", "backward.code")
    address = ("0/0", "dynamo", "relu")
    page.click(page.thing(address))
    linked = expected(capture, [address])
    in_view = sorted(linked["0/0 backward.loops"] + linked["0/0 backward.groups"])
    assert page.lit("backward.groups fusion") == [n for n in in_view if n.startswith("op")]
    page.page.keyboard.press("Escape")
    group = ("0/0", "backward.groups", "op0_op1")
    card = page.pane("backward.groups", fusion=True).locator(f"[data-item='{page.item(group)}']")
    page.click(card)
    assert card.get_attribute("aria-pressed") == "true"
    assert page.lit("dynamo") == expected(capture, [group])["0/0 dynamo"]
    assert page.lit("backward.code") == expected(capture, [group])["0/0 backward.code"]


def test_a_stage_without_a_match_says_why(viewer: Open) -> None:
    capture = captures.softmax()
    page = viewer(capture)
    page.pin(("0/0", "dynamo", "softmax"))
    (joint,) = (m for m in capture.not_applicable if m.stage == "joint")
    assert joint.reason in page.why("joint")


def test_a_pane_without_a_match_says_why(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    page.open("forward", "backward", "forward.groups fusion")
    page.click(page.thing(("0/0", "backward", "neg")))
    page.frame()

    def said(key: str, fusion: bool = False) -> str:
        line = page.pane(key, fusion=fusion).locator(".frame-none")
        return line.inner_text() if line.is_visible() else ""

    assert "no match in this stage" in said("forward") and "neg" in said("forward")
    assert page.why("forward") in said("forward")
    assert "no match in this stage" in said("forward.groups", fusion=True)
    assert said("backward") == ""
    page.page.keyboard.press("Escape")
    page.frame()
    assert said("forward") == said("forward.groups", fusion=True) == ""


def test_an_item_without_an_origin_says_why(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    # The other phase, and the end of the chain.
    page.pin(("0/0", "backward", "neg"))
    reasons = page.reasons()
    assert any("part of the backward" in why and "belongs to the forward" in why for why in reasons.values())
    assert PYTHON.capitalize() not in reasons
    page.page.keyboard.press("Escape")
    tangent = ("0/0", "joint", "tangents_1")
    page.pin(tangent)
    assert capture.chain.up(tangent) == ()
    assert capture.chain.why_not(tangent) in page.why("Python")
    page.page.keyboard.press("Escape")
    (kernel,) = capture.compilations[0].code["forward"].kernels
    line = next(mark for mark in kernel.lines if mark.no_origin == "signature")
    page.pin(("0/0", "forward.code", f"{kernel.name}:{line.line}"))
    assert "signature" in page.why("Python") and page.dots() == {"forward.code"}


def test_the_chain_names_the_python_line_and_the_line_of_the_kernel(viewer: Open) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    page.open("forward", "forward.code")
    page.click(page.thing(("0/0", "forward", "sin")))
    page.unfold()
    rows = page.find(".chain-row:not(.chain-none)")
    texts = dict(zip(rows.locator(".chain-title").all_inner_texts(), rows.all_inner_texts(), strict=True))
    _, _, place = python_line(capture, "torch.sin(x)")
    assert (
        place.rpartition("/")[2] in texts["Python"]
        and "torch.sin(x) ** 2 + torch.cos(x) ** 2" in texts["Python"]
    )
    (kernel,) = capture.compilations[0].code["forward"].kernels
    assert kernel.name in texts["forward code"]
    source = kernel.source.split("\n")
    page.find(".chain-row:has-text('.sin()')").wait_for()
    texts = dict(zip(rows.locator(".chain-title").all_inner_texts(), rows.all_inner_texts(), strict=True))
    for line in kernel.lines:
        if "sin" in line.origins:
            assert str(kernel.first_line + line.line - 1) in texts["forward code, lines"].split()
            assert source[line.line - 1].strip() in texts["forward code, lines"]
    # A name in the list leads to its stage.
    page.find(f".chain-list [data-item='{page.item(('0/0', 'joint', 'sin'))}']").click()
    page.ready("joint")
    # The backward recomputes its own sin for the derivative of cos: sin_1 leads there.
    assert page.lit("joint") == ["sin"]
    brief = page.find(".chain-line").inner_text()
    assert brief.startswith(place.rpartition("/")[2]) and brief.index("sin") < brief.index(kernel.name)


def test_facts_of_what_is_pinned(viewer: Open) -> None:
    capture = captures.mlp()
    page = viewer(capture)
    page.pin(("0/0", "forward", "addmm"))
    node = capture.compilations[0].graphs["forward"]["addmm"]
    (tensor,) = node.outputs
    facts = page.facts()
    assert facts["operation"].endswith(node.target)
    assert facts["dtype"] == tensor.dtype and facts["device"] == tensor.device
    assert facts["shape"] == str(list(tensor.shape)) and tensor.stride is not None
    assert facts["stride"] == str(list(tensor.stride))
    assert facts["bytes"] == f"{tensor.nbytes:,} B"
    assert facts["module"] == f"{node.module} ({node.module_type})" and node.module == "first.linear"
    for frame in node.frames:
        assert f"{frame.file}:{frame.line}" in facts["source"] and frame.text.strip() in facts["source"]
    assert facts["saved"] == "for backward"


def test_an_address_brings_panes_and_pins_back(viewer: Open) -> None:
    capture = captures.rematerialised()
    page = viewer(capture)
    page.open("joint", "backward.groups", "backward.code")
    page.press("backward.groups", fusion=True)
    page.press("backward.code")
    page.ready("joint", "backward.code")
    page.view("joint", "text")
    addresses = [("0/0", "joint", "sigmoid"), kernel_line(capture, "backward.code", ".exp()")]
    for address in addresses:
        page.click(page.thing(address))
    page.frame()
    before = page.shown(), page.pins(), page.lit("joint"), page.lit("backward.code")
    assert len(before[1]) == 2 and before[2]
    page.page.wait_for_function("() => location.hash.split('pin=').length === 3")
    url = page.page.url
    page.page.goto("about:blank")
    page.page.goto(url)
    again = Viewer(page.page, capture)
    again.ready("joint", "backward.code")
    again.whole()
    again.frame()
    assert again.pane("joint").locator(".text-pane").is_visible()
    assert (again.shown(), again.pins(), again.lit("joint"), again.lit("backward.code")) == before
    for colour, one in enumerate(addresses):
        assert (
            again.lit("backward.code", by=f".lit-pin-{colour}")
            == expected(capture, [one])["0/0 backward.code"]
        )


def test_an_address_names_the_file_and_says_when_it_is_of_another_capture(
    viewer: Open, standalone: Standalone
) -> None:
    capture = captures.sin_cos()
    page = viewer(capture)
    line = python_line(capture, "torch.sin(x)")
    page.pin(line)
    page.page.wait_for_function("() => location.hash.includes('pin=')")
    hash = page.page.url.partition("#")[2]
    text = unquote(hash)
    file = Path(capture.sources[0].file)
    assert f"={file.name}:{line[2].rpartition(':')[2]}" in text
    assert file.parent.name not in text, "no folder of this machine"
    again = Viewer(standalone(capture, hash), capture)
    again.frame()
    assert len(again.pins()) == 1 and not again.find(".link-trouble").is_visible()
    # The same link on a page of another program.
    other = captures.mlp()
    stale = Viewer(standalone(other, hash), other)
    note = stale.find(".link-trouble")
    assert "another capture" in note.inner_text()
    note.get_by_role("button").click()
    assert not note.is_visible()
    lost = Viewer(standalone(other, "pin=;0:dynamo:=gone&open=0:dynamo"), other)
    assert "gone" in lost.find(".link-trouble").inner_text()
    assert lost.shown() == [(lost.number("dynamo"), False)], "what there is, is shown"


def test_an_address_brings_a_compilation_back(viewer: Open, standalone: Standalone) -> None:
    capture = captures.graph_break()
    page = viewer(capture)
    page.choose(1)
    page.pin(("1/0", "dynamo", "cos"))
    page.page.wait_for_function("() => /c=1/.test(location.hash) && /pin=/.test(location.hash)")
    page.page.reload()
    again = Viewer(page.page, capture)
    again.ready("dynamo", compilation=1)
    assert again.find(".tab[aria-selected=true]").inner_text().startswith("1/0")
    assert again.shown() == [(again.number("dynamo", 1), False)]
    assert again.pins() == ["cos"] and again.lit("dynamo", 1) == ["cos"]


def test_a_line_of_another_compilation_opens_that(viewer: Open) -> None:
    """A click or Enter pins the line too; Back returns, and manual navigation back gets one notice."""
    capture = captures.graph_break()
    page = viewer(capture)
    line = python_line(capture, "torch.cos(y)")
    row = page.pane("python").locator(f".listing-line[data-item='{page.item(line)}']")
    first = page.shown()

    def open_id() -> str:
        return page.find(".compilation[aria-pressed=true] .compilation-id").inner_text()

    assert open_id() == "0/0"
    page.click(row)
    page.page.wait_for_function("() => /c=1/.test(location.hash) && /pin=/.test(location.hash)")
    page.frame()
    assert open_id() == "1/0" and len(page.pins()) == 1
    (one,) = [c for c in capture.compilations if c.id == "1/0"]
    code = next(stage.key for stage in one.stages if stage.key == "forward.code")
    assert page.pane(code, 1).locator(".listing-number.lit").count() > 0
    assert page.find(".frame-none:visible").count() == 0
    page.page.go_back()
    page.page.wait_for_function("() => location.hash === ''")
    page.frame()
    assert open_id() == "0/0" and page.pins() == [] and page.shown() == first

    row.focus()
    page.page.keyboard.press("Enter")
    page.frame()
    assert open_id() == "1/0" and len(page.pins()) == 1
    # Returning to the other one is an explicit choice: it shows one notice, whose link also reacts to Enter.
    page.find(".compilation").first.click()
    page.frame()
    assert open_id() == "0/0" and len(page.pins()) == 1
    (text,) = page.find(".frame-none:visible").all_inner_texts()
    assert "compiled in 1/0, not in 0/0" in text
    lead = page.find(".frame-none:visible").get_by_role("button", name="open 1/0")
    lead.focus()
    page.page.keyboard.press("Enter")
    page.frame()
    assert open_id() == "1/0" and page.find(".frame-none:visible").count() == 0
    assert page.app.evaluate("app => app.shadowRoot.activeElement?.closest('.source-pane') !== null")
