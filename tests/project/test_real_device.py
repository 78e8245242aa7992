"""The comparison with a real NVIDIA GPU, as far as it runs without one: its table, its words, its exit code."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from compile_lens import capture

pytestmark = pytest.mark.torch

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "real_device.py"
spec = importlib.util.spec_from_file_location("real_device", FILE)
assert spec is not None and spec.loader is not None
benchmark = sys.modules["real_device"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)

ROWS = [
    benchmark.Row("suite", "softmax", (), (), 2, 2, 2**20, 2**20),
    benchmark.Row("suite", "sum", ("code", "counts"), ("a sentence",), 2, 3, 2**20, 2**21),
    benchmark.Row("suite", "largest", ("breaks",), (), 1, 1, 8, 512),  # too little memory to be compared
    benchmark.Row("models", "a|b", notes=("ValueError: of which 1|2",)),
]
TABLE = """\
| programs | of them | the same in all | differ | kernels as profiled | peak within 2 % |
| --- | ---: | ---: | ---: | ---: | ---: |
| suite | 3 | 1 | 2 | 2 of 3 | 1 of 2 |
| models | 1 | 0 | 0 | 0 of 0 | 0 of 0 |

- suite, sum: code, counts
- suite, sum: said: a sentence
- suite, sum: 2 launches of generated kernels, 3 by the profiler
- suite, sum: peak 1.00 MiB, by the allocator 2.00
- suite, largest: breaks
- models, a|b: ValueError: of which 1|2
"""


def test_the_table() -> None:
    assert benchmark.table(ROWS) == TABLE


def test_the_speeds() -> None:
    """8 GB in 4 ms are 2,000 GB/s: half of 4 TB/s, and four fifths of a copy at 2.5 TB/s."""
    speeds = [benchmark.Speed("sum", 8 * 10**9, 4e-3, 2.5e12)]
    assert benchmark.of_speed(speeds, 4e12).splitlines()[2] == "| sum | 8.00 | 2,000 | 80% | 50% |"
    assert benchmark.of_speed(speeds, 0).splitlines()[2].endswith("| – |")


@pytest.mark.full
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an NVIDIA GPU in this machine")
def test_without_a_device_it_says_so() -> None:
    done = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, timeout=300)
    assert done.returncode == benchmark.NO_DEVICE == 3 and done.stdout == ""
    assert "no NVIDIA GPU in this machine" in done.stderr


def test_a_group_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main(["--groups", "nonsense"])
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert "'nonsense'" in output and "'optimizers'" in output


@pytest.mark.full
def test_captures_are_compared_and_a_peak_is_read() -> None:
    x = torch.ones(1024)
    one = capture(lambda x: x.sin() + 1, x, target="h100")
    assert benchmark.same(one.kernels, capture(lambda x: x.sin() + 1, x, target="h100").kernels)
    assert benchmark.apart(one, capture(lambda x: x.sin() + 1, x, target="h100")) == ()
    other = capture(lambda x: x.cos() + 1, x, target="h100")
    assert not benchmark.same(one.kernels, other.kernels)
    assert benchmark.apart(one, other) == (
        "code",
        "Dynamo's graphs",
        "ATen graphs, loops and groups",
        "eager operators",
    )
    assert benchmark.peak_of(one) == 2 * 4 * 1024  # one in, one out
    rows = torch.rand(8, 1024, requires_grad=True)
    # Softmax saves its result: input, result, and the gradients of both.
    assert benchmark.peak_of(capture(lambda x: torch.softmax(x, -1), rows, target="h100")) == 4 * rows.nbytes


def test_what_a_program_is_given_is_found() -> None:
    model, x = torch.nn.Linear(2, 3), torch.rand(1, 2)
    assert {id(t) for t in benchmark.tensors_of(model, (x,))} == {id(x), *map(id, model.parameters())}
    assert {id(t) for t in benchmark.tensors_of(lambda x: model(x), (x,))} == {
        id(x),
        *map(id, model.parameters()),
    }
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    optimizer.step()
    assert len(benchmark.tensors_of(optimizer.step, ())) == 6  # two weights, their gradients, and momenta


def test_the_programs_switches_are_put_back() -> None:
    before = torch.backends.cuda.flash_sdp_enabled()
    with benchmark.switches():
        torch.backends.cuda.enable_flash_sdp(not before)
    assert torch.backends.cuda.flash_sdp_enabled() == before
