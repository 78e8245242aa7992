"""Runs the lessons as a student would, and checks what they print against what their text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from compile_lens import capture

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[dev]'")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[dev]'")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

FOLDER = Path(__file__).resolve().parents[2] / "tutorials"
LESSONS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
FIRST = "01-one-line-four-stages.ipynb"

KERNELS = ["cpp_fused_add_cos_pow_sin_0", "cpp_fused_add_cos_mul_neg_pow_sin_0"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outputs of every code cell of the first lesson, by cell id."""
    return _run(FIRST, tmp_path_factory.mktemp("lesson"))


def _run(name: str, folder: Path) -> dict[str, Any]:
    lesson = nbformat.read(FOLDER / name, as_version=4)
    nbclient.NotebookClient(
        lesson, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return {cell.id: cell.outputs for cell in lesson.cells if cell.cell_type == "code"}


def _text(outputs: Any) -> str:
    """What a cell printed, and its result as text."""
    return "".join(
        o.text if o.output_type == "stream" else o.get("data", {}).get("text/plain", "") for o in outputs
    )


def test_there_is_a_lesson() -> None:
    assert FIRST in LESSONS


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_kept_without_outputs(name: str) -> None:
    lesson = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(lesson)
    for cell in lesson.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, f"clear the outputs of cell {cell.id}"


def test_nothing_warns_or_fails(first: dict[str, Any]) -> None:
    errors = {
        cell: o for cell, outputs in first.items() for o in outputs if o.get("name") == "stderr" and o.text
    }
    assert not errors


def test_the_first_lesson_shows_the_page(first: dict[str, Any]) -> None:
    shown = [o for o in first["show"] if o.output_type in ("display_data", "execute_result")]
    assert len(shown) == 1, "the capture is to be displayed once"
    assert KERNELS[0] in shown[0].data["text/html"]
    assert "17 eager ops → 2 launches" in shown[0].data["text/plain"]


@pytest.mark.parametrize(
    ("cell", "drawn"),
    [
        ("dynamo-drawing", "7 nodes, 5 calls"),
        ("joint", "20 nodes, 17 calls"),
        ("forward", "7 nodes, 5 calls, 1 saved for backward"),
        ("backward", "15 nodes, 12 calls"),
    ],
)
def test_the_first_lesson_draws_each_graph(first: dict[str, Any], cell: str, drawn: str) -> None:
    (output,) = first[cell]
    assert drawn in output.data["image/svg+xml"]


def test_the_first_lesson_reads_each_stage(first: dict[str, Any]) -> None:
    ones = re.fullmatch(r"tensor\(\[(.*)\], grad_fn=<\w+>\)", _text(first["function"]))
    assert ones is not None and [round(float(one), 5) for one in ones[1].split(",")] == [1.0] * 5
    stages = ["dynamo", "joint", "forward", "forward.loops", "forward.groups", "backward"]
    assert all(repr(stage) in _text(first["stages"]) for stage in stages)
    for call in ("torch.sin(", "torch.cos(", "sin ** 2", "cos ** 2", "pow_1 + pow_2"):
        assert call in _text(first["dynamo-text"])
    assert _text(first["saved"]) == "('primals_1',)"
    body = _text(first["loops"])
    assert body.count("buf0[p0] = ") == 1
    assert {"sin(", "cos(", "mul(", "add("} <= set(re.findall(r"\w+\(", body))
    assert "op0: pointwise, one loop" in _text(first["groups"])
    assert f"{KERNELS[0]} launches: 1" in _text(first["kernel"])
    assert ".sin()" in _text(first["kernel"]) or "std::sin(" in _text(first["kernel"])
    assert _text(first["code-only"]) == "'generated only'"


def test_the_first_lesson_reckons_right(first: dict[str, Any]) -> None:
    lines = [line.replace(",", "").split() for line in _text(first["ledger"]).splitlines()]
    assert lines[1:] == [
        ["forward", "5", "5", "1", "1", "1", "44000", "8000"],
        ["backward", "12", "12", "1", "1", "1", "116000", "12000"],
        ["both", "17", "17", "2", "2", "2", "160000", "20000"],
    ]


def test_the_first_lesson_walks_the_chain(first: dict[str, Any]) -> None:
    up = _text(first["chain-up"]).splitlines()
    assert up and all(
        line == "line 2 of f: return torch.sin(x) ** 2 + torch.cos(x) ** 2" for line in map(str.strip, up)
    )
    assert re.findall(r"'(\w+)'", _text(first["chain-down"])) == KERNELS
    reached = [line.split() for line in _text(first["chain-one"]).splitlines()]
    assert ["forward.code", KERNELS[0]] in reached and ["backward.code", KERNELS[1]] in reached
    assert ["joint", "cos_1"] in reached, "the derivative of sin"


def test_the_exercises_of_the_first_lesson(first: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert "2 eager ops → 1 launch" in _text(first["try"])
    x = torch.rand(1000)

    row = capture(lambda x: torch.square(torch.square(x)), x).ledger.total
    assert (row.eager_ops, row.launches, row.bytes_before, row.bytes_after) == (2, 1, 16_000, 8_000)

    row = capture(lambda x: (torch.sin(x), torch.cos(x), torch.exp(x)), x).ledger.total
    assert (row.loops, row.groups) == (3, 1)

    product = capture(lambda a, b: torch.relu(a @ b), torch.rand(64, 64), torch.rand(64, 64))
    assert product.ledger.total.launches == 2
    assert "extern_kernels.mm" in [k.name for k in product.kernels]

    def interrupted(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        print("hello")
        return torch.cos(y)

    broken = capture(interrupted, x)
    assert (len(broken.compilations), len(broken.breaks), broken.ledger.total.launches) == (2, 1, 2)
    assert "print" in broken.breaks[0].reason
    assert "hello" in capsys.readouterr().out
