"""``compile-lens what-if``: the result of the function, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compile_lens.cli import main

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAM = """
import torch


def f(x, scale=1):
    print("a word of the user's")
    return (x * scale).sum()


def interrupted(x):
    between()
    return x.sin()


calls = []


@torch.compiler.disable
def between():
    import os, signal

    calls.append(None)
    if len(calls) == 2:  # the first trial; Python drops what is raised in __del__
        Dropped()


class Dropped:
    def __del__(self):
        import os, signal

        signal.raise_signal(signal.SIGINT)


def fails(x):
    raise ValueError("the user's own error")
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def shell(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process, in which Python interrupts as it does in a terminal."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from compile_lens.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, "what-if", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
    )


@pytest.mark.exhaustive
def test_it_finds_the_switch_for_a_device_that_is_not_here(program: Path) -> None:
    words = (
        "net.py:f",
        "--input",
        "torch.rand(1_000_000)",
        "--kwarg",
        "scale=2",
        "--target",
        "h100",
        "--pairs",
        "0",
    )
    done = shell(*words, "-o", "page.html", "-o", "page.md", "--out", "data.json", cwd=program.parent)
    assert done.returncode == 0, done.stderr
    assert "split_reductions=False: launches 2 → 1" in done.stdout
    call = 'torch.compile(f, options={"split_reductions": False})'
    assert call in done.stdout and call in (program.parent / "page.md").read_text(encoding="utf-8")
    assert done.stdout.endswith("wrote page.html\nwrote page.md\nwrote data.json\n")
    assert (program.parent / "page-split_reductions.html").exists()
    data = json.loads((program.parent / "data.json").read_text(encoding="utf-8"))
    assert data["helpful"][0] == "split_reductions" and data["interrupted"] is False
    assert "trying switches for net.py:f" in done.stderr


def test_json_is_one_document(program: Path) -> None:
    words = (
        "net.py:f",
        "--input",
        "torch.rand(8)",
        "--switch",
        "pattern_matcher",
        "--switch",
        "split_reductions",
    )
    done = shell(*words, "--json", "--quiet", cwd=program.parent)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [trial["name"] for trial in data["trials"]] == ["pattern_matcher", "split_reductions"]
    assert (data["command"], data["function"], data["written"]) == ("what-if", "f", [])
    assert "a word of the user's" in done.stderr and "trying" not in done.stderr


@pytest.mark.exhaustive
def test_interrupted_it_says_what_it_has(program: Path) -> None:
    names = ("pattern_matcher", "split_reductions", "combo_kernels")
    words = [word for name in names for word in ("--switch", name)]
    done = shell(
        "net.py:interrupted", "--input", "torch.rand(8)", *words, "-o", "page.txt", cwd=program.parent
    )
    assert done.returncode == 130, done.stderr
    assert "None of what was tried helps: 1 trial" in done.stdout and "wrote page.txt" in done.stdout
    assert done.stdout.count("not reached: it was interrupted before") == 2
    assert done.stderr.rstrip().endswith("compile-lens: interrupted")


BAD: list[tuple[list[str], str]] = [
    ([], "FUNCTION"),
    (["gone.py:f"], "there is no file"),
    (["net.py:g"], "net.py has no 'g'"),
    (["net.py:f", "-o", "x.pdf"], "'x.pdf' has no known file extension; use one of .html .md .txt .json"),
    (["net.py:f", "--pairs", "some"], "argument --pairs: invalid int value: 'some'"),
    (
        ["net.py:f", "--input", "torch.rand(8)", "--pairs", "-1"],
        "--pairs -1 is not a whole number of 0 or more",
    ),
    (
        ["net.py:f", "--input", "torch.rand(8)", "--switch", "speed"],
        "there is no switch 'speed'; there are split_red",
    ),
    (["net.py:f", "--input", "torch.rand(8)", "--target", "h1000"], "target='h1000' is not known"),
    (["net.py:f"], "missing a required argument: 'x'"),
    (["net.py:f", "--input", "y"], "--input 'y' cannot be evaluated: NameError"),
]


@pytest.mark.cases(full=4)
@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_usage_is_one_clear_line(
    words: list[str], said: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", *words, "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("compile-lens: ") and said in err and err.count("\n") == 1, err


def test_what_the_function_raises_is_told(program: Path, capsys: Any) -> None:
    assert main(["what-if", "net.py:fails", "--input", "torch.rand(8)", "--quiet"]) == 1
    assert "the user's own error" in capsys.readouterr().err
