"""What torch would record as CUDA graphs: the parts and reasons of torch's own log of the same programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

HELPER = Path(__file__).parents[2] / "helpers" / "cuda_graphs.py"


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    out = subprocess.run(
        [sys.executable, str(HELPER)], check=True, capture_output=True, text=True, timeout=900
    ).stdout
    return {one["name"]: one for one in map(json.loads, out.splitlines())}


def logged(lines: list[str]) -> list[tuple[bool, int, dict[str, str]]]:
    """Torch's first list of partitions: whether each is recorded, how many nodes it has, and its reasons by node."""
    parts: list[tuple[bool, int, dict[str, str]]] = []
    for line in lines[1:]:
        if line.startswith("Created"):
            break
        if at := re.match(r"  Partition \d+: (\d+) nodes, (non-)?cudagraphable", line):
            parts.append((at[2] is None, int(at[1]), {}))
        elif at := re.match(r"    (\S+): reason=(.*?), ir=", line):
            parts[-1][2][at[1]] = at[2]
    return parts


PROGRAMS = ("clean", "item", "dynamic", "mutated", "incompatible", "branch", "moved", "parameters")


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_and_reasons_are_those_of_torch(found: dict[str, dict[str, Any]], name: str) -> None:
    (made,) = found[name]["made"]
    assert made["unknown"] == "" and made["partitioned"] and not made["asked"]
    said = [(part["recorded"], len(part["groups"]), dict(part["reasons"])) for part in made["parts"]]
    if name == "branch":  # torch itself refuses all of it while it lowers, whatever its parts
        assert (
            said == [] and made["refused"] == "control flow operator: torch.cond" and made["node"] == "cond"
        )
    else:
        assert said == logged(found[name]["log"]) and said and made["refused"] == ""


def test_what_each_program_comes_to(found: dict[str, dict[str, Any]]) -> None:
    parts = {n: [p["recorded"] for p in one["made"][0]["parts"]] for n, one in found.items()}
    assert parts["clean"] == [True] and parts["incompatible"] == [True, False, True]
    assert parts["moved"] == [True, False] and parts["dynamic"] == [False]
    assert True in parts["item"] and False in parts["item"]
    mutated = {n: [m["static"] for m in one["made"][0]["mutated"]] for n, one in found.items()}
    assert {n: m for n, m in mutated.items() if m} == {"mutated": [False], "parameters": [True] * 3}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("item", "x.sum().to(torch.int64).item()"),
        ("dynamic", "return (x.sin() + 1) @ x.t()"),
        ("mutated", "x.add_(1)"),
        ("incompatible", "z = torch.ops.of_test.unsafe(y)"),
        ("branch", "return torch.cond("),
        ("moved", 'y = (x @ x).to("cpu") + 1'),
    ],
)
def test_the_line_that_prevents_it_is_named(found: dict[str, dict[str, Any]], name: str, text: str) -> None:
    source = HELPER.read_text(encoding="utf-8").splitlines()
    refused = [row for row in found[name]["rows"] if row[2] in ("no", "nothing")]
    lines = {int(n) for row in refused for n in re.findall(r"\d+", row[5].partition(":")[2])}
    assert any(text in source[line - 1] for line in lines), (refused, lines)


def test_of_a_cpu_nothing_is_said() -> None:
    import torch

    import compile_lens
    from compile_lens.views.findings import findings

    capture = compile_lens.capture(torch.sin, torch.rand(4))
    assert capture.compilations[0].cuda_graphs == ()
    assert "cuda_graphs" not in {f.key for f in findings(capture)}
