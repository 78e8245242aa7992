"""Answers about a record name their subject, and propose calls that work."""

from __future__ import annotations

import ast
import dataclasses
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import samples
import torch
from torch._inductor.utils import run_and_get_code

import compile_lens
from compile_lens.cli.agents import answers, checks
from compile_lens.measures.unfused_pairs import all_unfused_pairs
from compile_lens.record.divergence import DivergenceRecord
from compile_lens.record.verification import ValueCheck, Verification
from compile_lens.results.capture import Capture
from compile_lens.trials.switches import SWITCHES
from compile_lens.views.brief import Brief

columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")

pytestmark = pytest.mark.torch


class Gated(torch.nn.Module):
    """Products in a submodule and outside of it, so that both phases call the library by the same names."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(8, 8)
        self.weight = torch.nn.Parameter(torch.rand(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(x).sigmoid() * (x @ self.weight)  # the line of both


@pytest.fixture(scope="module")
def record() -> Capture:
    return compile_lens.capture(Gated(), torch.rand(4, 8, requires_grad=True))


def asked(text: str) -> Any:
    """Return the address of the ``chain`` call that an answer proposes."""
    (literal,) = re.findall(r"chain\(record='c1', address=(.*)\)", text)
    return checks.address(ast.literal_eval(literal), "address")


@pytest.mark.parametrize("by", ["line", "kernel", "module"])
def test_the_first_row_of_a_cost_can_be_asked_for(record: Capture, by: str) -> None:
    rows = record.cost(by).rows
    text = answers.cost(record, "c1", by, 0).text()
    first = next(row for row in rows if row.address)
    assert first.kernels[0] in answers.chain(record, "c1", asked(text)).text()
    assert "(no line)" not in text and "address=''" not in text


def test_code_of_the_module_itself_is_in_no_submodule_and_has_lines(record: Capture) -> None:
    text = f"{record.cost('module')}\n{answers.cost(record, 'c1', 'module', 0).text()}"
    assert text.count("code in no submodule") == 2 and "not known" not in text


@pytest.mark.parametrize("budget", [250, 400, 2000])
def test_a_chain_names_its_kernels_within_any_budget(record: Capture, budget: int) -> None:
    """All kernels of the program come from its only line."""
    line = next(n for n, text in enumerate(open(__file__), 1) if text.endswith("# the line of both\n"))
    text = answers.chain(record, "c1", f"test_answers.py:{line}").text(budget)
    assert {kernel.name for kernel in record.kernels} <= set(re.findall(r"[\w.]+(?:#\d+)?", text))


def test_an_address_that_a_message_names_can_be_given_as_it_stands(record: Capture) -> None:
    name, times = next(
        (k.name, k.phase) for k in record.kernels if k.phase == "backward" and k.language == "extern"
    )
    address = f"('0/0', '{times}.code', '{name}')"
    assert checks.address(address, "address") == ast.literal_eval(address)
    assert name in answers.chain(record, "c1", checks.address(address, "address")).text()
    assert checks.address("sin@7", "address") == "sin@7" and checks.address("(x)", "address") == "(x)"


def spread(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin().amax(0), x.sin().t().contiguous() + 1


@pytest.mark.full
def test_loops_of_one_kernel_are_said_to_be() -> None:
    """C++ code is one function although Inductor did not fuse its contents: the code that torch built has one."""
    x = torch.rand(6, 5)
    record = compile_lens.capture(spread, x)
    _, (code,) = run_and_get_code(torch.compile(spread), x)
    assert code.count("async_compile.cpp_pybinding(") == len(record.kernels) == 1
    count = len(all_unfused_pairs(record))
    text = answers.not_fused(record, "c1", 0).text()
    assert count and f"Within one kernel, each with a loop of its own: {count}." in text
    assert text.count(", in one kernel: ") == count and f"{count} of them within one kernel" in record.brief()


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    while x.shape[0] > 1:
        torch._dynamo.graph_break()  # the break
        x = x[1:].exp()
    return x


def test_nothing_compiled_has_no_cost_of_zero_but_a_line_and_a_reason() -> None:
    record = compile_lens.capture(in_a_loop, torch.rand(3))
    cost = answers.cost(record, "c1", "kernel", 0).text()
    assert "0 B" not in cost and "No cost is known: Dynamo skipped in_a_loop" in cost and "chain(" not in cost
    line = next(n for n, text in enumerate(open(__file__), 1) if text.endswith("# the break\n"))
    text = record.brief()
    assert f"test_answers.py:{line}" in text and "graph breaks in loops are not supported" in text
    assert "Remove the `torch._dynamo.graph_break()` call" in text


def drops(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x.clone(), 0.5)


@pytest.mark.full
def test_a_divergence_says_what_was_compared_and_how() -> None:
    """Compiled code draws other random numbers than eager: the agreement does not cover the unmodified call."""
    x = torch.ones(64, requires_grad=True)
    divergence = compile_lens.capture(drops, x).divergence()
    text = answers.divergence(divergence.to_dict(), "drops").text()
    assert "Compared: 1 result, 1 gradient." in text
    assert "Random numbers: compared with code that draws eager's" in text
    assert "random numbers: compared with code that draws eager's" in " ".join(str(divergence).split())


def test_a_comparison_without_a_verdict_is_not_called_none_at_all() -> None:
    check = ValueCheck("result", "float32", (3,), 0.0, 0.0, None, None, True)
    partly = Verification((check,), True, not_compared=(("model", "it draws"),))
    record = DivergenceRecord("f", samples.sample(), partly)
    text = answers.divergence(record.to_dict(), "f").text()
    assert "No verdict: agrees in part." in text and "Not compared: model: it draws." in text
    assert "Compared: 1 result." in text


def test_memory_that_is_not_in_the_record_is_not_known(record: Capture) -> None:
    assert "Memory is not known: no code was generated." in answers.memory(samples.nothing(), "c1").text()
    compilations = tuple(dataclasses.replace(one, memory=(), partition=None) for one in record.compilations)
    without = dataclasses.replace(record, compilations=compilations)
    assert "Memory is not known: not in the record." in answers.memory(without, "c1").text()
    assert "at the peak" in answers.memory(record, "c1").text()


class Attending(torch.nn.Module):
    """Two lines with views of each other's results beside their own products."""

    def __init__(self) -> None:
        super().__init__()
        self.both = torch.nn.Linear(8, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k = self.both(x).chunk(2, -1)  # a product and views of it
        return (q @ k.transpose(-1, -2)).softmax(-1)


@pytest.fixture(scope="module")
def attending() -> Capture:
    return compile_lens.capture(Attending(), torch.rand(4, 6, 8, requires_grad=True))


def test_a_chain_says_which_of_its_kernels_the_cost_does_not_count(attending: Capture) -> None:
    notes = 0
    for row in attending.cost("line").rows:
        text = answers.chain(attending, "c1", row.address).text(20_000)
        kernels = {(kernel.phase, kernel.name) for kernel in attending.chain.kernels(row.address)}
        counted = {(stage.partition(".")[0], name) for _, stage, name in row.addresses}
        others = re.findall(r"counts (\d+) of these kernels\. No load or store in the others", text)
        assert [int(number) for number in others] == ([len(counted)] if kernels != counted else [])
        notes += bool(others)
    assert notes


def test_a_kernel_is_shown_from_its_definition_on(attending: Capture) -> None:
    kernel = next(k for k in attending.kernels if k.language == "cpp")
    text = answers.chain(attending, "c1", kernel.name).text(20_000)
    assert "#include" in kernel.source and "#include" not in text and "before" in text


def test_no_two_pairs_read_alike(attending: Capture) -> None:
    """Each entry names the groups of its pairs, by which they can be queried, whatever its words."""
    text = answers.not_fused(attending, "c1", 0).text(20_000)
    entries = re.findall(r"^E\d+ +(.*)$", text, re.M)
    assert len(set(entries)) == len(entries) > 1
    named = [tuple(pair.split(" and ")) for entry in entries for pair in entry.partition(": ")[2].split("; ")]
    assert sorted(named) == sorted((one.first, one.second) for one in all_unfused_pairs(attending))
    a, b, phase = re.findall(r"a='([^']*)', b='([^']*)', phase='([^']*)'", text)[0]
    assert "not fused" in answers.why(attending, "c1", a, b, phase).text()


@pytest.mark.parametrize(
    "model", [Gated(), torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(4, 2, 3))]
)
def test_what_an_entry_says_holds_for_each_of_its_pairs(model: torch.nn.Module) -> None:
    """Pairs are named together only if one sentence is true of all, including the name of a library call."""
    x = torch.rand(4, 8) if isinstance(model, Gated) else torch.rand(1, 3, 9, 9)
    captured = compile_lens.capture(model, x.requires_grad_())
    own = {
        (f"{one.compilation} {one.phase}", one.first, one.second): one.why
        for one in all_unfused_pairs(captured)
    }
    text = answers.not_fused(captured, "c1", 0).text(20_000)
    for place, names, words in re.findall(r"^E\d+ +(\S+ \w+)(?:, in one kernel)?: (.*)\n +(.*)$", text, re.M):
        for pair in names.split("; "):
            first, second = pair.split(" and ")
            assert own.pop((place, first, second)).answer in words
    assert not own


