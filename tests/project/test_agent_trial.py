"""The programs of the trial with coding agents: each misses its limits, and its solution meets them."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRIAL = ROOT / "benchmarks" / "agents"
NAMES = sorted(file.stem for file in (TRIAL / "tasks").glob("*.py"))


def trial(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TRIAL / "trial.py"), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)


def test_each_program_has_a_solution_and_the_page_counts_them() -> None:
    assert NAMES == sorted(file.stem for file in (TRIAL / "solutions").glob("*.py"))
    assert len(NAMES) == 30
    assert "Thirty programs" in (TRIAL / "README.md").read_text(encoding="utf-8")


def text(kind: str, name: str) -> str:
    return (TRIAL / kind / f"{name}.py").read_text(encoding="utf-8")


ABSENT = [name for name in NAMES if re.search(r"^TARGET = ", text("tasks", name), re.M)]
LARGE = [name for name in NAMES if len(text("tasks", name).splitlines()) > 150 or name in ABSENT]


def test_a_program_of_an_absent_device_limits_what_that_device_does() -> None:
    assert len(ABSENT) == 12
    assert all(
        re.search(r'^LIMITS = .*"device_launches": .*"device_bytes": ', text("tasks", one), re.M)
        for one in ABSENT
    )
    shim = (TRIAL / "absent_device.py").read_text(encoding="utf-8")
    assert not re.search(r"^\s*(?:from|import) compile_lens", shim, re.M)


def test_a_large_program_has_several_causes_and_a_row_on_the_page() -> None:
    page = (TRIAL / "README.md").read_text(encoding="utf-8")
    rows = {name: int(count) for name, count in re.findall(r"^\| `(\w+)` \| (\d) \|", page, re.M)}
    named = {name: len(set(re.findall(r"# Cause (\d+)", text("solutions", name)))) for name in LARGE}
    assert rows == named and all(count >= 3 for count in named.values())
    assert not any("Cause" in text("tasks", name) for name in NAMES)


@pytest.mark.torch
def test_a_cause_put_back_is_the_programs_own_text() -> None:
    spec = importlib.util.spec_from_file_location("trial", TRIAL / "trial.py")
    assert spec is not None and spec.loader is not None
    trial_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(trial_module)
    for name in LARGE:
        solution, every = text("solutions", name), trial_module.causes(name)
        assert len(every) == len(set(re.findall(r"# Cause (\d+)", solution)))
        for number, source in every.items():
            ast.parse(source)
            missing = set(re.findall(r"# Cause (\d+)", solution)) - set(re.findall(r"# Cause (\d+)", source))
            assert missing == {str(number)}
            assert set(source.splitlines()) <= {*text("tasks", name).splitlines(), *solution.splitlines()}


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_keeps_the_calls(name: str) -> None:
    calls = [
        re.search(r"^def calls\(.*?(?=^def |^class |\Z)", file.read_text(encoding="utf-8"), re.M | re.S)
        for file in (TRIAL / "tasks" / f"{name}.py", TRIAL / "solutions" / f"{name}.py")
    ]
    assert calls[0] and calls[1] and calls[0][0] == calls[1][0]


@pytest.mark.exhaustive
@pytest.mark.torch
def test_a_folder_holds_the_program_and_its_task_alone(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    assert trial("prepare", "clip_by_quantile", str(folder)).returncode == 0
    assert sorted(file.name for file in folder.iterdir()) == ["TASK.md", "program.py"]
    task = (folder / "TASK.md").read_text(encoding="utf-8")
    assert "at most 0 graph breaks" in task and "at most 1 graphs" in task
    untouched = json.loads(trial("check", "clip_by_quantile", str(folder)).stdout)
    assert not untouched["solved"] and untouched["breaks"] > 0
    program = folder / "program.py"
    evaded = program.read_text(encoding="utf-8").replace(
        "    def forward", "    @torch.compiler.disable\n    def forward"
    )
    program.write_text(evaded, encoding="utf-8")
    assert "compiler.disable" in json.loads(trial("check", "clip_by_quantile", str(folder)).stdout)["why"]


@pytest.mark.torch
@pytest.mark.full
def test_a_library_call_of_an_absent_device_is_counted(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import sys, torch\n"
        f"sys.path.insert(0, {str(TRIAL)!r})\n"
        "import absent_device\n"
        "rows = {\n"
        "    'h100 topk': ('h100', lambda x: x.topk(2, -1).values * 2),\n"
        "    'h100 sort': ('h100', lambda x: x.sort(-1).values * 2),\n"
        "    'h100 sum': ('h100', lambda x: x.sum()),\n"
        "    'mps sum': ('mps', lambda x: x.sum(-1)),\n"
        "    'mps sort': ('mps', lambda x: x.sort(-1).values * 2),\n"
        "}\n"
        "for name, (device, function) in rows.items():\n"
        "    codes, moves = absent_device.generated(function, [(torch.rand(2048, 64),)], device)\n"
        "    print(name, sum(len(absent_device.launches(code)) for code in codes), moves)\n"
        "assert 'compile_lens' not in sys.modules and not torch.cuda.is_available()\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    counts = {
        " ".join(words[:2]): (int(words[2]), int(words[3]))
        for words in map(str.split, done.stdout.splitlines())
    }
    elements = 2048 * 64
    assert counts["h100 topk"][0] == 2  # a library call, and a kernel
    assert counts["h100 sort"] == (1, 2 * 4 * elements)  # one kernel reads and writes each element
    assert counts["h100 sum"][0] == 2  # split, as a GPU has many cores
    assert counts["mps sum"] == (1, 4 * elements + 4 * 2048)
    assert counts["mps sort"][0] == 2  # a library call there


@pytest.mark.torch
@pytest.mark.full
def test_a_program_may_not_ask_for_its_device(tmp_path: Path) -> None:
    folder = tmp_path / "tides"
    assert trial("prepare", "tides", str(folder)).returncode == 0
    assert "NVIDIA H100" in (folder / "TASK.md").read_text(encoding="utf-8")
    program = folder / "program.py"
    program.write_text(
        program.read_text(encoding="utf-8") + "\n\nBRANCH = torch.zeros(()).is_cuda\n", encoding="utf-8"
    )
    assert "is_cuda" in json.loads(trial("check", "tides", str(folder)).stdout)["why"]


@pytest.mark.torch
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_program_misses_its_limits_and_its_solution_keeps_them(name: str) -> None:
    done = trial("self-check", name)
    assert done.returncode == 0, done.stdout + done.stderr
