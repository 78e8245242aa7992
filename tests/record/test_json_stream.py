"""JSON from outside: limits on memory, nesting and types, and none on the size of a file."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from compile_lens import RecordError, UsageError
from compile_lens.cli import main
from compile_lens.record import journal
from compile_lens.record.json_stream import CHUNK_BYTES, JsonStreamError, elements
from compile_lens.record.profiler_trace import is_profiler_trace, read_trace

PIECE = 1 << 16


def event(**changes: Any) -> dict[str, Any]:
    plain = {"ph": "X", "cat": "cpu_op", "name": "## Call CompiledFxGraph abc ##", "ts": 1.0, "dur": 2.0}
    return {**plain, "pid": 1, "tid": 1, "args": {}, **changes}


def trace(tmp_path: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path, data = tmp_path / name, text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("key", ["cat", "name", "ts", "dur", "pid", "tid", "ph", "args"])
@pytest.mark.parametrize("value", [[], {}, None, True, "1", -1, 1e308, [["x"]]], ids=repr)
def test_parts_of_any_type_do_no_harm(tmp_path: Path, key: str, value: Any) -> None:
    path = trace(tmp_path, json.dumps({"traceEvents": [event(**{key: value}), event()]}))
    assert read_trace(path).runs
    numbers = {k: value for k in ("correlation", "Sequence number", "Ev Idx")}
    kernels = [event(cat="kernel", name="k", args=numbers), event(cat="cuda_runtime", args=numbers), event()]
    assert read_trace(trace(tmp_path, json.dumps(kernels))).runs


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_that_are_none_are_no_times(tmp_path: Path, number: str) -> None:
    text = json.dumps([event(ts=77.5), event()]).replace("77.5", number)
    try:
        assert len(read_trace(trace(tmp_path, text)).runs) == 1
    except RecordError:
        assert number.startswith("9")  # Python refuses to parse a number with so many digits


@pytest.mark.parametrize("levels", [200, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_deep_nesting_is_a_sentence(tmp_path: Path, levels: int, opening: str, ending: str) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    deep = opening * levels + "1" + closing * levels
    for text in (f'{{"traceEvents": [{deep}]}}', f'{{"other": {deep}, "traceEvents": []}}'):
        with pytest.raises(RecordError, match=r"nested|not JSON"):
            read_trace(trace(tmp_path, text, f"trace.json{ending}"))


@pytest.mark.parametrize(
    "piece",
    [b'"' + b"a" * (4 * PIECE), b"[" + b"1," * (2 * PIECE), b" " * (4 * PIECE)],
    ids=["text", "list", "space"],
)
def test_a_small_file_that_unpacks_to_much_takes_little_memory(tmp_path: Path, piece: bytes) -> None:
    path = trace(tmp_path, b'{"traceEvents": [' + piece, "trace.json.gz")
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(RecordError):
            read_trace(path)
        assert tracemalloc.get_traced_memory()[1] < 60 * PIECE
    finally:
        tracemalloc.stop()


def test_a_large_file_is_streamed(tmp_path: Path) -> None:
    filler = json.dumps(event(cat="python_function", args={"Call stack": "x" * 4000}))
    one = json.dumps(event())
    path = trace(
        tmp_path, f'{{"schemaVersion": 1, "traceEvents": [{one}, ' + f"{filler}, " * 6_000 + f"{one}]}}"
    )
    assert path.stat().st_size > 20 * CHUNK_BYTES
    tracemalloc.start()
    try:
        assert len(read_trace(path).runs) == 2
        assert tracemalloc.get_traced_memory()[1] < 8 * CHUNK_BYTES
    finally:
        tracemalloc.stop()


KINDS: dict[str, Any] = {
    "equal": lambda number: {},
    "names": lambda number: {"name": f"op{number}"},
    "long names": lambda number: {"name": f"{number}" + "x" * 100_000},
    "threads": lambda number: {"tid": f"thread {number}"},
    "kernels": lambda number: {"cat": "kernel", "args": {"correlation": number}},
    "launches": lambda number: {"cat": "cuda_runtime", "args": {"correlation": number}},
    "runs": lambda number: {"name": f"## Call CompiledFxGraph {number} ##", "args": {"Ev Idx": number}},
    "regions": lambda number: {"name": f"Torch-Compiled Region: {number}/0"},
    "never ending": lambda number: {"dur": 1e15},
}


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.cases(full=3)
def test_what_is_held_of_a_trace_is_limited(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_lens.record.json_stream.CHUNK_BYTES", PIECE)
    monkeypatch.setattr("compile_lens.record.profiler_trace.MAX_BYTES", most := 4 << 20)
    plain = event(name="op")
    size = most // (100_000 if "long" in kind else 300) + 100
    many = [{**plain, "ts": 1e7 + number, **KINDS[kind](10**6 + number)} for number in range(size)]
    path = trace(tmp_path, json.dumps({"traceEvents": many}), "trace.json.gz")
    fitting = trace(tmp_path, json.dumps({"traceEvents": many[: size // 4]}), "fitting.json.gz")
    del many
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="than fit into memory at a time"):
            read_trace(path)
        assert tracemalloc.get_traced_memory()[1] < 1.3 * most
        tracemalloc.reset_peak()
        read_trace(fitting)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert main(["import", str(path)]) == 2


@pytest.mark.parametrize("part", ["[]", '{"":1}', '"ä"'])
@pytest.mark.parametrize("where", ['{{"x": [{}], "traceEvents": []}}', '{{"traceEvents": [[{}]]}}'])
def test_a_value_of_many_parts_is_not_read(
    tmp_path: Path, part: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_lens.record.json_stream.MAX_CHARACTERS", PIECE)
    size = PIECE // len(part)
    with pytest.raises(RecordError, match="longer than"):
        read_trace(trace(tmp_path, where.format(",".join([part] * size)), "trace.json.gz"))


def test_events_around_a_run_say_what_it_is_of(tmp_path: Path) -> None:
    region, other = "Torch-Compiled Region: 3/1", "Torch-Compiled Region: 4/0"
    forward, backward, run = "CompiledFunction", "CompiledFunctionBackward7", "## Call CompiledFxGraph k ##"
    nests = {
        (region, run): ("3/1", "inference", None),
        (region, "aten::add", forward, "user", run): ("3/1", "forward", 2),
        (region, forward, forward, run): ("3/1", "forward", 1),
        (region, forward, other, run): ("4/0", "inference", None),
        (region, backward, run): ("", "backward", 1),
        (backward, region, forward, run): ("3/1", "forward", 2),
        (backward, forward, run): ("", "backward", 0),
        (forward, run): ("", "forward", 0),
        (forward, region, run): ("3/1", "inference", None),
        ("user", run): ("", "", None),
    }
    for nest, expected in nests.items():
        events = [
            event(name=name, cat="user_annotation", ts=at, dur=100 - 2 * at, args={"Sequence number": at})
            for at, name in enumerate(nest)
        ]
        (found,) = read_trace(trace(tmp_path, json.dumps(events))).runs
        assert (found.id, found.phase, found.sequence) == expected, nest


@pytest.mark.parametrize("size", range(1, 40))
def test_values_may_stand_on_the_border_of_what_is_read(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_lens.record.json_stream.CHUNK_BYTES", size)
    body = {"a": [1, {"é": "]}"}], "b": -12.5e3, "list": [123456, "ä\n", [], {}, None, True, 7]}
    path = trace(tmp_path, json.dumps(body, ensure_ascii=False, indent=1))
    assert list(elements(path, "list")) == body["list"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"traceEvents"',
        '{"traceEvents": [',
        '{"traceEvents": [1 2]}',
        "1",
        '{"x": 1}',
        "[1",
        b"\xff\xfe",
    ],
)
def test_what_is_no_trace_is_a_sentence(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(RecordError, match="not a trace"):
        read_trace(trace(tmp_path, text))
    with pytest.raises(JsonStreamError):
        list(elements(trace(tmp_path, text), "traceEvents"))


@pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[:-9], lambda raw: raw[:20], lambda raw: b"no gzip", lambda raw: raw[:15] + b"\xff" * 30],
)
def test_a_packed_file_that_is_damaged_is_a_sentence(tmp_path: Path, damage: Any) -> None:
    path = trace(tmp_path, json.dumps([event()] * 500), "trace.json.gz")
    path.write_bytes(damage(path.read_bytes()))
    is_profiler_trace(path)
    with pytest.raises((UsageError, RecordError)):
        read_trace(path)


def test_a_journal_that_is_nested_deeply_is_none() -> None:
    assert not journal.is_journal("[" * 100_000 + "\nx")
