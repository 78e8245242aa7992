"""Tensors of a copied call alias each other like those of the call, and nothing of the call is touched."""

from __future__ import annotations

import copy
import dataclasses
import functools
import threading
from typing import Any

import pytest
import torch
from torch import nn

from compile_lens.trials.copies import copied

pytestmark = pytest.mark.torch


def twins(*args: Any) -> tuple[Any, ...]:
    return copied(len, args, {})[1]


def shared(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def facts(x: torch.Tensor) -> tuple[Any, ...]:
    return x.shape, x.stride(), x.storage_offset(), x.dtype, x.requires_grad, x.is_leaf, x._is_view(), type(x)


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    more: dict[str, Any]


class Marked(torch.Tensor):
    """A subclass that adds only its name."""


def test_one_tensor_stays_one_wherever_it_stands() -> None:
    x = torch.rand(3)
    batch = Batch(x, {"again": [x]})
    _, args, kwargs = copied(len, (x, batch, (x,)), {"y": x})
    assert args[0] is args[1].x is args[1].more["again"][0] is args[2][0] is kwargs["y"] is not x
    assert type(args[1]) is Batch and args[1] is not batch


@pytest.mark.parametrize("grad", [False, True])
def test_views_are_views_of_the_copy(grad: bool) -> None:
    x = torch.arange(12.0).reshape(3, 4).requires_grad_(grad)
    given = (x, x[1], x.t(), x[:, ::2], x.expand(2, 3, 4), x.detach())
    made = twins(*given)
    for one, two in zip(given, made, strict=True):
        assert facts(one) == facts(two) and torch.equal(one, two) and not shared(one, two)
    assert all(shared(made[0], other) for other in made)
    if grad:  # a gradient of a view reaches its base
        (got,) = torch.autograd.grad(made[1].sum() + made[0].sum(), made[0])
        assert got.tolist() == [[1.0] * 4, [2.0] * 4, [1.0] * 4]
    with torch.no_grad():
        made[0][1, 0] = -1
    assert [float(t.detach().flatten().min()) for t in made] == [-1.0] * 6
    assert float(x.min()) == 0


def test_a_view_alone_keeps_its_memory() -> None:
    base = torch.arange(20.0)
    made, other = twins(base[3:9].view(2, 3), base.as_strided((4, 3), (1, 1), 2))
    assert shared(made, other) and made.storage_offset() == 3 and other.stride() == (1, 1)
    assert made.untyped_storage().nbytes() == 80


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(3).expand(4, 3),
        lambda: torch.rand(3, 1).requires_grad_().expand(3, 4),
        lambda: torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        lambda: torch.tensor(2.5, requires_grad=True),
        lambda: torch.rand(0, 3),
        lambda: torch.rand(3, dtype=torch.float64)[1:],
        lambda: torch.arange(4).view(torch.int32),
        lambda: nn.Parameter(torch.rand(2, 3).t()),
        lambda: nn.Parameter(torch.rand(2), requires_grad=False),
        lambda: torch.rand(3).as_subclass(Marked),
        lambda: torch.rand(3).to(torch.bfloat16),
    ],
)
def test_what_a_tensor_is_stays(make: Any) -> None:
    x = make()
    (made,) = twins(x)
    assert facts(made)[:6] == facts(x)[:6] and type(made) is type(x)
    assert torch.equal(made, x) and (not x.numel() or made.data_ptr() != x.data_ptr())


def test_tensors_that_are_not_plain() -> None:
    z = torch.rand(3, dtype=torch.complex64)
    sparse = torch.eye(3).to_sparse()
    made = twins(z.conj(), z.conj().imag, sparse, torch.rand(3).requires_grad_() * 2)
    assert torch.equal(made[0], z.conj()) and torch.equal(made[1], z.conj().imag)
    assert made[2].layout is torch.sparse_coo and made[2] is not sparse
    assert made[3].requires_grad and not made[3].is_leaf


