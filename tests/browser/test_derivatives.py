"""Separates the work of a call from the work for its derivative: the stage row, the graph and the code agree.

Autograd needs ``sin(x)`` for the derivative of ``cos(x)``: if the backward recomputes it, the forward's belongs to
the program alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from compile_lens import Capture
from compile_lens.measures.chain import Address

from . import captures
from .viewer import Viewer

pytestmark = [pytest.mark.browser, pytest.mark.torch]

Open = Callable[[Capture], Viewer]


OWN, NEEDED = ".lit:not(.lit-needed)", ".lit-needed"


def numbers(page: Viewer, phase: str, by: str) -> list[int]:
    """Return the kernel lines that have a CSS class, with folds opened."""
    pane = page.pane(f"{phase}.code")
    page._open_folds([f"{phase}.code"], 0)
    return sorted(
        int(number or "0")
        for number in pane.locator(f".listing-number{by}").evaluate_all(
            "all => all.map(e => e.dataset.number)"
        )
    )


def chip(page: Viewer, key: str) -> tuple[list[str], int]:
    """Return the first names on a chip of the stage row, and how many there are in total."""
    page.frame()
    text = page.chip(key).locator(".flow-count").inner_text()
    names, _, more = text.partition(" +")
    return names.split(", "), len(names.split(", ")) + int(more.replace(",", "") or 0)


def written(kernel_source: str, first: int, *patterns: str) -> list[int]:
    """Return the numbers of lines that contain one of the given patterns."""
    return [
        first + i
        for i, line in enumerate(kernel_source.split("\n"))
        if any(re.search(pattern, line) for pattern in patterns)
    ]


def value(source: str, pattern: str) -> str:
    """Return the variable that a line assigns."""
    return next(
        m[1] for line in source.split("\n") if (m := re.search(r"auto (tmp\d+) = .*" + pattern, line))
    )


def of_forward(source: str) -> dict[str, list[str]]:
    """Return, by hand, for each call of sin² + cos² the forward kernel's lines that compute it or what it reads."""
    sin, cos = value(source, r"\.sin\(\)"), value(source, r"\.cos\(\)")
    return {
        "sin": [r"loadu?\(in_ptr0", r"\.sin\(\)"],
        "pow_1": [rf"= {sin} \* {sin};"],
        "cos": [r"loadu?\(in_ptr0", r"\.cos\(\)"],
        "pow_2": [rf"= {cos} \* {cos};"],
    }


def of_backward(source: str) -> dict[str, list[str]]:
    """Return the same for the backward: 2·cos·g·(-sin) + 2·sin·g·cos, which recomputes both."""
    sin, cos = value(source, r"\.sin\(\)"), value(source, r"\.cos\(\)")
    neg = value(source, r"\.neg\(\)")
    scaled_cos, scaled_sin = value(source, rf"{cos} \* tmp\d+;"), value(source, rf"{sin} \* tmp\d+;")
    of_cos, of_sin = value(source, rf"\* {scaled_cos};"), value(source, rf"\* {scaled_sin};")
    ends = [rf"= {of_cos} \* {neg}", rf"= {of_sin} \* {cos}", r"= tmp\d+ \+ tmp\d+;", r"\.store\("]
    both = [r"loadu?\(in_ptr1", r"\.sin\(\)", r"\.cos\(\)"]
    # Assigned once, read by both.
    two = [r"static_cast<float>\(2\.0\)", r"Vectorized<float>\(tmp\d+\)"]
    return {
        "sin": [*both, *ends[1:]],
        "pow_1": [r"loadu?\(in_ptr0", rf"{sin} \* tmp\d+;", rf"\* {scaled_sin};", *two],
        "cos": [*both, r"\.neg\(\)", ends[0], *ends[2:]],
        "pow_2": [r"loadu?\(in_ptr0", rf"{cos} \* tmp\d+;", rf"\* {scaled_cos};", *two],
    }


NODES = {
    "forward": {"sin": {"sin"}, "pow_1": {"pow_1"}, "cos": {"cos"}, "pow_2": {"pow_2"}},
    # The backward recomputes cos and sin, and the derivative of the other needs each of them.
    "backward": {
        "sin": {"sin", "cos", "mul_5", "add_1"},
        "pow_1": {"pow_4", "mul_3", "mul_4"},
        "cos": {"sin", "cos", "neg", "mul_2", "add_1"},
        "pow_2": {"pow_3", "mul", "mul_1"},
    },
}
"""Written by hand from the graphs."""


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_chip_graph_and_code_light_the_same_for_each_call(viewer: Open, phase: str) -> None:
    shown = captures.sin_cos()
    page = viewer(shown)
    (kernel,) = shown.compilations[0].code[phase].kernels
    by_hand = (of_forward if phase == "forward" else of_backward)(kernel.source)
    page.find(f".flow-phase.phase-{phase}").click()
    page.open("python", phase, f"{phase}.code")
    page.kernel(f"{phase}.code")
    for call, patterns in by_hand.items():
        page.pane("python").get_by_role("button", name=f"call {call}:").first.click()
        page.leave()
        lines = numbers(page, phase, OWN)
        assert lines == sorted(set(written(kernel.source, kernel.first_line, *patterns))), call
        names, count = chip(page, f"{phase}.code")
        assert ([int(n) for n in names], count) == (lines[:2], len(lines)), call
        outlined = set(page.lit(phase, by=OWN))
        assert outlined == NODES[phase][call], call
        names, count = chip(page, phase)
        assert count == len(outlined) and set(names) <= outlined
        # The forward saves only x: no derivative needs any of its nodes.
        assert page.lit(phase, by=NEEDED) == [] and numbers(page, phase, NEEDED) == []
        page.page.keyboard.press("Escape")


