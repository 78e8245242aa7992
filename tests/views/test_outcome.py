"""The headline uses torch's words with torch's numbers, and is green only if the whole program was compiled."""

from __future__ import annotations

import dataclasses
import json

import pytest
import samples
from full_text import full

from compile_lens.cli.output import capture_summary
from compile_lens.record.breaks import NEVER_RAN, REST, Ending, Skip
from compile_lens.record.capture import Failure
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.missing import NotApplicable
from compile_lens.results.capture import Capture
from compile_lens.views.live import page as html
from compile_lens.views.live.page import parts
from compile_lens.views.render import markdown, text
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import break_advice, outcome

BREAK = Ending("graph break", "no `print`\n  Explanation: it prints")


def rest() -> Skip:
    return Skip(REST, "f", samples.FILE, 4, BREAK, ((6, 9), (12, 12)), "", "0/0")


def with_rest() -> Capture:
    capture = samples.sample()
    (one,) = capture.compilations
    broken = dataclasses.replace(one, ending=BREAK)
    return dataclasses.replace(capture, compilations=(broken,), skipped=(rest(),))


def test_a_compilation_without_a_graph_is_no_graph_and_parts_are_one() -> None:
    capture = samples.sample()
    (one,) = capture.compilations
    empty = Compilation("1/0", "f", "", 0, (NotApplicable("dynamo", "nothing to compile"),))
    part = dataclasses.replace(one, id="0/0.1")
    capture = dataclasses.replace(capture, compilations=(one, part, empty))
    assert outcome.graphs(capture) == 1
    assert "compiled: 1 graph, " in outcome.verdict(capture)


def test_a_recompile_is_one_however_many_guards_failed() -> None:
    capture = samples.sample()
    (one,) = capture.compilations
    again = dataclasses.replace(one, id="0/1", recompile_reasons=("0/0: a", "0/0: b", "0/0: c"))
    capture = dataclasses.replace(capture, compilations=(one, again))
    (only,) = capture.recompiles
    assert (only.id, len(only.guards)) == ("0/1", 3)
    assert ", 1 recompile, " in outcome.verdict(capture)


def test_the_break_before_a_rest_counts_once() -> None:
    capture = with_rest()
    assert len(capture.breaks) == 1
    (one,) = outcome.eager(capture)
    assert one.head.endswith("the rest of f runs eagerly (example.py, lines 6-9, 12)")
    assert "1 graph break, 1 function skipped in part" in outcome.verdict(capture)


def test_breaks_of_several_frames_at_one_place_are_one_place_in_every_view() -> None:
    """Frames that lead to one line, as a function and its caller do: two breaks, one place, counted by hand."""
    capture = samples.graph_break()
    first, second, again = capture.compilations
    assert first.ending is not None
    inner = dataclasses.replace(first.ending, frames=first.ending.frames[-1:])
    other = dataclasses.replace(inner, frames=(Frame(samples.FILE, 9, "f", "print(z)"),))
    broken = (first, dataclasses.replace(second, ending=inner), dataclasses.replace(again, ending=other))
    capture = dataclasses.replace(capture, compilations=broken)
    assert "3 graph breaks at 2 places" in outcome.verdict(capture)
    heads = [one.head for one in outcome.eager(capture)]
    assert heads == ["graph breaks after 0/0 and 1/0", "graph break after 1/1"]
    for page in (full(capture), markdown.page(document(capture)), html.fragment(capture)):
        assert page.count(heads[0]) == page.count(heads[1]) >= 1 and "graph break after 0/0" not in page
    core = parts(capture)["core"]
    assert len(core["eager"]) == len(core["breaks"]) == 2
    assert "There are 3 graph breaks at 2 places that Dynamo could not trace." in [
        s.text for s in capture.story().sentences
    ]
    assert "有 3 次图中断（graph break），在 2 处 Dynamo 无法追踪的位置。" in [
        s.text for s in capture.story("zh").sentences
    ]


def test_states() -> None:
    assert outcome.state(samples.sample()) == "compiled"
    assert outcome.state(samples.graph_break()) == outcome.state(samples.skipped()) == "partial"
    assert outcome.state(with_rest()) == "partial"
    assert outcome.state(samples.nothing()) == "nothing"
    assert outcome.state(samples.failed()) == "failed"


@pytest.mark.parametrize(
    ("stage", "message", "said"),
    [
        ("dynamo", "Unsupported\n  Explanation: no", "Unsupported"),
        ("run", "too large\nby far", "ValueError: too large"),
        ("run", "", "ValueError"),
        (
            "dynamo",
            "RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run FX node with fake tensors: "
            """call_function f(*(FakeTensor(..., size=(2,)),), **{}): got TypeError("it's 'odd'")\n  Hint: none""",
            "TypeError: it's 'odd'",
        ),
    ],
)
def test_what_went_wrong_in_one_line(stage: str, message: str, said: str) -> None:
    assert outcome.raised(Failure(stage, "ValueError", message)) == said


def test_a_function_counts_once_however_often_it_was_skipped() -> None:
    capture = samples.skipped()
    again = dataclasses.replace(capture.skipped[0], cause=dataclasses.replace(BREAK, reason="another"))
    capture = dataclasses.replace(capture, skipped=(*capture.skipped, again))
    assert "1 function skipped, 1 function at its recompile limit" in outcome.verdict(capture)
    assert len(capture.breaks) == 2


def test_a_body_that_never_ran_is_the_first_that_is_said() -> None:
    why = "calling it made a coroutine, and nothing ran its body"
    never = Skip(NEVER_RAN, "f", samples.FILE, 4, Ending(NEVER_RAN, why, (), "Capture g."), consequence=why)
    capture = dataclasses.replace(samples.sample(), skipped=(never,))
    assert outcome.verdict(capture).startswith(f"f never ran: {why}. Compiled for it: 1 graph")
    page = " ".join(text.page(document(capture)).split())
    assert "✓" not in page and page.count(why) == 2 and "hint: Capture g." in page


