"""A record with an emptied list is refused if another part of it depends on the list. The dependencies between parts
are written by hand here; our own records are consistent, and open."""

from __future__ import annotations

import json
from typing import Any

import mutations
import pytest
import torch

import compile_lens
from compile_lens.errors import RecordError
from compile_lens.results.capture import Capture
from compile_lens.results.program import Program


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return (y.cos() * x).sum(-1)


def skipped(x: torch.Tensor) -> torch.Tensor:
    y = x.sin() + 1
    torch._dynamo.graph_break()
    for _ in range(2):
        print("", end="")
    return y.cos()


def plain(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x.cos()).sum(-1) / x.amax()


def _emptied(raw: dict[str, Any], path: str) -> str:
    """Return the JSON text of a record with a list or an object emptied."""
    copy = json.loads(json.dumps(raw))
    at = copy
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in steps:
        at = at[step]
    assert at[last]
    at[last] = [] if isinstance(at[last], list) else None
    return json.dumps(copy)


@pytest.fixture(scope="module")
def captures() -> dict[str, dict[str, Any]]:
    calls = [(torch.rand(8, 8),), (torch.rand(8, 4),)]
    captured = {
        "broken": compile_lens.capture(broken, torch.rand(8, 8)),
        "skipped": compile_lens.capture(skipped, torch.rand(8, 8)),
        "plain": compile_lens.capture(plain, torch.rand(8, 8)),
        "calls": compile_lens.capture(plain, calls=calls),
    }
    return {name: json.loads(capture.to_json()) for name, capture in captured.items()}


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("skipped", "skipped", "skipped is empty"),
        (
            "broken",
            "compilations.0.ending",
            "torch_dynamo_resume_in_broken_at_.* goes on after a graph break",
        ),
        ("plain", "compilations.0.stages", "compilation 0/0 has neither a stage nor a reason"),
        ("calls", "compilations", "calls name compilation 0/0, which is not in compilations"),
    ],
)
def test_an_emptied_list_is_refused(
    captures: dict[str, dict[str, Any]], name: str, path: str, message: str
) -> None:
    assert Capture.from_json(json.dumps(captures[name])).to_json()
    with pytest.raises(RecordError, match=f"{message}.*: the record was changed or is damaged"):
        Capture.from_json(_emptied(captures[name], path))


@pytest.mark.full
@pytest.mark.torch
def test_kernels_and_loops_that_are_named_elsewhere_are_there(captures: dict[str, dict[str, Any]]) -> None:
    stages = captures["plain"]["compilations"][0]["stages"]
    (code,) = (i for i, stage in enumerate(stages) if stage["is"] == "Code")
    (loops,) = (i for i, stage in enumerate(stages) if stage.get("stage") == "loops")
    name = stages[code]["kernels"][0]["name"]
    with pytest.raises(
        RecordError, match=f"the code of 0/0 inference defines {name}, which is not in kernels"
    ):
        Capture.from_json(_emptied(captures["plain"], f"compilations.0.stages.{code}.kernels"))
    with pytest.raises(
        RecordError, match=r"(decisions|lowered) of 0/0 inference name op\d, which is not in its loops"
    ):
        Capture.from_json(_emptied(captures["plain"], f"compilations.0.stages.{loops}.nodes"))


@pytest.mark.full
@pytest.mark.torch
def test_what_was_not_observed_may_be_empty(captures: dict[str, dict[str, Any]]) -> None:
    raw = json.loads(_emptied(captures["broken"], "compilations.0.ending"))
    raw["not_observed"] = [
        {"is": "Missing", "stage": "graph breaks", "reason": "torch lacks what is observed"}
    ]
    assert Capture.from_json(json.dumps(raw)).lacks("graph breaks")


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    torch._dynamo.reset()
    with compile_lens.watch() as watched:
        torch.compile(broken, backend="eager")(torch.rand(4, 4))
        torch.compile(plain, backend="eager")(torch.rand(4, 4))
    torch._dynamo.reset()
    return json.loads(watched.to_json())


@pytest.mark.torch
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("graphs", r"frames name graph \d, which is not in graphs"),
        ("frames", "graph 0 is of no evaluation in frames"),
        ("frames.0.evaluations", "broken is in frames, and has no evaluations|graph 0 is of no evaluation"),
        ("frames.0.evaluations.0.graphs", "evaluation 0 is compiled, and has no graph"),
    ],
)
def test_an_emptied_list_of_a_program_is_refused(program: dict[str, Any], path: str, message: str) -> None:
    assert Program.from_json(json.dumps(program)).record.graphs
    with pytest.raises(RecordError, match=f"({message}).*: the record was changed or is damaged"):
        Program.from_json(_emptied(program, path))


@pytest.mark.parametrize("name", mutations.RECORDS)
def test_records_made_by_hand_are_consistent(name: str) -> None:
    assert Capture.from_json(mutations.RECORDS[name]().to_json())


@pytest.mark.parametrize("name", ["\x1b[31m red", "lone \ud800 surrogate", "two\nlines"])
def test_names_of_a_damaged_record_are_printable(name: str) -> None:
    raw = json.loads(mutations.RECORDS["skipped"]().to_json())
    raw["skipped"][0]["compilation"] = name
    with pytest.raises(RecordError, match=r"names compilation .*, which is not in compilations") as caught:
        Capture.from_json(json.dumps(raw))
    assert str(caught.value).isprintable() and str(caught.value).encode()
