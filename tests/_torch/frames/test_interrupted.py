"""A capture reports what ran eagerly with torch's own counts, reasons and lines, and nothing if all was compiled."""

from __future__ import annotations

import functools
import inspect
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import interrupted
import pytest
import torch
from full_text import full
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import capture, versions
from compile_lens._torch import session
from compile_lens._torch.ground import hook_points
from compile_lens.record.breaks import LIMIT, NEVER_RAN, REST, WHOLE
from compile_lens.results.capture import Capture
from compile_lens.views.live.page import parts, static
from compile_lens.views.render.markdown import page as markdown
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import outcome

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


@functools.cache
def plain() -> dict[str, Any]:
    """Torch's own counts and logs, from a process without compile_lens."""
    done = subprocess.run(
        [sys.executable, interrupted.__file__], capture_output=True, text=True, check=True, timeout=300
    )
    found = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    said: dict[str, Any] = json.loads(found.removeprefix("RESULT"))
    return said


@functools.cache
def captured(name: str) -> Capture:
    return capture(getattr(interrupted, name), torch.linspace(0, 1, 4), dynamic=False)


each = pytest.mark.parametrize("fn", interrupted.PROGRAMS, ids=lambda fn: fn.__name__)


def line_of(fn: Callable[..., Any], text: str) -> int:
    """The line number of the only statement of a function that contains a text."""
    lines, first = inspect.getsourcelines(fn)
    (found,) = (first + i for i, line in enumerate(lines) if text in line)
    return found


@pytest.mark.full
@each
@pytest.mark.cases(full=2)
def test_counts_are_torchs(fn: Callable[..., Any]) -> None:
    name, found, torchs = fn.__name__, captured(fn.__name__), plain()[fn.__name__]
    assert outcome.graphs(found) == torchs["graphs"]
    assert len(found.breaks) == len(torchs["breaks"])
    # torch also logs the recompile that it then refuses because of the limit.
    refused = sum(s.kind == LIMIT for s in found.skipped)
    assert len(found.recompiles) + refused == torchs["recompiles"]
    assert refused == (name == "past_the_limit")


@pytest.mark.full
@each
def test_each_break_is_where_torch_logs_it(fn: Callable[..., Any]) -> None:
    found, torchs = captured(fn.__name__), plain()[fn.__name__]
    ours = sorted(f"{e.frames[-1].file}:{e.frames[-1].line}" for e in found.breaks)
    assert ours == sorted(re.search(r"user code at (\S+:\d+)", m)[1] for m in torchs["breaks"])  # type: ignore[index]
    for ending in found.breaks:
        first = ending.reason.splitlines()[0]
        assert any(first in message for message in torchs["breaks"])
        assert bool(ending.hint) == ("Hint: " in ending.reason)
        assert ending.link.startswith("https://")


@pytest.mark.full
@each
def test_only_what_was_compiled_whole_is_green(fn: Callable[..., Any]) -> None:
    found, torchs = captured(fn.__name__), plain()[fn.__name__]
    everything = not torchs["breaks"]
    assert (not found.breaks and not found.skipped) == everything
    assert (outcome.state(found) == "compiled") == everything
    assert ("✓" in full(found)) == everything
    assert outcome.verdict(found).startswith("compiled") == everything
    assert ("cl-compiled" in static(found)) == everything


@each
def test_every_view_says_what_ran_eagerly(fn: Callable[..., Any]) -> None:
    record = captured(fn.__name__)
    core: Any = parts(record)["core"]
    assert core["outcome"]["state"] == outcome.state(record)
    assert len(core["eager"]) == len(outcome.eager(record))
    flat = " ".join(full(record).split())
    for one in outcome.eager(record):
        reason = outcome.reason(one.ending)
        for view in (flat, markdown(document(record)).replace("\\", ""), static(record), json.dumps(core)):
            assert reason.link in view
            assert reason.what.replace("`", "").split("(")[0] in view.replace("`", "").replace("&#x60;", "")
        assert one.head in flat


def test_a_training_loop_that_is_skipped() -> None:
    record = capture(interrupted.training_steps, torch.ones(3, requires_grad=True))
    (skip,) = record.skipped
    fn = interrupted.training_steps
    assert (skip.kind, skip.function, skip.file) == (WHOLE, "training_steps", interrupted.__file__)
    assert skip.cause.reason.startswith("Unsupported Tensor.backward() call")
    assert "graph break in loop" not in skip.cause.reason
    assert skip.consequence.startswith("graph break in loop")
    assert skip.cause.frames[-1].line == line_of(fn, "loss.backward()")
    assert skip.cause.frames[-1].text == "loss.backward()"
    first = inspect.getsourcelines(fn)[1]
    assert skip.lines == ((first + 1, line_of(fn, "return w.grad")),)
    assert any("skipped code is in none of them" in note for note in record.notes)
    assert captured("whole").notes == ()