def test_an_answer_about_a_pair_says_each_thing_once(attending: Capture) -> None:
    for pair in all_unfused_pairs(attending):
        place = f"{pair.compilation} {pair.phase}"
        text = answers.why(attending, "c1", pair.first, pair.second, place).text(20_000)
        shown = re.findall(r"(?:Inductor: )?round (\d+): .*?: not fused", text)
        assert len(shown) <= len(pair.why.decisions)


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x.tanh() + torch.randn_like(x)


@pytest.mark.full
def test_random_numbers_are_no_library_call_where_only_their_seeds_are() -> None:
    """The generated kernel draws the numbers: torch's code calls ``normalized_rand_cpu`` or ``randn_cpu`` in it."""
    _, (code,) = run_and_get_code(torch.compile(noisy), torch.rand(4))
    assert "randn_cpu(" in code
    text = answers.not_fused(compile_lens.capture(noisy, torch.rand(4)), "c1", 0).text()
    assert "the draw of random seeds for `torch.randn_like(x)`" in text
    assert "E2" not in text and not re.search(r"(?<!seeds for )`torch\.randn_like\(x\)` \S+ is a call", text)


SETTINGS: dict[str, Any] = {
    "trials": [
        {
            "name": "one",
            "failure": "",
            "figures": {"peak": [4096, 2048], "bytes": [100, 50]},
            "to_apply": "torch.compile(f)",
        },
        {"name": "two", "failure": "", "figures": {}, "to_apply": ""},
        {"name": "three", "failure": "", "figures": {}, "to_apply": ""},
    ],
    "helpful": ["one"],
    "not_tried": [(f"setting {n}", "nothing reduces" if n % 2 else "it is for GPUs") for n in range(20)],
}


