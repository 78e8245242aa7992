"""The count on a chip of a pin, `4 of 21 calls`, is recounted in plain torch: share and total by one definition."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import compile_lens

from .viewer import Viewer, python_line

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

PROGRAM = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x):
        parts = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.mT, -1)
        return x + self.out((scores @ v).transpose(1, 2).flatten(-2))

def deep(count):
    return nn.Sequential(*(Layer() for _ in range(count)))

def broken(x):
    a = torch.sin(x).view(8, 8).T * 2.0
    torch._dynamo.graph_break()
    b = a.cos().reshape(-1)
    return b.relu() * b.sum()

def made(x, n):
    y = torch.arange(x.shape[0]) * n
    return x.view(-1, 1) + y + torch.zeros(1)
"""


def _calls(program: Any, calls: list[tuple[Any, ...]], file: str) -> list[tuple[int, dict[int, int]]]:
    """Return for each graph that Dynamo passes on its calls, and those of each line of the file, from torch's own
    stack of each node."""
    import torch

    found = []

    def count(graph: Any, example: list[Any]) -> Any:
        nodes = [n for n in graph.graph.nodes if n.op in ("call_function", "call_method", "call_module")]
        lines: dict[int, int] = {}
        for node in nodes:
            stack = re.findall(r'File "(.*?)", line (\d+)', node.stack_trace or "")
            own = [int(number) for name, number in stack if name == file]
            for line in own[-1:]:
                lines[line] = lines.get(line, 0) + 1
        found.append((len(nodes), lines))
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=count)
    for arguments in calls:
        compiled(*arguments)
    torch._dynamo.reset()
    return found