def test_item_in_try_has_its_own_line_and_hint() -> None:
    record = captured("item_in_try")
    fn = interrupted.item_in_try
    (compilation,) = record.compilations
    ending = compilation.ending
    assert ending is not None and ending.reason.startswith("Unsupported Tensor.item() call")
    assert "capture_scalar_outputs" in ending.hint
    assert ending.frames[-1].line == line_of(fn, ".item()")
    (skip,) = record.skipped
    assert (skip.kind, skip.compilation, skip.cause) == (REST, "0/0", ending)
    first = line_of(fn, "try:")  # it has only a NOP, which Dynamo drops on Python 3.13
    assert skip.lines in [((line, line_of(fn, "return c.exp()")),) for line in (first, first + 1)]


def test_a_branch_on_a_tensor_is_called_one() -> None:
    record = captured("branch")
    (ending,) = record.breaks
    assert ending.reason.startswith("Data-dependent branching")
    assert "torch.cond" in ending.hint
    assert not record.skipped


def test_a_function_past_its_limit() -> None:
    record = captured("past_the_limit")
    limit = next(s for s in record.skipped if s.kind == LIMIT)
    fn = interrupted.scaled
    assert (limit.function, limit.cause.frames[-1].line) == ("scaled", inspect.getsourcelines(fn)[1])
    assert limit.lines == ((line_of(fn, "return"),) * 2,)
    assert "recompile_limit" in limit.cause.hint
    assert [m.guards[0].partition(" #")[0] for m in record.recompiles[:2]] == [
        "1/0: n == 0",
        "1/1: n == 1",
    ] or [m.guards[0].partition(" #")[0] for m in record.recompiles[:2]] == ["0/0: n == 0", "0/1: n == 1"]
    assert [len(m.guards) for m in record.recompiles] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("name", ["later", "later_pieces", "pieces"])
def test_a_body_that_never_ran(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = capture(getattr(interrupted, name), torch.ones(3))
    (skip,) = record.skipped
    assert (skip.kind, skip.function) == (NEVER_RAN, name)
    text, first = inspect.getsourcelines(getattr(interrupted, name))
    assert skip.lines[0][0] > first and skip.lines[-1][1] == first + len(text) - 1  # the body, not the head
    assert outcome.state(record) != "compiled"
    assert "nothing ran its body" in outcome.verdict(record)
    assert "Capture " in skip.cause.hint
    assert "nothing ran its body" in " ".join(full(record).split())


@pytest.mark.slow
def test_code_of_a_body_that_never_ran_is_not_called_run() -> None:
    record = capture(interrupted.later, torch.ones(3), build=True)
    assert {code.stamp for c in record.compilations for code in c.code.values()} == {"built"}


def test_frames_of_torch_and_the_library_are_only_counted() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.Sequential(torch.nn.ReLU(), Loud())(x)

    class Loud(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(2):
                print(end="")
            return x + 1

    record = capture(fn, torch.ones(3))
    files = {s.file.replace("\\", "/") for s in record.skipped}
    assert any(s.function == "forward" and s.file == __file__ for s in record.skipped)
    assert all(f == __file__ or "/torch/nn/modules/" in f for f in files)


def test_a_dispatch_mode_in_which_dynamo_compiles_nothing() -> None:
    class Through(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Through():
        record = capture(interrupted.whole, torch.ones(3))
    assert outcome.state(record) == "nothing" and not record.breaks
    if versions.torch_version() >= (2, 12):  # before, Dynamo gives no reason for a skipped frame
        (skip,) = record.skipped
        assert (skip.kind, skip.function, skip.cause.kind) == (WHOLE, "whole", "not traced")
        assert "dispatch mode" in record.nothing_compiled


def test_what_a_target_s_capture_skipped_crosses_with_it() -> None:
    here = captured("item_in_try")
    there = capture(interrupted.item_in_try, torch.ones(4), target="mps")
    assert [(s.kind, s.lines, s.cause) for s in there.skipped] == [
        (s.kind, s.lines, s.cause) for s in here.skipped
    ]
    assert outcome.state(there) == "partial"


def test_the_rest_of_a_function_belongs_to_it() -> None:
    fn = interrupted.breaks_twice
    record = capture(fn, torch.ones(3))
    (skip,) = record.skipped
    lines, first = inspect.getsourcelines(fn)
    assert (skip.kind, skip.function, skip.line, skip.compilation) == (REST, fn.__name__, first, "")
    assert skip.lines == ((first + 2, first + len(lines) - 1),)
    assert [s.name for s in record.sources if s.name == fn.__name__] == [fn.__name__]


def test_a_graph_without_a_break_hook_says_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break"
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))
    record = capture(interrupted.item_in_try, torch.ones(3))
    (ending,) = record.breaks
    assert "step_unsupported" not in ending.reason and "does not tell" in ending.reason


def test_skips_survive_a_capture_that_fails() -> None:
    assert session  # its hooks are registered
    record = capture(interrupted.helped, torch.ones(3))
    again = Capture.from_json(record.to_json())
    assert again.skipped == record.skipped and again.breaks == record.breaks
