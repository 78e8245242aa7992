"""The action for pull requests, and the page's workflow that uses it, run step by step as a runner does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from markdown_pages import blocks

from compile_lens import versions

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(blocks(PAGE, "yaml")[0])
OWN = f"{versions.REPOSITORY.removeprefix('https://github.com/')}@v{versions.__version__}"


@dataclass
class Runner:
    """State of a runner: contexts by their names, and the environment of its steps."""

    folder: Path
    environment: dict[str, str]
    context: dict[str, str] = field(default_factory=dict)
    failed: bool = False
    output: str = ""

    def value(self, text: str) -> str:
        """Return a text with its expressions replaced. An unknown one is an error."""
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: self.context[match[1]], text)

    def runs(self, condition: str) -> bool:
        always = "always()" in condition
        terms = [term for term in condition.split(" && ") if term not in ("", "always()")]
        pairs = [re.fullmatch(r"([\w.-]+) == '(\w+)'", term) for term in terms]
        return (always or not self.failed) and all(self.context[pair[1]] == pair[2] for pair in pairs if pair)

    def action(self, given: dict[str, str]) -> None:
        for name, one in ACTION["inputs"].items():
            assert name in given or not one.get("required")
            self.context[f"inputs.{name}"] = str(given.get(name, self.value(one.get("default", ""))))
        assert set(given) <= set(ACTION["inputs"])
        for step in ACTION["runs"]["steps"]:
            if "run" in step and self.runs(step.get("if", "")):
                self.step(step)

    def step(self, step: dict[str, Any]) -> None:
        outputs = self.folder / "outputs"
        outputs.write_text("")
        environment = {name: self.value(text) for name, text in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / "work",
            env={**self.environment, "GITHUB_OUTPUT": str(outputs), **environment},
            capture_output=True,
            text=True,
            timeout=600,
        )
        self.output += done.stdout + done.stderr
        self.failed = self.failed or done.returncode != 0
        for line in outputs.read_text().splitlines():
            name, _, value = line.partition("=")
            self.context[f"steps.{step['id']}.outputs.{name}"] = value


MODEL = "import torch\n\n\ndef net(x):\n    y = x.sin()\n    return {}\n"


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner with a repository, whose base has a function ``net``, and commands that record their calls."""
    if shutil.which("git") is None or shutil.which("bash") is None:
        pytest.skip("git and bash are not both installed")
    places = {name: tmp_path / name for name in ("origin", "temp", "bin")}
    for place in places.values():
        place.mkdir()
    commands = {
        "compile-lens": f'exec "{sys.executable}" -m compile_lens "$@"',
        "python": f'echo "$@" >> {tmp_path / "installed"}',
        "gh": f'echo "$@" >> {tmp_path / "posted"}; cat "${{@: -1}}" >> {tmp_path / "posted"}',
    }
    for name, text in commands.items():
        (places["bin"] / name).write_text(f"#!/bin/bash\n{text}\n")
        (places["bin"] / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{places['bin']}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(places["temp"]),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=places["origin"], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-b", "main")
    (places["origin"] / "model.py").write_text(MODEL.format("y + 1"))
    git("add", ".")
    git("commit", "-m", "before")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    base = git("rev-parse", "HEAD")
    (places["origin"] / "other.txt").write_text("a second commit, so that the base is not in a shallow clone")
    git("add", ".")
    git("commit", "-m", "after")
    git("clone", "--depth=1", f"file://{places['origin']}", str(tmp_path / "work"))
    context = {
        "github.action_path": str(ROOT),
        "github.token": "a token",
        "github.event.pull_request.base.sha": base,
        "github.event.pull_request.number": "7",
        "runner.temp": str(places["temp"]),
    }
    return Runner(tmp_path, environment, context)


def test_the_page_uses_this_action_as_it_is() -> None:
    steps = WORKFLOW["jobs"]["code"]["steps"]
    (own,) = [step for step in steps if not step["uses"].startswith("actions/")]
    assert own["uses"] == OWN and set(own["with"]) <= set(ACTION["inputs"])
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'Repository = "{versions.REPOSITORY}"' in project


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.parametrize("edit", ["sorted", "renamed", "new"])
@pytest.mark.cases(full=1)
def test_the_workflow_of_the_page_in_a_fresh_repository(runner: Runner, edit: str) -> None:
    pytest.importorskip("torch")
    texts = {
        "sorted": MODEL.format("torch.sort(y)[0] + 1"),
        "renamed": MODEL.format("z + 1").replace("y =", "z ="),
        "new": MODEL.format("y + 1").replace("net", "other"),
    }
    (runner.folder / "work" / "model.py").write_text(texts[edit])
    given = dict(WORKFLOW["jobs"]["code"]["steps"][-1]["with"])
    if edit == "new":
        given["function"] = "model.py:other"
    runner.action(given)
    summary = (runner.folder / "summary.md").read_text(encoding="utf-8")
    assert (runner.folder / "installed").read_text() == f"-m pip install --quiet {ROOT}\n"
    assert runner.failed == (edit == "sorted"), runner.output
    posted = (runner.folder / "posted").read_text(encoding="utf-8").splitlines()
    assert posted[0].startswith("pr comment 7 --body-file") and len(posted) <= 31
    assert (runner.folder / "temp" / "compile-lens" / "diff.html").exists() == (edit != "new")
    expected = {"sorted": "torch.sort is new", "renamed": "Nothing differs", "new": "could not be captured"}[
        edit
    ]
    assert expected in summary and expected in "\n".join(posted)
    assert not (runner.folder / "temp" / "compile-lens" / "base").exists()


@pytest.mark.exhaustive
@pytest.mark.torch
def test_without_a_comment_and_for_a_target(runner: Runner) -> None:
    pytest.importorskip("torch")
    (runner.folder / "work" / "model.py").write_text(MODEL.format("torch.sort(y)[0] + 1"))
    runner.action({"function": "model.py:net", "inputs": "torch.rand(8)\n", "target": "h100", "fail-on": ""})
    assert not runner.failed, runner.output
    assert not (runner.folder / "posted").exists()
    assert "torch.sort is new" in (runner.folder / "summary.md").read_text(encoding="utf-8")
