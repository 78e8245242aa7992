"""Lesson 8, Triton and Metal without the device: its output, and the claims of its text."""

from __future__ import annotations

import re

import lessons
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("08")


@pytest.mark.exhaustive
def test_it_reads_blocks_and_threads() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    program = cells["triton"]
    assert program.startswith("def triton_poi_fused_mul_sin_0(") and "for " not in program
    for text in ("tl.program_id(0) * XBLOCK", "xmask = xindex < xnumel", "tl.load(in_ptr0 + (x0), xmask)"):
        assert text in program
    odd, even = cells["mask"].strip().split("\n\n")
    assert "xindex < xnumel" in odd and "xindex < xnumel" not in even
    assert "tl.load(in_ptr0 + (x0), None)" in even and "tmp3, None)" in even
    assert "[[thread_position_in_grid]]" in cells["metal"] and "mask" not in cells["metal"]


@pytest.mark.exhaustive
def test_a_mask_may_be_in_the_way_of_wide_loads() -> None:
    """Triton's own PTX loads two or four numbers at once if no mask ends between them."""
    pytest.importorskip("triton")
    assert "with 1,001 numbers, the end falls inside" in lessons.prose(NAME)["mask-meaning"]

    def widths(size: int) -> set[str]:
        record = capture(lambda x: torch.sin(x) * 2, torch.rand(size), target="h100", build=True)
        return set(re.findall(r"ld\.global\.(?:v(\d)\.)?b32", record.kernels[0].ptx or ""))

    assert widths(1001) == {""} and widths(2**20) & {"2", "4"}


@pytest.mark.exhaustive
def test_a_softmax_is_one_kernel_or_several() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert re.findall(r"the capture has (\d) launch", cells["softmax"]) == ["1", "3"]
    last, first = cells["loads"].split("over the first dimension: ")
    least = 2 * 512 * 512 * 4
    assert f"over the last dimension: {least:,} bytes" in last
    assert int(first.partition(" bytes")[0].replace(",", "")) > 1.5 * least
    assert re.findall(r"loads at (.*)", last) == ["r0_1 + 512*x0"]
    assert all(index.startswith("x") for index in re.findall(r"loads at (.*)", first)), (
        "the column runs fastest"
    )
    kinds = re.findall(r"triton_(\w{3})_", first)
    assert kinds == ["red", "per", "poi"], "the pieces, their results, and the division"
    assert re.findall(r"kernels in Metal: (\d)", cells["metal-softmax"]) == ["1", "5"]


def test_a_long_row_is_read_in_loops() -> None:
    """The slider shows one kernel for each size, whose loads and loops match the text."""
    prose = lessons.prose(NAME)
    longest, loads = lessons.said(prose["columns-meaning"], r"Up to ([\d,]+) columns .* appears (\w+) times")
    for columns in (512, longest, longest + 1, 2048):
        assert str(columns) in prose["columns"]
        record = capture(lambda x: torch.softmax(x, -1), torch.rand(512, columns), target="h100")
        (kernel,) = record.kernels
        counts = kernel.source.count("tl.load("), kernel.source.count("for r0_offset in")
        assert counts == ((1, 0) if columns <= longest else (loads, 2))
        assert record.ledger.total.bytes_after == 2 * 512 * columns * 4


