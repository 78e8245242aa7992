"""Bytes before and after follow one rule: an operator that becomes one kernel moves the same bytes in both.

The expected figures are hand counts: the number of elements read and written, times the element size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from full_text import full
from torch._subclasses.fake_tensor import FakeTensorMode

from compile_lens import capture, versions
from compile_lens._torch.graphs import accesses
from compile_lens.record.figures import AtLeast
from compile_lens.views.render import markdown
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import outcome, quantities

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

ROWS, WIDTH = 60, 40
WHOLE = ROWS * WIDTH * 4
F4, I8 = 4, 8

Case = tuple[Callable[..., Any], tuple[Any, ...], "int | None"]


def x(*shape: int) -> torch.Tensor:
    return torch.linspace(-3.0, 3.0, int(torch.tensor(shape or (ROWS, WIDTH)).prod())).reshape(
        shape or (ROWS, WIDTH)
    )


def at(end: int, *shape: int) -> torch.Tensor:
    """Random indices below ``end``."""
    return (torch.arange(int(torch.tensor(shape).prod())) * 7 % end).reshape(shape)


def put(target: Any, key: Any, value: Any) -> None:
    target[key] = value


PICKED = 16 * I8 + 2 * 16 * WIDTH * F4
"""Sixteen rows are gathered: their numbers are read, they are read and written."""

BEFORE_AND_AFTER: dict[str, Case] = {
    # Gathers: the selected elements, not the table.
    "embedding": (lambda w, i: F.embedding(i, w), (x(), at(ROWS, 16)), PICKED),
    "embedding of two dimensions": (lambda w, i: F.embedding(i, w), (x(), at(ROWS, 4, 4)), PICKED),
    "embedding of more rows than there are": (
        lambda w, i: F.embedding(i, w), (x(), at(ROWS, 500)), 500 * I8 + WHOLE + 500 * WIDTH * F4
    ),
    # Bags: the rows that are summed, not the results. The operator also writes two numbers for each bag.
    "embedding_bag": (
        lambda w, i, b: F.embedding_bag(i, w, b, mode="sum"), (x(500, 16), at(500, 64), torch.arange(0, 64, 8)),
        64 * I8 + 8 * I8 + 64 * 16 * F4 + 8 * 16 * F4 + 2 * 8 * I8,
    ),
    "embedding_bag of more rows than there are": (
        lambda w, i, b: F.embedding_bag(i, w, b, mode="sum"),
        (x(500, 16), at(500, 6400), torch.arange(0, 6400, 800)),
        6400 * I8 + 8 * I8 + 500 * 16 * F4 + 8 * 16 * F4 + 2 * 8 * I8,
    ),
    "x[i]": (lambda x, i: x[i], (x(), at(ROWS, 16)), PICKED),
    "x[:, i]": (lambda x, i: x[:, i], (x(), at(WIDTH, 7)), 7 * I8 + 2 * ROWS * 7 * F4),
    "x[i, j]": (lambda x, i, j: x[i, j], (x(), at(ROWS, 5), at(WIDTH, 5)), 2 * 5 * I8 + 2 * 5 * F4),
    "x[i[:, None], j]": (
        lambda x, i, j: x[i[:, None], j], (x(), at(ROWS, 5), at(WIDTH, 3)), 8 * I8 + 2 * 15 * F4
    ),
    "gather": (torch.gather, (x(), 1, at(WIDTH, ROWS, 5)), ROWS * 5 * (I8 + 2 * F4)),
    "gather of whole rows": (
        lambda x, i: torch.gather(x, 0, i[:, None].expand(16, WIDTH)), (x(), at(ROWS, 16)), PICKED
    ),
    "index_select": (lambda x, i: x.index_select(0, i), (x(), at(ROWS, 16)), PICKED),
    "take": (torch.take, (x(), at(ROWS * WIDTH, 9)), 9 * (I8 + 2 * F4)),
    # Scatters into a new tensor: a copy, then the scattered elements.
    "index_put": (
        lambda x, i, v: x.index_put((i,), v), (x(), at(ROWS, 16), x(16, WIDTH)), 2 * WHOLE + PICKED
    ),
    "index_put that adds": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        (x(), at(ROWS, 16), x(16, WIDTH)),
        2 * WHOLE + PICKED + 16 * WIDTH * F4,
    ),
    "scatter": (
        lambda x, i, v: x.scatter(1, i, v),
        (x(), at(WIDTH, ROWS, 5), x(ROWS, 5)),
        2 * WHOLE + ROWS * 5 * (I8 + 2 * F4),
    ),
    "scatter of a part of a source": (
        lambda x, i, v: x.scatter(1, i, v),
        (x(), at(WIDTH, ROWS, 5), x(ROWS, 9)),
        2 * WHOLE + ROWS * 5 * (I8 + 2 * F4),
    ),
    "scatter_add": (
        lambda x, i, v: x.scatter_add(1, i, v),
        (x(), at(WIDTH, ROWS, 5), x(ROWS, 5)),
        2 * WHOLE + ROWS * 5 * (I8 + 3 * F4),
    ),
    "scatter_reduce": (
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax"),
        (x(), at(WIDTH, ROWS, 5), x(ROWS, 5)),
        2 * WHOLE + ROWS * 5 * (I8 + 3 * F4),
    ),
    "index_add": (
        lambda x, i, v: x.index_add(0, i, v),
        (x(), at(ROWS, 16), x(16, WIDTH)),
        2 * WHOLE + PICKED + 16 * WIDTH * F4,
    ),
    "index_copy": (
        lambda x, i, v: x.index_copy(0, i, v), (x(), at(ROWS, 16), x(16, WIDTH)), 2 * WHOLE + PICKED
    ),
    "put": (lambda x, i, v: x.put(i, v), (x(), at(ROWS * WIDTH, 9), x(9)), 2 * WHOLE + 9 * (I8 + 2 * F4)),
    # In place: the scattered elements only.
    "index_put_": (lambda x, i, v: x.index_put_((i,), v), (x(), at(ROWS, 16), x(16, WIDTH)), PICKED),
    "index_put_ that adds": (
        lambda x, i, v: x.index_put_((i,), v, accumulate=True),
        (x(), at(ROWS, 16), x(16, WIDTH)),
        PICKED + 16 * WIDTH * F4,
    ),
    "x[i, j] = v": (
        lambda x, i, j, v: put(x, (i, j), v),
        (x(), at(ROWS, 5), at(WIDTH, 5), x(5)),
        2 * 5 * I8 + 2 * 5 * F4,
    ),
    "index_add_": (
        lambda x, i, v: x.index_add_(0, i, v),
        (x(), at(ROWS, 16), x(16, WIDTH)),
        PICKED + 16 * WIDTH * F4,
    ),
    "x[2] = v": (lambda x, v: put(x, 2, v), (x(), x(WIDTH)), 2 * WIDTH * F4),
    "x[2:5] = v": (lambda x, v: put(x, slice(2, 5), v), (x(), x(3, WIDTH)), 2 * 3 * WIDTH * F4),
    "x[1:5] *= 2": (lambda x: x[1:5].mul_(2), (x(),), 2 * 4 * WIDTH * F4),
    "add_": (lambda x: x.add_(1), (x(),), 2 * WHOLE),
    "copy_": (lambda x, y: x.copy_(y), (x(), x()), 2 * WHOLE),
    "copy_ of a row": (lambda x, y: x.copy_(y), (x(), x(WIDTH)), WHOLE + WIDTH * F4),
    "zero_": (lambda x: x.zero_(), (x(),), WHOLE),
    # Parts of tensors: the elements that are read.
    "a slice": (lambda x: x[10:20].sin(), (x(),), 2 * 10 * WIDTH * F4),
    "every second row": (lambda x: x[::2, 1:5].sin(), (x(),), 2 * 30 * 4 * F4),
    "a row": (lambda x: x[3].sin(), (x(),), 2 * WIDTH * F4),
    "narrow": (lambda x: x.narrow(1, 2, 5) * 2, (x(),), 2 * ROWS * 5 * F4),
    "a diagonal": (lambda x: x.diagonal() * 2, (x(),), 2 * WIDTH * F4),
    "split": (lambda x: x.split(20)[1] * 2, (x(),), 2 * 20 * WIDTH * F4),
    "a row for each": (lambda a, x: a.expand(ROWS, WIDTH) * x, (x(WIDTH), x()), WIDTH * F4 + 2 * WHOLE),
    "expand": (lambda a: a.expand(ROWS, WIDTH).clone(), (x(WIDTH),), WIDTH * F4 + WHOLE),
    "two slices of one tensor": (lambda x: x[1:] + x[:-1], (x(100),), 100 * F4 + 99 * F4),
    "a tensor and its transpose": (lambda x: x + x.T, (x(32, 32),), 2 * 32 * 32 * F4),
    "windows": (lambda x: x.unfold(0, 3, 1).sin(), (x(100),), 100 * F4 + 3 * 98 * F4),
    "as_strided": (lambda x: x.as_strided((5, 5), (7, 1), 3) * 2, (x(),), 2 * 25 * F4),
    "as_strided that overlaps": (lambda x: x.as_strided((5, 5), (1, 1), 3) * 2, (x(),), (9 + 25) * F4),
    "as_strided with gaps": (lambda x: x.as_strided((5, 5), (2, 2), 3) * 2, (x(),), (9 + 25) * F4),
    "as_strided with other steps": (lambda x: x.as_strided((5, 5), (3, 2)) * 2, (x(),), (19 + 25) * F4),
    "as_strided_copy that overlaps": (
        lambda x: torch.as_strided_copy(x, (5, 5), (1, 1), 3),
        (x(),),
        (9 + 25) * F4,
    ),
    "unfold_copy that overlaps": (lambda x: torch.unfold_copy(x, 0, 3, 2), (x(8),), (7 + 9) * F4),
    "a part in a product": (
        lambda a, b: a[:, :16] @ b, (x(), x(16, 8)), (ROWS * 16 + 16 * 8 + ROWS * 8) * F4
    ),
    "pad": (lambda x: F.pad(x, (1, 2)), (x(),), WHOLE + ROWS * (WIDTH + 3) * F4),
    "crop": (lambda x: F.pad(x, (-3, -2)), (x(),), 2 * ROWS * (WIDTH - 5) * F4),
    "cat": (lambda a, b: torch.cat([a, b]), (x(50), x(100)), 2 * 150 * F4),
    "cat of parts": (lambda a, b: torch.cat([a[:, :3], b[:, :4]], 1), (x(), x()), 2 * ROWS * 7 * F4),
    "stack": (lambda a, b: torch.stack([a, b]), (x(50), x(50)), 2 * 100 * F4),
    "flip": (lambda x: x.flip(0), (x(),), 2 * WHOLE),
    "repeat": (lambda x: x.repeat(2, 3), (x(),), 7 * WHOLE),
    "transpose": (lambda x: x.T.contiguous(), (x(),), 2 * WHOLE),
    # Masks select among elements, all of which are read.
    "where": (torch.where, (x() > 0, x(), x()), ROWS * WIDTH + 3 * WHOLE),
    # A tensor of which only the shape counts is not read.
    "zeros_like": (torch.zeros_like, (x(),), WHOLE),
    "full_like": (lambda x: torch.full_like(x, 2.0), (x(),), WHOLE),
    "new_ones": (lambda x: x.new_ones(3, 3), (x(),), 9 * F4),
    # Everything else: inputs and results.
    "sin": (torch.sin, (x(),), 2 * WHOLE),
    "add": (torch.add, (x(), x()), 3 * WHOLE),
    "a comparison": (lambda x: x > 0, (x(),), WHOLE + ROWS * WIDTH),
    "another type": (lambda x: x.to(torch.float16), (x(),), WHOLE + WHOLE // 2),
    "sum": (torch.sum, (x(),), WHOLE + F4),
    "sum over rows": (lambda x: x.sum(0), (x(),), WHOLE + WIDTH * F4),
    "max with its place": (lambda x: x.max(1), (x(),), WHOLE + ROWS * (F4 + I8)),
    "var": (lambda x: x.var(1), (x(),), WHOLE + ROWS * F4),
    "cumsum": (lambda x: x.cumsum(1), (x(),), 2 * WHOLE),
    "sort": (lambda x: x.sort(1), (x(),), 2 * WHOLE + ROWS * WIDTH * I8),
    "sort whose places nobody uses": (lambda x: x.sort(1).values, (x(),), None),
    "topk": (lambda x: x.topk(3), (x(),), WHOLE + ROWS * 3 * (F4 + I8)),
    "mm": (torch.mm, (x(), x(WIDTH, 30)), (ROWS * WIDTH + WIDTH * 30 + ROWS * 30) * F4),
    "mm with itself": (lambda a: a @ a.T, (x(),), WHOLE + ROWS * ROWS * F4),
    "addmm": (torch.addmm, (x(30), x(), x(WIDTH, 30)), (30 + ROWS * WIDTH + WIDTH * 30 + ROWS * 30) * F4),
    "bmm": (torch.bmm, (x(3, 8, 8), x(3, 8, 8)), 3 * 3 * 64 * F4),
    "attention": (F.scaled_dot_product_attention, (x(1, 2, 64, 32), x(1, 2, 64, 32), x(1, 2, 64, 32)), None),
    "fft": (torch.fft.rfft, (x(),), WHOLE + ROWS * 21 * 8),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (x(1, 2, 16, 16),), 2 * 256 * F4 + 2 * 64 * F4),
    "searchsorted": (torch.searchsorted, (x(9), x()), 9 * F4 + WHOLE + ROWS * WIDTH * I8),
    "two of a list": (lambda a, b: torch._foreach_add([a, b], 1.0), (x(50), x(70)), 2 * 120 * F4),
}  # fmt: skip


def figures(f: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Any, Any]:
    total = capture(f, *args, **options).ledger.total
    return total.launches, total.bytes_before, total.bytes_after


@pytest.mark.full
@pytest.mark.cases(full=8)
@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_one_operator_alone_moves_the_same_before_and_after(name: str) -> None:
    f, args, by_hand = BEFORE_AND_AFTER[name]
    record = capture(f, *[a.clone() if isinstance(a, torch.Tensor) else a for a in args])
    total = record.ledger.total
    assert total.bytes_before == total.bytes_after
    assert by_hand in (None, total.bytes_before)
    assert total.bytes_before == sum(op.nbytes for op in record.compilations[0].eager), (
        "as eager PyTorch runs it"
    )
    (_, (what, before, after, _)) = outcome.saving(record.ledger)
    assert before == "" and what == f"memory traffic, {outcome.BY_FUSION}"
    assert after == quantities.amount(total.bytes_after)


# Single operators whose bytes differ, with the reason: as the graph has them, then as the code computes them.
DIFFER: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int, int, str]] = {
    "unused": (
        lambda x: x.max(1).values, (x(),), WHOLE + ROWS * (F4 + I8), WHOLE + ROWS * F4,
        "Inductor does not write a result that nobody uses; eager PyTorch does",
    ),
    "not in place": (
        lambda x, i, v: x.scatter_(1, i, v), (x(), at(WIDTH, ROWS, 5), x(ROWS, 5)),
        ROWS * 5 * (I8 + 2 * F4), 4 * WHOLE + ROWS * 5 * (I8 + 2 * F4),
        "Inductor scatters into a copy, and copies that back",
    ),
    "not in place, by a library": (
        lambda x, i, v: x.scatter_add_(0, i, v), (x(), at(ROWS, 5, WIDTH), x(5, WIDTH)),
        5 * WIDTH * (I8 + 3 * F4), 4 * WHOLE + 5 * WIDTH * (I8 + 3 * F4),
        "Inductor has the library scatter into a copy, and copies that back",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFER)
def test_where_one_operator_differs_the_code_does(name: str) -> None:
    f, args, before, after, why = DIFFER[name]
    _, found_before, found_after = figures(f, *[a.clone() for a in args])
    assert (found_before, found_after) == (before, after), why


def test_an_embedding_is_no_saving() -> None:
    """The table has 154 MB, of which 64 rows are read both before and after."""
    table, rows = torch.zeros(50257, 768), at(50257, 64)
    record = capture(lambda w, i: F.embedding(i, w), table, rows)
    total = record.ledger.total
    assert total.bytes_before == total.bytes_after == 64 * 8 + 2 * 64 * 768 * 4
    assert "memory traffic, none saved by fusion: ~394 kB" in full(record)
    assert "MB →" not in full(record)


def test_rows_that_are_gathered_for_a_larger_result_count_once() -> None:
    table, rows, y = x(500, 48), at(500, 64), x(64, 10, 48)
    *_, after = figures(lambda w, i, y: F.embedding(i, w)[:, None, :] + y, table, rows, y)
    assert after == 64 * I8 + 64 * 48 * F4 + 2 * 64 * 10 * 48 * F4


def test_fused_with_others_a_table_is_not_read_whole() -> None:
    table, rows = x(500, 48), at(500, 64)
    _, before, after = figures(lambda w, i: F.layer_norm(F.embedding(i, w), (48,)), table, rows)
    assert after == 64 * I8 + 2 * 64 * 48 * F4 < before


@pytest.mark.full
@pytest.mark.parametrize("target", ["h100", "mps"])
def test_the_rule_is_the_same_for_other_devices(target: str) -> None:
    _, before, after = figures(lambda w, i: F.embedding(i, w), x(500, 48), at(500, 64), target=target)
    assert before == after == 64 * I8 + 2 * 64 * 48 * F4


def test_dynamic_sizes_count_as_seen() -> None:
    _, before, after = figures(lambda w, i: w[i], x(500, 48), at(500, 64), dynamic=True)
    assert before == after == 64 * I8 + 2 * 64 * 48 * F4


def test_the_gradient_of_an_embedding_is_placed_in_rows() -> None:
    table = x(500, 48).requires_grad_()
    row = capture(lambda w, i: F.embedding(i, w), table, at(500, 64)).ledger.backward
    rows, whole = 64 * 48 * F4, 500 * 48 * F4
    assert row.bytes_after == whole + 64 * I8 + 3 * rows, (
        "zeros; the gradient, and the rows that it is added to"
    )
    assert row.bytes_before > row.bytes_after, "the decomposition has masks"


def test_an_index_of_a_torch_function_is_not_guessed() -> None:
    """A node of Dynamo's graph names no ATen operator; counting the whole table would be wrong."""
    record = capture(lambda w, i: F.embedding(i, w), x(), at(ROWS, 16))
    (node,) = [n for n in record.compilations[0].graphs["dynamo"].nodes if n.compute]
    assert (node.reads, node.writes) == (None, None)


