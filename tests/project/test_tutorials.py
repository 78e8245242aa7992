"""Runs the lessons as a student would, and compares their output with the claims of their text."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from typing import Any

import lessons
import nbformat
import pytest
import torch
from bilingual import digits
from lessons import FOLDER, NUMBERS, exercises_wait, run
from lessons import text as _text
from torch._inductor.utils import run_and_get_code

import compile_lens
from compile_lens import capture

pytestmark = [pytest.mark.torch, pytest.mark.slow]

LESSONS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
FIRST = "01-one-line-four-stages.ipynb"
SECOND = "02-capture-breaks-and-guards.ipynb"
SIXTH = "06-inlining-and-fusion.ipynb"

KERNELS = ["cpp_fused_add_cos_pow_sin_0", "cpp_fused_add_cos_mul_neg_pow_sin_0"]


@pytest.fixture(scope="module")
def first() -> Mapping[str, Any]:
    """Return the outputs of every code cell of the first lesson, by cell id."""
    return run(FIRST)


def test_an_assistant_of_a_student_is_sent_to_hints_and_never_to_solutions() -> None:
    text = (FOLDER / "AGENTS.md").read_text(encoding="utf-8")
    names = {name for name in ("hint", "predict", "check") if f"compile_lens.course.{name}(" in text}
    assert names == {"hint", "predict", "check"} and "solution(" not in text
    assert "Never call `compile_lens.course.solution`" in text


def test_there_is_a_lesson() -> None:
    assert FIRST in LESSONS


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_kept_without_outputs(name: str) -> None:
    lesson = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(lesson)
    for cell in lesson.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None, f"clear the outputs of cell {cell.id}"


@pytest.mark.parametrize("name", LESSONS)
def test_what_a_lesson_takes_of_the_package_is_there(name: str) -> None:
    """Its exercises and each name after ``compile_lens.`` exist: some lessons run in the exhaustive tier alone."""
    lessons.exercises(name)
    for cell in nbformat.read(FOLDER / name, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        code = re.sub(r"^[%!].*$", "pass", cell.source, flags=re.M)
        for node in ast.walk(ast.parse(code)):
            if re.fullmatch(r"compile_lens(\.\w+)+", path := ast.unparse(node)):
                assert operator.attrgetter(path.partition(".")[2])(compile_lens), (cell.id, path)
            if isinstance(node, ast.ImportFrom) and node.module == "compile_lens":
                assert all(hasattr(compile_lens, alias.name) for alias in node.names), cell.id


@pytest.mark.parametrize("name", [name for name in LESSONS if lessons.watched(name)])
@pytest.mark.cases(full=1)
def test_what_is_watched_says_the_same_a_second_time(name: str) -> None:
    texts = {cell: _text(outputs) for cell, outputs in run(name).items()}
    for cell in lessons.watched(name):
        assert texts[f"again-{cell}"] == texts[cell], cell


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LESSONS)
def test_every_cell_can_be_run_twice_in_turn(name: str) -> None:
    """Students do this: no error, and the same whole numbers; lesson 11 prints times."""
    twice, once = lessons.run_twice(name), run(name)
    for cell, outputs in twice.items():
        if not name.startswith("11") and not any("text/html" in o.get("data", {}) for o in outputs):
            both = (re.sub(r"\bcell \[\d+\]|\d+\.\d+", "", _text(one)) for one in (outputs, once[cell]))
            assert operator.eq(*map(digits, both)), cell


def test_the_first_lesson_shows_the_page(first: Mapping[str, Any]) -> None:
    shown = [o for o in first["show"] if o.output_type in ("display_data", "execute_result")]
    assert len(shown) == 1, "the capture is to be displayed once"
    assert KERNELS[0] in shown[0].data["text/html"]
    assert "17 eager ops → 2 launches" in shown[0].data["text/plain"]


@pytest.mark.parametrize(
    ("cell", "drawn"),
    [
        ("dynamo-drawing", "7 nodes, 5 calls"),
        ("joint", "20 nodes, 17 calls"),
        ("forward", "7 nodes, 5 calls, 1 saved for backward"),
        ("backward", "15 nodes, 12 calls"),
    ],
)
def test_the_first_lesson_draws_each_graph(first: Mapping[str, Any], cell: str, drawn: str) -> None:
    (output,) = first[cell]
    assert drawn in output.data["image/svg+xml"]


def test_the_first_lesson_reads_each_stage(first: Mapping[str, Any]) -> None:
    ones = re.fullmatch(r"tensor\(\[(.*)\], grad_fn=<\w+>\)", _text(first["function"]))
    assert ones is not None and [round(float(one), 5) for one in ones[1].split(",")] == [1.0] * 5
    stages = ["dynamo", "joint", "forward", "forward.loops", "forward.groups", "backward"]
    assert all(repr(stage) in _text(first["stages"]) for stage in stages)
    for call in ("torch.sin(", "torch.cos(", "sin ** 2", "cos ** 2", "pow_1 + pow_2"):
        assert call in _text(first["dynamo-text"])
    assert _text(first["saved"]) == "('primals_1',)"
    body = _text(first["loops"])
    assert body.count("buf0[p0] = ") == 1
    assert {"sin(", "cos(", "mul(", "add("} <= set(re.findall(r"\w+\(", body))
    assert "op0: pointwise, one loop" in _text(first["groups"])
    assert f"{KERNELS[0]} launches: 1" in _text(first["kernel"])
    assert {*re.findall(r"auto (tmp\d)", _text(first["kernel"]))} == {f"tmp{n}" for n in range(6)}
    assert "`tmp0` is the number that is loaded, and the other five" in lessons.prose(FIRST)["kernel-why"]
    assert ".sin()" in _text(first["kernel"]) or "std::sin(" in _text(first["kernel"])
    assert _text(first["code-only"]) == "'generated only'"


def test_the_first_lesson_reckons_right(first: Mapping[str, Any]) -> None:
    lines = [line.replace(",", "").split() for line in _text(first["ledger"]).splitlines()]
    assert lines[1:] == [
        ["forward", "5", "5", "1", "1", "1", "44000", "8000"],
        ["backward", "12", "12", "1", "1", "1", "116000", "12000"],
        ["both", "17", "17", "2", "2", "2", "160000", "20000"],
    ]


def test_the_first_lesson_walks_the_chain(first: Mapping[str, Any]) -> None:
    assert _text(first["chain-up"]).strip() == "line 2 of f: return torch.sin(x) ** 2 + torch.cos(x) ** 2"
    assert re.findall(r"'(\w+)'", _text(first["chain-down"])) == KERNELS
    rows = (line.partition(" ") for line in _text(first["chain-one"]).splitlines())
    reached = {stage: names.strip().split(", ") for stage, _, names in rows}
    assert reached["forward.code"] == KERNELS[:1] and reached["backward.code"] == KERNELS[1:]
    assert "cos_1" in reached["joint"], "the derivative of sin"
    assert "cos" in reached["backward"], "it was merged with the other"
    assert "cos" not in reached["forward"], "which the backward works out again"
    assert [*reached][-1] == "backward.code" and len(reached) == len(_text(first["chain-one"]).splitlines())


def test_the_first_lesson_asks_before_it_shows(first: Mapping[str, Any]) -> None:
    cells = nbformat.read(FOLDER / FIRST, as_version=4).cells
    names = [cell.id for cell in cells]
    assert names.index("predict") < names.index("function") < names.index("reveal") < names.index("show")
    assert "No guess yet: put a number in place of each None (forward, backward)" in _text(first["predict"])
    shown = _text(first["reveal"])
    assert "forward: no guess; the capture has 1 launch" in shown
    assert "backward: no guess; the capture has 1 launch" in shown


def test_the_exercises_of_the_first_lesson_wait_for_their_functions(first: Mapping[str, Any]) -> None:
    exercises_wait(FIRST)
    assert "0 of " in _text(first["progress"])
    assert "not begun: lessons 0, 1, 2, " in _text(first["progress"]), "a guess that nobody made is not kept"
    assert "2 operators of eager PyTorch stand against 1 launch" in _text(first["try"])


def test_the_prose_of_the_first_lesson_says_what_the_capture_says(first: Mapping[str, Any]) -> None:
    """It covers each number in its three sentences and in the text about the guess."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    record = capture(f, torch.rand(1000, requires_grad=True))
    forward, backward = record.ledger.forward, record.ledger.backward
    saved = record.compilations[0].graphs["forward"].saved
    wanted = {
        "take-home": [
            (r"(\w+) operators of Python became (\w+) loop", (forward.eager_ops, forward.loops)),
            (r"(\w+) calls that give 0", (len(record.compilations[0].graphs["backward"].calls),)),
            (r"The forward kept (\w+) tensor, the input", (len(saved),)),
        ],
        "reveal-meaning": [
            (r"(\w+) calls, in (\w+) kernel", (backward.aten_ops, backward.launches)),
            (r"made (\w+) kernel of (\w+) operators", (forward.launches, forward.eager_ops)),
            (r"there is (\w+) loop before", (forward.loops,)),
        ],
        "ledger-reading": [
            (
                r"(\w+) operators became (\w+) launches",
                (record.ledger.total.eager_ops, record.ledger.total.launches),
            ),
        ],
    }
    cells = {cell.id: cell.source for cell in nbformat.read(FOLDER / FIRST, as_version=4).cells}
    for cell, sentences in wanted.items():
        for pattern, values in sentences:
            match = re.search(pattern, cells[cell])
            assert match, pattern
            assert tuple(NUMBERS[word.lower()] for word in match.groups()) == values, match[0]
    assert saved == ("primals_1",)
    x = torch.rand(1000, requires_grad=True)
    f(x).sum().backward()
    assert torch.allclose(f(x), torch.ones(1000)) and x.grad is not None and x.grad.abs().max() < 1e-5


