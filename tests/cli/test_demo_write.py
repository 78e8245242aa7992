"""The demo's program is written completely or not at all, and never overwrites an existing file."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

import pytest

from compile_lens import UsageError
from compile_lens.cli import commands


def test_a_write_that_fails_leaves_no_part_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot write"):
        commands.demo(argparse.Namespace(out=tmp_path / "demo"))
    assert list((tmp_path / "demo").iterdir()) == []
