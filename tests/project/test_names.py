"""The package's names are loaded on first use, and a failure then reports its own cause."""

from __future__ import annotations

import importlib

import pytest

import compile_lens


@pytest.mark.parametrize(
    ("missing", "message"),
    [("torch", r"compile_lens\.capture runs torch, which is not installed here"), ("numpy", "^no numpy$")],
)
def test_a_module_that_is_missing(missing: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise ModuleNotFoundError(f"no {missing}", name=missing)

    monkeypatch.setitem(vars(compile_lens), "capture", None)
    monkeypatch.delitem(vars(compile_lens), "capture")
    monkeypatch.setattr(importlib, "import_module", fails)
    with pytest.raises(ModuleNotFoundError, match=message):
        _ = compile_lens.capture
