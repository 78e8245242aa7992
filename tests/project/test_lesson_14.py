"""Lesson 14, it got slower, or different: its output, and the claims of its text."""

from __future__ import annotations

import inspect
import re
from typing import Any

import lessons
import pytest
import torch
from torch._inductor import cudagraph_trees
from torch._inductor.utils import run_and_get_code

pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

NAME = lessons.named("14")


def _cells() -> dict[str, str]:
    return {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}


def _scope(*names: str) -> dict[str, Any]:
    """Return the names that the beginnings of some cells define: classes and functions, before anything is captured."""
    prose, scope = lessons.prose(NAME), {"torch": torch, "F": torch.nn.functional}
    for name in names:
        code = re.split(r"\n(?=three = |def dropped_by|for ending)", prose[name])[0]
        exec(compile(code.replace('print("calling:", name)', "pass"), NAME, "exec"), scope)
    return scope


def test_plain_torch_compiles_three_phases_and_two_rates() -> None:
    graphs: list[Any] = []

    def counting(module: Any, _: Any) -> Any:
        graphs.append(module)
        return module

    scope, cells = _scope("phases"), _cells()
    torch._dynamo.reset()
    net = torch.compile(scope["net"], backend=counting)
    for training, gradients in scope["PHASES"].values():
        net.train(training)
        with torch.set_grad_enabled(gradients):
            net(scope["rows"])
    assert len(graphs) == 3 and "the capture has 3 compilations" in cells["phases"]
    assert re.findall(r"^1/\d has (\w+)", cells["phases-reasons"], re.M) == ["a", "a", "no"]
    assert "self.training == True" in cells["phases-reasons"] and "grad_mode" in cells["phases-reasons"]
    assert len(re.findall(r"(?:first|second) call: \d+\.\d ms", cells["first-calls"])) == 6
    graphs.clear()
    step = torch.compile(lambda x, rate: x - rate * x.sin(), backend=counting)
    for n in range(3):
        step(torch.ones(8), 0.1 / (n + 1))
    assert len(graphs) == 2 and "compiled 2 times for 3 calls" in cells["import"]
    assert "rate == 0.1" in cells["logs"] and "rate was 0.1, now 0.05: return x - rate" in cells["import"]


def test_plain_torch_drops_other_numbers_and_launches_as_often() -> None:
    dropped, cells = _scope("random")["dropped"], _cells()
    launches, masks = [], []
    torch.manual_seed(0)
    masks.append(dropped(torch.ones(1000)) == 0)
    for options in (None, {"fallback_random": True}):
        torch._dynamo.reset()
        torch.manual_seed(0)
        result, (code,) = run_and_get_code(torch.compile(dropped, options=options), torch.ones(1000))
        masks.append(result == 0)
        launches.append(
            len(re.findall(r"^ +(?:cpp_fused\w+\(|(?:buf\d+ = )?(?:torch\.ops\.)?aten\.\w+)", code, re.M))
        )
    eager, own, fallback = masks
    other = int((eager != own).sum())
    assert torch.equal(eager, fallback) and 400 < other < 600
    assert f"eager and compiled differ in {other} of 1000" in cells["random"]
    assert f"other, again, same = {other}, 0, 0" in lessons.prose(NAME)["random"], "the recorded ones"
    assert cells["random"].count(" 0\n") == 2
    assert launches == [2, 3] and "the capture has 3 launches" in cells["random-reveal"]
    assert [len(line.split()) for line in cells["random-series"].splitlines()[:2]] == launches
    assert lessons.said(lessons.prose(NAME)["random-series-meaning"], r"Inductor makes (\w+) launches") == (
        2,
    )


def test_plain_torch_breaks_where_the_lesson_says() -> None:
    fitted, cells = _scope("fullgraph")["fitted"], _cells()
    torch._dynamo.reset()
    explained = torch._dynamo.explain(fitted)(torch.rand(1000))
    assert len(explained.break_reasons) == 2 == cells["fullgraph"].count("break: if x.")
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported) as error:
        torch.compile(fitted, backend="eager", fullgraph=True)(torch.rand(1000))
    assert "line 2, in fitted" in str(error.value) and "line 4, in fitted" not in str(error.value)
    named = cells["fullgraph"].partition("fullgraph:")[2]
    assert "if x.min() < 0:" in named and "if x.max() > 1:" not in named


def test_what_it_says_of_modes_and_cuda_graphs_is_torchs() -> None:
    cells, prose = _cells(), lessons.prose(NAME)
    for line in cells["modes"].splitlines():
        mode, _, options = line.partition(" ")
        assert options == str(torch._inductor.list_mode_options(mode))
    assert "triton.cudagraphs" in cells["modes"] and "max_autotune" in cells["modes"]
    (message,) = re.findall(r"raises: \*(.+?)\*", prose["replay-meaning"])
    assert message in inspect.getsource(cudagraph_trees)
    documented = " ".join((torch.compiler.cudagraph_mark_step_begin.__doc__ or "").split())
    assert (
        "so long as there is not a pending backward" in documented
        and "free tensors of a prior iteration" in documented
    )
    assert cells["replay"].split() == "kept: [9.0, 9.0, 9.0] cloned: [1.0, 4.0, 9.0]".split()
    assert [line.partition("→ ")[2] for line in cells["recorded-parts"].splitlines()] == [
        "recorded",
        "not recorded: cpu ops",
        "recorded",
    ]
    assert "['_orig_mod.linear.weight'" in cells["saved"] and "\n['linear.weight'" in cells["saved"]
    assert "aot_inference_graph_3.txt" in cells["tlparse"]


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
