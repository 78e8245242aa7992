"""The JSON format round-trips exactly, and anything that is not a record is refused with a clear error."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import math
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest
import samples
from full_text import full
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compile_lens.errors import RecordError
from compile_lens.record import capture as record_module
from compile_lens.record import codec
from compile_lens.record import graph as graph_module
from compile_lens.record.capture import SCHEMA_VERSION, Environment, Timing
from compile_lens.record.codec import FORMAT, from_json, to_json
from compile_lens.record.compilation import Compilation
from compile_lens.record.device import DeviceModel, Target
from compile_lens.record.graph import Graph, Literal, Node, Ref, Value
from compile_lens.record.kernel import Code
from compile_lens.record.missing import Missing
from compile_lens.record.program import ProgramRecord
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpp")

TEXT = st.text(st.characters(), max_size=6)  # with surrogates, quotes and control characters
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | NUMBERS
    | TEXT
    | st.builds(Ref, TEXT)
    | st.builds(Literal, TEXT),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(0, 2**63),
    bool: st.booleans(),
    float: NUMBERS,
    type(None): st.none(),
}


@functools.cache
def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Objects for a type hint of the record. A new kind of hint fails here, and the test must be extended."""
    if hint in PLAIN:
        return PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if Ref in args:  # a Value, however far typing has expanded it
        return VALUES
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(strategy(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(strategy(a) for a in args))
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(strategy(a) for a in args))
    if dataclasses.is_dataclass(hint):
        return objects(hint)
    raise AssertionError(f"no strategy for {hint!r}")


def objects(cls: Any) -> st.SearchStrategy[Any]:
    own = vars(sys.modules[cls.__module__])
    hints = typing.get_type_hints(cls, {**vars(graph_module), **vars(record_module), **own})
    fields = {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.name != "unknown_fields"}
    if cls is Graph:  # the only recursive class: one level is enough
        fields.pop("subgraphs")
    if cls is Capture:
        fields.pop("schema_version")
    made = st.builds(cls, **{name: st.deferred(lambda h=h: strategy(h)) for name, h in fields.items()})
    if cls is Compilation:  # each stage occurs once
        return made.map(lambda c: dataclasses.replace(c, stages=tuple({s.key: s for s in c.stages}.values())))
    if cls is not Graph:
        return made
    bodies = st.lists(st.tuples(TEXT, made), max_size=1).map(tuple)
    return st.builds(lambda g, b: dataclasses.replace(g, subgraphs=b), made, bodies)