@pytest.fixture(scope="module")
def second() -> Mapping[str, Any]:
    """Return the outputs of every code cell of the second lesson, by cell id."""
    return run(SECOND)


def test_the_second_lesson_breaks_and_mends(second: Mapping[str, Any]) -> None:
    assert _text(second["functions"]).strip() == "half way", "as in plain Python"
    assert _text(second["reveal"]).count("graphs: no guess; the capture has 2 graphs") == 3
    reasons = dict(line.split(": ", 1) for line in _text(second["why"]).splitlines())
    assert reasons["print"].startswith("line 3: Failed to trace builtin operator")
    assert "item()" in reasons["item"] and "branching" in reasons["if"]
    (shown,) = [o for o in second["rewrite"] if o.output_type in ("display_data", "execute_result")]
    assert "compiled: 1 graph, inference" in shown.data["text/plain"]
    assert _text(second["rewrite-same"]) == "(True, True)"
    guarded = [line.split() for line in _text(second["guards"]).splitlines()]
    assert ["TENSOR_MATCH", "L['x']"] in guarded and ["BUILTIN_MATCH", "G['torch'].sin"] in guarded
    assert ["GRAD_MODE"] in guarded


def test_the_second_lesson_leaves_a_function_to_python(second: Mapping[str, Any]) -> None:
    """A branch in its loop makes the function run eagerly, and the function that it calls is compiled by itself."""
    lines = {line[14:].strip(): line[:14].strip() for line in _text(second["left-lines"]).splitlines()}
    assert {line: states for line, states in lines.items() if states not in ("", "eager")} == {
        "return torch.sin(x) * 2": "compiled",
        "if x.sum() > 0:": "broke, eager",
    }
    assert sorted(line for line, states in lines.items() if states == "eager") == [
        "for x in xs:",
        "return total",
        "total = torch.zeros(8)",
        "total = total + torch.cos(scaled(x))",
    ]

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2

    def summed(xs: list[torch.Tensor]) -> torch.Tensor:
        total = torch.zeros(8)
        for x in xs:
            if x.sum() > 0:
                total = total + torch.cos(scaled(x))
        return total

    made: list[Any] = []
    torch.compile(summed, backend=lambda module, _: made.append(module) or module)([torch.rand(8)] * 3)
    targets = {node.target for module in made for node in module.graph.nodes if node.op == "call_function"}
    assert targets == {torch.sin, operator.mul}, "torch's own graphs: nothing of the loop or before it"


