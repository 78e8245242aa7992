"""The absent device that torch's C++ is given is checked, restored afterwards, and refused if it does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from compile_lens import CaptureError, ChildError, capture
from compile_lens._torch.targets import accelerator
from compile_lens._torch.targets.replacements import Replacements
from compile_lens.child import process
from compile_lens.errors import UsageError

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        torch.accelerator.is_available(), reason="beside a real device nothing is told to torch"
    ),
]


def now() -> Any:
    found = torch._C._accelerator_getAccelerator()
    return found and found.type


def state() -> Any:
    """A CUDA build without a driver has its own guard for CUDA, which torch creates again in each thread."""
    left = {accelerator.NUMBERS["cuda"]} if torch.version.cuda else set()
    return [word for n, word in enumerate(accelerator._table()) if n not in left], now()


@pytest.fixture
def table() -> Iterator[None]:
    """Checks that the test leaves the table of guards and the accelerator unchanged."""
    before = state()
    yield
    assert state() == before


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.usefixtures("table")
def test_it_is_the_accelerator_meanwhile(kind: str) -> None:
    for _ in range(2):
        with Replacements() as places, places:
            accelerator.place(places, kind)
            assert now() == kind
        assert now() == ("cuda" if torch.version.cuda else None)  # even without a driver


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.usefixtures("table")
def test_also_after_an_error(kind: str) -> None:
    with pytest.raises(KeyError), Replacements() as places, places:
        accelerator.place(places, kind)
        raise KeyError


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("_DEVICE_TYPES", 22, "other numbers"),
        ("_PRIVATE", 19, "other numbers"),
        ("_TABLE", "no_such_symbol", "no_such_symbol"),
        ("_HOOKS", {"cuda": "no_such_hooks"}, "no_such_hooks"),
        ("_SUFFIXES", (), "is not in"),
        ("_IS_BUILT", 3, "its accelerator is reported"),
    ],
)
def test_a_build_that_does_not_fit_is_refused(
    name: str, value: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "_IS_BUILT" and torch.version.cuda:
        pytest.skip("a CUDA build says by itself that it is built")
    before = state()
    with monkeypatch.context() as patch:
        patch.setattr(accelerator, name, value)
        with pytest.raises(UsageError, match=said) as raised, Replacements() as places, places:
            accelerator.place(places, "cuda")
    assert torch.__version__ in str(raised.value) and "Linux" in str(raised.value)
    assert state() == before


def test_a_child_that_ends_when_it_is_told_is_a_build_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(function: str, *args: Any, **kwargs: Any) -> Any:
        raise ChildError("the child process ended by signal 11", -11)

    x = torch.rand(4)
    with monkeypatch.context() as patch:
        patch.setattr(process, "call", dies)
        with pytest.raises(UsageError, match=r"cannot be given a stand-in for cuda .*signal 11"):
            capture(torch.sin, x, target="h100")


@pytest.mark.full
def test_metal_has_no_float64() -> None:
    with pytest.raises(UsageError, match="argument 0 is float64, and Metal has no float64"):
        capture(torch.sin, torch.rand(4, dtype=torch.float64), target="mps")
    with pytest.raises(UsageError, match=r"weight is complex128, .* Pass it as complex64"):
        capture(torch.nn.Linear(4, 4, dtype=torch.complex128), torch.rand(4), target="mps")

    def inside(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(4, dtype=torch.float64, device=x.device)

    with pytest.raises(CaptureError, match="Metal has no float64: compute in float32"):
        capture(inside, torch.rand(4), target="mps")
    assert capture(torch.sin, torch.rand(4, dtype=torch.float64), target="h100").failure is None