def exactly(value: Any) -> Any:
    """A representation that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.name != "unknown_fields"]
        return (type(value).__name__, [(name, exactly(getattr(value, name))) for name in fields])
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, [exactly(item) for item in value])
    return (type(value).__name__, repr(value))


@pytest.mark.full
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(strategy(Capture))
def test_round_trip_is_exact_for_every_class_of_the_record(capture: Capture) -> None:
    text = to_json(capture)
    back = from_json(text, Capture)
    assert exactly(back) == exactly(capture)
    assert back == capture
    assert back.unknown_fields == ()
    assert to_json(back) == text
    text.encode("ascii")


def test_a_negative_zero_is_not_left_out_as_a_zero() -> None:
    model = DeviceModel(name="", title="", device="", arch="", bandwidth=-0.0)
    back = from_json(to_json(dataclasses.replace(samples.sample(), target=Target("", model, ""))), Capture)
    assert back.target is not None and repr(back.target.model.bandwidth) == "-0.0"


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_round_trip_of_arguments(value: Value) -> None:
    node = Node("n", "call_function", "f", args=(value,), kwargs=(("k", value),))
    graph = Graph("dynamo", "", "", (node,), subgraphs=(("body", Graph("dynamo", "", "", (node,))),))
    capture = Capture("f", ENVIRONMENT, compilations=(Compilation("0/0", "f", "f.py", 1, (graph,)),))
    assert exactly(from_json(to_json(capture), Capture)) == exactly(capture)


def small() -> dict[str, Any]:
    node = Node("a", "placeholder", "a", args=(Ref("b"), Literal("torch.float32"), (1, 2.5, None)))
    stages = (
        Graph("dynamo", "", "", (node,)),
        Code("forward", "x", "ran", "cpu"),
        Missing("joint", "cache hit"),
    )
    compilation = Compilation("0/0", "f", "f.py", 1, stages)
    capture = Capture("f", ENVIRONMENT, compilations=(compilation,), timings=(Timing("dynamo", 1.0),))
    data: dict[str, Any] = json.loads(to_json(capture))
    return data


def read(data: Any) -> Capture:
    return from_json(json.dumps(data), Capture)


def test_the_stages_keep_their_classes() -> None:
    graph, code, missing = read(small()).compilations[0].stages
    assert isinstance(graph, Graph) and isinstance(code, Code) and isinstance(missing, Missing)
    assert graph.nodes[0].args == (Ref("b"), Literal("torch.float32"), (1, 2.5, None))


def test_a_newer_record_is_refused_and_says_what_to_do() -> None:
    newer = {**small(), "schema_version": SCHEMA_VERSION + 1, "unheard_of": {"deep": [1]}}
    with pytest.raises(RecordError, match=rf"schema_version {SCHEMA_VERSION + 1}.*open it with a newer one"):
        read(newer)


@pytest.mark.parametrize("key", ["inputs", "sources", "compilations", "skipped", "not_observed"])
def test_what_a_file_leaves_out_is_not_read_as_empty(key: str) -> None:
    data = small()
    del data[key]
    with pytest.raises(RecordError, match=f"capture lacks '{key}'"):
        read(data)


@pytest.mark.parametrize("key", ["stages", "guards", "ending", "recompile_reasons", "decisions", "memory"])
def test_what_a_compilation_leaves_out_is_not_read_as_empty(key: str) -> None:
    data = small()
    del data["compilations"][0][key]
    with pytest.raises(RecordError, match=rf"compilations\[0\] lacks '{key}'"):
        read(data)


def test_a_record_emptied_by_hand_claims_nothing() -> None:
    for empty in (read({**small(), "compilations": []}), Capture("f", ENVIRONMENT)):
        assert str(empty).count("the record has no compilation, and does not say why")
        assert "nothing was compiled" not in full(empty)


@pytest.mark.parametrize("key", ["frames", "graphs", "library_skips", "missing", "eager_frames"])
def test_what_a_program_leaves_out_is_not_read_as_empty(key: str) -> None:
    data = json.loads(to_json(ProgramRecord("p", environment=ENVIRONMENT)))
    assert from_json(json.dumps(data), ProgramRecord).name == "p"
    del data[key]
    with pytest.raises(RecordError, match=f"program lacks '{key}'"):
        from_json(json.dumps(data), ProgramRecord)


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, True, [1]])
def test_a_schema_version_that_is_no_version_is_refused(version: Any) -> None:
    with pytest.raises(RecordError, match="schema_version"):
        read({**small(), "schema_version": version})


def test_unknown_fields_are_counted_by_place() -> None:
    data = small()
    data["future"] = 1
    data["compilations"][0]["stages"][0]["nodes"][0]["colour"] = "red"
    data["environment"]["phase_of_moon"] = {"x": [1]}
    capture = read(data)
    assert len(capture.unknown_fields) == 3
    assert "capture.future: 1" in capture.unknown_fields
    assert "capture.environment.phase_of_moon: 1" in capture.unknown_fields
    assert capture == read(small()), "unknown fields are no part of what was captured"


@pytest.mark.parametrize("cut", [0, 1, 10, -1, -2, -20])
def test_a_truncated_text_is_refused(cut: int) -> None:
    with pytest.raises(RecordError, match="not JSON"):
        from_json(json.dumps(small())[:cut], Capture)


@pytest.mark.parametrize("data", [None, 1, "x", [], {}, {"format": "another"}, [{"format": FORMAT}]])
def test_other_json_is_refused(data: Any) -> None:
    with pytest.raises(RecordError, match=r"not a record.*; save one with capture.save"):
        read(data)


CORRUPTIONS: list[tuple[list[Any], Any]] = [
    (["environment"], ["a"]),
    (["environment"], None),
    (["environment", "torch"], 2.13),
    (["function"], None),
    (["inputs"], "x: float32"),
    (["inputs"], {"0": "x"}),
    (["compilations"], {"0/0": {}}),
    (["compilations", 0], [1, 2]),
    (["compilations", 0, "line"], "1"),
    (["compilations", 0, "line"], True),
    (["compilations", 0, "line"], 1.5),
    (["compilations", 0, "stages", 0], "dynamo"),
    (["compilations", 0, "stages", 0, "is"], "Capture"),
    (["compilations", 0, "stages", 0, "is"], ["Graph"]),
    (["compilations", 0, "stages", 0, "nodes"], {"a": 1}),
    (["compilations", 0, "stages", 0, "nodes", 0, "compute"], 1),
    (["compilations", 0, "stages", 0, "nodes", 0, "reads"], 1.5),
    (["compilations", 0, "stages", 0, "nodes", 0, "args", 0, "is"], "Missing"),
    (["compilations", 0, "stages", 0, "nodes", 0, "args", 0, "name"], 3),
    (["compilations", 0, "stages", 0, "nodes", 0, "kwargs"], [["only a name"]]),
    (["compilations", 0, "stages", 0, "nodes", 0, "outputs"], [{"dtype": "float32"}]),
    (["compilations", 0, "dynamic"], [{"source": "x", "symbol": "s0", "hint": []}]),
    (["timings", 0, "seconds"], "1"),
    (["timings", 0, "seconds"], 10**400),
]


@pytest.mark.parametrize(
    ("path", "value"), CORRUPTIONS, ids=[f"{'.'.join(map(str, p))}={v!r:.12}" for p, v in CORRUPTIONS]
)
def test_a_wrong_type_is_refused_and_its_place_named(path: list[Any], value: Any) -> None:
    data = small()
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(RecordError) as caught:
        read(data)
    assert path[0] in str(caught.value)
    assert "corrupt" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_field_that_must_be_there_is_named_if_it_is_not() -> None:
    data = small()
    del data["compilations"][0]["function"]
    with pytest.raises(RecordError, match="lacks 'function'"):
        read(data)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_cannot_hold_are_refused(number: str) -> None:
    text = json.dumps(small()).replace('"seconds": 1.0', f'"seconds": {number}')
    assert number in text
    with pytest.raises(RecordError, match="not JSON"):
        from_json(text, Capture)


def test_a_non_finite_float_is_not_written() -> None:
    with pytest.raises(ValueError):
        to_json(Capture("f", ENVIRONMENT, timings=(Timing("dynamo", math.nan),)))


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        from_json(text, Capture)


def test_deep_nesting_inside_a_record_is_refused_or_read() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    data = small()
    data["compilations"][0]["stages"][0]["nodes"][0]["args"] = deep
    assert read(data).compilations[0].graphs["dynamo"].nodes[0].args != ()
    for _ in range(20_000):
        deep = [deep]
    text = json.dumps(small()).replace('"args": [', '"args": [' + "[" * 20_000 + "]" * 20_000 + ", ")
    with pytest.raises(RecordError):
        from_json(text, Capture)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({f.name for cls in codec._CLASSES.values() for f in dataclasses.fields(cls)})


@pytest.mark.full
@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6))
def test_random_json_is_a_capture_or_a_record_error(data: dict[str, Any]) -> None:
    whole = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **small(), **data}
    try:
        capture = read(whole)
    except RecordError:
        return
    assert isinstance(capture, Capture)
    assert from_json(to_json(capture), Capture) == capture


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as its container and key."""
    items = (
        list(data.items())
        if isinstance(data, dict)
        else list(enumerate(data))
        if isinstance(data, list)
        else []
    )
    return [(data, key) for key, _ in items] + [place for _, value in items for place in places(value)]


