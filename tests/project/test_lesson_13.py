"""Lesson 13, make it faster: its output, and the claims of its text."""

from __future__ import annotations

import re
from typing import Any

import lessons
import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = [pytest.mark.torch, pytest.mark.exhaustive]

NAME = lessons.named("13")

VIEWS = {"view", "permute", "transpose", "select", "unbind", "_unsafe_view", "t", "expand", "slice", "detach"}
"""Operators that move no data."""


class Dispatched(TorchDispatchMode):
    """Counts the operators that eager PyTorch dispatches, except views."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ not in VIEWS:
            self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _lesson() -> dict[str, Any]:
    """Return the names that the model cells define."""
    prose, scope = lessons.prose(NAME), {"torch": torch, "F": torch.nn.functional}
    code = (
        prose["block"]
        + "\n\n"
        + "\n\n".join(prose[name].partition("\n\n\n")[0] for name in ("break", "mend"))
    )
    exec(compile(code, NAME, "exec"), scope)
    return scope


def test_plain_torch_counts_the_same_operators_launches_and_breaks() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    scope = _lesson()
    with Dispatched() as dispatched:
        scope["block"](scope["x"])
    assert len(dispatched.names) == 25
    with Dispatched() as dispatched:
        scope["gelu"](scope["x"])
    assert (
        len(dispatched.names)
        == 8
        == lessons.said(lessons.prose(NAME)["ledger-meaning"], r"The (\w+) operators of `gelu`")[0]
    )
    _, (code,) = run_and_get_code(torch.compile(scope["block"]), scope["x"])
    launches = re.findall(
        r"^ +(?:cpp_fused\w+\(|extern_kernels\.|buf\d+ = torch\.ops\.)", code.partition("def call(")[2], re.M
    )
    assert len(launches) == 9
    assert "eager operators 25, launches 9" in cells["ledger"] and "has 9 launches" in cells["reveal"]
    assert cells["rest"].count("cpp_fused") == 4 and len(cells["rest"].splitlines()) == 9
    assert lessons.said(
        lessons.prose(NAME)["rest-why"], r"(\w+) of the (\w+) launches .* other (\w+) call"
    ) == (4, 9, 5)
    torch._dynamo.reset()
    counters.clear()
    torch.compile(scope["Watched"]().requires_grad_(False))(scope["x"])
    assert (counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())) == (2, 1)
    assert "has 2 graphs" in cells["break"] and "if x.abs().max().item() > 1000:" in cells["break"]
    counters.clear()
    torch.compile(scope["Fixed"]().requires_grad_(False))(scope["x"])
    assert (counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())) == (1, 0)
    assert "breaks: 1 → 0" in cells["mend"]


def test_the_times_were_measured_here_or_say_that_they_were_recorded() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert "the same numbers: True" in cells["baseline"]
    for name in ("time", "baseline"):
        assert ("measured here:" in cells[name]) != ("recorded on two cores" in cells[name])
        eager, compiled, ratio = map(float, re.findall(r"\d+\.\d+", cells[name].splitlines()[-1]))
        assert eager / compiled == pytest.approx(ratio, rel=0.05)


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