@pytest.mark.exhaustive
def test_a_warp_reads_sectors() -> None:
    """Counted from the numbers' addresses: the 32-byte sectors that those of a column lie in."""
    rows = lessons.text(lessons.run(NAME)["sectors"]).splitlines()
    printed = [
        tuple(map(int, re.findall(r"(\d+) sectors: +(\d+) bytes sent for (\d+)", row)[0])) for row in rows
    ]
    counts = []
    for columns in (1, 2, 8, 32):
        column = torch.empty(1024, columns)[:, 0]
        sectors = {number.data_ptr() // 32 for number in column[:32]}
        counts.append((len(sectors), 32 * len(sectors), column[:32].numel() * 4))
    assert printed == counts
    drawn = [re.split(r"\s{2,}|\d", row.split(maxsplit=1)[1])[0] for row in rows]
    assert [row.replace(" ", "").count("#") for row in drawn] == [32, 16, 4, 4]
    assert len({row.rpartition("ledger ")[2] for row in rows}) == 1, "so is the count of the ledger"
    prose = lessons.prose(NAME)
    times = counts[2][1] // counts[2][2]
    assert lessons.said(prose["sectors-meaning"], r"sends (\w+) times as much as the kernel uses") == (times,)
    assert lessons.said(prose["warp-why"], r"needs at least (\w+) sectors") == (counts[0][0],)
    assert counts[2] == counts[3] and "With 32 columns it gets no worse" in prose["sectors-meaning"]


@pytest.mark.exhaustive
def test_sizes_say_how_far_away_a_row_lies() -> None:
    """Bytes of real tensors against the published sizes of an H100: 228 KiB of shared memory, 50 MiB of L2."""
    text = lessons.text(lessons.run(NAME)["levels"])
    assert re.findall(r"([\d,]+) KiB +=+ +(.+)", text)[:3] == [
        ("256", "registers"),
        ("228", "shared memory"),
        ("51,200", "L2"),
    ]
    for columns, row, rows in re.findall(r"([\d,]+) columns: .* → (.*); .* → (.*)", text):
        m = torch.empty(512, int(columns.replace(",", "")), device="meta")
        near = "shared memory" if m[0].nbytes <= 228 * 2**10 else "L2"
        assert (row, rows) == (near, "L2" if m.nbytes <= 50 * 2**20 else "memory")
    prose = lessons.prose(NAME)["levels-meaning"]
    assert "A row of 16,384 numbers fits" in prose
    assert "all 512 rows of 16,384 numbers fit, but not those of 65,536" in prose


@pytest.mark.exhaustive
def test_a_training_step_is_in_mixed_precision() -> None:
    """PyTorch's own list of autocast on CUDA: products in the lower type, a log softmax in float32."""
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    matches = re.findall(r"(\w+) +launches (\d+), bytes ([\d,]+)", cells["step"])
    (_, launches, moved), (_, mixed_launches, mixed_moved) = matches
    assert [name for name, _, _ in matches] == ["float32", "autocast"]
    assert int(mixed_launches) > int(launches), "More kernels"
    assert int(mixed_moved.replace(",", "")) < int(moved.replace(",", "")), "and fewer bytes"
    rows = [tuple(line.split(maxsplit=2)) for line in cells["step-types"].splitlines()]
    assert [dtype for dtype, op, _ in rows if op == "addmm"] == ["bfloat16"] * 2
    assert {dtype for dtype, op, _ in rows if op in ("exp", "sum", "log")} == {"float32", "int64"}
    converted = [shape for dtype, op, shape in rows if (dtype, op) == ("bfloat16", "convert_element_type")]
    parameters = ["(1024,)", "(1024, 1024)", "(10,)", "(10, 1024)"]
    assert sorted(parameters) == sorted(set(converted) & set(parameters)), "each weight is converted"
    assert cells["step-types"].index("addmm") < cells["step-types"].index("float32")


@pytest.mark.exhaustive
def test_what_autocast_leaves_alone_is_rounded() -> None:
    """Torch itself, on tensors without data: the loss is float32, the logarithms have the requested type."""
    with FakeTensorMode():
        x = torch.empty(4096, 10, device="cuda", dtype=torch.bfloat16)
        labels = torch.empty(4096, dtype=torch.int64, device="cuda")
        before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        torch.set_autocast_enabled("cuda", True)
        try:
            logs = torch.log_softmax(x, -1, dtype=x.dtype)
            types = (
                torch.log_softmax(x, -1).dtype,
                logs.dtype,
                torch.nn.functional.nll_loss(logs, labels).dtype,
            )
        finally:
            torch.set_autocast_enabled("cuda", before[0])
            torch.set_autocast_dtype("cuda", before[1])
    assert types == (torch.float32, torch.bfloat16, torch.float32)
    rows = [line.split(maxsplit=2) for line in lessons.text(lessons.run(NAME)["step-types"]).splitlines()]
    last = max(i for i, (_, op, shape) in enumerate(rows) if (op, shape) == ("sub", "(4096, 10)"))
    assert [row[:2] for row in rows[last : last + 3]] == [
        ["float32", "sub"],
        ["bfloat16", "convert_element_type"],
        ["float32", "convert_element_type"],
    ]
    assert "the result is rounded to `bfloat16`, and converted back" in lessons.prose(NAME)["step-meaning"]


@pytest.mark.exhaustive
def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    last, first = map(int, re.findall(r"the capture has (\d) launch", cells["softmax"]))
    sentence = r"softmax is (\w+) kernel that moves as little as possible; over the first it is (\w+) on"
    assert lessons.said(prose["take-home"], sentence) == (last, first)
    assert lessons.said(prose["loads-meaning"], r"are (\d+) places apart") == (512,)
    metal = capture(lambda x: torch.softmax(x, 0), torch.rand(512, 512), target="mps").kernels
    kinds = [re.findall(r"threadgroup_(max|sum)|(/)", kernel.source) for kernel in metal]
    assert ["".join(found[0]) for found in kinds] == ["max", "max", "sum", "sum", "/"]
    assert lessons.said(prose["metal-softmax-meaning"], r"^(\w+): .* takes (\w+) kernels") == (5, 2)
    assert "prepare_softmax_online" in cells["loads"]
    assert "512*r0_" in cells["loads"] and "`512*r0_…`" in prose["loads-meaning"]


@pytest.mark.exhaustive
def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