@settings(deadline=None, max_examples=300)
@given(st.data(), JSON)
def test_one_damaged_place_is_a_capture_or_a_record_error(data: st.DataObject, damage: Any) -> None:
    whole = small()
    container, key = data.draw(st.sampled_from(places(whole)))
    container[key] = damage
    try:
        capture = read(whole)
    except RecordError:
        return
    assert from_json(to_json(capture), Capture) == capture


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_random_text_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        from_json(text, Capture)


def test_the_codec_runs_no_code_to_open_a_record() -> None:
    source = Path(codec.__file__).read_text(encoding="utf-8")
    imported = set()
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in item.names}
        elif isinstance(item, ast.ImportFrom) and not item.level:
            imported.add((item.module or "").split(".")[0])
        elif isinstance(item, ast.Name):
            assert item.id not in ("eval", "exec", "compile", "__import__")
    assert not imported & {"pickle", "marshal", "shelve", "dill", "cloudpickle", "torch"}


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "triton"):
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, NoTorch())
import compile_lens

capture = compile_lens.load(sys.argv[1])
print(capture.text("full"))
assert capture.ledger.total.aten_ops == 1, capture.ledger
assert capture.chain.lines(("0/0", "inference", "sin"))[0].line == 2
capture.save(sys.argv[2] + "/x.html")
capture.save(sys.argv[2] + "/x.svg")
capture.save(sys.argv[2] + "/x.md")
"""


def test_a_record_is_read_measured_and_drawn_without_torch(tmp_path: Path) -> None:
    frame = graph_module.Frame("f.py", 2, "f", "return x.sin()")
    tensor = graph_module.Tensor("float32", (4,), (1,), "cpu", 16)
    nodes = (
        Node("x", "placeholder", "x", "input", outputs=(tensor,), frames=(frame,)),
        Node(
            "sin",
            "call_function",
            "aten.sin.default",
            "pointwise",
            True,
            (Ref("x"),),
            outputs=(tensor,),
            frames=(frame,),
        ),
        Node("output", "output", "output", "output", args=((Ref("sin"),),)),
    )
    stages = (
        Graph("inference", "", "", nodes, text="sin = torch.ops.aten.sin.default(x)"),
        Missing("inference.loops", "x"),
    )
    capture = Capture("f", ENVIRONMENT, compilations=(Compilation("0/0", "f", "f.py", 1, stages),))
    record = tmp_path / "r.json"
    record.write_text(to_json(capture), encoding="ascii")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(record), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "sin" in done.stdout
    assert (tmp_path / "x.svg").read_text(encoding="utf-8").lstrip().startswith("<")
    assert "sin" in (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "sin" in (tmp_path / "x.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("size", "said"),
    (
        ("-5", r"capture\.compilations\[0\]\..*shape cannot be negative, it is \[-5\]"),
        ("1" + "0" * 4000, "cannot be as large as 1000"),
        ("1" + "0" * 5000, "not JSON"),
        (str(2**64), r"shape\[0\] cannot be as large as 18446744073709551616"),
        ("1e999", "is beyond the range of a float"),
        ("NaN", "NaN is not JSON"),
        ("null", "cannot hold null"),
        ("[" * 100_000 + "]" * 100_000, "not JSON|nested too deeply"),
    ),
)
def test_sizes_that_no_tensor_has(size: str, said: str) -> None:
    text = samples.sample().to_json()
    changed = text.replace('"shape":[1000]', f'"shape":[{size}]')
    assert changed != text
    with pytest.raises(RecordError, match=said):
        from_json(changed, Capture)


def test_a_stage_that_stands_twice() -> None:
    raw = json.loads(samples.sample().to_json())
    stages = raw["compilations"][0]["stages"]
    raw["compilations"][0]["stages"] = [*stages, stages[0]]
    with pytest.raises(RecordError, match=r'capture\.compilations\[0\]\.stages has "dynamo" twice'):
        from_json(json.dumps(raw), Capture)
