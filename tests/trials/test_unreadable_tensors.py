"""``verify`` and tensors that operators cannot read: their memory was freed, or their class lacks the operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from full_text import full
from torch import nn

from compile_lens import capture
from compile_lens.trials.copies import copied
from compile_lens.trials.restoration import SavedState
from compile_lens.trials.snapshot import Snapshot, unreadable

pytestmark = pytest.mark.torch


def freed(size: int = 8, left: int = 0) -> torch.Tensor:
    x = torch.arange(float(size))
    x.untyped_storage().resize_(left)
    return x


class Sharded(nn.Module):
    """Gathers a parameter for the call and frees it afterwards, like FSDP2."""

    def __init__(self) -> None:
        super().__init__()
        self.full, self.shard = torch.randn(16, 16), torch.randn(16, 16)
        self.full.untyped_storage().resize_(0)

    @torch._dynamo.disable
    def gather(self) -> None:
        self.full.untyped_storage().resize_(16 * 16 * 4)
        self.full.copy_(self.shard)

    @torch._dynamo.disable
    def free(self) -> None:
        self.full.untyped_storage().resize_(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.gather()
        y = (x @ self.full).relu()
        self.free()
        return y


class Scaled(torch.Tensor):
    """A wrapper that implements only ``mul`` and ``detach``: neither ``equal`` nor ``clone``."""

    @staticmethod
    def __new__(cls, numbers: torch.Tensor, scale: torch.Tensor) -> Scaled:
        made: Scaled = torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype)  # type: ignore[attr-defined]
        return made

    def __init__(self, numbers: torch.Tensor, scale: torch.Tensor) -> None:
        self.numbers, self.scale = numbers, scale

    def __repr__(self) -> str:  # type: ignore[override]
        return "Scaled"

    def __tensor_flatten__(self) -> Any:
        return ["numbers", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Scaled:
        return Scaled(inner["numbers"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mul.Tensor:
            one, other = args
            return Scaled(one.numbers, one.scale * other)
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return Scaled(*(func(x) for x in (args[0].numbers, args[0].scale)))
        raise NotImplementedError(f"Scaled has no {func}")


class Opaque(torch.Tensor):
    """A class that runs nothing and does not reveal its content."""

    @staticmethod
    def __new__(cls, size: int) -> Opaque:
        made: Opaque = torch.Tensor._make_wrapper_subclass(cls, (size,))  # type: ignore[attr-defined]
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return "Opaque"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"Opaque has no {func}")


def test_a_freed_storage_is_told_before_it_is_read() -> None:
    assert "memory is freed" in unreadable(freed()) and "12 bytes" in unreadable(freed(8, 12))
    x = torch.arange(8.0)
    views = x[2:5], x[:4]
    x.untyped_storage().resize_(16)
    assert "memory is freed" in unreadable(views[0]) and not unreadable(views[1])
    assert not unreadable(torch.rand(3).expand(4, 3)) and not unreadable(torch.rand(0, 3)[:, 1:])
    assert "meta" in unreadable(torch.rand(3, device="meta"))
    inner = Scaled(freed(), torch.ones(8))
    assert "memory is freed" in unreadable(inner)
    indices = torch.tensor([[0, 2]])
    sparse = torch.sparse_coo_tensor(indices, torch.ones(2), (4,))
    sparse._values().untyped_storage().resize_(0)
    assert "memory is freed" in unreadable(sparse)


def test_a_copy_of_freed_memory_is_freed() -> None:
    x = torch.arange(8.0)
    given = x, x[2:5]
    x.untyped_storage().resize_(0)
    _, (one, view), _ = copied(None, given, {})
    assert one.untyped_storage().nbytes() == 0 and one.shape == (8,)
    one.untyped_storage().resize_(32)
    one.fill_(2)
    assert view.tolist() == [2, 2, 2] and x.untyped_storage().nbytes() == 0


def test_freed_and_gathered_memory_is_put_back() -> None:
    gone, there = freed(), torch.arange(4.0)
    saved = SavedState((gone, there))
    assert not saved.changed()
    gone.untyped_storage().resize_(32)
    gone.fill_(1)
    there.untyped_storage().resize_(0)
    assert saved.changed()
    saved.reset()
    assert gone.untyped_storage().nbytes() == 0 and there.tolist() == [0, 1, 2, 3] and not saved.changed()


def test_memory_that_was_exchanged_is_put_back() -> None:
    parameter, other = nn.Parameter(torch.arange(4.0)), torch.full((6,), 7.0)
    first = parameter.data_ptr()
    saved = SavedState(parameter)
    parameter.data = other
    saved.reset()
    assert (
        parameter.tolist() == [0, 1, 2, 3] and parameter.data_ptr() == first and other.tolist() == [7.0] * 6
    )


@pytest.mark.full
def test_a_module_that_frees_what_it_gathers_is_verified() -> None:
    module, x = Sharded(), torch.randn(4, 16)
    report = capture(module, x).verify(module, x)
    assert report.ok is True, full(report)
    assert module.full.untyped_storage().nbytes() == 0
    assert "the program resized" not in full(report)


@pytest.mark.full
def test_a_result_that_was_freed_is_no_result_that_differs() -> None:
    @torch._dynamo.disable
    def drop(y: torch.Tensor) -> torch.Tensor:
        y.untyped_storage().resize_(0)
        return y

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return drop(x.sin() * 2), x.cos()

    report = capture(fn, torch.rand(64)).verify(fn, torch.rand(64))
    assert report.verdict in ("agrees", "agrees in part"), full(report)
    assert "numbers not compared" in full(report)


@pytest.mark.full
def test_a_wrapper_without_equal_is_compared_by_what_it_wraps() -> None:
    def fn(x: Scaled, y: torch.Tensor) -> Scaled:
        return x * y  # type: ignore[return-value]

    given = Scaled(torch.arange(4), torch.rand(4)), torch.rand(4)
    report = capture(fn, *given).verify(fn, *given)
    assert report.ok is True, full(report)
    names = [c.name for c in report.comparisons]
    assert "result.numbers" in names and "result.scale" in names
    copy = copied(None, given, {})[1][0]
    assert (
        type(copy) is Scaled and copy.scale is not given[0].scale and torch.equal(copy.scale, given[0].scale)
    )


@pytest.mark.full
def test_a_class_that_cannot_be_read_is_not_compared() -> None:
    held = Opaque(3)

    def fn(x: torch.Tensor) -> Any:
        return x.sin() * 2, keep(x)

    @torch._dynamo.disable
    def keep(x: torch.Tensor) -> Opaque:
        return held

    assert "could not be read" in Snapshot.of(held).unreadable
    report = capture(fn, torch.rand(4)).verify(fn, torch.rand(4))
    assert report.ok is None and report.verdict == "agrees in part", full(report)
    assert "Opaque has no aten" in full(report)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nested.nested_tensor([torch.rand(2), torch.rand(3)], layout=torch.jagged),
        lambda: torch.nested.nested_tensor([torch.rand(2, 2), torch.rand(3, 2)]),
        lambda: torch.rand(4, 4).to_sparse(),
        lambda: torch.rand(4, 4).to_sparse_csr(),
        lambda: torch.quantize_per_tensor(torch.rand(4), 0.1, 0, torch.qint8),
        lambda: torch.rand(3, dtype=torch.complex64).conj(),
        lambda: torch.rand(8).to(torch.float8_e4m3fn),
        lambda: torch.arange(8).to(torch.uint16),
        lambda: torch.rand(3, 4, requires_grad=True).expand(2, 3, 4),
        lambda: torch.tensor([float("nan"), 1.0]),
    ],
)
def test_snapshots_of_tensors_of_all_kinds(make: Any) -> None:
    x = make()
    first = Snapshot.of(x)
    assert not first.unreadable and first.is_of(x) is True
    assert first.is_of(copied(None, (x,), {})[1][0]) is True


@pytest.mark.full
def test_a_gradient_that_is_a_zero_tensor_is_compared() -> None:
    """Torch has no memory for it, and raises when its address is read."""
    x = torch.rand(8, requires_grad=True)
    torch.sgn(x).sum().backward()
    zeros = x.grad
    assert zeros is not None and zeros._is_zerotensor(), "or this test shows nothing"
    function = torch.sgn
    report = capture(function, x, keep_inputs=True).verify()
    assert report.verdict == "agrees" and len(report.comparisons) == 2

    def shifted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y).sin()

    y = torch.rand(8)
    assert capture(shifted, zeros, y, keep_inputs=True).verify().verdict == "agrees"
    assert zeros._is_zerotensor()
    assert capture(shifted, zeros, y, target="h100").kernels
