"""Lesson 12, scale and science: its output, and the claims of its text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lessons
import pytest
import torch
import torch.distributed as dist
from answers.twelve import with_a_sum_in_the_product
from bilingual import FENCE
from plain_graphs import compiled
from quiz_answers import counted
from torch._inductor.utils import run_and_get_code

from compile_lens import capture
from compile_lens.course import check
from compile_lens.course.lessons import EXERCISES
from compile_lens.course.lessons.twelve import one_by_one, slow_block
from compile_lens.course.reference import made

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("12")


def _cells() -> dict[str, str]:
    return {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}


def _numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


@pytest.mark.exhaustive
def test_a_loop_is_not_a_batch() -> None:
    cells = _cells()
    assert [_numbers(line) for line in cells["loop"].splitlines()] == [
        [10, 11],
        [20, 21],
        [40, 41],
        [2000, 1],
    ]
    assert "no guess; the capture has 41 launches" in cells["loop-reveal"]
    assert "no guess; the capture has 1 launch" in cells["loop-reveal"]
    ten, twenty, batch = map(_numbers, cells["closed"].splitlines())
    assert (ten[:2], twenty[:2], batch[:2]) == ([10, 1], [20, 1], [2000, 1])
    assert twenty[2] > 1.8 * ten[2] and batch[2] < ten[2], "the code grows with the number of matrices"


@pytest.mark.exhaustive
def test_what_science_asks_for_is_called() -> None:
    cells = _cells()
    rows = {line.split()[0]: tuple(_numbers(line)) for line in cells["science"].splitlines()}
    assert rows["closed"] == (1, 0) and rows["by_triangles"] == (1, 2)
    assert rows["rotated"][0] == rows["smoothed"][0] == 0, "nothing was written"
    assert rows["rotated"][1] == 2, "a product and a sum"
    assert cells["science-same"] == "(True, True)"


def test_some_complex_arithmetic_is_written() -> None:
    """The code that plain torch generates confirms the claims about sums and parts of complex tensors."""
    z, w = (torch.rand(1000, dtype=torch.complex64) for _ in range(2))

    def kernels(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> int:
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, (code,) = run_and_get_code(torch.compile(function), *inputs)
        return int(code.count("= async_compile.cpp_pybinding("))

    assert kernels(lambda z: z * z + 1, z) == kernels(lambda z, w: z * w, z, w) == 0
    assert kernels(lambda z, w: z + w, z, w) == kernels(lambda z: z.real * 2, z) == 1
    assert "It can add two complex tensors" in lessons.prose(NAME)["science-meaning"]


def test_the_calls_of_a_loop_are_made_by_python() -> None:
    """The wrapper calls the library once for each matrix, as the text claims."""
    torch._dynamo.reset()
    _, (code,) = run_and_get_code(torch.compile(one_by_one), torch.rand(40, 3, 3))
    assert code.count("torch.ops.aten._linalg_det.default(") == 40
    assert "The compiled result is forty library calls" in lessons.prose(NAME)["loop-meaning"]


@pytest.mark.exhaustive
def test_buckets_are_graphs() -> None:
    cells = _cells()
    rows = [_numbers(line) for line in cells["buckets"].splitlines()]
    assert [row[:2] for row in rows] == [[25, 2], [3, 3], [2, 4], [1, 6]]
    assert len({row[2] for row in rows}) == 1, "the launches are the same in all four"
    assert [row[3:] for row in rows] == [[1, 5], [3, 3], [2, 2, 2], [1] * 6], "what DDP sends"
    assert "no guess; the capture has 2 graphs compiled by themselves" in cells["buckets-reveal"]


class _Layers(torch.nn.Module):
    """The network of the lesson."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512, bias=False) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@pytest.mark.exhaustive
