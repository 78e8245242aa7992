"""The playground starts a child if none is alive, and never starts two."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compile_lens.api.playground import capture_process
from compile_lens.api.playground.capture_process import CaptureProcess, Limits
from compile_lens.errors import ChildError


def test_one_child_until_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    def child(*_: Any, **__: Any) -> Any:
        started.append(SimpleNamespace(alive=True, new=True, close=lambda: None, end=lambda: None))
        return started[-1]

    monkeypatch.setattr(capture_process, "Child", child)
    process = CaptureProcess(tmp_path / "play", Limits())
    assert not process.ready
    process.start()
    process.start()
    assert len(started) == 1 and not process.ready, "it has not answered yet"
    started[0].new = False
    assert process.ready
    started[0].alive = False
    assert not process.ready
    process.start()
    assert len(started) == 2
    process.close()
    started[1].alive = False
    with pytest.raises(ChildError, match="the playground is shutting down"):
        process.start()
