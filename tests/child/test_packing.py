"""A request contains everything that can be sent, in its current state, and is loaded as the child loads it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reached_parts as parts
import reached_programs as programs
import reached_unsent as unsent
import torch

from compile_lens.child import context, pickling, placement, worker

pytestmark = pytest.mark.torch


def sent(value: Any) -> set[str]:
    return {piece.where for part in pickling.pack(value).parts for piece in part}


def test_what_cannot_be_sent_takes_nothing_else_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """``c_after`` has an object that was already in the parcel when ``b_broken`` failed."""
    parcel = pickling.pack(unsent.asks)
    names = [name for name in vars(unsent) if name[1:2] == "_" and name[0].isalpha()]
    assert [piece.where for piece in parcel.left] == ["reached_unsent.b_broken", "reached_unsent.d_lock"]
    for name in names:
        monkeypatch.setattr(unsent, name, None)
    placement.begin()
    try:
        first, broken, after, lock, last = worker._unpack(parcel.data, [])()
    finally:
        placement.restore()
    assert (broken, lock) == (None, None)
    assert after[0] is after[1] and after[0].values == [1, 2, 3]
    assert first.tolist() == [1.0] * 3 and last.tolist() == [0.0] * 2
    assert all(getattr(unsent, name) is None for name in names)


CHANGES: dict[str, tuple[Callable[..., Any], Callable[[pytest.MonkeyPatch], object]]] = {
    "a global": (programs.tensor, lambda p: p.setattr(parts, "weight", torch.full((8,), 3.0))),
    "a weight in place": (programs.weights, lambda p: parts.tied.inner.weight.data.add_(1)),
    "eval": (programs.direct, lambda p: p.setattr(parts.net, "training", False)),
    "a function": (programs.function, lambda p: p.setattr(parts, "step", lambda x: x.tanh())),
    "what is closed over": (
        programs.closure,
        lambda p: p.setattr((parts.closed.__closure__ or ())[0], "cell_contents", torch.zeros(8)),
    ),
    "an attribute of a class": (programs.of_a_class, lambda p: p.setattr(parts.Choice, "act", "sin")),
    "a function of torch": (
        programs.of_torch,
        lambda p: p.setattr(torch.nn.functional, "gelu", lambda x: x.sin()),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_of_an_earlier_request_is_sent(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, changes = CHANGES[change]
    before = pickling.pack(fn).data
    assert pickling.pack(fn).data == before
    weights = parts.tied.inner.weight.detach().clone()
    with monkeypatch.context() as patch:
        changes(patch)
        assert pickling.pack(fn).data != before
    with torch.no_grad():
        parts.tied.inner.weight.copy_(weights)
    assert pickling.pack(fn).data == before


def test_what_is_put_into_torch_is_seen_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch.nn.functional.silu"
    assert name not in sent(programs.tensor)
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "silu", parts.step)
        assert name in sent(programs.tensor)
        patch.setattr(torch.nn.functional, "silu", parts.closed)
        assert name in sent(programs.tensor)
    assert name not in sent(programs.tensor)


@pytest.mark.full
def test_what_is_installed_elsewhere_is_not_the_programs(tmp_path: Path) -> None:
    """User and system packages, and folders in PYTHONPATH, are skipped: a search through all took half a minute."""
    for place in ("site-packages", "dist-packages", "mine"):
        (tmp_path / place).mkdir()
        (tmp_path / place / f"of_{place[:4]}.py").write_text("", encoding="utf-8")
    code = (
        "import sys; sys.path += sys.argv[1:]; import of_site, of_dist, of_mine; "
        "from compile_lens.child import context; print(*context.own_modules())"
    )
    folders = [str(folder) for folder in sorted(tmp_path.iterdir())]
    ran = subprocess.run([sys.executable, "-c", code, *folders], capture_output=True, text=True, check=True)
    assert [name for name in ran.stdout.split() if name.startswith("of_")] == ["of_mine"]


def test_a_module_of_the_program_may_take_the_name_of_an_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cloudpickle" in sys.modules and "cloudpickle" not in context.own_modules()
    file = tmp_path / "cloudpickle.py"
    file.write_text("", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("cloudpickle", file)
    assert spec is not None
    monkeypatch.setitem(sys.modules, "cloudpickle", importlib.util.module_from_spec(spec))
    assert "cloudpickle" in context.own_modules()
    monkeypatch.undo()
    assert "cloudpickle" not in context.own_modules()
