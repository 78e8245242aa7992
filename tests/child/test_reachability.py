"""Objects that a function reaches in modules have the program's current state in the child. The oracle is the capture
without a target, which runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import reached_parts as parts
import reached_programs as programs
import torch

from compile_lens import capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def calls(found: Capture) -> list[tuple[str, str, Any]]:
    """Traced and differentiated operators with types and shapes."""
    return [
        (node.target, out.dtype, tuple(out.shape))
        for one in found.compilations
        for name in ("dynamo", "pre_grad")
        if name in one.graphs
        for node in one.graphs[name].calls
        for out in node.outputs
    ]


def phases(found: Capture) -> list[Any]:
    return [one.phases for one in found.compilations]


def same(fn: Callable[..., Any], x: torch.Tensor, target: str = "h100") -> Capture:
    here, there = capture(fn, x), capture(fn, x, target=target)
    assert calls(there) == calls(here) and phases(there) == phases(here)
    return there


def x() -> torch.Tensor:
    return torch.rand(4, 8, requires_grad=True)


def names(found: Capture) -> str:
    return " ".join(target for target, _, _ in calls(found))


def evaluated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parts.net, "training", False)
    patch.setattr(parts.net.drop, "training", False)


def frozen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(programs, "tied", parts.Net().requires_grad_(False))


def double(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parts, "net", parts.Net().double())


def trained(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(programs, "tied", parts.Net())
    torch.nn.init.constant_(vars(programs)["tied"].inner.weight, 0.5)


def tied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(programs, "tied", parts.Net())
    vars(programs)["tied"].inner.weight = parts.net.inner.weight


def hooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parts.net, "_forward_hooks", type(parts.net._forward_hooks)(parts.net._forward_hooks))
    parts.net.register_forward_hook(lambda module, args, out: out.tanh())


def float64(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parts, "weight", torch.ones(8, dtype=torch.float64))


def other_cell(patch: pytest.MonkeyPatch) -> None:
    cell = (parts.closed.__closure__ or ())[0]
    patch.setattr(cell, "cell_contents", torch.ones(8, dtype=torch.float64))


CHANGES: dict[str, tuple[Callable[..., Any], Callable[[pytest.MonkeyPatch], None]]] = {
    "eval": (programs.direct, evaluated),
    "eval, by its name": (programs.imported, evaluated),
    "eval, under no_grad": (programs.within_no_grad, evaluated),
    "one object by two ways": (programs.both, evaluated),
    "hooks": (programs.imported, hooked),
    "dtype of a module": (programs.converted, double),
    "trained weights": (programs.weights, trained),
    "requires_grad": (programs.frozen, frozen),
    "tied weights": (programs.same_memory, tied),
    "dtype of a tensor": (programs.tensor, float64),
    "a field": (programs.namespace, lambda p: p.setattr(parts.cfg, "act", "sin")),
    "a field, imported late": (programs.late, lambda p: p.setattr(parts.cfg, "act", "sin")),
    "an attribute of a class": (programs.of_a_class, lambda p: p.setattr(parts.Choice, "act", "sin")),
    "of its instances": (programs.of_an_instance, lambda p: p.setattr(parts.Choice, "act", "sin")),
    "of an instance": (
        programs.of_an_instance,
        lambda p: p.setattr(parts.choice, "act", "sin", raising=False),
    ),
    "a method": (programs.called, lambda p: p.setattr(parts.Choice, "__call__", lambda self, x: x.sin())),
    "a function": (programs.function, lambda p: p.setattr(parts, "step", lambda x: x.tanh())),
    "a function that is wrapped": (
        programs.function,
        lambda p: p.setattr(parts, "step", parts.doubled(parts.step)),
    ),
    "a function under no_grad": (
        programs.function,
        lambda p: p.setattr(parts, "step", torch.no_grad()(parts.step)),
    ),
    "what is closed over": (programs.closure, other_cell),
    "a default": (programs.default, lambda p: p.setattr(parts.scaled, "__defaults__", (7.0,))),
    "a sentinel": (programs.sentinel, lambda p: None),
    "a name that is gone": (programs.by_name, lambda p: p.delattr(parts, "flag")),
    "a function of torch": (
        programs.of_torch,
        lambda p: p.setattr(torch.nn.functional, "gelu", lambda x: x.sin()),
    ),
}


@pytest.mark.full
@pytest.mark.cases(full=2)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_after_the_import_is_so_in_the_child(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept child also sees when the change is undone."""
    fn, changes = CHANGES[change]
    before = same(fn, x())
    with monkeypatch.context() as patch:
        changes(patch)
        changed = same(fn, x())
        assert changed.target is not None and changed.target.queries == ()
    again = same(fn, x())
    assert calls(before) == calls(again)


@pytest.mark.full
def test_it_is_so_for_another_cpu_and_from_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated(monkeypatch)
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(capture(programs.direct, x(), target="cpu:avx2")))
    other.start()
    other.join()
    assert not any("rand" in kernel.source for kernel in found[0].kernels)
    assert not any("rand" in k.source for k in capture(lambda x: parts.net(x), x(), target="h100").kernels)


def test_what_cannot_cross_is_said_with_its_line() -> None:
    found = same(programs.locked, x())
    assert found.target is not None
    (said,) = found.target.queries
    assert (said.query, said.kind) == (
        "reached_parts.lock",
        "not transferred",
    ) and "importing its module" in said.answer
    assert "parts.lock is not None" in said.frame.text


def test_a_capture_changes_nothing_of_what_it_reads() -> None:
    held = {name: id(value) for name, value in vars(parts).items()}
    fields = dict(vars(parts.net))
    capture(programs.direct, x(), target="h100")
    assert held == {name: id(value) for name, value in vars(parts).items()} and vars(parts.net) == fields


@pytest.mark.slow
@pytest.mark.exhaustive
def test_kernels_that_a_module_gives_to_torch_do_not_depend_on_the_order(child: Callable[..., str]) -> None:
    """The program gives the same before and after a capture that imports them, and after they are removed."""
    said = child(
        """
import reached_parts, torch
import compile_lens

norm = torch.nn.RMSNorm(8)

def plain(x):
    return norm(x)

def joint(fn):
    found = compile_lens.capture(fn, torch.rand(4, 8, requires_grad=True), target="cpu:avx2")
    return [node.target for node in found.compilations[0].graphs["joint"].calls], found.ledger.total.eager_ops

without = joint(plain)
import reached_library
first = joint(plain)
joint(reached_library.doubled)
print(first == joint(plain), first != without)
reached_library.library._destroy()
print(joint(plain) == without)
"""
    )
    assert said.split() == ["True", "True", "True"]