def test_what_the_derivative_needs_is_a_group_of_its_own_with_words(viewer: Open) -> None:
    """The mask of a relu is in the forward for the derivative alone."""
    shown = captures.written("import torch\ndef f(x):\n    return torch.relu(torch.exp(x))\n", "masked")
    page = viewer(shown)
    page.open("python", "forward", "forward.code")
    page.kernel("forward.code")
    page.pane("python").get_by_role("button", name="call relu:").first.click()
    page.leave()
    (kernel,) = shown.compilations[0].code["forward"].kernels
    row = page.pane("forward.code").locator(f".listing-line{NEEDED}").first
    # Before the tags, where there is room beside the code.
    tags = row.locator(".tags")
    assert "derivative" in tags.evaluate("e => getComputedStyle(e, '::before').content")
    assert "derivative" not in row.evaluate("e => getComputedStyle(e, '::after').content")
    assert row.evaluate("e => getComputedStyle(e).outlineStyle") == "dotted"
    assert page.pane("forward").locator(f".node{NEEDED} .on-needed").all_text_contents() == ["derivative"]
    page.frame()
    page.unfold()
    rows = [" ".join(text.split()) for text in page.find(".chain-row").all_inner_texts()]
    assert "forward: needed by the derivative of relu le" in rows
    assert "forward relu" in rows
    mask = written(kernel.source, kernel.first_line, r"<=")
    (words,) = [r for r in rows if r.startswith("forward code: needed by the derivative of relu, lines ")]
    assert mask and {str(line) for line in mask} <= {*re.findall(r"\d+", words)}


def program(seed: int) -> Capture:
    """Return a capture of a function with several random lines, with a gradient."""
    roll = random.Random(seed)
    lines, names = ["import torch", "def f(x):"], ["x"]
    for i in range(roll.randint(4, 7)):
        a, b = roll.choice(names), roll.choice(names)
        name = f"v{i}"
        form = roll.choice(
            ["torch.{u}({a})", "torch.{u}({a})", "{a} * {b}", "torch.{u}({a}) + torch.{w}({b})"]
        )
        unary = ["sin", "cos", "exp", "tanh", "sigmoid", "relu"]
        text = form.format(a=a, b=b, u=roll.choice(unary), w=roll.choice(unary))
        lines.append(f"    {name} = {text}")
        names.append(name)
    lines.append("    return " + " + ".join(names))
    return captures.written("\n".join(lines) + "\n", f"derivatives_{seed}")


@pytest.mark.parametrize("seed", range(10))
def test_in_functions_by_dice_the_chip_counts_the_lit_lines(viewer: Open, seed: int) -> None:
    shown = program(seed)
    page = viewer(shown)
    chain = shown.chain
    graph = shown.compilations[0].graphs["dynamo"]
    calls: list[Address] = [
        ("0/0", "dynamo", node.name) for node in graph.nodes if node.op.startswith("call")
    ]
    for phase in ("forward", "backward"):
        if len(shown.compilations[0].code[phase].kernels) != 1:
            continue
        page.find(f".flow-phase.phase-{phase}").click()
        for address in random.Random(seed).sample(calls, min(4, len(calls))):
            page.open("dynamo", phase, f"{phase}.code")
            page.kernel(f"{phase}.code")
            page.click(page.thing(address))
            (kernel,) = shown.compilations[0].code[phase].kernels
            own = chain.descendants(address, derivatives=False)
            linked = sorted(
                kernel.first_line - 1 + int(name.rpartition(":")[2])
                for _, key, name in own
                if key == f"{phase}.code" and ":" in name
            )
            lines = numbers(page, phase, OWN)
            assert lines == linked
            if lines:
                names, count = chip(page, f"{phase}.code")
                assert ([int(n) for n in names], count) == (lines[:2], len(lines))
            outlined = set(page.lit(phase, by=OWN))
            assert outlined == {name for _, key, name in own if key == phase}
            page.page.keyboard.press("Escape")