@pytest.mark.exhaustive
def test_a_product_of_the_first_lesson_is_a_launch_of_its_own() -> None:
    """Its stage 4 states this, and exercise 1.2 needs it: confirmed by the code that plain torch generates."""
    cells = {cell.id: cell.source for cell in nbformat.read(FOLDER / FIRST, as_version=4).cells}
    assert "`x @ x`, it calls a library, and that call is a launch" in cells["kernel-why"]
    torch._dynamo.reset()
    _, (code,) = run_and_get_code(torch.compile(lambda x: torch.sin(x @ x)), torch.rand(64, 64))
    assert code.count("extern_kernels.mm(") == code.count("= async_compile.cpp_pybinding(") == 1


def test_the_exercises_of_the_second_lesson_wait_for_their_functions() -> None:
    exercises_wait(SECOND)


@pytest.fixture(scope="module")
def sixth() -> Mapping[str, Any]:
    """Return the outputs of every code cell of the sixth lesson, by cell id."""
    return run(SIXTH)


def test_the_sixth_lesson_tells_inlining_from_fusion(sixth: Mapping[str, Any]) -> None:
    assert "loops: no guess; the capture has 1 loop before fusion" in _text(sixth["square-reveal"])
    assert (
        _text(sixth["square-loop"]).count(" = mul(") == 2 and _text(sixth["square-loop"]).count("buf0[") == 1
    )
    assert _text(sixth["square-said"]).startswith("They are in one loop: lowering")
    text = _text(sixth["three"])
    assert "the capture has 3 loops before fusion" in text and "the capture has 1 group after fusion" in text
    assert _text(sixth["three-loops"]).count("load = ") == 3
    assert "3 loops fused into one" in _text(sixth["three-groups"])
    assert _text(sixth["three-said"]).startswith("They were fused")