def test_torch_counts_as_many_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A custom backend receives this many graphs, of as many layers as the text claims; DDP reports its buckets."""
    handed: list[int] = []

    def backend(module: Any, _: Any) -> Any:
        handed.append(sum(node.op == "call_function" for node in module.graph.nodes))
        return module

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[no-untyped-call]
    counts, sent = {}, {}
    try:
        for megabytes in (None, 25, 3, 2, 1):
            handed.clear()
            torch._dynamo.reset()  # or code compiled for one network would be reused for the next
            network = torch.nn.parallel.DistributedDataParallel(_Layers(), bucket_cap_mb=megabytes)
            for _ in range(3):  # from the second call on it logs the split
                network(torch.rand(8, 512)).sum().backward()
            logged = network._get_ddp_logging_data()["rebuilt_bucket_sizes"]
            sent[megabytes] = [int(size) / 2**20 for size in logged.split(", ")]
            torch.compile(network, backend=backend)(torch.rand(8, 512))
            counts[megabytes] = sorted(calls // 2 for calls in handed)  # a product and its relu
    finally:
        dist.destroy_process_group()
    assert counts == {None: [1, 5], 25: [1, 5], 3: [1, 2, 3], 2: [1, 1, 2, 2], 1: [1] * 6}
    assert sent == {None: [1, 5], 25: [6], 3: [3, 3], 2: [2, 2, 2], 1: [1] * 6}
    prose = lessons.prose(NAME)
    for claim in (
        "it sends one layer, and then five",
        "DDP has no small first bucket: three layers and three; two, two and two.",
        "after it come five layers in one graph; three and two; two, two and one; one each",
    ):
        assert claim in prose["buckets-meaning"]
    sentence = r"six layers of (\d) MiB are (\w+) graphs or (\w+), depending on the size"
    assert lessons.said(prose["take-home"], sentence) == (1, len(counts[25]), len(counts[1]))
    weights = next(_Layers().parameters())
    assert weights.nbytes == 2**20 and len(list(_Layers().parameters())) == 6


@pytest.mark.exhaustive
def test_a_layer_is_divided() -> None:
    """Plain torch confirms that the parts add up to the layer, and a process sends all sums in one call of a graph."""
    rows = _cells()["parallel"].splitlines()
    assert [_numbers(row.partition("up: ")[0]) for row in rows] == [
        [n, of] for of in (2, 4) for n in range(of)
    ]
    x, up, down = torch.rand(64, 256), torch.rand(256, 1024), torch.rand(1024, 256)
    whole = torch.relu(x @ up) @ down
    for processes in (2, 4):
        halves = zip(up.chunk(processes, 1), down.chunk(processes, 0), strict=True)
        parts = [(torch.relu(x @ one) @ other, one) for one, other in halves]
        torch.testing.assert_close(sum(part for part, _ in parts), whole)
        part, weights = parts[0]
        expected = f"up: float32{[*weights.shape]}; in the graph: all_reduce {part.nbytes:,} bytes"
        assert [row.partition(": ")[2] for row in rows if f"of {processes}" in row] == [expected] * processes
    calls: list[str] = []

    def backend(module: Any, _: Any) -> Any:
        calls.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
        return module

    def layer(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x @ up) @ down
        dist.all_reduce(y)
        return y + x

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[no-untyped-call]
    try:
        torch._dynamo.reset()
        torch.compile(layer, backend=backend, fullgraph=True)(x, up, down)
    finally:
        dist.destroy_process_group()
    assert sum("all_reduce" in name for name in calls) == 1
    assert "The call is *in* the graph" in lessons.prose(NAME)["parallel-meaning"]


@pytest.mark.exhaustive
def test_layers_in_a_line_wait_at_both_ends() -> None:
    """By hand: with s stages and n pieces, s · (s - 1) places of s · (n + s - 1) are empty (GPipe, section 2.3)."""
    cells = _cells()
    rows = [row.partition("; ") for row in cells["pipeline"].splitlines()]
    assert [_numbers(row) for row, _, _ in rows] == [[n, 2, 0] for n in range(3)]
    assert [row for _, _, row in rows] == [
        " ".join(["send(1)"] * 4),
        " ".join(["recv(0) send(2)"] * 4),
        " ".join(["recv(1)"] * 4),
    ]
    drawings = cells["pipeline-drawn"].strip().split("\n\n")
    for drawing, pieces in zip(drawings, (1, 4, 12), strict=True):
        *lines, summary = drawing.splitlines()
        assert _numbers(summary) == [pieces, round(100 * 2 / (pieces + 2))]
        worked = " ".join(str(piece % 10) for piece in range(pieces))
        assert [line.partition(": ")[2] for line in lines] == [
            " ".join(["."] * rank + [worked] + ["."] * (2 - rank)) for rank in range(3)
        ]
    assert "No call is in the graphs" in lessons.prose(NAME)["pipeline-meaning"]


@pytest.mark.exhaustive
def test_the_roof_is_where_the_text_says() -> None:
    cells = _cells()
    rows = [line.split() for line in cells["roof"].splitlines()]
    bound = {row[2]: row[1] for row in rows if row[0] == "dense"}
    assert bound == {"extern_kernels.mm": "Compute-bound", "triton_poi_fused_tanh_0": "Memory-bound"}
    assert [row[1] for row in rows if row[0] == "whole"] == ["Memory-bound"] * (len(rows) - 2)
    assert any("mm" in row[2] for row in rows if row[0] == "whole"), "and the small product"
    (drawn,) = lessons.run(NAME)["roof-drawn"]
    assert "<svg" in drawn.data["image/svg+xml"]
    assert lessons.said(lessons.prose(NAME)["roof-meaning"], r"has the (\w+) kernels of `dense`") == (
        len(bound),
    )

    def whole(matrices: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return torch.tanh(matrices.flatten(1) @ weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = capture(whole, torch.rand(2000, 3, 3), torch.rand(9, 64), target="h100")
    seconds = record.roofline().seconds
    assert seconds is not None and seconds < 2e-6, "a launch alone takes longer"


@pytest.mark.exhaustive
def test_a_page_is_saved() -> None:
    cells = _cells()
    assert re.fullmatch(r"for-a-colleague\.html: [\d,]+ kB, all in one file\n", cells["page"])
    (shown,) = [o for o in lessons.run(NAME)["own"] if o.output_type in ("display_data", "execute_result")]
    assert "compiled: 1 graph, forward and backward" in shown.data["text/plain"]


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    launches = [capture(one_by_one, torch.rand(n, 3, 3)).ledger.total.launches for n in (2, 3, 5)]
    assert launches == [3, 4, 6], "one for each matrix, and one more"
    assert lessons.said(prose["loop-meaning"], r"Two thousand iterations would be ([\d,]+) launches") == (
        2001,
    )
    assert lessons.said(prose["loop-meaning"], r"We stop at (\d+)") == (40,)
    assert "two thousand determinants are one launch" in prose["take-home"]


@pytest.mark.exhaustive
def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)


@pytest.mark.exhaustive
def test_a_program_is_watched() -> None:
    """A print splits it in two: each half is compiled and recompiled for the last batch, the first for a number too."""
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    counts, cut, *again = cells["program-slower"].splitlines()
    assert cut == 'break: print(step, end=" ")'
    assert again == [
        "recompile: step 0 → 1",
        "recompile: matrices.size(0) 32 → 20",
        "recompile: found.size(0) 32 → 20",
    ]
    assert counts == f"graphs {2 + len(again)}, recompiles {len(again)}"
    assert lessons.said(lessons.prose(NAME)["program-meaning"], r"cuts the function in (\w+)") == (2,)
    assert " ".join(cells["program"].split()) == "0 1 2 3 4 5", "as without a watch"


@pytest.mark.exhaustive
def test_what_a_print_costs_is_told() -> None:
    """One break, one graph and one launch of the backward, as captures of both versions count them."""
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    cause, so, fused = cells["program-diff"].strip().splitlines()[-3:]
    assert cause.startswith("a graph break is gone: ") and cause.endswith('print(step, end=" ")')
    assert "graphs 2 → 1 (-1), graph breaks 1 → 0 (-1), launches 5 → 4 (-1)" in so
    assert fused.startswith("backward: ") and "was several groups, and is one" in fused
    assert "the kernels that were separate are now fused" in lessons.prose(NAME)["program-diff-meaning"]


def test_the_model_of_the_exercise_is_what_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operators and graphs by plain torch; the text's program is the one that others are compared with."""
    monkeypatch.chdir(tmp_path)
    text = lessons.prose(NAME)["task-4"]
    inputs = made(EXERCISES["12.4"].inputs)
    (program,) = FENCE.findall(text)
    scope: dict[str, Any] = {"torch": torch}
    exec(program, scope)
    assert torch.equal(scope["slow_block"](*inputs), slow_block(*inputs))
    row = capture(slow_block, *inputs).ledger.total
    assert (row.eager_ops, row.launches) == lessons.said(text, r"runs (\d+) operators .* with (\d+) launches")
    assert row.eager_ops <= counted(slow_block, *inputs).operators  # views are not counted there
    assert compiled(slow_block, [tuple(inputs)]) == 2 and "it is two graphs" in text

    assert check("12.4", with_a_sum_in_the_product)
    launches = capture(with_a_sum_in_the_product, *inputs).ledger.total.launches
    assert launches == 8 and "Fewer than 9 are possible" in text
