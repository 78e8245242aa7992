"""Modules that a child process imports come from the caller's files, with their plain global values."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from compile_lens.child.imports import CallerFinder


def test_a_module_has_the_caller_s_file_and_globals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, rate in (("first", 1), ("caller", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rates_of_a_test.py").write_text(
            f"rate = {rate}\nname = 'as written'\n", "utf-8"
        )
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    monkeypatch.setattr(sys, "meta_path", [CallerFinder, *sys.meta_path])
    monkeypatch.setattr(
        CallerFinder, "files", {"rates_of_a_test": str(tmp_path / "caller" / "rates_of_a_test.py")}
    )
    monkeypatch.setattr(
        CallerFinder, "values", {"rates_of_a_test": {"name": "as changed"}, "no_such_module": {"a": 1}}
    )
    try:
        module = importlib.import_module("rates_of_a_test")
        assert (module.rate, module.name) == (2, "as changed")
    finally:
        sys.modules.pop("rates_of_a_test", None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module")
