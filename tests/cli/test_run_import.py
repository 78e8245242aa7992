"""``compile-lens run`` on a program that compiled nothing reports how far the import of Dynamo came."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from compile_lens.cli.run import without_compile
from compile_lens.cli.script import script

HALFWAY = """
import sys
from compile_lens.cli.run import without_compile
from compile_lens.cli.script import script
sys.modules["torch._dynamo"] = sys.modules[__name__]
(told,) = without_compile(script({path!r}, [])).notes
"""


def test_a_program_that_ended_in_the_import_of_dynamo_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.py"
    path.write_text("pass")
    (tmp_path / "halfway.py").write_text(HALFWAY.format(path=str(path)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch._dynamo", sys)
    halfway = importlib.import_module("halfway")
    monkeypatch.delitem(sys.modules, "halfway")
    assert "ended while it imported torch._dynamo" in halfway.told, "it is not done yet"
    (note,) = without_compile(script(str(path), [])).notes
    assert "sys.meta_path" in note, "it is done, and was not watched"
