"""Profiler traces without a record: some made by hand, and public ones against counts by hand
(``public_traces.json``): ``COMPILE_LENS_PUBLIC_TRACES`` is the folder ``tests/data`` of the repository named there."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from compile_lens import import_trace
from compile_lens.cli import main
from compile_lens.errors import LensError
from compile_lens.measures.profile import profile_of_capture
from compile_lens.record.benchmark import Profile
from compile_lens.record.capture import Environment, Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.profiler_trace import is_profiler_trace, read_trace
from compile_lens.views.findings.benchmark import finding
from compile_lens.views.words import program as words

TABLE = json.loads((Path(__file__).parent / "public_traces.json").read_text(encoding="utf-8"))["traces"]
FOLDER = os.environ.get("COMPILE_LENS_PUBLIC_TRACES")


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    """A slice of a trace."""
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 9, "tid": tid, "args": args}


def events(runtime: str, launch: str) -> list[dict[str, Any]]:
    """Two calls of a compiled region, each with a graph with one launch, and one launch from eager Python."""
    made = [event("cpu_op", "aten::add", 300, 10), event(runtime, launch, 302, 2, correlation=3)]
    made += [event("kernel", "add_kernel", 305, 4, 7, correlation=3), {"ph": "M", "name": "process_name"}]
    for call in (1, 2):
        at = 100 * call
        made += [
            event("cpu_op", "Torch-Compiled Region: 0/0", at, 50),
            event("cpu_op", "## Call CompiledFxGraph fkey ##", at + 10, 30),
            event("cpu_op", "triton_poi_fused_sin_0", at + 12, 8),
            event(runtime, launch, at + 14, 3, correlation=call),
            event("kernel", "triton_poi_fused_sin_0", at + 40, 5, 7, correlation=call),
        ]
    return made


@pytest.mark.parametrize(
    ("runtime", "launch", "device"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "cuda"),
        ("cuda_runtime", "hipLaunchKernel", "cuda"),
        ("cuda_driver", "cuLaunchKernelEx", "cuda"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "xpu"),
    ],
)
def test_a_trace_alone_has_regions_graphs_kernels_and_launches(
    runtime: str, launch: str, device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events(runtime, launch)}), encoding="utf-8")
    program = import_trace(path)
    profile = program.record.profile
    assert profile is not None and profile.device == device
    (region,) = profile.regions
    assert (region.id, region.calls, region.launches) == ("0/0", 2, 2)
    assert [round(x * 1e6) for x in (region.seconds, region.device_seconds)] == [100, 10]
    (graph,) = profile.graphs
    assert (graph.id, graph.calls, graph.launches, round(graph.seconds * 1e6)) == ("0/0", 2, 2, 60)
    assert [(k.name, k.count, round(k.seconds * 1e6)) for k in profile.kernels] == [
        ("triton_poi_fused_sin_0", 2, 10),
        ("add_kernel", 1, 4),
    ]
    assert words.verdict(program.record) == (
        "1 compiled graph ran in 2 calls; 3 kernels and copies on the device took 14 µs"
    )
    assert main(["import", str(path)]) == 0
    short = capsys.readouterr().out
    assert (
        "10 µs triton_poi_fused_sin_0 2 launches" in " ".join(short.split()) and short.count("read from") == 1
    )
    assert main(["import", str(path), "--full"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "read from a trace (torch.profiler)" in printed and "2 launches on the device" in printed
    assert type(program).from_json(program.to_json()).record == program.record


def test_a_trace_of_a_host_alone_says_nothing_of_launches(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    own = [one for one in events("cuda_runtime", "cudaLaunchKernel") if one.get("cat") == "cpu_op"]
    for some, shown in ((own, False), (events("cuda_runtime", "cudaLaunchKernel"), True)):
        path.write_text(json.dumps({"traceEvents": some}), encoding="utf-8")
        table = import_trace(path).text("full").partition("compiled regions")[2].partition("0/0")[0]
        assert ("launches" in table and "on the device" in table) is shown


def test_a_trace_of_a_host_alone_has_its_operators(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    inner = event("cpu_op", "aten::mm", 12, 5)
    path.write_text(json.dumps([event("cpu_op", "aten::linear", 10, 20), inner]), encoding="utf-8")
    record = import_trace(path).record
    assert record.profile is not None and record.profile.device == "cpu"
    assert [(one.name, one.count) for one in record.profile.operators] == [("aten::linear", 1)]
    assert words.verdict(record) == "no run of a compiled graph; 1 operator on the host"
    assert words.state(record) == "nothing"


@pytest.mark.parametrize(
    "before", [{"schemaVersion": 1}, {"distributedInfo": {"pad": "x" * 9000}}, {"INFO": []}, {}]
)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_a_trace_is_told_by_its_events_and_not_by_its_first_key(
    before: dict[str, Any], name: str, tmp_path: Path
) -> None:
    text = json.dumps({**before, "traceEvents": events("cuda_runtime", "cudaLaunchKernel")}).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert is_profiler_trace(tmp_path / name)
    others = {"nodes": [1], "format": "compile_lens capture"}
    (tmp_path / "other.json").write_text(json.dumps(others), encoding="utf-8")
    assert not is_profiler_trace(tmp_path / "other.json")


def test_with_a_record_of_another_function_the_page_says_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events("cuda_runtime", "cudaLaunchKernel")), encoding="utf-8")
    kernels = (Kernel("triton_poi_fused_cos_0", "inference", "triton", "pointwise", "k", launch_lines=(3,)),)
    code = Code("inference", "\n" * 6, "ran", "cuda", kernels)
    one = Compilation("0/0", "g", "m.py", 1, stages=(code,))
    record = Record("g", Environment("", "", "", "", "", "cuda", ""), compilations=(one,))
    page = finding(profile_of_capture(record, read_trace(path), {}), "capture.profile")
    assert page.fact == "1 compiled graph ran in 2 calls; 3 kernels and copies on the device took 14 µs"
    assert page.brief == ("0/0 inference: not joined, 2 calls of 60 µs",)
    assert any("no compiled graph of the trace ran the launches" in str(section) for section in page.sections)


@pytest.mark.skipif(not FOLDER, reason="COMPILE_LENS_PUBLIC_TRACES names no folder with the traces")
@pytest.mark.parametrize("name", TABLE)
def test_a_public_trace_has_what_was_counted(name: str) -> None:
    profile = import_trace(Path(FOLDER or "") / name).record.profile
    assert profile is not None
    counted = {
        "device_events": sum(one.count for one in profile.kernels),
        "device_microseconds": round(sum(one.seconds for one in profile.kernels) * 1e6),
        "regions": sum(one.calls for one in profile.regions),
    }
    assert counted == TABLE[name]


def test_launches_of_two_processes_with_the_same_number_are_not_added_up(tmp_path: Path) -> None:
    """By hand: each of two processes has two calls with one launch of 5 µs, and one eager launch of 4 µs."""
    other = [{**one, "pid": 10} for one in events("cuda_runtime", "cudaLaunchKernel")]
    profile = measured(tmp_path, [*events("cuda_runtime", "cudaLaunchKernel"), *other])
    assert sum(one.count for one in profile.kernels) == 6
    assert {one.launches for one in profile.graphs} == {0}
    assert [(one.launches, one.device_seconds) for one in profile.regions] == [(4, None)]
    assert {"launches on the device", "processes"} <= {one.stage for one in profile.missing}
    apart = [{**one, "args": {k: v + 10 for k, v in one["args"].items()}} for one in other if "args" in one]
    profile = measured(tmp_path, [*events("cuda_runtime", "cudaLaunchKernel"), *apart])
    assert [(one.launches, round((one.device_seconds or 0) * 1e6)) for one in profile.regions] == [(4, 20)]
    assert [one.stage for one in profile.missing] == ["processes"]


@pytest.mark.parametrize("duration", [float("nan"), None, "5", -5, 10**30, [5]], ids=repr)
def test_a_kernel_without_a_duration_is_no_kernel_of_zero_seconds(tmp_path: Path, duration: Any) -> None:
    own = events("cuda_runtime", "cudaLaunchKernel")
    kernel = next(one for one in own if one.get("cat") == "kernel" and one["dur"] == 5)
    kernel["dur"] = duration
    profile = measured(tmp_path, own)
    assert [(one.launches, one.device_seconds) for one in profile.regions] == [(2, None)]
    (graph,) = profile.graphs
    assert [(one.count, round(one.seconds * 1e6)) for one in graph.unmatched_events] == [(1, 5)]
    assert [one.reason.partition(" ")[0] for one in profile.missing if one.stage == "events"] == ["1"]


def test_slices_in_two_parts_are_said_not_to_be_read(tmp_path: Path) -> None:
    own = [{**one, "ph": "B"} for one in events("cuda_runtime", "cudaLaunchKernel")]
    assert "events" in {one.stage for one in measured(tmp_path, own).missing}


def test_a_packed_trace_that_is_cut_off_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events("a", "b") * 200}).encode())[:-300])
    with pytest.raises(LensError, match="unpacked"):
        import_trace(path)


def measured(tmp_path: Path, own: list[dict[str, Any]]) -> Profile:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": own}), encoding="utf-8")
    profile = import_trace(path).record.profile
    assert profile is not None
    return profile


def test_a_graph_whose_times_are_not_numbers_is_not_denied(tmp_path: Path) -> None:
    own = events("cuda_runtime", "cudaLaunchKernel")
    none = measured(tmp_path, own[:3])
    texts = measured(tmp_path, [{**one, "ts": str(one.get("ts"))} for one in own])
    for profile, part in ((none, False), (texts, True)):
        for said in (words.measured(profile), profile.missing[0].reason):
            assert "no run of" in said and ("that can be read" in said) is part


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ('{"ph": "X", "args": ' + "[" * 5000 + "]" * 5000 + "}", "nest"),
        ('{"ph": "X", "ts": ' + "1" * 5000 + "}", "number"),
        ('{"ph": "X", ', "JSON"),
    ],
)
def test_a_trace_that_passes_a_limit_or_is_cut_off_is_no_log(tmp_path: Path, first: str, words: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + first + "]}", encoding="utf-8")
    assert is_profiler_trace(path)
    with pytest.raises(LensError) as error:
        import_trace(path)
    assert "torch.profiler" in str(error.value) and "TORCH_TRACE" not in str(error.value)
    assert words in str(error.value)
