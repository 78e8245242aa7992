"""Bytes of programs that write to their inputs, call custom operators, or save without fusion: hand counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from eager_bytes import eager
from full_text import full

from compile_lens import capture
from compile_lens.record.figures import AtLeast
from compile_lens.results.capture import Capture
from compile_lens.views.words import outcome

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

N = 64
PART = N * N * 4


def traffic(record: Capture) -> str:
    """The memory line of the headline."""
    (line,) = (outcome.saved(one) for one in outcome.saving(record.ledger) if one[0].startswith("memory"))
    assert line in " ".join(full(record).split()), "broken at the width of the terminal"
    return line


def copied(cache: Any, k: Any) -> None:
    cache.copy_(k.sin())


def sliced(cache: Any, k: Any) -> None:
    cache[:N] = k.sin()


def indexed(cache: Any, k: Any) -> None:
    cache[torch.arange(N)] = k.sin()


def field(cache: Any, k: Any) -> None:
    cache[:N] = cache[:N] * 0.5 + k


def shifted(cache: Any, k: Any) -> None:
    cache[1:] = cache[:-1] * 2


def halved(cache: Any, k: Any) -> None:
    cache[:N].mul_(0.5)


def transposed(cache: Any, k: Any) -> None:
    cache.copy_(cache.t() + 1)


def averaged(cache: Any, k: Any) -> None:
    cache.lerp_(k.tanh(), 0.1)


def scattered(cache: Any, k: Any) -> None:
    cache.copy_(torch.zeros(N, N).index_put((torch.arange(N),), k))


def added(cache: Any, k: Any) -> None:
    cache.add_(k)


def filled(cache: Any, k: Any) -> None:
    cache[:N].fill_(1.5)


def converted(cache: Any, k: Any) -> None:
    cache.copy_(k.double())


WRITES: dict[str, tuple[Callable[..., Any], int, int, int | None]] = {
    "copy_": (copied, N, 4 * PART, 2 * PART),
    "slice": (sliced, 2 * N, 4 * PART, 2 * PART),
    "index": (indexed, 2 * N, 4 * PART + 2 * N * 8, 2 * PART),
    "slice of itself": (field, 2 * N, 7 * PART, 3 * PART),
    "add_": (added, N, 3 * PART, 3 * PART),
    "slice of another part": (shifted, N + 1, 4 * PART, None),
    "slice in place": (halved, 2 * N, 2 * PART, 2 * PART),
    "transposed": (transposed, N, 4 * PART, None),
    "fill_ of a slice": (filled, 2 * N, PART, PART),
}
"""Rows of the input that is written, bytes before and bytes after."""


@pytest.mark.cases(quick=3)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_into_an_input_counts(name: str) -> None:
    function, rows, before, after = WRITES[name]
    record = capture(function, torch.zeros(rows, N), torch.randn(N, N))
    total = record.ledger.total
    assert total.bytes_before == before and after in (None, total.bytes_after)
    moved = record.traffic()
    assert (moved.before, moved.nbytes) == (total.bytes_before, total.bytes_after)
    assert sum(kernel.before or 0 for kernel in moved.kernels) == total.bytes_before


@pytest.mark.cases(quick=2)
@pytest.mark.parametrize("function", [copied, sliced, averaged, scattered, converted])
def test_the_headline_counts_what_eager_pytorch_moves(function: Callable[..., Any]) -> None:
    inputs = torch.zeros(N if function not in (sliced,) else 2 * N, N), torch.randn(N, N)
    oracle = eager(function, [x.clone() for x in inputs], {})
    record = capture(function, *inputs)
    assert record.ledger.total.eager_bytes == sum(n or 0 for n in oracle.nbytes.values())
    assert "none saved" not in traffic(record)


@torch.library.custom_op("lens_bytes::put", mutates_args=("cache",))
def put(k: torch.Tensor, rows: torch.Tensor, cache: torch.Tensor) -> None:
    cache[rows] = k


@put.register_fake
def _(k: torch.Tensor, rows: torch.Tensor, cache: torch.Tensor) -> None:
    return None


@torch.library.custom_op("lens_bytes::norm", mutates_args=())
def norm(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm()


@norm.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.mark.parametrize("target", [None, "h100"])
def test_an_operator_of_the_program_moves_at_least_what_its_neighbours_do(target: str | None) -> None:
    """The operator writes 16 rows of a cache of 1,000, which a capture cannot see: it counts only the neighbours."""
    k, rows, cache = torch.randn(16, N), torch.arange(16), torch.zeros(1000, N)
    record = capture(lambda *a: put(a[0].sin(), *a[1:]), k, rows, cache, target=target)
    total = record.ledger.total
    for figure in (total.bytes_before, total.bytes_after, total.eager_bytes):
        assert isinstance(figure, AtLeast) and figure.least == 2 * k.nbytes and figure.most is None
    assert str(total.bytes_after) == "≥ 8,192"
    assert traffic(record) == "memory traffic: ≥ ~8,192 B → ≥ ~8,192 B"
    assert "reads and writes cannot be seen" in str(record.traffic())
    assert any("cannot be seen" in note for note in total.notes)


def test_a_result_of_an_operator_of_the_program_is_not_guessed_either() -> None:
    x = torch.randn(N, N)
    total = capture(lambda x: norm(x.sin()).cos(), x).ledger.total
    assert str(total.bytes_before) == str(total.bytes_after) == f"≥ {4 * x.nbytes:,}"
    alone = capture(norm, x).ledger.total
    assert alone.bytes_before is None and alone.eager_bytes is None


@pytest.mark.full
def test_a_triton_kernel_of_the_program_moves_at_least_what_its_neighbours_do() -> None:
    """Each operator of ``o.relu() * 2`` after the kernel reads and writes once, as do the operators before it."""
    pytest.importorskip("triton")
    from triton_kernels import added, launched

    def kernel_alone(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        added[(1,)](x, y, o, x.numel(), BLOCK=4096)
        return o

    x, y = torch.rand(N, N), torch.rand(N, N)
    figures = capture(launched, x, y, target="h100").ledger.total
    assert str(figures.bytes_before) == f"≥ {4 * PART:,}" and str(figures.bytes_after) == f"≥ {2 * PART:,}"
    figures = capture(lambda x, y: launched(x.sin(), y).cos(), x, y, target="h100").ledger.total
    assert str(figures.bytes_before) == f"≥ {8 * PART:,}" and str(figures.bytes_after) == f"≥ {4 * PART:,}"
    for figure in (figures.bytes_before, figures.bytes_after):
        assert isinstance(figure, AtLeast) and figure.most is None
    alone = capture(kernel_alone, x, y, target="h100").ledger.total
    assert alone.bytes_before is None and alone.bytes_after is None


@pytest.mark.parametrize("target", [None, "h100"])
def test_log_probabilities_that_are_never_written_are_saved_on_every_device(target: str | None) -> None:
    x, t = torch.randn(128, 512), torch.randint(0, 512, (128,))
    record = capture(F.cross_entropy, x, t, target=target)
    eager_bytes = 2 * x.nbytes + 128 * 4 + 128 * 8 + 2 * 4
    assert record.ledger.total.eager_bytes == eager_bytes, "one read, one write, and one number of each row"
    assert "none saved" not in traffic(record)
    assert traffic(record).startswith("memory traffic, eager operators before: ~526 kB → ")


@pytest.mark.cases(quick=1)
@pytest.mark.parametrize(
    "function",
    [lambda x: x.max(-1).values, lambda x: x.sort(-1).values, lambda x: x.median(-1).values],
    ids="max sort median".split(),
)
def test_what_writes_in_place_save_is_told_from_fusion(function: Callable[..., Any]) -> None:
    """The derivative scatters into zeros: eager PyTorch copies the zeros first, the generated code does not."""
    x = torch.randn(N, N, requires_grad=True)
    record = capture(function, x)
    total = record.ledger.total
    assert total.eager_bytes - total.bytes_after == 2 * x.nbytes == total.copied_bytes
    assert f"all {outcome.IN_PLACE}" in traffic(record)
    fused = capture(lambda x: function(x.sin()), x)
    assert f", ~32.8 kB {outcome.IN_PLACE}: " in traffic(fused)


def test_a_scatter_that_copies_in_the_code_too_saves_nothing_in_place() -> None:
    i, v = torch.arange(8), torch.randn(8, N)
    record = capture(lambda x: (x.index_put((i,), v).sin(), x + 1), torch.randn(N, N))
    assert record.ledger.total.copied_bytes == 0
    assert outcome.IN_PLACE not in traffic(record)


def test_memory_that_a_library_sets_aside_is_no_launch() -> None:
    record = capture(torch.sgn, torch.randn(N, N, requires_grad=True))
    assert record.ledger.backward.figures == (0, 0, 0, 0, 0, 0, 0)
    assert record.ledger.total.launches == 1


def test_a_sparse_gradient_has_no_bytes_of_a_dense_one() -> None:
    """The gradient has 5 rows of 1,000; the lower bound is the bytes of the operators around it."""
    weight = torch.nn.EmbeddingBag(1000, 16, mode="sum", sparse=True)
    i = torch.randint(0, 1000, (5,))
    record = capture(lambda i, o: weight(i, o).sin(), i, torch.tensor([0, 2]))
    weight(i, torch.tensor([0, 2])).sin().sum().backward()
    assert weight.weight.grad is not None and weight.weight.grad.layout == torch.sparse_coo
    total, _, backward = record.ledger.total, *record.compilations[0].memory
    for bytes_moved in (total.bytes_before, total.bytes_after, total.eager_bytes):
        assert isinstance(bytes_moved, AtLeast) and bytes_moved.least < 1000 * 16 * 4
    assert backward.peak is None and "depend on data" in backward.note
