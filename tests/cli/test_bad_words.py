"""Impossible paths, unreadable files and invalid limits give a sentence and exit code 2."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from compile_lens import UsageError, import_trace
from compile_lens.cli import main

NAME = "a" * 300
"""A name longer than any file system allows."""


@pytest.mark.parametrize(
    "words",
    [
        ("show", f"{NAME}.py:f"),
        ("import", f"{NAME}.log"),
        ("merge", NAME, f"{NAME}.json"),
        ("open", f"{NAME}.json"),
        ("diff", f"{NAME}.json", "b.json"),
        ("check", f"{NAME}.py"),
        ("play", f"{NAME}.py"),
        ("run", f"{NAME}.py"),
        ("skill", "--write", NAME),
    ],
    ids=lambda words: words[0],
)
def test_a_name_that_is_too_long_is_a_usage_error(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main([*words]) == 2
    shown = capsys.readouterr()
    assert "a" * 200 in shown.err and "Traceback" not in shown.err and "[Errno" not in shown.err
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(
    not os.path.exists("/proc/self/mem"), reason="needs a file that exists and cannot be read"
)
def test_a_log_that_cannot_be_read_says_why() -> None:
    with pytest.raises(UsageError, match=r"'/proc/self/mem' cannot be read: Input/output error$"):
        import_trace("/proc/self/mem")


@pytest.mark.parametrize("word", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize(
    "words",
    [("mcp", "--seconds"), ("mcp", "--memory"), ("play", "--seconds"), ("run", "--time-limit")],
    ids=" ".join,
)
def test_a_limit_that_is_none_is_a_usage_error(
    words: tuple[str, str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], f"{words[1]}={word}"]) == 2
    assert f"argument {words[1]}: {word!r} is not a number above 0" in capsys.readouterr().err
