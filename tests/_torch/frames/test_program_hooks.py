"""Hooks of a program on its tensors and modules run for the program's own call, as often as in eager PyTorch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from running import run
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import capture
from compile_lens.versions import torch_version

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

hooks = torch.autograd.graph.saved_tensors_hooks


def wave(x: Any) -> Any:
    return (torch.sin(x) * torch.cos(x)).exp()


def leaf() -> torch.Tensor:
    return torch.linspace(0, 1, 8, requires_grad=True)


class Seen:
    """Counts the calls of a hook; tensors without data are counted separately."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def note(self, what: str, *tensors: Any) -> None:
        stand_ins = any(isinstance(t, FakeTensor) or getattr(t, "is_meta", False) for t in tensors)
        self.calls[f"{what}, no data" if stand_ins else what] += 1

    def pair(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        def pack(x: Any) -> Any:
            self.note("pack", x)
            return x

        def unpack(x: Any) -> Any:
            self.note("unpack", x)
            return x

        return pack, unpack


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def test_hooks_for_saved_tensors_around_a_capture() -> None:
    eager, captured, forward_only, trained = Seen(), Seen(), Seen(), Seen()
    with hooks(*eager.pair()):
        wave(leaf()).sum().backward()
    with hooks(*captured.pair()):
        capture(wave, leaf())
    with hooks(*forward_only.pair()):
        capture(wave, leaf(), backward=False)
    with hooks(*trained.pair()):
        run(wave, leaf())[1].sum().backward()
    assert eager.calls == trained.calls
    assert set(eager.calls) == {"pack", "unpack"}
    # The caller adds the sum; without a backward nothing is unpacked.
    with hooks(*(alone := Seen()).pair()):
        wave(leaf())
    assert captured.calls == forward_only.calls == alone.calls == {"pack": alone.calls["pack"]}


def test_hooks_for_saved_tensors_in_the_function() -> None:
    def function(seen: Seen) -> Callable[[Any], Any]:
        def inside(x: Any) -> Any:
            with hooks(*seen.pair()):
                y = torch.sin(x) * torch.cos(x)
            return y.exp()

        return inside

    eager, captured = Seen(), Seen()
    function(eager)(leaf()).sum().backward()
    run(function(captured), leaf())[1].sum().backward()
    assert captured.calls == eager.calls


def test_offloading_saved_tensors() -> None:
    """Torch's own pair of hooks needs tensors with data to pack."""
    x, y = leaf(), leaf()
    with torch.autograd.graph.save_on_cpu():
        run(wave, x)[1].sum().backward()
    wave(y).sum().backward()
    assert torch.equal(x.grad, y.grad)


def test_default_hooks_are_there_again() -> None:
    seen = Seen()
    with hooks(*seen.pair()):
        capture(wave, leaf())
        seen.calls.clear()
        leaf().sin()
        assert seen.calls == {"pack": 1}


def test_a_dispatch_mode() -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.note(str(func), *args)
            return func(*args, **(kwargs or {}))

    found = []
    for call in (wave, lambda x: capture(wave, x)):
        seen, x = Seen(), leaf()
        with Mode():
            call(x)
        found.append(seen.calls)
    assert found[0] == found[1]


@pytest.mark.skipif(
    torch_version() < (2, 13),
    reason="torch 2.11 itself calls __torch_function__ of the program while it compiles",
)
def test_a_function_mode() -> None:
    """Torch's own compiler reads attributes of tensors under such a mode; the capture adds no other call."""

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.note(getattr(func, "__name__", str(func)), *args)
            return func(*args, **(kwargs or {}))

    found = []
    for call in (lambda x: torch.compile(wave, backend="aot_eager")(x), lambda x: capture(wave, x)):
        seen, x = Seen(), leaf()
        with Mode():
            call(x)
        found.append(seen.calls)
        torch._dynamo.reset()
    assert {k: v for k, v in found[1].items() if k != "__get__"} == found[0]
    assert found[1]["__get__"] <= 3  # from Dynamo


def test_hooks_of_tensors() -> None:
    def hooked(seen: Seen) -> torch.Tensor:
        x = leaf()
        x.register_hook(lambda g: seen.note("gradient", g))
        x.register_post_accumulate_grad_hook(lambda p: seen.note("accumulated", p))
        return x

    def between(seen: Seen) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            y = torch.sin(x)
            y.register_hook(lambda g: seen.note("between", g))
            return y * 2

        return function

    eager, captured, quiet = Seen(), Seen(), Seen()
    between(eager)(hooked(eager)).sum().backward()
    run(between(captured), hooked(captured))[1].sum().backward()
    assert captured.calls == eager.calls == {"gradient": 1, "accumulated": 1, "between": 1}
    capture(between(quiet), hooked(quiet))
    assert quiet.calls == {}


def test_hooks_of_modules() -> None:
    seen = Seen()
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    net.register_forward_pre_hook(lambda m, a: seen.note("before", *a))
    net[0].register_forward_hook(lambda m, a, out: seen.note("after", out))
    net.register_full_backward_hook(lambda m, a, out: seen.note("backward", *out))
    x = torch.rand(2, 8)
    net(x).sum().backward()
    eager = Counter(seen.calls)
    seen.calls.clear()
    run(net, x)[1].sum().backward()
    assert seen.calls == eager == {"before": 1, "after": 1, "backward": 1}


def test_anomalies_are_not_looked_for_in_what_has_no_data(recwarn: pytest.WarningsRecorder) -> None:
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        record = capture(wave, leaf())
        assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    assert record.compilations[0].eager is not None, record.compilations[0].eager_note
    assert not [w for w in recwarn if "Error detected" in str(w.message)]


@pytest.mark.skipif(
    torch_version() < (2, 13),
    reason="torch 2.11 itself calls __torch_function__ of the program while it compiles",
)
def test_a_subclass() -> None:
    """Torch reads attributes of the subclass when it compiles; the capture adds no call of its own."""
    callers = []

    class Counted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            callers.append((sys._getframe(1).f_code.co_filename, getattr(func, "__name__", str(func))))
            return super().__torch_function__(func, types, args, kwargs or {})

    capture(lambda t: torch.sin(t) * 2, torch.rand(8).as_subclass(Counted))
    called = [name for _, name in callers]
    assert called.count("sin") == called.count("mul") == 1
    assert {name for file, name in callers if "compile_lens" in file and file != __file__} == set()
