"""A profiler's times are joined to kernels: they equal sums over the raw JSON, or are absent with a reason."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from full_text import full

import compile_lens
from compile_lens import Capture, Program, RecordError, UsageError
from compile_lens.cli import main
from compile_lens.measures.profile import NO_CPP
from compile_lens.record.benchmark import BY_NAME, BY_ORDER, Profile

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="builds C++"),
]

HERE = Path(__file__).parents[1] / "helpers" / "profiled.py"


def _profiled(folder: Path, *words: str) -> Path:
    subprocess.run([sys.executable, str(HERE), str(folder), *words], check=True, timeout=500)
    return folder


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _profiled(tmp_path_factory.mktemp("marked"), "marked")


@pytest.fixture(scope="module")
def unmarked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _profiled(tmp_path_factory.mktemp("unmarked"))


def events(folder: Path) -> list[dict[str, Any]]:
    made = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    return [e for e in made if e.get("ph") == "X"]


def by_hand(folder: Path) -> dict[tuple[str, str], list[float]]:
    """Microseconds of C++ kernels and products, by name and by the run that contains them: in time and on its thread,
    and not inside another operator."""
    every = events(folder)
    runs = [e for e in every if "CompiledFxGraph" in e["name"]]
    found = defaultdict(list)
    for e in every:
        if not re.match(r"graph_\d+_cpp|aten::(add)?mm$", e["name"]):
            continue
        for run in runs:
            if run["tid"] == e["tid"] and run["ts"] < e["ts"] < run["ts"] + run["dur"]:
                found[re.sub(r"^graph_\d+_", "", e["name"]), run["name"]].append(e["dur"])
    return found


def _equal(seconds: float, micros: list[float]) -> bool:
    return abs(seconds - sum(micros) / 1e6) < 1e-9


def _held(profile: Profile, folder: Path) -> None:
    known = by_hand(folder)
    assert len(known) >= 8 and profile.device == "cpu" and profile.source == "trace.json"
    totals: dict[tuple[str, int], float] = {}
    phases = [(g.phase, g.calls, len(g.missing)) for g in profile.graphs if g.kernels]
    assert phases[:2] == [("forward", 3, 0), ("backward", 3, 0)]
    for graph in profile.graphs:
        for kernel in graph.kernels:
            own = [t for (name, _), t in known.items() if name == kernel.kernel and len(t) % 3 == 0]
            assert kernel.launches % 3 == 0 and kernel.host_seconds is None
            if kernel.matched_by == BY_NAME:
                assert any(_equal(kernel.seconds, t) for t in own)
                assert any(abs(kernel.max_seconds - max(t) / 1e6) < 1e-9 for t in own)
                assert any(abs(kernel.min_seconds - min(t) / 1e6) < 1e-9 for t in own)
                continue
            key = (kernel.name, 0)
            totals[key] = totals.get(key, 0.0) + kernel.seconds
    # Products share a name; their total is that of the events.
    for name in ("aten::mm", "aten::addmm"):
        every = [t for (n, _), times in known.items() if n == name for t in times]
        assert abs(totals[name, 0] - sum(every) / 1e6) < 1e-9


def test_a_capture_gets_the_times_of_its_kernels(marked: Path) -> None:
    capture = compile_lens.load(marked / "capture.json").join(marked / "trace.json")
    assert capture.profile is not None
    _held(capture.profile, marked)
    source = HERE.read_text(encoding="utf-8").splitlines()
    kernels = {k.kernel: k for g in capture.profile.graphs if g.phase == "forward" for k in g.kernels}
    relu, softmax = (next(k for n, k in kernels.items() if w in n) for w in ("relu", "softmax"))
    for kernel in (relu, softmax):
        assert {source[line.line - 1].strip()[:18] for line in kernel.lines} == {"y = torch.softmax("}
    assert "relu" in relu.nodes and "sin" in softmax.nodes
    first, second = kernels["extern_kernels.addmm"], kernels["extern_kernels.addmm#2"]
    assert [m.rsplit(".")[-1] for m in (*first.modules, *second.modules)] == ["a", "b"]
    assert first.matched_by == BY_ORDER and first.name == "aten::addmm"
    # In each call the first is the first layer's, and the third the backward's.
    named = [e for e in events(marked) if e["name"] == "aten::addmm"]
    times = [e["dur"] for e in sorted(named, key=lambda e: e["ts"])]
    assert len(times) == 9 and _equal(first.seconds, times[0::3]) and _equal(second.seconds, times[1::3])
    # Events of another function are not in this record, and are reported.
    (alone,) = [g for g in capture.profile.graphs if g.phase == "inference"]
    assert alone.kernels == () and "not in this record" in alone.missing[0].reason and alone.unmatched_events
    assert Capture.from_json(capture.to_json()).profile == capture.profile
    for page in (full(capture), capture._repr_mimebundle_()["text/html"]):
        assert "kernels measured" in page


def test_a_program_gets_them_where_its_code_is_the_same(marked: Path) -> None:
    program = Program.load(marked / "program.json")
    profile = program.record.profile
    assert profile is not None
    _held(profile, marked)
    assert [(g.id, g.phase, len(g.kernels) > 0) for g in profile.graphs] == [
        ("0/0", "forward", True),
        ("0/0", "backward", True),
        ("1/0", "inference", True),
    ]
    assert "cpp_fused" in full(program).split("── profile")[1]
    # A loaded capture has no graphs: it gets times by name, and the reason why there are no lines.
    loaded = Program.load(marked / "alone.json").join(marked / "trace.json")
    assert loaded.record.profile is not None
    for graph in loaded.record.profile.graphs:
        assert (
            graph.kernels == () and graph.unmatched_events and "was not retained" in graph.missing[0].reason
        )
    assert "was not retained" in full(loaded).replace("\n      ", " ")


@pytest.mark.exhaustive
def test_unmarked_kernels_are_missing_and_library_calls_are_not(unmarked: Path) -> None:
    capture = compile_lens.load(unmarked / "capture.json").join(unmarked / "trace.json")
    assert capture.profile is not None
    graphs = [g for g in capture.profile.graphs if g.compilation]
    assert [len(g.kernels) for g in graphs] == [3, 5] or all(g.kernels for g in graphs)
    for graph in graphs:
        assert {k.matched_by for k in graph.kernels} == {BY_ORDER}
        assert {m.reason for m in graph.missing} == {NO_CPP}


def test_what_is_ambiguous_is_said(marked: Path, tmp_path: Path) -> None:
    made = json.loads((marked / "trace.json").read_text(encoding="utf-8"))
    # One product of the forward is missing from the first call: which one is unknown.
    lost = next(e for e in made["traceEvents"] if e.get("name") == "aten::addmm")
    made["traceEvents"].remove(lost)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(json.dumps(made).encode()))
    loaded = compile_lens.load(marked / "capture.json")
    profile = loaded.join(path).profile
    assert profile is not None and profile.missing[0].reason.startswith("no compiled graph of the trace ran")
    profile = loaded.join(path, id="0/0").profile
    assert profile is not None
    forward = {k.kernel: k for g in profile.graphs if g.phase == "forward" for k in g.kernels}
    assert forward["extern_kernels.addmm"].launches == 2
    assert all(k.launches == 3 for n, k in forward.items() if n.startswith("cpp_"))
    (other,) = [
        o
        for g in profile.graphs
        if g.phase == "forward"
        for o in g.unmatched_events
        if o.name == "aten::addmm"
    ]
    assert other.count == 1
    # The same launches occur under two compile ids: the caller has to choose one.
    made = json.loads((marked / "trace.json").read_text(encoding="utf-8"))
    regions = [e for e in made["traceEvents"] if e.get("name") == "Torch-Compiled Region: 0/0"]
    regions[-1]["name"] = "Torch-Compiled Region: 7/0"
    path.write_bytes(gzip.compress(json.dumps(made).encode()))
    profile = loaded.join(path).profile
    assert profile is not None and "0/0, 7/0; say which by id=" in profile.missing[0].reason
    profile = loaded.join(path, id={"0/0": "7/0"}).profile
    assert profile is not None and [g.calls for g in profile.graphs if g.kernels] == [1, 1]


def test_the_command_line(marked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, page = str(marked / "trace.json"), str(tmp_path / "page.html")
    assert (
        main(["import", trace, "--into", str(marked / "capture.json"), "-o", page, "-o", page[:-4] + "md"])
        == 0
    )
    assert "extern_kernels.addmm" in Path(page).read_text(encoding="utf-8")
    assert "aten::exp" not in capsys.readouterr().out
    assert main(["import", trace, "--into", str(marked / "alone.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["graphs"][0]["id"] == "0/0"
    assert main(["import", trace]) == 0
    assert "read from a trace (torch.profiler)" in " ".join(capsys.readouterr().out.split())
    assert main(["import", trace, "--into", str(marked / "capture.json"), "--id", "9/9"]) == 2
    assert "ran no compiled graph of '9/9'; it has 0/0, 1/0" in capsys.readouterr().err
    assert main(["import", trace, "--id", "0/0"]) == 2


def test_what_is_no_trace(marked: Path, tmp_path: Path) -> None:
    capture = compile_lens.load(marked / "capture.json")
    with pytest.raises(UsageError, match="there is no file"):
        capture.join(tmp_path / "gone.json")
    for text in ("", "{}", "[1", '{"traceEvents": 3}', "\0"):
        (tmp_path / "bad.json").write_text(text, encoding="utf-8")
        with pytest.raises(RecordError, match="is not a trace of torch"):
            capture.join(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text(
        '{"traceEvents": [1, {"ph": "X"}, {"ph": "X", "ts": "a"}]}', encoding="utf-8"
    )
    joined = capture.join(tmp_path / "bad.json").profile
    assert joined is not None and joined.graphs == () and "holds no run" in joined.missing[0].reason
