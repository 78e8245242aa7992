"""A trace with GPU kernels, made by hand in the format that the profiler documents: no GPU recorded it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compile_lens.measures.profile import NO_DEVICE, operator, profile_of_capture
from compile_lens.record.benchmark import MeasuredKernel, Profile
from compile_lens.record.capture import Environment, Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.kernel import Code, Flow, Kernel
from compile_lens.record.profiler_trace import read_trace


def _x(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 9, "tid": tid, "args": args}


def _call(at: float, region: str, correlation: int) -> list[dict[str, Any]]:
    """One call: a Triton kernel and two products, each launched once; the first product runs two
    kernels on the device."""
    on = [
        _x("cpu_op", f"Torch-Compiled Region: {region}", at, 100),
        _x("cpu_op", "## Call CompiledFxGraph fkey ##", at + 10, 80),
        _x("cpu_op", "triton_poi_fused_sin_0", at + 12, 8),
        _x("cuda_driver", "cuLaunchKernel", at + 14, 3, correlation=correlation),
        _x("cpu_op", "aten::mm", at + 30, 12),
        _x("cuda_runtime", "cudaLaunchKernel", at + 32, 3, correlation=correlation + 1),
        _x("cuda_runtime", "cudaLaunchKernel", at + 36, 3, correlation=correlation + 2),
        _x("cpu_op", "aten::mm", at + 50, 12),
        _x("cuda_runtime", "cudaLaunchKernelExC", at + 52, 3, correlation=correlation + 3),
    ]
    there = [
        _x("kernel", "triton_poi_fused_sin_0", at + 40, 5, 7, correlation=correlation, stream=7),
        _x("kernel", "ampere_sgemm_64x64_nn", at + 45, 20, 7, correlation=correlation + 1, stream=7),
        _x("kernel", "splitKreduce_kernel", at + 65, 2, 7, correlation=correlation + 2, stream=7),
        _x("kernel", "ampere_sgemm_32x32_nn", at + 67, 11, 7, correlation=correlation + 3, stream=7),
    ]
    return on + there


def _record(flow: Flow | None = None) -> Record:
    kernels = (
        Kernel("triton_poi_fused_sin_0", "inference", "triton", "pointwise", "k", launch_lines=(3,)),
        Kernel("extern_kernels.mm", "inference", "extern", "extern", "", launch_lines=(4,)),
        Kernel("extern_kernels.mm#2", "inference", "extern", "extern", "", launch_lines=(5,)),
    )
    code = Code("inference", "\n" * 6, "ran", "cuda", kernels, flow=flow)
    one = Compilation("0/0", "f", "m.py", 1, stages=(code,))
    return Record("f", Environment("", "", "", "", "", "cuda", ""), compilations=(one,))


def _joined(tmp_path: Path, events: list[dict[str, Any]], record: Record | None = None) -> Profile:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return profile_of_capture(record or _record(), read_trace(path), {})


def _kernels(profile: Profile) -> dict[str, MeasuredKernel]:
    return {k.kernel: k for g in profile.graphs for k in g.kernels}


def test_a_kernel_has_the_time_of_what_it_launched_on_the_device(tmp_path: Path) -> None:
    profile = _joined(tmp_path, _call(0, "3/0", 100) + _call(1000, "3/0", 200))
    assert profile.device == "cuda" and profile.missing == ()
    found = _kernels(profile)
    times = {
        name: (k.launches, round(k.seconds * 1e6, 3), round((k.host_seconds or 0) * 1e6, 3))
        for name, k in found.items()
    }
    assert times == {
        "triton_poi_fused_sin_0": (2, 10, 16),
        "extern_kernels.mm": (2, 44, 24),
        "extern_kernels.mm#2": (2, 22, 24),
    }
    assert found["extern_kernels.mm"].name == "ampere_sgemm_64x64_nn, splitKreduce_kernel"
    (graph,) = profile.graphs
    assert (graph.id, graph.compilation, graph.phase, graph.calls) == ("3/0", "0/0", "inference", 2)
    assert round(graph.seconds * 1e6, 3) == 160


def test_a_launch_without_an_operator_bears_the_name_of_its_kernel(tmp_path: Path) -> None:
    events = [e for e in _call(0, "0/0", 1) if not (e["cat"] == "cpu_op" and e["name"].startswith("triton"))]
    assert round(_kernels(_joined(tmp_path, events))["triton_poi_fused_sin_0"].seconds * 1e6, 3) == 5


def test_launches_without_kernels_are_no_times(tmp_path: Path) -> None:
    events = [e for e in _call(0, "0/0", 1) if e["cat"] != "kernel"]
    profile = _joined(tmp_path, events)
    (graph,) = profile.graphs
    assert graph.kernels == () and {m.reason for m in graph.missing} == {NO_DEVICE}
    events = [e for e in _call(0, "0/0", 1) + _call(1000, "0/0", 9) if e["args"].get("correlation") != 9]
    found = _joined(tmp_path, events)
    assert _kernels(found)["triton_poi_fused_sin_0"].launches == 1
    assert "1 of its 2 launches" in found.graphs[0].missing[0].reason


def test_calls_in_loops_are_not_told_apart_by_order(tmp_path: Path) -> None:
    looping = _record(Flow(iterations=(Flow(),)))
    profile = _joined(tmp_path, _call(0, "0/0", 1), looping)
    assert profile.missing[0].reason.startswith("no compiled graph")
    path = tmp_path / "t.json"
    (graph,) = profile_of_capture(looping, read_trace(path), {"0/0": "0/0"}).graphs
    assert [k.kernel for k in graph.kernels] == ["triton_poi_fused_sin_0"]
    assert all("holds aten::mm 2 times, not in the order" in m.reason for m in graph.missing)
    assert [(o.name, o.count) for o in graph.unmatched_events] == [("aten::mm", 2)]


def test_a_backward_is_of_the_forward_with_its_number(tmp_path: Path) -> None:
    def run(at: float, around: str, number: int, tid: int) -> list[dict[str, Any]]:
        return [
            _x("cpu_op", around, at, 50, tid, **{"Sequence number": number}),
            _x("cpu_op", "## Call CompiledFxGraph k ##", at + 1, 40, tid),
            _x("cpu_op", "aten::mm", at + 2, 3, tid),
        ]

    events = [
        _x("cpu_op", "Torch-Compiled Region: 0/0", 0, 90), *run(5, "CompiledFunction", 7, 1),
        _x("cpu_op", "Torch-Compiled Region: 1/0", 100, 90), *run(105, "CompiledFunction", 8, 1),
        *run(200, "CompiledFunctionBackward", 8, 2), *run(300, "CompiledFunctionBackward", 7, 2),
        *run(400, "CompiledFunctionBackward", 6, 2),
    ]  # fmt: skip
    profile = _joined(tmp_path, events)
    assert [(g.id, g.phase) for g in profile.graphs] == [
        ("0/0", "forward"), ("1/0", "forward"), ("1/0", "backward"), ("0/0", "backward"), ("", "backward"),
    ]  # fmt: skip
    assert "does not say of which" in profile.graphs[-1].missing[0].reason
    # Two threads number their calls alike: the trace does not show which forward the backward belongs to.
    events += [_x("cpu_op", "Torch-Compiled Region: 5/0", 0, 90, 3), *run(5, "CompiledFunction", 8, 3)]
    found = [(g.id, g.calls) for g in _joined(tmp_path, events).graphs if g.phase == "backward"]
    assert found == [("", 2), ("0/0", 1)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("extern_kernels.mm#3", "aten::mm"),
        ("torch.ops.aten.sort.stable", "aten::sort"),
        ("torch.ops.mine.op.default#2", "mine::op"),
        ("extern_kernels._mm_plus_mm", ""),
        ("copy", ""),
    ],
)
def test_names_of_library_calls(name: str, said: str) -> None:
    assert operator(name) == said