def test_settings_have_units_and_equal_reasons_stand_once() -> None:
    text = answers.what_if(SETTINGS, "f").text()
    assert "peak ~4,096 B → ~2,048 B" in text and "bytes ~100 B → ~50 B" in text
    assert "no figure changes with two, three" in text
    assert (
        text.count("nothing reduces") == text.count("it is for GPUs") == 1 and "20 settings not tried" in text
    )


class Towers(torch.nn.Module):
    """Two layers of one shape, with the same library calls in both phases."""

    def __init__(self) -> None:
        super().__init__()
        self.towers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for tower in self.towers:
            x = tower(x).sigmoid()
        return x.square().mean()


@pytest.fixture(scope="module")
def towers() -> Capture:
    return compile_lens.capture(Towers(), torch.rand(4, 8, requires_grad=True))


def test_each_proposed_pair_of_kernels_can_be_asked_for(towers: Capture) -> None:
    lines = {f"{source.file}:{number}" for source in towers.sources for number in source.numbers}
    modules = {
        f"module:{node.module}" for node in towers.compilations[0].graphs["pre_grad"].nodes if node.module
    }
    pairs = 0
    for address in (*lines, *modules):
        try:
            text = answers.chain(towers, "c1", address).text(4000)
        except compile_lens.UsageError:  # a line without an operator
            continue
        for call in re.findall(r"  (why\(.*\))$", text, re.M):
            words = {
                word.arg: ast.literal_eval(word.value) for word in ast.parse(call, mode="eval").body.keywords
            }
            a, b = (checks.address(words[key], key) for key in "ab")
            assert "is a call of a library" in answers.why(towers, "c1", a, b, "").text() or a != b
            pairs += 1
    assert pairs >= 3, "the loop's line, and the modules"


