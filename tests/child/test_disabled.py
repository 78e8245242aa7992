"""Functions that ``torch.compiler.disable`` marks are compiled for a device, in the child, as in plain torch."""

from __future__ import annotations

import subprocess
import sys

import disabled_programs
import pytest
import torch

from compile_lens import capture


@pytest.fixture(scope="module")
def graphs() -> dict[str, int]:
    """The number of graphs by plain torch, in its own process."""
    command = [sys.executable, disabled_programs.__file__]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(count) for name, count in map(str.split, printed.splitlines())}


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100", "mps"])
def test_what_is_disabled_is_compiled_where_torch_compiles_it(
    graphs: dict[str, int], target: str | None
) -> None:
    found = {}
    for name, fn in disabled_programs.programs().items():
        record = capture(fn, torch.ones(64), target=target)
        found[name] = sum("dynamo" in c.graphs for c in record.compilations)
        assert ("marked with torch.compiler.disable" in record.nothing_compiled) == (not found[name])
    assert found == graphs
    assert {"bare": 1, "around": 3, "method": 0}.items() <= graphs.items()