def test_a_write_that_is_returned_as_well_is_another_one() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        made = torch.sin(y)
        x.copy_(made)
        return made

    _, before, after = figures(f, x(), x())
    assert (before, after) == (4 * WHOLE, 3 * WHOLE)


def test_a_tensor_that_is_copied_onto_itself_is_not_moved() -> None:
    """Python assigns the result of ``+=`` back to ``x[1:3]``; torch sees that both are the same elements."""

    def f(x: torch.Tensor, y: torch.Tensor) -> None:
        x[1:3] += 1  # two rows are read and written
        y.t()[0] -= 1  # a column
        y[:, 1] = y[:, 2]  # another column: this one is a copy

    captured = capture(f, x(), x())
    nbytes = {op.name: op.nbytes for op in captured.compilations[0].eager or ()}
    assert nbytes == {
        "aten.add_.Tensor": 2 * 2 * WIDTH * F4,
        "aten.sub_.Tensor": 2 * ROWS * F4,
        "aten.copy_.default": 2 * ROWS * F4,
    }


def test_an_operator_that_two_kernels_compute_counts_once_in_every_total() -> None:
    """Sums over rows and over columns are two kernels, and each computes the sine."""

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.sin(x)
        return y.sum(0), y.sum(1)

    n = 64
    record = capture(f, x(n, n), target="h100")
    moved, total = record.traffic(), record.ledger.total
    assert len([k for k in record.kernels if "sin" in k.origins]) == 2
    alone = 2 * n * n * 4 + 2 * (n * n + n) * 4  # the sine, and two sums of it
    assert moved.before == total.bytes_before == alone
    assert moved.nbytes == total.bytes_after == 2 * (n * n + n) * 4
    assert sum(k.before for k in moved.kernels) == alone + 2 * n * n * 4, (
        "each kernel with all that it computes"
    )
    text = full(record)
    assert f"memory traffic: {quantities.amount(total.bytes_before)} →" in text
    assert f"{quantities.amount(total.bytes_before)} if each ATen operator ran alone" in text


