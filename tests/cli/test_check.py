"""``compile-lens check``: files of expectations without pytest; and the job of a pull request, run as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import samples
from markdown_pages import sections

from compile_lens.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = sections(ROOT / "docs" / "testing.md")["testing#without-pytest"]
JOB = sections(ROOT / "docs" / "diff.md")["diff#on-a-pull-request"]

CHECKS = """
import compile_lens as package

RECORD = {record!r}


def helper():
    raise RuntimeError("no check: it is not called")


def check_holds(compile_lens):
    compile_lens.expect(compile_lens.load(RECORD)).launches(2)


def test_fails(scale=1):
    package.expect(package.load(RECORD)).launches(scale)


def check_plainly():
    assert 1 == 2


def check_raises(compile_lens):
    compile_lens.load(RECORD)
    raise KeyError("other")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    record = samples.sample().save(tmp_path / "sample.json")
    path = tmp_path / "checks.py"
    path.write_text(CHECKS.format(record=str(record)), encoding="utf-8")
    return path


def test_each_function_is_a_check(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file), "--pages", "pages", "--out", "checked.md", "--quiet"]) == 1
    said = capsys.readouterr().out
    lines = CHECKS.splitlines()
    at = 1 + next(n for n, text in enumerate(lines) if "launches(scale)" in text)
    assert re.search(rf"^FAILED .*checks\.py:{at} test_fails", said, re.M)
    assert "launches: expected 1, found 2" in said and "not so: assert 1 == 2" in said
    assert re.search(r"^held .* check_holds", said, re.M) and "KeyError: 'other'" in said
    assert "1 held, 2 failed, 1 raised" in said
    pages = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert [re.sub(r"-\w{6}\.html$", "", name) for name in pages] == [
        "checks-py-check_raises",
        "checks-py-test_fails",
    ]
    assert all(str(Path("pages") / name) in said for name in pages)
    written = (tmp_path / "checked.md").read_text(encoding="utf-8")
    assert "2 failed" in written and "expected 1, found 2" in written


@pytest.mark.parametrize(
    ("only", "code"), [("check_holds", 0), ("test_fails", 4), ("check_plainly", 4), ("check_raises", 1)]
)
def test_the_exit_code_says_what_became_of_it(
    file: Path, only: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(file), "--only", only, "--json", "--quiet"]) == code
    (one,) = json.loads(capsys.readouterr().out)["checks"]
    assert one["name"] == only and one["outcome"] == {0: "held", 4: "failed", 1: "raised"}[code]


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        ("def f():\n    pass\n", [], "has no check: write functions whose names begin with check or test"),
        ("def check_a(tmp_path):\n    pass\n", [], "takes 'tmp_path'"),
        ("def check_a():\n    pass\n", ["--only", "check_b"], "has no check 'check_b'; it has check_a"),
        ("def check_a():\n    pass\n", ["--out", "a.html"], "no known ending"),
        ("def check_a(:\n", [], "SyntaxError"),
    ],
)
def test_bad_input_is_named(
    file: Path, program: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(program)
    assert main(["check", str(file), *words]) == 2
    assert said in capsys.readouterr().err


def test_only_is_not_kept_from_a_check_by_one_of_pytest(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_many(n, compile_lens):\n    assert n\n\n\n"
        "def check_ok():\n    pass\n"
    )
    assert main(["check", str(file), "--only", "check_ok", "--quiet"]) == 0
    assert "1 held" in capsys.readouterr().out
    for words in ([], ["--only", "test_many"]):
        assert main(["check", str(file), "--quiet", *words]) == 2
        assert "test_many takes 'n'" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "no.py")]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.slow
def test_the_file_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    program = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[0]
    (tmp_path / "expectations.py").write_text(program, encoding="utf-8")
    (command,) = re.findall(r"^compile-lens (check .*)$", PAGE, re.M)
    assert main([*command.split(), "--quiet"]) == 0
    assert "1 held" in capsys.readouterr().out and "1 held" in (tmp_path / "checked.md").read_text()
    assert not (tmp_path / "pages").exists()


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["sorted", "renamed"])
def test_the_job_of_the_page(tmp_path: Path, edit: str) -> None:
    """In a repository of its own, with a branch that a pull request is made against, as GitHub's runner runs it."""
    pytest.importorskip("torch")
    if shutil.which("git") is None or shutil.which("bash") is None:
        pytest.skip("git and bash are not both installed")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", JOB, re.M | re.S)
    script = textwrap.dedent(block.rpartition("run: |\n")[2])
    places = {name: tmp_path / name for name in ("origin", "work", "temp", "bin")}
    for name in ("origin", "temp", "bin"):
        places[name].mkdir()
    command = places["bin"] / "compile-lens"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m compile_lens "$@"\n')
    command.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{places['bin']}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(places["temp"]),
        "GITHUB_BASE_REF": "base",
        "GITHUB_STEP_SUMMARY": str(places["temp"] / "summary.md"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def git(*words: str, at: Path = places["origin"]) -> None:
        subprocess.run(["git", *words], cwd=at, env=env, check=True, capture_output=True)

    git("init", "-b", "base")
    model = "import torch\n\n\ndef net(x):\n    y = x.sin()\n    return {}\n"
    (places["origin"] / "model.py").write_text(model.format("y + 1"))
    git("add", ".")
    git("commit", "-m", "before")
    git("clone", str(places["origin"]), str(places["work"]))
    after = (
        model.format("torch.sort(y)[0] + 1")
        if edit == "sorted"
        else model.format("z + 1").replace("y =", "z =")
    )
    (places["work"] / "model.py").write_text(after)
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=places["work"], env=env, capture_output=True, text=True, timeout=600
    )
    summary = (places["temp"] / "summary.md").read_text(encoding="utf-8")
    if edit == "sorted":
        assert done.returncode == 4, done.stderr
        assert "torch.sort is new" in summary and "model.py:6" in summary
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Nothing differs" in summary