def test_the_cost_of_a_module_counts_the_kernels_of_its_submodules(towers: Capture) -> None:
    """A tower has one linear layer: a product in the forward, and two in the backward."""
    text = answers.chain(towers, "c1", "module:towers.1").text(8000)
    rest = text.partition("No load or store in the others")[2].partition("\n")[0]
    assert text.count("extern_kernels.") >= 3 and "extern_kernels" not in rest


def test_a_proposed_call_names_the_function_and_inputs_of_the_record(towers: Capture) -> None:
    brief = answers.with_call(answers.memory(towers, "c1"), "net.py:step", ["x", "torch.rand(3)"], {"k": "2"})
    words = "function='net.py:step', inputs=['x', 'torch.rand(3)'], kwargs={'k': '2'}, switches="
    assert f"what_if({words}" in brief.text()
    long = answers.with_call(answers.memory(towers, "c1"), "net.py:step", ["x" * 5_000], {})
    assert "what_if(function=…, inputs=…, switches=" in long.text()


def test_inputs_at_the_peak_are_those_of_its_graph() -> None:
    """A break makes two graphs; the second has inputs too, which are not live at the first one's peak."""

    def f(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = (x @ w).relu()
        torch._dynamo.graph_break()
        return (h.mean(0) * y).sum()

    w = torch.rand(64, 64, requires_grad=True)
    record = compile_lens.capture(f, torch.rand(512, 64), w, torch.rand(64))
    (row,) = [row for row in record.memory("line").rows if row.kind == "input"]
    assert 0 < row.live_tensors < row.tensors
    names = [one for one in record.memory("name").rows if one.kind == "input" and one.peak]
    assert sum(len(one.names) for one in names) == row.live_tensors
    if row.share and row.share > 0.005:
        count = "1 input" if row.live_tensors == 1 else f"{row.live_tensors} inputs"
        assert count in answers.memory(record, "c1").text() or row not in record.memory("line").rows[:3]


def test_a_failed_capture_says_so_where_a_figure_is_asked_for() -> None:
    with pytest.raises(compile_lens.CaptureError) as caught:
        compile_lens.capture(lambda x: x @ torch.rand(7), torch.rand(3, 3))
    text = answers.cost(caught.value.capture, "c1", "kernel", 0).text()
    assert "failed in stage dynamo" in text and "does not say why" not in text


def test_the_switches_that_an_answer_proposes_exist(towers: Capture) -> None:
    text = answers.memory(towers, "c1").text()
    (listed,) = re.findall(r"switches=(\[.*\])", text)
    assert set(ast.literal_eval(listed)) <= {switch.name for switch in SWITCHES}


def test_a_figure_that_changes_below_its_last_digit_is_shown_in_full() -> None:
    """By hand: 51,408 and 51,392 bytes both round to 51.4 kB."""
    trial: dict[str, Any] = {"name": "pattern_matcher", "failure": "", "to_apply": ""}
    data = {
        "trials": [{**trial, "figures": {"bytes": [51_408, 51_392], "launches": [3, 2]}}],
        "helpful": ["pattern_matcher"],
        "not_tried": [],
    }
    text = answers.what_if(data, "f").text()
    assert "bytes 51,408 → 51,392, launches 3 → 2" in text and "1 lowers a figure" in text


def test_the_figures_of_a_failed_capture_are_said_to_be_of_a_part() -> None:
    """The first graph compiles, the one after the break has shapes that do not fit."""

    def f(x: torch.Tensor) -> torch.Tensor:
        y = (x.sin() @ x).softmax(0)
        torch._dynamo.graph_break()
        return y @ torch.rand(5, 2)

    with pytest.raises(compile_lens.CaptureError) as caught:
        compile_lens.capture(f, torch.rand(4, 4))
    record = caught.value.capture
    assert record.kernels, "of the first graph"
    for brief in (
        answers.cost(record, "c1", "line", 0),
        answers.memory(record, "c1"),
        answers.not_fused(record, "c1", 0),
    ):
        assert "of the graphs compiled before it alone" in brief.text(250)
    whole = compile_lens.capture(lambda x: x.sin(), torch.rand(4, 4))
    for pair, named in (((whole, record), "b"), ((record, whole), "a")):
        text = answers.difference(compile_lens.diff(*pair), "a", "b").text(300)
        assert f"The capture {named!r} failed in stage dynamo" in text.partition("EVIDENCE")[0]


def test_an_input_has_its_own_shape_where_a_view_of_it_is_saved() -> None:
    """The product's derivative saves both operands transposed, in their own memory."""
    x, w = torch.rand(6, 40, requires_grad=True), torch.rand(40, 3, requires_grad=True)
    text = answers.memory(compile_lens.capture(lambda x, w: (x @ w).tanh().sum(), x, w), "c1").text()
    assert 'input "x", float32[6, 40]' in text and 'input "w", float32[40, 3]' in text


def joined(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.stack([x.exp(), y.tan()])
    return torch.nn.functional.silu(z @ z.mT)


def rows_of(record: Capture) -> dict[str, str]:
    """Return entries of the answer about memory by the quoted name in each."""
    return {re.findall('"(.*?)"', one)[0]: one for one in answers.memory(record, "c1").evidence}


@columns
def test_a_value_has_the_shape_that_its_call_returns() -> None:
    given = [torch.rand(3, 5, 7, requires_grad=True) for _ in range(2)]
    shown = rows_of(compile_lens.capture(joined, *given))
    assert list(torch.stack(given).shape) == [2, 3, 5, 7]
    assert "float32[2, 3, 5, 7]" in shown["torch.stack([x.exp(), y.tan()])"]


@columns
def test_a_mask_for_the_backward_is_no_value_of_the_forward() -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).relu() @ torch.ones(5)

    x, w = torch.rand(6, 4), torch.rand(4, 5, requires_grad=True)
    shown = rows_of(compile_lens.capture(step, x, w))
    (mask,) = (name for name, text in shown.items() if "bool[6, 5]" in text)
    assert mask == "backward of (x @ w).relu()"


@columns
def test_a_buffer_of_part_of_a_call_is_named_by_the_call() -> None:
    def averaged(x: torch.Tensor) -> torch.Tensor:
        return x.double().mean(0).sqrt()

    shown = rows_of(compile_lens.capture(averaged, torch.rand(2048, 3)))
    own = next(text for name, text in shown.items() if name.endswith("mean(0)"))
    assert own.startswith("intermediate of ") and "float64[3]" in own
    assert not any("buf" in name for name in shown)


@columns
def test_what_a_call_computes_on_its_way_is_not_its_value() -> None:
    """A product reads a copy of its transposed operand, and a dropout its mask; a loop reads the line's last value."""

    def step(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        z = torch.nn.functional.dropout(x, 0.25) @ y[:, :, ::2].mT
        for _ in range(2):
            z = z @ w
        return z

    given = (torch.rand(*shape, requires_grad=True) for shape in ((3, 4, 6), (3, 5, 12), (5, 5)))
    rows = compile_lens.capture(step, *given).memory("name").rows
    kinds = {(row.expression, row.tensor): row.kind for row in rows if row.saved}
    assert kinds["torch.nn.functional.dropout(x, 0.25)", "bool[3, 4, 6]"] == "intermediate"
    assert kinds["z @ w", "float32[3, 4, 5]"] == "value"
    product = next(expression for expression, _ in kinds if expression.endswith(".mT"))
    assert kinds.pop((product, "float32[3, 4, 5]")) == "value"
    assert {kind for (expression, _), kind in kinds.items() if expression == product} <= {"intermediate"}


def test_what_saves_nothing_without_gradients_is_zero_in_a_difference() -> None:
    x = torch.rand(5, 8)
    trained, inferred = (compile_lens.capture(torch.tanh, x.requires_grad_(grad)) for grad in (True, False))
    before, after = compile_lens.diff(trained, inferred).figures.get("saved", (0, 0))
    assert before == trained.memory().saved and after == 0


def test_an_object_is_shown_without_its_address() -> None:
    class Scale:
        pass

    def scaled(x: torch.Tensor, by: Scale) -> torch.Tensor:
        return x * 2

    one, two = (compile_lens.capture(scaled, torch.rand(3), Scale()) for _ in range(2))
    assert one.inputs == two.inputs and "0x" not in one.inputs[1]
    shown = Brief("t", (f"raised with {Scale()} in {scaled}",))
    assert "Scale object>" in shown.text() and "0x" not in shown.text() + str(shown.to_dict())


def test_the_command_after_a_failed_job_makes_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "beside.py").write_text("RATE = 3\n")
    (tmp_path / "pack" / "net.py").write_text(
        "import beside\ndef build(n):\n    return lambda x, *, k: print(n, x * beside.RATE, k)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    command = answers.plain_call("pack/net.py:build('a b')", ["2 + 2"], {"k": "'\"'"})
    python, option, code = shlex.split(command)
    exec(code, {})
    assert (python, option) == ("python", "-c") and capsys.readouterr().out == 'a b 12 "\n'


@columns
def test_each_buffer_of_a_backward_is_of_the_call_whose_derivative_it_serves() -> None:
    """A transposed convolution has three gradients, of which one has several origins; a copy with another dtype is one
    tensor, at the peak and saved."""
    conv = torch.nn.ConvTranspose2d(3, 2, 3)
    names = rows_of(compile_lens.capture(lambda x: conv(x).tanh().sum(), torch.rand(1, 3, 4, 4)))
    assert not any("buf" in name for name in names)
    assert not any(one.startswith('intermediate of "gradient') for one in names.values())

    def mixed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return (x @ w).sum()

    given = (torch.rand(size, 6, requires_grad=True) for size in (4, 6))
    rows = compile_lens.capture(mixed, *given).memory("name").rows
    assert [row.tensors for row in rows if row.kind == "intermediate" and row.expression == "x @ w"] == [2]


def test_an_assignment_to_a_part_is_no_value_of_the_part() -> None:
    def filled(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[1] = x[0].exp()
        return y.cumsum(0)

    shown = rows_of(compile_lens.capture(filled, torch.rand(5, 3)))
    assert "y[1]" not in shown and "float32[5, 3]" in shown["y[1] = x[0].exp()"]


def test_what_an_operator_returns_beside_the_result_is_an_intermediate() -> None:
    x, i = torch.rand(9, 5, requires_grad=True), torch.tensor([[1, 2], [3, 4], [5, 6]])
    rows = (
        compile_lens.capture(lambda i, x: torch.nn.functional.embedding_bag(i, x), i, x).memory("name").rows
    )
    values = {(row.kind, row.tensor, row.peak) for row in rows if row.kind == "value"}
    assert values == {("value", "float32[3, 5]", 3 * 5 * 4)}


def test_a_tensor_of_two_expressions_is_one_row_with_all_its_bytes() -> None:
    def slope(x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(lambda t: t.cosh().sum())(x)

    rows = compile_lens.capture(slope, torch.rand(11)).memory("name").rows
    assert sorted(row.peak for row in rows) == [11 * 4, 11 * 4]
