"""The tools answer within their budget, for every request and every program."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import odd_programs
import pytest

from compile_lens.cli.agents.job import Limits
from compile_lens.cli.agents.tools import MAX_RECORDS, Tools

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(odd_programs.__file__, folder / "odd.py")
    return folder


@pytest.fixture(scope="module")
def tools(folder: Path) -> Iterator[Tools]:
    tools = Tools(folder, Limits(seconds=200))
    yield tools
    tools.close()


@pytest.fixture(scope="module")
def answer(tools: Tools) -> str:
    return tools.capture("odd.py:fine", ["torch.rand(64, requires_grad=True)"])


def size(text: str) -> int:
    return -(-len(text.encode()) // 3)


def name(answer: str) -> str:
    match = re.search(r"^(\w\d+) ·", answer)
    assert match, answer
    return match[1]


@pytest.mark.full
def test_a_capture_says_what_happened_and_what_to_ask_next(tools: Tools, answer: str) -> None:
    assert size(answer) <= 2000 and "1 graph" in answer and "2 kernels" in answer
    record = name(answer)
    for text in (
        tools.cost(record, "kernel"),
        tools.why(record),
        tools.memory(record),
        tools.chain(record, "sin@odd.py:10"),
    ):
        assert size(text) <= 2000 and "FACTS" in text and "cannot be answered" not in text
    assert "cpp_fused" in tools.chain(record, "odd.py:10")
    assert size(tools.chain(record, "odd.py:10", max_tokens=300)) <= 300
    assert record in tools.records and '"kind"' in tools.text_of(record) and "<html" in tools.page_of(record)


@pytest.mark.full
def test_what_is_in_one_loop_is_not_called_separate(tools: Tools, answer: str) -> None:
    text = tools.why(name(answer), "sin@odd.py:10", "cos@odd.py:10", phase="forward")
    assert (
        "sin@odd.py:10 and cos@odd.py:10: inlined" in " ".join(text.split()) and "not one kernel" not in text
    )


@pytest.mark.exhaustive
def test_two_states_of_a_file_differ_by_what_was_edited(tools: Tools, answer: str, folder: Path) -> None:
    (folder / "edited.py").write_text((folder / "odd.py").read_text())
    before = name(tools.capture("edited.py:fine", ["torch.rand(64)"]))
    text = (folder / "edited.py").read_text().replace("torch.cos(x) ** 2", "torch.sort(x)[0]")
    (folder / "edited.py").write_text(text)
    after = name(tools.capture("edited.py:fine", ["torch.rand(64)"]))
    assert "sort" in tools.diff(before, after)


@pytest.mark.exhaustive
def test_a_test_that_was_written_passes_and_is_not_overwritten(
    tools: Tools, answer: str, folder: Path
) -> None:
    record = name(answer)
    assert "Wrote test_fine.py" in tools.hold(record, "test_fine.py")
    again = tools.hold(record, "test_fine.py")
    assert "was not written" in again and "overwrite='test_fine.py'" in again
    assert "Wrote" in tools.hold(record, "test_fine.py", overwrite="test_fine.py")
    for path in ("../test_out.py", "/tmp/test_out.py", "no/folder.py", "test_fine.txt"):
        assert "cannot be answered" in tools.hold(record, path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "test_fine.py")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout
    text = (folder / "odd.py").read_text()
    (folder / "odd.py").write_text(text.replace("torch.cos(x) ** 2", "torch.sort(x)[0]"))
    try:
        failed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    finally:
        (folder / "odd.py").write_text(text)
    assert failed.returncode == 1 and "ExpectationError" in failed.stdout


@pytest.mark.exhaustive
def test_values_and_settings_are_answered_too(tools: Tools) -> None:
    assert "Both are equally good" in tools.divergence("odd.py:fine", ["torch.rand(64)"])
    tried = tools.what_if("odd.py:fine", ["torch.rand(64)"], switches=["split_reductions"])
    assert "1 setting tried" in tried and "split_reductions" in tried


@pytest.mark.exhaustive
def test_a_script_that_breaks_is_explained(tools: Tools, folder: Path) -> None:
    (folder / "script.py").write_text(
        "import torch, odd\ntorch.compile(odd.broken, backend='eager')(torch.ones(3))\nraise SystemExit(5)\n"
    )
    text = tools.run("script.py")
    assert "graph break" in text and "exit code 5" in text and "odd.py:14" in text
    assert "a capture" in tools.why(name(text))


@pytest.mark.full
def test_what_a_program_raises_stays_data(tools: Tools) -> None:
    text = tools.capture("odd.py:injects", ["torch.rand(3)"])
    headings = [line for line in text.split("\n") if re.match(r"[A-Z]{4}", line)]
    assert headings == list(dict.fromkeys(headings)) and not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    assert sum(line.startswith("F1") for line in text.split("\n")) == 1


def test_a_call_that_cannot_be_answered_is_an_answer(tools: Tools) -> None:
    for text in (
        tools.why("c99"),
        tools.chain("c99", "x" * 10_000_000),
        tools.capture("../odd.py:fine"),
        tools.capture("odd.py:fine", ["\x00"]),
        tools.capture("odd.py:fine", backward="maybe"),
        tools.run(),
        tools.cost("c1", offset=-1),
        tools.run("../x.py"),
        tools.why("c99", max_tokens=7),
        tools.hold("../../c", "x.py"),
    ):
        assert "cannot be answered" in text and size(text) <= 2000


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder"):
        Tools(tmp_path / "none")


@pytest.mark.full
def test_only_so_many_records_are_kept(tools: Tools, answer: str) -> None:
    record = tools.records[name(answer)]
    other = Tools(tools.folder)
    for number in range(MAX_RECORDS + 3):
        other._keep(f"c{number}", record)
    assert len(other.records) == MAX_RECORDS and "c0" not in other.records
    other.close()
