"""Every job has an outcome, however it ends, and leaves no process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import odd_programs
import pytest

from compile_lens.cli.agents.job import MARK, Job, Limits, Outcome
from compile_lens.record.files import holds_program

pytestmark = [pytest.mark.torch, pytest.mark.full]

FOLDER = Path(odd_programs.__file__).parent


def shown(name: str, result: Path, limits: Limits) -> Outcome:
    words = ["show", f"odd_programs.py:{name}", "--input=torch.rand(8)", f"--out={result}", "--quiet"]
    return Job(words, FOLDER, limits).wait()


def marked() -> list[int]:
    """Return running processes of any job, as listed by the system."""
    pids = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}=".encode() in environ.read_bytes():
                pids.append(int(environ.parent.name))
        except OSError:
            continue
    return pids


@pytest.mark.exhaustive
def test_a_job_that_works_leaves_its_result(tmp_path: Path) -> None:
    outcome = shown("fine", tmp_path / "r.json", Limits())
    assert (outcome.code, outcome.limit) == (0, "")
    assert not holds_program(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("name", "limits", "code", "limit"),
    [
        ("hangs", Limits(seconds=5), None, "time"),
        ("prints_without_end", Limits(output=1 << 20), None, "output"),
        ("exits", Limits(), 7, ""),
        ("crashes", Limits(), -11, ""),
    ],
)
@pytest.mark.cases(full=2)
def test_a_job_that_ends_otherwise_has_an_outcome(
    tmp_path: Path, name: str, limits: Limits, code: int | None, limit: str
) -> None:
    outcome = shown(name, tmp_path / "r.json", limits)
    assert (outcome.code, outcome.limit) == (code, limit)
    assert not (tmp_path / "r.json").exists() and len(outcome.stdout) <= 4000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not refuse memory by a limit")
@pytest.mark.exhaustive
def test_memory_beyond_the_limit_is_refused_and_the_record_says_so(tmp_path: Path) -> None:
    outcome = shown("allocates", tmp_path / "r.json", Limits(memory=6 << 30))
    assert outcome.code == 1 and "10737418240 bytes" in outcome.stderr
    assert (tmp_path / "r.json").exists()


@pytest.mark.exhaustive
def test_standard_input_is_at_its_end(tmp_path: Path) -> None:
    outcome = shown("asks", tmp_path / "r.json", Limits())
    assert outcome.code == 1 and "EOF" in outcome.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="the system does not show environments")
@pytest.mark.exhaustive
def test_processes_that_a_job_forked_end_with_it(tmp_path: Path) -> None:
    assert shown("forks", tmp_path / "r.json", Limits()).limit == ""
    deadline = time.monotonic() + 20  # a process that was killed may still be ending
    while marked() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked() == []