def test_attributes_and_gradients_go_along() -> None:
    x = torch.rand(2, requires_grad=True)
    x.grad = torch.ones(2)
    x.note = [x]  # type: ignore[attr-defined]
    (made,) = twins(x)
    assert torch.equal(made.grad, torch.ones(2)) and made.grad is not x.grad
    assert made.note[0] is made


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.register_buffer("row", self.first.weight.detach()[0])
        self.lock = threading.Lock()
        self.steps = (i for i in range(9))
        self.seen: list[Any] = []
        self.myself = [self]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_a_module_with_what_cannot_be_copied() -> None:
    net = Held()
    with pytest.raises(TypeError):
        copy.deepcopy(net)
    twin, (weight,), _ = copied(net, (net.first.weight,), {})
    assert twin is not net and type(twin) is Held and twin.myself[0] is twin
    assert twin.lock is net.lock and twin.steps is net.steps and twin.seen is not net.seen
    assert twin.first.weight is twin.second.weight is weight and weight is not net.first.weight
    assert shared(twin.row, weight) and [n for n, _ in twin.named_parameters()] == [
        n for n, _ in net.named_parameters()
    ]
    bound, _, _ = copied(net.forward, (), {})
    assert bound.__self__ is not net and bound.__func__ is Held.forward


def test_closures_partials_and_optimizers_are_copied_together() -> None:
    net = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(2)).sum().backward()
    optimizer.step()

    def step(scale: float, x: torch.Tensor) -> None:
        optimizer.zero_grad()
        (net(x) * scale).sum().backward()
        optimizer.step()

    before = [p.detach().clone() for p in net.parameters()]
    state = {k: v.clone() for k, v in optimizer.state[net.weight].items()}
    fn, _, _ = copied(functools.partial(step, 2.0), (), {})
    fn(torch.ones(2))
    cells = dict(zip(fn.func.__code__.co_freevars, fn.func.__closure__, strict=True))
    twin, other = cells["net"].cell_contents, cells["optimizer"].cell_contents
    assert twin.weight is other.param_groups[0]["params"][0] and twin.weight in other.state
    assert int(other.state[twin.weight]["step"]) == 2 and not torch.equal(twin.weight, before[0])
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert all(torch.equal(v, state[k]) for k, v in optimizer.state[net.weight].items())


def test_generators_are_copied() -> None:
    generator = torch.Generator().manual_seed(3)
    (made,) = twins(generator)
    assert torch.equal(
        torch.rand(3, generator=made), torch.rand(3, generator=torch.Generator().manual_seed(3))
    )
    assert torch.equal(
        torch.rand(3, generator=generator), torch.rand(3, generator=torch.Generator().manual_seed(3))
    )


def test_wide_is_the_same_call_in_float64() -> None:
    x = torch.rand(3, 4)
    net = nn.Linear(4, 4)
    fn, (a, b, i), _ = copied(net, (x, x.t(), torch.arange(3)), {}, wide=True)
    assert a.dtype == b.dtype == fn.weight.dtype == torch.float64 and i.dtype == torch.int64
    assert shared(a, b) and b.stride() == (1, 4) and torch.equal(a, x.double())


def test_arguments_are_copied_alike() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    row = torch.arange(3.0).expand(4, 3)
    turned = torch.arange(6.0).reshape(2, 3).t()
    gaps = torch.arange(12.0)[::2]
    grown = (x * 2).detach_().requires_grad_()
    _, args, kwargs = copied(len, (x, [x, row], turned, gaps), {"y": grown, "n": 3})
    assert args[0] is args[1][0] and args[0] is not x
    assert args[0].requires_grad and args[0].is_leaf and kwargs["y"].is_leaf and kwargs["n"] == 3
    for made, given in ((args[0], x), (args[1][1], row), (args[2], turned), (args[3], gaps)):
        assert made.stride() == given.stride() and made.shape == given.shape
        assert torch.equal(made, given)
        assert made.data_ptr() != given.data_ptr()


def test_a_module_is_copied_and_a_bound_method_with_it() -> None:
    net = nn.BatchNorm1d(2)
    twin, _, _ = copied(net, (), {})
    assert twin is not net and torch.equal(twin.weight, net.weight)
    method, _, _ = copied(net.forward, (), {})
    assert method.__self__ is not net and isinstance(method.__self__, nn.BatchNorm1d)


def test_a_module_that_cannot_be_copied_is_used_as_it_is() -> None:
    class Stubborn(nn.Linear):
        def __deepcopy__(self, memo: object) -> None:
            raise RuntimeError("no copies")

    net = Stubborn(2, 2)
    assert copied(net, (), {})[0] is net