def test_the_command_line_says_the_same() -> None:
    capture = samples.skipped()
    data = json.loads(json.dumps(capture_summary(capture)))
    assert (data["state"], data["graphs"]) == ("partial", 1)
    assert data["verdict"] == outcome.verdict(capture)
    assert [(s["kind"], s["function"], s["lines"]) for s in data["skipped"]] == [
        ("function", "step", [[8, 12]]),
        ("recompile limit", "scaled", [[21, 21]]),
    ]
    assert len(data["breaks"]) == len(capture.breaks) == 1
    again = json.loads(json.dumps(capture_summary(samples.graph_break())))
    assert [(r["id"], len(r["guards"])) for r in again["recompiles"]] == [("1/1", 1)]


def test_the_stage_that_there_is_not_is_quiet() -> None:
    capture = samples.sample()
    (one,) = capture.compilations
    none = NotApplicable("joint", "no gradient is needed")
    stages = tuple(none if s.key == "joint" else s for s in one.stages)
    capture = dataclasses.replace(capture, compilations=(dataclasses.replace(one, stages=stages),))
    assert Capture.from_json(capture.to_json()) == capture
    assert capture.missing == () and capture.not_applicable == (none,)
    assert "missing" not in text.page(document(capture))
    page = html.static(capture)
    assert "cl-none" in page and "cl-missing" not in page and "not seen" not in page
    steps = parts(capture)["core"]["compilations"][0]["lanes"][0]["steps"]  # type: ignore[index]
    assert [s["kind"] for s in steps if s["key"] == "joint"] == ["none"]


def test_what_torch_itself_gave_up_comes_after_what_the_user_wrote() -> None:
    capture = samples.skipped()
    (step, scaled), first = capture.skipped, capture.compilations[0]
    inside = Frame("/lib/torch/optim/optimizer.py", 530, "wrapper", of_torch=True)
    own = Ending("graph break", "torch's own", (inside,))
    nodes = (Node("x", "placeholder", "x"), Node("add", "call_function", "add", frames=(inside,)))
    optimizer = dataclasses.replace(first, id="0/0", ending=own, stages=())
    update = dataclasses.replace(first, id="1/0", ending=None, stages=(Graph("dynamo", "", "", nodes),))
    user = dataclasses.replace(first, id="2/0")
    whole = dataclasses.replace(capture, compilations=(optimizer, update, user))
    assert [one.ending for one in outcome.eager(whole)] == [step.cause, scaled.cause, own]
    assert parts(whole)["core"]["first"] == 2  # type: ignore[index]
    page = text.page(document(whole), width=100, ascii=False)
    assert page.index("step runs eagerly") < page.index("graph break after 0/0")
    orders = {
        (optimizer, update, user): 2,
        (optimizer, update): 1,
        (update, optimizer): 0,
        (user, update): 0,
        (optimizer,): 0,
        (): 0,
    }
    for order, first in orders.items():
        assert outcome.first(dataclasses.replace(whole, compilations=order)) == first
    assert not outcome.of_torch((Frame(samples.FILE, 9, "step"), inside)), "the user's line called it"


def test_each_break_of_the_summary_has_its_line_and_what_to_do() -> None:
    (entry,) = capture_summary(samples.graph_break())["breaks"]
    assert entry == {
        "what": "Failed to trace builtin operator: Dynamo does not know how to trace `print` of a tensor",
        "why": "",
        "hint": f"{break_advice.LOGGING.format('print')}\n"
        "Move the print out of the compiled function, or keep the value and print it after the call.",
        "link": "",
        "file": samples.FILE,
        "line": 6,
        "function": "f",
        "frames": ["/home/ada/train.py:40 in main", f"{samples.FILE}:6 in f"],
    }
    (bare,) = capture_summary(with_rest())["breaks"]
    assert (bare["what"], bare["why"], bare["line"], bare["frames"]) == ("no `print`", "it prints", None, [])


def test_a_failure_of_the_summary_has_its_line() -> None:
    frames = (Frame("train.py", 3, "main"), Frame("model.py", 7, "f"))
    failure = Failure("run", "ValueError", "no", "", frames, "do that", "https://example.org")
    entry = capture_summary(dataclasses.replace(samples.sample(), failure=failure))["failure"]
    assert (entry["file"], entry["line"], entry["function"]) == ("model.py", 7, "f")
    assert (entry["hint"], entry["link"]) == ("do that", "https://example.org")
    assert capture_summary(samples.failed())["failure"]["line"] is None


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        # Torch's text for frames that it skips: the first is from a graph break in `inspect.getsource`.
        (
            "the function `_f` in file `/home/ann/a b/lib/python3.11/site-packages/torch/package/importer.py` should",
            "the function `_f` in file `torch/package/importer.py` should",
        ),
        ("in file /home/ann/work/train.py, line 7", "in file train.py, line 7"),
        (r"module `C:\Users\ann\my work\train.py` is skipped", "module `train.py` is skipped"),
        # A path that is not a file of the machine stays as it is.
        ("see https://pytorch.org/a.html for 3/4 of `/`", "see https://pytorch.org/a.html for 3/4 of `/`"),
        ("`train/loop.py` and a / b.c", "`train/loop.py` and a / b.c"),
    ],
)
def test_a_reason_names_files_without_the_folders_of_the_machine(said: str, shown: str) -> None:
    words = outcome.reason(Ending("graph break", f"{said}\n  Explanation: {said}", hint=said))
    assert (words.what, words.why, words.hint) == (shown, shown, shown)