def traffic(f: Callable[..., Any], *args: Any) -> tuple[str, str, str]:
    """The bytes in the headline, which are the same in every view."""
    found = capture(f, *args)
    (_, line) = outcome.saving(found.ledger)
    assert f"    {outcome.saved(line)}\n" in full(found)
    assert f"- {outcome.saved(line)}\n" in markdown.page(document(found))
    return line[:3]


SQUARE = 1000 * 1000 * F4


@pytest.mark.parametrize(
    "f",
    [F.gelu, lambda x: x.softmax(-1), lambda x: x.roll(3, 0)],
    ids="gelu softmax roll".split(),
)
def test_that_one_eager_operator_is_many_of_atens_is_no_saving(f: Callable[..., Any]) -> None:
    assert 2 * SQUARE == 8_000_000, "eager PyTorch reads and writes the tensor once"
    assert traffic(f, x(1000, 1000)) == (f"memory traffic, {outcome.BY_FUSION}", "", "~8 MB")


def test_the_triangle_that_eager_pytorch_reads_is_less_than_the_code_reads() -> None:
    what, *numbers = traffic(torch.triu, x(1000, 1000))
    assert what == f"memory traffic{outcome.EAGER}, {outcome.BY_FUSION}"
    assert numbers == ["~6 MB", "~8 MB"]


