"""Process-wide state of a program affects a capture for a target, or is reported as having no effect."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy
import pytest
import torch
import torch._inductor.config
from full_text import full
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import Capture, CaptureError, capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def by_python(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if random.random() < 0.5 else x.cos()


def by_numpy(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if numpy.random.rand() < 0.5 else x.cos()


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def plain(fn: Callable[..., Any], *args: Any) -> list[str]:
    """The operators that plain torch hands to a backend, one graph after another."""
    seen: list[str] = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.extend(str(n.target) for n in gm.graph.nodes if n.op == "call_method")
        return gm.forward

    torch._dynamo.reset()
    torch.compile(fn, backend=backend)(*args)
    return [name for name in seen if name in ("sin", "cos")]


def told(found: Capture) -> list[tuple[str, int]]:
    assert found.target is not None
    return [(one.query, one.frame.line) for one in found.target.queries if one.kind == "not transferred"]


@pytest.mark.parametrize("fn", [by_python, by_numpy])
@pytest.mark.cases(full=1)
def test_a_branch_by_dice_is_that_of_the_program(fn: Callable[..., Any]) -> None:
    taken = set()
    for seed in range(6):
        random.seed(seed), numpy.random.seed(seed)
        states = random.getstate(), numpy.random.get_state()
        (wanted,) = plain(fn, torch.ones(8))
        random.setstate(states[0]), numpy.random.set_state(states[1])
        found = capture(fn, torch.ones(8), target="h100")
        names = {str(n.target) for c in found.compilations for g in c.graphs.values() for n in g.nodes}
        assert {n for n in ("sin", "cos") if any(n in name for name in names)} == {wanted}, seed
        assert random.getstate() == states[0]
        taken.add(wanted)
    assert taken == {"sin", "cos"}


def test_a_stance_is_that_of_the_program() -> None:
    with torch.compiler.set_stance("force_eager"):
        assert plain(sine, torch.ones(8)) == []
        found = capture(sine, torch.ones(8), target="h100")
    assert found.kernels == ()
    assert capture(sine, torch.ones(8), target="h100").kernels  # the next capture compiles it


@contextmanager
def hook(register: Callable[..., Any]) -> Iterator[None]:
    handle = register(lambda module, *_: None)
    try:
        yield
    finally:
        handle.remove()


class Functions(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("around", "said"),
    [
        (lambda: hook(torch.nn.modules.module.register_module_forward_hook), "_global_forward_hooks"),
        (lambda: hook(torch.nn.modules.module.register_module_forward_pre_hook), "_global_forward_pre_hooks"),
        (lambda: hook(torch.nn.modules.module.register_module_full_backward_hook), "_global_backward_hooks"),
        (lambda: Functions(), "Functions"),
        (lambda: Operators(), "Operators"),
        (lambda: torch.device("cpu"), ""),
        (nullcontext, ""),
    ],
)
def test_what_is_not_in_the_child_is_said(
    around: Callable[[], AbstractContextManager[Any]], said: str
) -> None:
    with around():
        found = capture(sine, torch.ones(8), target="h100")
    assert len(told(found)) == bool(said)
    for asked, at in told(found):
        assert said in asked and at > test_what_is_not_in_the_child_is_said.__code__.co_firstlineno
        assert asked in " ".join(full(found).split())


def test_a_check_steps_out_of_modes_too_and_says_what_was_not_there() -> None:
    pytest.importorskip("triton")
    seen: list[Any] = []

    class Sees(Operators):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return super().__torch_dispatch__(function, types, args, kwargs)

    x = torch.ones(8)
    found = capture(sine, x, target="h100")
    with Sees():
        around = found.verify()
    lock = threading.Lock()

    def locked(graph: Any) -> None:
        with lock:
            pass

    with torch._inductor.config.patch(post_grad_custom_pre_pass=locked):
        told = found.verify()
    assert around.ok and told.ok and seen == []
    assert "a mode around the capture" in around.runner and "Sees" in around.runner
    assert f"test_ambient_state.py:{locked.__code__.co_firstlineno} " in told.runner
    assert "post_grad_custom_pre_pass, a function that cannot be sent" in told.runner
    assert "reaches" not in found.verify().runner


def with_ones(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(8)


@pytest.mark.parametrize(("target", "device"), [("h100", "cuda:0"), ("cpu:avx2", "cpu")])
def test_a_default_device_is_that_of_the_program(target: str, device: str) -> None:
    x = torch.ones(8)
    torch.set_default_device(device.partition(":")[0])
    try:
        found = capture(with_ones, x, target=target)
    finally:
        torch.set_default_device(None)
    assert told(found) == [] and len(found.kernels) == 1
    made = {one.device for node in found.compilations[0].graphs["dynamo"].nodes for one in node.outputs}
    assert made == {device}


def test_a_default_device_that_the_target_has_not_raises_as_there() -> None:
    with (
        torch.device("meta"),
        pytest.raises(CaptureError, match=r"two (different )?devices,? cuda:0(,| and) meta") as error,
    ):
        capture(with_ones, torch.ones(8, device="cpu"), target="h100")
    assert "not traced made" not in str(error.value)