def test_the_sixth_lesson_reckons_right(sixth: Mapping[str, Any]) -> None:
    record = capture(lambda x: torch.square(torch.square(x)), torch.rand(16)).compilations[0]
    assert [call.name for call in record.graphs["inference"].calls] == ["pow_1", "pow_2"], "as the text says"
    tensor = 4 * 2**20
    moved = [line.replace(",", "").split() for line in _text(sixth["square-bytes"]).splitlines()]
    assert [(int(line[1]), int(line[4])) for line in moved] == [(4 * tensor, 4), (2 * tensor, 2)]
    rows = [line.replace(",", "").split()[-3:] for line in _text(sixth["ablation"]).splitlines()]
    numbers = [tuple(map(int, row)) for row in rows if row[0].isdigit()]
    f, g = numbers[:3], numbers[3:]
    assert f == [(2, 2, 4 * tensor), (1, 1, 2 * tensor), (1, 1, 2 * tensor)]
    assert g == [(3, 3, 6 * tensor), (3, 3, 6 * tensor), (3, 1, 4 * tensor)]
    first, second, *stopped = _text(sixth["limits"]).splitlines()
    counted = dict(zip(*[iter(first.replace(",", "").split())] * 2))
    assert counted["operators"] == "400" and counted["groups"] == counted["launches"] == "1"
    assert int(counted["loops"]) > 2 and len(stopped) == int(counted["loops"]) - 1 > 1
    assert all(re.search(r"\d+ operations, limit \d+", line) for line in stopped)
    assert re.fullmatch(r"moved after fusion: \d+ times the whole tensor", second)


def test_one_edit_in_the_sixth_lesson_takes_inlining_away(sixth: Mapping[str, Any]) -> None:
    """Counted by hand: two tensors written and one read, and the intermediate value never read again."""
    counts, cause, effects, lowered = _text(sixth["edit"]).strip().splitlines()
    assert counts == "loops 2, groups 1, moved 3 times the whole tensor"
    assert cause.startswith("results: 1 of the graph became 2") and "y = torch.square(x)" in cause
    assert "inlined became a buffer (output)" in lowered
    tensor = 4 * 2**20
    assert f"bytes {2 * tensor / 1e6:.2f} MB → {3 * tensor / 1e6:.1f} MB" in effects  # to three digits
    cells = {cell.id: cell.source for cell in nbformat.read(FOLDER / SIXTH, as_version=4).cells}
    match = re.search(r"(\w+) loops became (\w+) group", cells["edit-meaning"])
    assert match and (NUMBERS[match[1]], NUMBERS[match[2]]) == (2, 1)


def test_the_prose_of_the_sixth_lesson_says_what_its_captures_say() -> None:
    cells = {cell.id: cell.source for cell in nbformat.read(FOLDER / SIXTH, as_version=4).cells}
    x = torch.rand(16)
    squared = capture(lambda x: torch.square(torch.square(x)), x).ledger.total
    three = capture(lambda x: (torch.sin(x), torch.cos(x), torch.exp(x)), x).ledger.total
    match = re.search(r"(\w+) reads and (\w+) writes became one of each: half", cells["square-bytes-meaning"])
    assert match and NUMBERS[match[1].lower()] + NUMBERS[match[2]] == squared.bytes_before // x.nbytes == 4
    assert squared.bytes_after // x.nbytes == 2
    match = re.search(r"There is (\w+) loop, and nothing", cells["square-loop-why"])
    assert match and NUMBERS[match[1]] == squared.loops
    match = re.search(r"^The body contains (\w+) multiplications", cells["square-loop-meaning"])
    assert match and NUMBERS[match[1].lower()] == squared.aten_ops
    match = re.search(r"^(\w+) loops: each result", cells["three-loops-meaning"])
    assert match and NUMBERS[match[1].lower()] == three.loops
    match = re.search(
        r"`f` became (\w+) loop .*the (\w+) loops of `g` became (\w+) group", cells["take-home"], re.S
    )
    assert match and tuple(NUMBERS[word] for word in match.groups()) == (
        squared.loops,
        three.loops,
        three.groups,
    )


def test_the_exercises_of_the_sixth_lesson_wait_for_their_functions() -> None:
    exercises_wait(SIXTH)


@pytest.mark.parametrize("name", LESSONS)
def test_what_a_lesson_links_to_is_there(name: str) -> None:
    text = "\n".join(cell.source for cell in nbformat.read(FOLDER / name, as_version=4).cells)
    assert all((FOLDER / file).is_file() for file in re.findall(r"\]\(([\w-]+\.ipynb)\)", text))
    assert f"({name})" in (FOLDER / "README.md").read_text(encoding="utf-8")