@pytest.mark.full
def test_one_eager_operator_that_picks_is_no_saving() -> None:
    image, grid = x(1, 1, 1000, 1000), x(1, 10, 10, 2)
    (what, before, _) = traffic(lambda x, g: F.grid_sample(x, g, align_corners=False), image, grid)
    assert (what, before) == (f"memory traffic, {outcome.BY_FUSION}", "")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("mode", "neighbours"), [("bilinear", 4), ("nearest", 1), ("bicubic", 16)])
def test_a_sampler_reads_the_neighbours_of_each_point(mode: str, neighbours: int) -> None:
    def sample(image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return F.grid_sample(image, grid, mode=mode, align_corners=False)

    image, grid = x(2, 3, 50, 50), x(2, 4, 5, 2)
    made = 2 * 3 * 4 * 5
    (op,) = capture(sample, image, grid).compilations[0].eager
    assert op.nbytes == made * neighbours * F4 + grid.numel() * F4 + made * F4


def test_before_fusion_eager_operators_move_their_own_bytes() -> None:
    found = traffic(lambda x: F.gelu(x) + 1, x(1000, 1000))
    assert found == ("memory traffic, eager operators before", "~16 MB", "~8 MB")


def test_fused_operators_are_a_saving() -> None:
    found = traffic(lambda x: x.sin() ** 2 + x.cos() ** 2, x(1000, 1000))
    assert found == ("memory traffic", "~44 MB", "~8 MB")


def test_more_traffic_than_before_is_said() -> None:
    found = traffic(lambda x, i, v: x.scatter_add_(0, i, v), x(1000, 1000), at(1000, 5, 1000), x(5, 1000))
    assert found == (f"memory traffic, {outcome.BY_FUSION}", "~100 kB", "~16.1 MB")


def test_one_text_that_is_launched_twice_counts_both_launches() -> None:
    record = capture(lambda x, i, v: x.scatter_add_(0, i, v), x(1000, 1000), at(1000, 5, 1000), x(5, 1000))
    (copies,) = [k for k in record.kernels if k.launches == 2]
    assert (copies.reads, copies.writes) == (2 * SQUARE, 2 * SQUARE)


MASKS = [mask for mask in itertools.product((False, True), repeat=3) if any(mask)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_the_backward_of_a_convolution_reads_what_its_gradients_need(
    mask: tuple[bool, ...], transposed: bool
) -> None:
    """An argument is read if it changes a requested gradient. A library may return more gradients than requested."""
    image, kernel = x(2, 3, 8, 8), x(3, 3, 3, 3)
    rest = ([3], [1, 1], [0, 0], [1, 1], transposed, [0, 0], 1, list(mask))
    gradient = x(*(2, 3, 10, 10) if transposed else (2, 3, 6, 6))
    call = torch.ops.aten.convolution_backward.default

    def gradients(*operands: torch.Tensor) -> list[torch.Tensor]:
        return [one for one, wanted in zip(call(gradient, *operands, *rest), mask) if wanted]

    results = gradients(image, kernel)
    reads = gradient.nbytes
    for changed in ((image + 1, kernel), (image, kernel + 1)):
        others = gradients(*changed)
        if not all(map(torch.equal, results, others)):
            reads += (image if changed[1] is kernel else kernel).nbytes
    moved = accesses.moved(call, (gradient, image, kernel, *rest), {}, results)
    assert moved == (reads, sum(one.nbytes for one in results))


@pytest.mark.parametrize("trained", ["image", "kernel", "both"])
def test_a_convolution_that_trains_in_part_reads_in_part(trained: str) -> None:
    image = x(2, 3, 8, 8).requires_grad_(trained != "kernel")
    kernel = x(4, 3, 3, 3).requires_grad_(trained != "image")
    ledger = capture(F.conv2d, image, kernel).ledger
    gradient = 2 * 4 * 6 * 6 * F4
    moved = {"image": kernel.nbytes + image.nbytes, "kernel": image.nbytes + kernel.nbytes}
    moved["both"] = sum(moved.values())
    assert ledger.backward.bytes_before == gradient + moved[trained]


@pytest.mark.parametrize(
    ("function", "inputs", "nbytes"),
    [
        # Read x, write o; then read o and write the sum.
        pytest.param(lambda x, o: torch.sin(x, out=o) + 1, ((100,), (100,)), 4 * 400, id="out"),
        pytest.param(
            lambda x, o: torch.add(x, o, out=o), ((100,), (100,)), 3 * 400, id="out is an operand too"
        ),
        pytest.param(
            lambda a, b, c, d: torch._foreach_copy_([a, b], [c, d]),
            ((64,), (32,), (64,), (32,)),
            2 * 384,
            id="copy",
        ),
        pytest.param(lambda a, b: torch._foreach_zero_([a, b]), ((64,), (32,)), 384, id="zero"),
        pytest.param(lambda x: torch.bernoulli(x, 0.5), ((100,),), 400, id="one probability"),
        pytest.param(torch.bernoulli, ((100,),), 2 * 400, id="a probability for each"),
    ],
)
def test_what_is_written_over_is_not_read(
    function: Callable[..., Any], inputs: tuple[tuple[int, ...], ...], nbytes: int
) -> None:
    """By hand, with four bytes for each number."""
    (compilation,) = capture(function, *(torch.rand(shape) for shape in inputs)).compilations
    assert sum(op.nbytes or 0 for op in compilation.eager or ()) == nbytes


@pytest.mark.full
@pytest.mark.parametrize("trained", [False, True])
def test_the_backward_of_a_sampler_reads_the_neighbours_of_each_point(trained: bool) -> None:
    """By hand: few points of a large image. Torch always computes the gradient of the grid, which reads the image."""
    image, grid = torch.rand(1, 3, 64, 64, requires_grad=True), torch.rand(1, 2, 2, 2, requires_grad=trained)
    (compilation,) = capture(lambda x, g: F.grid_sample(x, g, align_corners=False), image, grid).compilations
    (backward,) = (
        op for op in compilation.eager or () if op.name.startswith("aten.grid_sampler_2d_backward")
    )
    points, channels, pixels = 4, 3, 64 * 64
    reads = points * channels + 2 * points + 4 * points * channels
    writes = channels * pixels + 2 * points
    assert backward.nbytes == 4 * (reads + writes)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_margin_loss_reads_the_weights_of_its_targets(weighted: bool) -> None:
    """By hand: two of 70 classes are targets, one of them twice."""
    scores, targets = torch.randn(3, 70, requires_grad=True), torch.tensor([4, 4, 17])
    weights = torch.rand(70) if weighted else None

    def loss(x: Any, t: Any, w: Any) -> Any:
        return F.multi_margin_loss(x, t, weight=w)

    if weights is not None:
        others = [weights.clone().index_fill_(0, torch.tensor([at]), torch.nan) for at in range(70)]
        read = [at for at, other in enumerate(others) if loss(scores, targets, other).isnan()]
        assert read == [4, 17]
    (compilation,) = capture(loss, scores, targets, weights).compilations
    forward, backward = (op.nbytes for op in compilation.eager or () if "margin" in op.name)
    inputs = scores.nbytes + targets.nbytes + 3 * 4 * weighted
    assert (forward, backward) == (inputs + 4, inputs + 4 + scores.nbytes)


@pytest.mark.skipif(versions.torch_version() < (2, 13), reason="this torch has no fake quantized tensors")
@pytest.mark.parametrize(
    "quantized",
    [
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize(),
        lambda x: torch.quantize_per_tensor(x, torch.tensor(0.1), torch.tensor(0), torch.qint8).dequantize(),
    ],
)
def test_what_quantizes_moves_bytes_that_are_not_known(quantized: Callable[..., Any]) -> None:
    """Quantized tensors have one byte per element, fake ones four; so the sum includes the sine only."""
    given = torch.ones(4, 8)
    assert torch.quantize_per_tensor(given, 0.1, 0, torch.quint8).element_size() == 1
    with FakeTensorMode() as mode:
        fake = torch.quantize_per_tensor(mode.from_tensor(given), 0.1, 0, torch.quint8)
    assert fake.element_size() == 4
    ledger = capture(lambda x: quantized(x.sin()), given).ledger.total
    for figure in (ledger.eager_bytes, ledger.bytes_before, ledger.bytes_after):
        assert isinstance(figure, AtLeast) and figure.least >= 2 * given.nbytes, figure


@pytest.mark.skipif(versions.torch_version() < (2, 13), reason="this torch has no fake quantized tensors")
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint32])
def test_what_is_quantized_has_its_own_type_and_memory(dtype: torch.dtype) -> None:
    given = torch.ones(64, 64)
    real = torch.quantize_per_tensor(given, 0.1, 0, dtype)
    nbytes = real.numel() * real.element_size()
    (compilation,) = capture(
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, dtype).dequantize(), given
    ).compilations
    nodes = [
        n for g in compilation.graphs.values() for n in g.nodes if n.target.find(".quantize_per_tensor") > 0
    ]
    assert {(t.dtype, t.nbytes) for n in nodes for t in n.outputs} == {(str(dtype)[6:], nbytes)}
    for stage in ("inference.loops", "inference.groups"):
        results = [(t.dtype, t.nbytes) for n in compilation.graphs[stage].nodes for t in n.outputs]
        assert results == [("float32", given.nbytes), (str(dtype)[6:], nbytes), ("float32", given.nbytes)]
    (memory,) = compilation.memory
    assert [b.nbytes for b in memory.buffers] == [given.nbytes, nbytes, given.nbytes]
    assert memory.peak == 2 * given.nbytes + nbytes