@pytest.mark.parametrize("which", ["layer", "several layers", "break", "recompiled"])
def test_the_share_of_the_calls_is_that_of_torch(
    standalone: Callable[..., Page], tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    file = tmp_path / f"program_{which.replace(' ', '_')}.py"
    file.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module(file.stem)
    tokens = (torch.rand(2, 8, 32),)
    model, calls = {
        "layer": (program.Layer(), [tokens]),
        "several layers": (program.deep(4), [tokens]),
        "break": (program.broken, [(torch.rand(64),)]),
        "recompiled": (program.made, [(torch.rand(8), 2), (torch.rand(8), 3)]),
    }[which]
    wanted = _calls(model, calls, str(file))
    capture = compile_lens.capture(model, calls=calls)
    assert len(wanted) == len(capture.compilations)
    page = Viewer(standalone(capture), capture)
    for number, (whole, lines) in enumerate(wanted):
        if len(wanted) > 1:
            page.choose(number)
        for line, share in lines.items():
            (address,) = (a for a in page.items.lines if a[2] == f"{file}:{line}")
            page.pin(address)
            noun = "call" if whole == 1 else "calls"
            assert page.find(".flow-dynamo .flow-what").inner_text() == f"{share} of {whole} {noun}", line
            page.page.keyboard.press("Escape")


def test_what_is_no_operation_is_no_share_of_the_operations(
    standalone: Callable[..., Page], tmp_path: Path
) -> None:
    """By hand: a permutation and three slices of it move no data, so none of them is an operator of the ledger."""
    import torch

    _, scope = _ran(tmp_path)
    capture = compile_lens.capture(scope["Layer"](), torch.rand(2, 8, 32), backward=False)
    page = Viewer(standalone(capture), capture)
    page.pin(python_line(capture, "parts.permute"))
    assert page.find(".flow-dynamo .flow-what").inner_text().startswith("4 of ")
    ledger = capture.ledger.inference if capture.ledger.inference.exists else capture.ledger.forward
    assert ledger.aten_ops
    views = page.find(".flow-aten .flow-what").inner_text()
    assert re.fullmatch(r"\d+ views, no op", views), views
    names, more = _said(page.find(".flow-aten .flow-count").inner_text())
    assert len(names) + more == int(views.split()[0])


def _ran(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the program's file, and the names that it defines."""
    file = folder / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(PROGRAM, str(file), "exec"), scope)
    return file, scope


def _said(count: str) -> tuple[list[str], int]:
    """Return the names on a chip, and the number of further ones that it reports."""
    names, _, more = count.partition(" +")
    return names.split(", "), int(more.replace(",", "") or 0)


def _reached(saved: dict[str, Any], file: str, line: int) -> dict[str, list[dict[str, Any]]]:
    """Return what came from a line in each stage of a saved record, by the names in its JSON, without our code."""
    (compilation,) = saved["compilations"]
    stages: dict[str, list[dict[str, Any]]] = {}
    above: set[str] = set()
    for stage in compilation["stages"]:
        if "nodes" in stage:
            own = [
                node
                for node in stage["nodes"]
                if above & set(node.get("origins", ()))
                or (
                    stage["stage"] == "dynamo"
                    and any((f["file"], f["line"]) == (file, line) for f in node.get("frames", ()))
                )
            ]
            stages[stage["stage"]], above = own, {node["name"] for node in own}
        elif "kernels" in stage:
            stages["code"] = [k for k in stage["kernels"] if above & set(k["groups"])]
    return stages


def test_names_rest_and_share_of_a_chip_are_of_one_set(
    standalone: Callable[..., Page], tmp_path: Path
) -> None:
    """Two layers, each line of them: counted in the saved record, and the names are those of counted items."""
    import torch

    file, scope = _ran(tmp_path)
    with torch.no_grad():
        capture = compile_lens.capture(scope["deep"](2), torch.rand(2, 8, 32))
    saved = json.loads(capture.to_json())
    (whole,) = (s["kernels"] for s in saved["compilations"][0]["stages"] if "kernels" in s)
    page = Viewer(standalone(capture), capture)
    for text in ("self.norm", "parts.permute", "softmax", "self.out(("):
        address = python_line(capture, text)
        reached = _reached(saved, str(file), int(address[2].rpartition(":")[2]))
        page.pin(address)
        for chip, stage in (
            ("aten", "inference"),
            ("loops", "loops"),
            ("groups", "groups"),
            ("code", "code"),
        ):
            drawn = reached[stage]
            idle = ("nop", "input", "output", "constant")
            if stage == "inference":
                counted = [n["name"] for n in drawn if n.get("compute")]
            else:
                counted = [n["name"] for n in drawn if stage == "code" or n["kind"] not in idle]
            names, more = _said(page.find(f".flow-{chip} .flow-count").inner_text())
            share = page.find(f".flow-{chip} .flow-what").inner_text()
            if not counted:
                assert share.endswith((", no op", ", no loop", ", no group")), (text, chip, share)
                assert len(names) + more == int(share.split()[0]) == len(drawn), (text, chip, share)
            elif "code line" in share:
                assert len(counted) == 1 and len(names) + more == int(share.split()[0]), (text, share)
            else:
                assert share.split()[:2] == [str(len(counted)), "of"], (text, chip, share)
                assert len(names) + more == len(counted), (text, chip, names, more, counted)
                numbers = [f"#{i}" for i, k in enumerate(whole, 1) if k["name"] in counted]
                some = numbers if stage == "code" else counted
                if stage != "code" or len(counted) > 1:  # one kernel's name is shortened in the middle
                    assert names == [name for name in some if name in names], (text, chip, names, some)
                assert len(" ".join(names)) <= 18, "how many more there are is in view"
        page.page.keyboard.press("Escape")


_SEEN_ON_CHIPS = r"""
(chips) => chips.flatMap((chip) => {
  const [count, share] = chip.querySelectorAll(".flow-count, .flow-what");
  const walker = document.createTreeWalker(count, NodeFilter.SHOW_TEXT);
  const cut = share.scrollWidth > share.clientWidth ? [share.textContent] : [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    // How many more there are, and the number of a line.
    const found = / \+[\d,]+$|\d+$/.exec(text.data.length < 9 || text.data.includes(" +") ? text.data : "");
    if (!found) continue;
    const range = document.createRange();
    range.setStart(text, found.index);
    range.setEnd(text, text.length);
    if (range.getBoundingClientRect().right > count.getBoundingClientRect().right + 1) cut.push(count.textContent);
  }
  return cut;
})
"""


@pytest.mark.parametrize("viewport", [(820, 600), (1000, 720), (1280, 720)])
def test_how_many_more_a_chip_stands_for_is_whole_however_narrow_it_is(
    standalone: Callable[..., Page], tmp_path: Path, viewport: tuple[int, int]
) -> None:
    import torch

    _, scope = _ran(tmp_path)
    with torch.no_grad():
        capture = compile_lens.capture(scope["deep"](2), torch.rand(2, 8, 32))
    page = Viewer(standalone(capture), capture)
    more = 0
    for text in ("self.norm", "parts.permute", "softmax", "self.out(("):
        page.pin(python_line(capture, text))
        page.leave()
        page.frame()
        chips = page.find(".flow-noun.lit:visible")
        more += sum(" +" in words for words in chips.locator(".flow-count").all_inner_texts())
        assert chips.evaluate_all(_SEEN_ON_CHIPS) == [], text
        page.page.keyboard.press("Escape")
    assert more >= 4


def test_an_input_is_no_loop_and_what_is_elsewhere_is_none(standalone: Callable[..., Page]) -> None:
    """An input is drawn with the loops but is none; a forward has no loop that a backward created."""
    from . import captures

    capture = captures.sin_cos()
    page = Viewer(standalone(capture), capture)
    page.pin(("0/0", "forward.loops", "primals_1"))
    assert page.find(".flow-loops").inner_text().split("\n") == ["primals_1", "1 input, no loop"]
    page.page.keyboard.press("Escape")
    seen = page.seen("backward").stage
    names = {c.name for c in capture.compilations[0].graphs["backward"].calls}
    page.pin(("0/0", "backward", sorted(names)[0]))
    assert seen is not None
    page.find(".flow-phase").first.click()
    page.leave()
    loops = page.find(".flow-loops").inner_text().split("\n")
    whole = capture.ledger.forward.loops
    assert loops == ["none", f"of {whole} loop"], "no total stands in the chain of one thing"


def test_a_line_whose_operator_is_in_several_loops_is_of_one_of_them(standalone: Callable[..., Page]) -> None:
    """The chip reports that the loop was not recorded: "in none of them" would be false."""
    import torch

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, -1)

    capture = compile_lens.capture(program, torch.rand(64, 512), target="h100")
    (kernel,) = capture.kernels
    texts = kernel.source.splitlines()
    page = Viewer(standalone(capture), capture)
    chips = {}
    for line in kernel.lines:
        for origin in line.origins if len(line.origins) == 1 and "_exp" not in texts[line.line - 1] else ():
            if "exp(" not in texts[line.line - 1] and "tl.sum" not in texts[line.line - 1]:
                continue
            page.pin(("0/0", "inference.code", f"{kernel.name}:{line.line}"))
            page.leave()
            loops = [
                n.name for n in capture.compilations[0].graphs["inference.loops"].nodes if origin in n.origins
            ]
            chips[origin] = page.find(".flow-loops").inner_text().split("\n"), loops
            page.page.keyboard.press("Escape")
    assert len(chips) >= 2
    for origin, (lines, loops) in chips.items():
        assert lines[0] == " or ".join(loops), origin
        assert lines[1].startswith("1 of 5" if len(loops) == 1 else "of 5 loops"), origin
    assert {len(loops) for _, loops in chips.values()} >= {1, 2}
