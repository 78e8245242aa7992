"""Every figure of the README is one that a capture gives, and every piece of its code runs."""

from __future__ import annotations

import re
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens import cli

pytestmark = pytest.mark.torch

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [line for line in README.splitlines() if line.startswith("compile-lens ")]


def _run(code: str, scope: dict[str, Any], folder: Path, name: str) -> None:
    file = folder / f"{name}.py"  # a file, so that the source lines of its functions are found
    file.write_text(code, encoding="utf-8")
    exec(compile(code, str(file), "exec"), scope)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the first block, which the others stand on."""
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "readme"}
    _run(PYTHON[0], scope, tmp_path, "readme")
    return scope


def test_the_ledger(session: dict[str, Any]) -> None:
    ledger = session["capture"].ledger
    cells = re.findall(
        r"^\| ([a-z]+ ops|ATen ops|loops|groups|launches|bytes \w+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| .+ "
        r"\| (measured|modelled) \|$",
        README,
        re.MULTILINE,
    )
    assert [cell[0] for cell in cells] == [
        "eager ops",
        "ATen ops",
        "loops",
        "groups",
        "launches",
        "bytes before",
        "bytes after",
    ]
    for column, forward, backward, both, basis in cells:
        name = column.lower().replace(" ", "_")
        figures = [getattr(row, name) for row in (ledger.forward, ledger.backward, ledger.total)]
        assert [f"{figure:,}" for figure in figures] == [forward, backward, both]
        assert {figure.basis for figure in figures} == {basis}


def test_the_figures_in_the_text(session: dict[str, Any]) -> None:
    graphs = session["capture"].compilations[0].graphs
    for stage, title in (("forward", "Forward"), ("backward", "Backward")):
        said = f"{title} graph: {len(graphs[stage].nodes)} nodes, {len(graphs[stage].calls)} calls"
        assert said in README
    assert f"# {len(graphs['joint'].calls)} nodes" in README
    total = session["capture"].ledger.total
    assert re.search(rf"capture\.ledger\.total\.launches +# {total.launches}\n", README)


@pytest.mark.slow
def test_the_record_in_code(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON[1], session, tmp_path, "record")
    assert "compiled agrees with eager" in capsys.readouterr().out
    loaded = compile_lens.load(tmp_path / "f.json")
    assert loaded == session["capture"]
    assert session["line"].text.strip() == "return torch.sin(x) ** 2 + torch.cos(x) ** 2"
    chained = session["capture"].chain.kernels(session["line"].file, session["line"].line)
    assert chained == session["capture"].kernels
    assert session["capture"].ledger.total.launches == 2


def test_the_backend_by_name(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not metadata.entry_points(group="torch_dynamo_backends", name="compile_lens"):
        pytest.skip(
            "compile_lens is not installed here, so torch does not know its backend: pip install -e ."
        )
    _run(PYTHON[2], session, tmp_path, "backend")
    said = " ".join(capsys.readouterr().out.split())
    assert "of a program: 1 graph" in said and "What ran eagerly was not seen" in said
    torch.testing.assert_close(session["model"](session["x"]), session["f"](session["x"]))


@pytest.mark.slow
def test_what_each_step_saves(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON[3], session, tmp_path, "steps")
    said = capsys.readouterr().out
    assert "nothing inlined or fused: 17 loops" in said
    assert "forward+backward: " in said and "x eager's speed" in said


def test_a_device_that_is_not_there(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON[4], session, tmp_path, "there")
    said = capsys.readouterr().out
    assert "@triton.jit" in said and "launch configurations" in said and "mps" in said
    assert (tmp_path / "targets.html").exists()


@pytest.mark.slow
def test_machine_code_and_the_interpreter(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    _run(PYTHON[5], session, tmp_path, "machine")
    said = capsys.readouterr().out
    assert "STG.E" in said and "compiled agrees with eager" in said


def test_no_block_is_left_out() -> None:
    assert len(PYTHON) == 6
    named = [line.split()[1] for line in COMMANDS]
    assert named == ["show", "show", "show", "compare", "show", "support", "open", "doctor"]


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands as they stand, with programs of the names that they use."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("import torch\n\n\ndef net(x):\n    return torch.tanh(x) * x\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(
        "import torch\n\n\ndef function(x, dim):\n    return torch.softmax(x, dim)\n"
    )
    assert cli.main(shlex.split(COMMANDS[0])[1:]) == cli.OK
    assert "backward" in capsys.readouterr().out
    assert (tmp_path / "net.html").exists()
    assert cli.main([*shlex.split(COMMANDS[1])[1:], "--quiet", "--out", "record.json"]) == cli.OK
    assert cli.main(shlex.split(COMMANDS[6])[1:]) == cli.OK
    assert "softmax" in (tmp_path / "page.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS[2])[1:]) == cli.OK
    assert "NVIDIA H100 SXM" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS[3])[1:]) == cli.OK
    assert (tmp_path / "targets.html").exists()
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS[4])[1:]) == cli.OK
    assert capsys.readouterr().out.startswith("The story of net")
    assert cli.main(shlex.split(COMMANDS[5])[1:]) == cli.OK
    assert "MPS" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS[7])[1:]) == cli.OK
