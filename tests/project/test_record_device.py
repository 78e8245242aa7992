"""The script that records a real device: the trace data that it saves, and when it records nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tutorials" / "record_device.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("record_device", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event(category: str, name: str, start: float, long: float, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": start,
        "dur": long,
        "pid": 1,
        "tid": 2,
        "args": args,
    }


def scene(start: float, long: float) -> dict[str, Any]:
    return event("user_annotation", "scene", start, long)


LAUNCHED = event("cuda_runtime", "cudaLaunchKernel", 1010.0, 5.0, correlation=77)


@pytest.mark.full
@pytest.mark.torch
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "out.json")],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3 and list(tmp_path.iterdir()) == []
    assert ran.stderr == "nothing is recorded: this needs an NVIDIA GPU, and torch sees none here\n"


def test_it_keeps_the_last_scene_from_its_start() -> None:
    early = event("cuda_runtime", "cudaLaunchKernel", 110.0, 400.0, correlation=70)
    work = event("kernel", "k", 1013.0, 8.0, correlation=77, stream=7, device=0)
    trace = [
        scene(1000.0, 50.0),
        work,
        scene(100.0, 500.0),
        early,
        LAUNCHED,
        {"ph": "M", "name": "process_name"},
    ]
    assert script().reduced(trace) == [
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10.0, "dur": 5.0, "correlation": 1},
        {"cat": "kernel", "name": "k", "ts": 13.0, "dur": 8.0, "stream": 7, "correlation": 1},
    ]


def test_it_leaves_out_what_tells_nothing_of_the_queue() -> None:
    names = ("cudaEventQuery", "cudaStreamIsCapturing", "cudaFuncGetAttributes", "cudaStreamWaitEvent")
    calls = [event("cuda_runtime", name, 1020.0 + n, 1.0) for n, name in enumerate(names)]
    others = [event("cpu_op", "aten::mm", 1030.0, 1.0), event("gpu_user_annotation", "part", 1031.0, 1.0)]
    kept = script().reduced(
        [scene(1000.0, 50.0), *calls, *others, event("user_annotation", "part", 1040.0, 2.0)]
    )
    assert [e["name"] for e in kept] == ["cudaStreamWaitEvent", "part"]


def test_it_cuts_names_and_not_what_tells_them_apart() -> None:
    short = script().short
    assert short("void at::native::(anonymous namespace)::cos_kernel<4>()") == "cos_kernel<4>()"
    long = short("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize2x4x1")
    assert len(long) == 48 and long.endswith("…") and long.startswith("sm80_xmma_gemm_f32f32")


def test_a_trace_without_a_scene_is_refused() -> None:
    with pytest.raises(ValueError, match="no annotation 'scene'"):
        script().reduced([LAUNCHED])


def test_a_line_for_each_event() -> None:
    data = {"a": {"events": [{"name": "x {λ [", "ts": 1.5}, {}], "none": []}, "b": {"t": [1, 2]}, "c": None}
    text = script().written(data)
    assert json.loads(text) == data
    assert text.splitlines()[3:5] == ['   {"name": "x {λ [", "ts": 1.5},', "   {}"]
    assert ' "b": {\n  "t": [1, 2]\n },' in text


@pytest.mark.torch
def test_it_reads_what_the_profiler_writes(tmp_path: Path) -> None:
    """A real CPU trace has annotations, and times from the scene's start."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(2):
            with record_function("scene"), record_function("part"):
                torch.ones(8).sin()
    profiler.export_chrome_trace(str(tmp_path / "t.json"))
    raw = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    (part,) = script().reduced(raw)
    starts = {name: max(e["ts"] for e in raw if e.get("name") == name) for name in ("scene", "part")}
    assert (part["cat"], part["name"]) == ("user_annotation", "part")
    assert part["ts"] == pytest.approx(starts["part"] - starts["scene"], abs=0.01) and part["dur"] > 0
