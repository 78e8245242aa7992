"""The trace of a real NVIDIA H100 and the capture made there: each event has the device's own time.

Recorded with torch 2.11.0 for CUDA 13.0: the net of ``helpers/profiled.py`` with layers of 512 and 1,024 features on
256 rows, compiled, profiled for three steps together with another function. The trace is as the profiler
exported it, without events that do not describe execution; the capture leaves out folders of the machine.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from full_text import full

from compile_lens import Capture
from compile_lens.record.benchmark import BY_NAME, BY_ORDER, MeasuredKernel

RECORDED = Path(__file__).parents[1] / "helpers" / "recorded"
TRACE = RECORDED / "h100-trace.json.gz"


@pytest.fixture(scope="module")
def joined() -> Capture:
    text = gzip.decompress((RECORDED / "h100-capture.json.gz").read_bytes()).decode()
    return Capture.from_json(text).join(TRACE, id="0/0")


@pytest.fixture(scope="module")
def on_device() -> dict[str, list[tuple[float, float]]]:
    """Start and duration of each kernel run in microseconds, by kernel name."""
    found = defaultdict(list)
    for event in json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"]:
        if event["cat"] in ("kernel", "gpu_memset"):
            found[event["name"]].append((event["ts"], event["dur"]))
    return {name: sorted(times) for name, times in found.items()}


def kernels(joined: Capture, phase: str) -> list[MeasuredKernel]:
    assert joined.profile is not None and joined.profile.device == "cuda"
    (graph,) = [g for g in joined.profile.graphs if g.phase == phase]
    return list(graph.kernels)


def test_each_kernel_of_the_code_is_measured(joined: Capture) -> None:
    for phase in ("forward", "backward"):
        found = kernels(joined, phase)
        assert [k.kernel for k in found] == [k.name for k in joined.kernels if k.phase == phase]
        assert all(k.host_seconds is not None and 0 < k.seconds < k.host_seconds for k in found)
        launches = {k.name: k.launches for k in joined.kernels if k.phase == phase}
        assert {k.kernel: k.launches for k in found} == {name: 3 * n for name, n in launches.items()}
    assert joined.profile is not None and not any(g.missing for g in joined.profile.graphs if g.compilation)


def test_times_are_the_devices(joined: Capture, on_device: Any) -> None:
    """Inductor's kernels match by name. If forward and backward share one, the forward's comes first in each step."""
    forward, backward = kernels(joined, "forward"), kernels(joined, "backward")
    both = {k.kernel for k in forward} & {k.kernel for k in backward}
    assert "triton_red_fused_sum_2" in both
    for phase, found in enumerate((forward, backward)):
        for kernel in (k for k in found if k.matched_by == BY_NAME):
            times = [took for _, took in on_device[kernel.name]]
            own = times[phase::2] if kernel.kernel in both else times
            assert len(own) == kernel.launches
            assert kernel.seconds == pytest.approx(sum(own) / 1e6, rel=1e-9)
            assert kernel.max_seconds == pytest.approx(max(own) / 1e6, rel=1e-9)
            assert kernel.min_seconds == pytest.approx(min(own) / 1e6, rel=1e-9)


def test_a_product_is_all_that_the_library_launched_for_it(joined: Capture, on_device: Any) -> None:
    """It includes products of two kernels and a fill. Their total is that of all kernels, less Inductor's and the ATen
    kernels that add gradients of the steps outside the graphs."""
    found = [
        k for phase in ("forward", "backward") for k in kernels(joined, phase) if k.matched_by == BY_ORDER
    ]
    assert any(k.name.startswith("Memset (Device), ") for k in found) and len(found) == 8
    others = [
        times for name, times in on_device.items() if not name.startswith(("triton_", "void at::native"))
    ]
    taken = sum(took for times in others for _, took in times)
    assert sum(k.seconds for k in found) == pytest.approx(taken / 1e6, rel=1e-9)
    assert {k.modules for k in found} >= {("a",), ("b",)}


def test_it_is_told(joined: Capture) -> None:
    assert "19 kernels measured" in full(joined)
