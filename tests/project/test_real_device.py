"""The comparison with a real NVIDIA GPU, as far as it can be tried without one: its table, its words, its exit."""

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
    benchmark.Row("softmax", True, 1, 1, 4_000_000, 2e-6, 2**20, 2**21),
    benchmark.Row("a|b", False, 2, 3, notes=("ValueError: of which 1|2",)),
]
TABLE = """\
| function | code | launches | profiler | MB moved | GB/s | of published | peak MiB | allocator |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| softmax | the same | 1 | 1 | 4.00 | 2,000.0 | 50% | 1.00 | 2.00 |
| a\\|b | **differs** | 2 | **3** | – | – | – | – | – |

- a|b: ValueError: of which 1|2
"""


def test_the_table() -> None:
    assert benchmark.table(ROWS, 4e12) == TABLE
    assert "50%" not in benchmark.table(ROWS, 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an NVIDIA GPU in this machine")
def test_without_a_device_it_says_so() -> None:
    done = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, timeout=300)
    assert done.returncode == benchmark.NO_DEVICE == 3 and done.stdout == ""
    assert "no NVIDIA GPU in this machine" in done.stderr


def test_a_function_that_the_suite_has_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark.main(["--only", "nonsense"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "'nonsense'" in said and "'softmax'" in said


def test_code_is_compared_and_a_peak_is_read() -> None:
    x = torch.ones(1024)
    one = capture(lambda x: x.sin() + 1, x, target="h100")
    assert benchmark.same(one.kernels, capture(lambda x: x.sin() + 1, x, target="h100").kernels)
    assert not benchmark.same(one.kernels, capture(lambda x: x.cos() + 1, x, target="h100").kernels)
    assert benchmark.peak_of(one) == 2 * 4 * 1024  # one in, one out
