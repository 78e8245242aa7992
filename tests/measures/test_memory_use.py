"""Memory by line and by name, against hand counts, torch's names, and autograd's saved tensors in another process."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from compile_lens import capture, show
from compile_lens.errors import UsageError
from compile_lens.measures.memory_use import MemoryUse, pattern
from compile_lens.record.memory import Buffer, Memory
from compile_lens.views.document import Table
from compile_lens.views.findings.memory import memory

columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")

pytestmark = pytest.mark.torch

ROWS, WIDTH = 16, 32
PREFIX = "gradient with respect to "


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.up(x)
        active = torch.nn.functional.gelu(wide)
        return x + self.down(active)


class Net(nn.Module):
    """Has a tied weight, a buffer, a direct parameter and a name with an underscore."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(50, WIDTH)
        self.my_blocks = nn.ModuleList(Block() for _ in range(2))
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.register_buffer("shift", torch.zeros(WIDTH))
        self.head = nn.Linear(WIDTH, 50, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) * self.gain + self.shift
        for block in self.my_blocks:
            x = block(x)
        return self.head(x)


def both(fn: object, *args: object) -> tuple[MemoryUse, MemoryUse]:
    record = capture(fn, *args)
    return record.memory(), record.memory("name")


def tokens() -> torch.Tensor:
    return torch.arange(ROWS)


@pytest.mark.full
@pytest.mark.parametrize("through", ["module", "function", "attribute"])
def test_parameters_have_the_names_that_torch_gives_them(through: str) -> None:
    net = Net()

    class Trainer:
        model = net

    def step(model: nn.Module, given: torch.Tensor) -> torch.Tensor:
        return model(given)

    def train(trainer: Trainer, given: torch.Tensor) -> torch.Tensor:
        return trainer.model(given)

    calls = {"module": (net,), "function": (step, net), "attribute": (train, Trainer())}
    _, by_name = both(*calls[through], tokens())
    names = {name: row.kind for row in by_name.rows for name in row.names if "gradient" not in name}
    torch_names = {name: "parameter" for name, _ in net.named_parameters()}
    torch_names |= {name: "buffer" for name, _ in net.named_buffers()}
    used = {name: kind for name, kind in names.items() if kind != "input"}
    assert used == {name: kind for name, kind in torch_names.items() if name in names}
    assert {"token.weight", "my_blocks.1.down.weight"} <= used.keys() and "head.weight" not in used
    gradients = {n.removeprefix(PREFIX) for r in by_name.rows if r.kind == "gradient" for n in r.names}
    assert gradients - {"a result"} <= torch_names.keys()


@columns
@pytest.mark.full
def test_gradients_of_a_table_and_of_what_is_looked_up_are_told_apart() -> None:
    """By hand: the table has 50 rows, the lookup ROWS; the backward of its reader computes the lookup's gradient."""
    table, line = nn.Embedding(50, WIDTH), nn.Linear(WIDTH, 8)

    def f(i: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(line(table(i))).sum()

    rows = {row.name: row for row in both(f, tokens())[1].rows if row.kind == "gradient"}
    assert {name for name in rows if name.endswith("table.weight")} <= {f"{PREFIX}table.weight"}
    shapes = {name: row.tensor for name, row in rows.items()}
    assert shapes["backward of line(table(i))"] == f"float32[{ROWS}, {WIDTH}]"
    assert shapes[f"{PREFIX}line.weight"] == f"float32[8, {WIDTH}]"


def test_several_modules_keep_the_names_that_tell_them_apart() -> None:
    def step(student: nn.Module, teacher: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return (student(x) - teacher(x)).square().sum()

    _, by_name = both(step, nn.Linear(8, 8), nn.Linear(8, 8), torch.ones(4, 8))
    names = {name for row in by_name.rows for name in row.names}
    assert {"student.weight", "teacher.weight", "x"} <= names


@columns
def test_lines_save_what_one_counts_by_hand() -> None:
    """gelu reads ``wide`` for its backward, the weight gradient of ``down`` reads ``active``: 16 × 128 floats each."""
    block = Block()
    start = Block.forward.__code__.co_firstlineno
    by_line, by_name = both(block, torch.ones(ROWS, WIDTH))
    wide = ROWS * 4 * WIDTH * 4
    saved = {row.line.line - start: row.saved for row in by_line.rows if row.line is not None and row.saved}
    assert saved == {1: wide, 2: wide}
    assert by_line.saved == by_name.saved == 2 * wide
    row = next(row for row in by_name.rows if row.expression == "self.up(x)")
    assert (row.kind, row.saved, row.saved_tensors, row.tensor) == (
        "value",
        wide,
        1,
        f"float32[{ROWS}, {4 * WIDTH}]",
    )
    assert row.modules == ("up",)
    weight = next(row for row in by_name.rows if row.name == "down.weight")
    assert (weight.saved, weight.saved_tensors) == (0, 1)  # it is the memory of the parameter


def test_the_peak_is_the_sum_of_its_rows() -> None:
    for use in both(Block(), torch.ones(ROWS, WIDTH)):
        assert use.peak == sum(row.peak or 0 for row in use.rows) and not use.missing
        assert sum(row.share or 0 for row in use.rows) == pytest.approx(1)
    parameters = sum(p.numel() * 4 for p in Block().parameters())
    by_line, _ = both(Block().requires_grad_(False), torch.ones(ROWS, WIDTH))
    held = {row.kind: row.peak for row in by_line.rows if row.line is None}
    assert held == {"parameter": parameters, "input": ROWS * WIDTH * 4}
    assert by_line.saved is None and by_line.place == "0/0 inference"


def test_equal_tensors_of_repeated_modules_are_one_row() -> None:
    _, by_name = both(nn.Sequential(Block(), Block()), torch.ones(ROWS, WIDTH))
    row = next(row for row in by_name.rows if row.name == "*.down.weight")
    assert (row.tensors, row.names) == (2, ("0.down.weight", "1.down.weight"))
    assert (
        pattern("layers.10.h2.w") == "layers.*.h2.w" and pattern(f"{PREFIX}3.weight") == f"{PREFIX}*.weight"
    )


def test_the_page_has_both_tables_and_a_call_of_one_line_neither() -> None:
    record = capture(Block(), torch.ones(ROWS, WIDTH))
    tables = [section.title for section in memory(record).sections if isinstance(section, Table)]  # type: ignore[union-attr]
    assert tables[:2] == ["by line", "by name"]
    alone = memory(capture(torch.sin, torch.ones(4)))
    assert alone is not None and not {"by line", "by name"} & {section.title for section in alone.sections}


def test_what_several_graphs_save_is_said_to_be_of_all() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().exp()
        torch._dynamo.graph_break()
        return (y.cos() * y).sum()

    use = capture(f, torch.ones(64, requires_grad=True)).memory("line")
    assert use.partitions == 2 and "saved for the backward, by all graphs: " in str(use)


def test_a_wrong_way_is_an_error() -> None:
    with pytest.raises(UsageError, match="'line', 'name'"):
        capture(torch.sin, torch.ones(4)).memory("kernel")


PROGRAM = """
    import json, sys, torch
    import torch._functorch.config
    sys.path.insert(0, {folder!r})
    import {module} as m
    kept_bytes = []
    for budget in {budgets}:
        torch._dynamo.reset()
        net, given = m.Block(), torch.ones(m.ROWS, m.WIDTH)
        own = {{t.untyped_storage().data_ptr() for t in (*net.parameters(), given)}}
        kept = {{}}
        def pack(t):
            kept[t.untyped_storage().data_ptr()] = t
            return t
        with torch._functorch.config.patch(activation_memory_budget=budget):
            compiled = torch.compile(net)
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                result = compiled(given)
        own.add(result.untyped_storage().data_ptr())
        kept_bytes.append(sum(t.untyped_storage().nbytes() for at, t in kept.items() if at not in own))
    print(json.dumps(kept_bytes))
"""


def saved_elsewhere(*budgets: float) -> list[int]:
    """Bytes that autograd saves in a call of plain ``torch.compile`` in another process, without inputs and results."""
    module = __name__.rpartition(".")[2]
    folder = __file__.rpartition("/")[0]
    text = textwrap.dedent(PROGRAM).format(folder=folder, module=module, budgets=budgets)
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    values: list[int] = json.loads(run.stdout.splitlines()[-1])
    return values


@pytest.mark.exhaustive
def test_saved_bytes_are_those_that_autograd_saves() -> None:
    """With torch's default and with each budget, the curve's points match plain torch in another process."""
    record = capture(Block(), torch.ones(ROWS, WIDTH), keep_inputs=True)
    by_line, by_name = record.memory(), record.memory("name")
    curve = record.memory_curve(budgets=[0, 1, 0.5])
    assert [point.budget for point in curve.points] == [1, 0.5, 0]
    elsewhere = saved_elsewhere(1, 0.5, 0)
    assert [point.saved for point in curve.points] == elsewhere and elsewhere[0] > elsewhere[2]
    assert by_line.saved == elsewhere[0]
    assert sum(row.saved or 0 for row in by_line.rows) == by_line.saved
    assert sum(row.saved or 0 for row in by_name.rows) == by_line.saved


def perceptron(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x @ weight) @ weight.T


def two_forms(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.exp()
    return y[:2], y.t(), torch.softmax(x, -1), x


def written_twice(x: torch.Tensor) -> torch.Tensor:
    y = torch.cat([x.sin(), x.cos()], 1)
    y[0] = 0
    return y.cumsum(1) + y.T.contiguous().mean()


ALLOCATES = """
    import sys, torch
    from torch.profiler import ProfilerActivity, profile
    sys.path.insert(0, {folder!r})
    import {module} as tests

    for name, inputs in tests.ALLOCATED.items():
        fn, given = getattr(tests, name), [x.detach().requires_grad_(x.requires_grad) for x in inputs]

        def call():
            result = compiled(*given)
            if any(x.requires_grad for x in given):
                torch.autograd.grad(result, given, torch.ones_like(result))

        compiled = torch.compile(fn)
        call()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            call()
        events = profiler.profiler.kineto_results.events()
        print(sum(max(one.nbytes(), 0) for one in events if one.name() == "[memory]"))
"""

ALLOCATED = {
    "perceptron": (torch.ones(ROWS, WIDTH), torch.ones(WIDTH, WIDTH)),
    "two_forms": (torch.ones(ROWS, WIDTH),),
    "written_twice": (torch.ones(ROWS, WIDTH),),
}


@pytest.mark.full
def test_allocated_bytes_are_those_that_the_profiler_counts_elsewhere() -> None:
    """Library workspaces are left out, which these programs do not need."""
    text = textwrap.dedent(ALLOCATES)
    text = text.format(folder=__file__.rpartition("/")[0], module=__name__.rpartition(".")[2])
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    numbers = [int(line) for line in run.stdout.splitlines() if line.isdigit()]
    modelled = [capture(globals()[name], *inputs).memory().allocated for name, inputs in ALLOCATED.items()]
    assert modelled == numbers


def test_allocated_bytes_need_every_size() -> None:
    own = (
        Buffer("buf0", "intermediate", 32),
        Buffer("buf1", "output", 32, reuses="buf0"),
        Buffer("arg0_1", "input", 32),
    )
    view = Buffer("buf2", "output", 16, base="buf1")
    assert Memory("inference", (*own, view), 64).allocated == 32
    assert Memory("inference", (*own, Buffer("buf3", "output")), 64).allocated is None
    memory_use = capture(torch.sin, torch.ones(8)).memory()
    assert memory_use.allocated == 32 and "Allocated in one call, without inputs: ~32 B" in str(memory_use)


@pytest.mark.full
@columns
def test_a_curve_says_what_is_computed_again_and_what_a_budget_gains() -> None:
    """At 0 nothing is saved but inputs, so that ``up`` runs again: its product and gelu, 16 × 128 floats each."""
    record = capture(Block(), torch.ones(ROWS, WIDTH), keep_inputs=True)
    curve = record.memory_curve(budgets=[1, 0])
    default, least = curve.points
    assert (default.saved, least.saved) == (2 * ROWS * 4 * WIDTH * 4, 0)
    assert curve.default == default and "self.up(x)" in {frame.call for frame in least.lines}
    assert default.peak == record.memory().peak and (least.recomputed or 0) > (default.recomputed or 0)
    text = " ".join(str(curve).split())
    assert "0 has a higher peak than 1" in text if curve.rises else "→" in text
    assert json.loads(curve.to_json())["points"][1]["saved"] == 0
    # The capture has the curve from then on, and keeps it in a file.
    assert record.budget_curve is not None and record.budget_curve.points == curve.points
    assert type(record).from_json(record.to_json()) == record


@pytest.mark.full
def test_what_is_shown_with_a_curve_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    shown = show(Block(), torch.ones(ROWS, WIDTH), memory_curve=True)
    assert shown.budget_curve is not None and len(shown.budget_curve.points) == 11
    assert "No budget has a lower peak than the default" in capsys.readouterr().out
    with pytest.raises(UsageError, match="one call"):
        show(Block(), calls=[(torch.ones(ROWS, WIDTH),)], memory_curve=True)


def test_a_curve_without_a_backward_or_with_no_budget_is_an_error() -> None:
    record = capture(torch.sin, torch.ones(4), keep_inputs=True)
    with pytest.raises(UsageError, match="no backward"):
        record.memory_curve(budgets=[1])
    for budgets in ([], [2], ["a"], "1", 0.5, [True]):
        with pytest.raises(UsageError, match="numbers from 0 to 1"):
            record.memory_curve(budgets=budgets)  # type: ignore[arg-type]


@pytest.mark.full
def test_a_curve_is_for_the_target_of_the_capture() -> None:
    pytest.importorskip("triton")
    record = capture(Block(), torch.ones(ROWS, WIDTH), target="h100", keep_inputs=True)
    curve = record.memory_curve(budgets=[1, 0])
    assert "H100" in curve.target and [point.failure for point in curve.points] == ["", ""]
    assert curve.points[0].saved == record.memory().saved and curve.points[1].saved == 0


@pytest.mark.full
@columns
def test_a_value_that_a_layer_reshapes_is_named_by_what_made_it() -> None:
    """A linear layer on three dimensions reshapes its input to a matrix: that is gelu's result, not the layer's."""
    up, down = nn.Linear(8, 16), nn.Linear(16, 8)

    def step(up: nn.Module, down: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return down(torch.nn.functional.gelu(up(x)))

    by_name = capture(step, up, down, torch.ones(2, 4, 8)).memory("name")
    saved = {row.expression: row.saved for row in by_name.rows if row.saved}
    assert saved == {"up(x)": 2 * 4 * 16 * 4, "torch.nn.functional.gelu(up(x))": 2 * 4 * 16 * 4}


@pytest.mark.parametrize(
    ("call", "saved"),
    [
        (torch.linalg.inv, 0),
        (lambda a: torch.linalg.cholesky(a @ a.T), 0),
        (lambda a: torch.linalg.solve(a, a.detach()), 4 * 4 * 4 + 4 * 4),
    ],
)
def test_what_is_saved_is_known_where_a_check_may_raise(call: Any, saved: int) -> None:
    """Derivatives read results and inputs; that of a solution also reads the factors and pivots of the matrix. If a
    check of the matrix may raise, the forward returns one more value, which is not a result."""
    given = (torch.eye(4) + torch.ones(4, 4)).requires_grad_()
    assert capture(call, given).memory("name").saved == saved


def test_what_saves_most_stands_where_it_would_at_the_peak() -> None:
    net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU())
    for by in ("line", "name"):
        rows = capture(net, torch.rand(512, 64)).memory(by).rows
        largest = [max(row.peak or 0, row.saved or 0) for row in rows]
        assert largest == sorted(largest, reverse=True) and any(row.saved for row in rows)


class Turned(nn.Module):
    """Has convolutions, whose input and weights Inductor saves in another layout, and a product, for which it copies
    nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, bias=False)
        self.second = nn.Conv2d(6, 5, 3)
        self.last = nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.second(self.first(x).relu()).relu().mean((2, 3)))


def test_a_copy_in_another_layout_is_no_parameter() -> None:
    """A parameter has the size that torch reports; its copy has the same size, in a separate row."""
    model, x = Turned(), torch.rand(2, 3, 12, 12)
    rows = capture(model, x).memory("name").rows
    sizes = {name: p.nbytes for name, p in model.named_parameters()} | {"x": x.nbytes}
    for row in rows:
        if row.kind in ("parameter", "input"):
            assert (row.peak or 0) <= sum(sizes[name] for name in row.names) and not row.saved, row
    copies = {name: row for row in rows if row.kind == "copy" for name in row.names}
    assert set(copies) == {"x", "first.weight", "second.weight"}
    assert {name: row.saved for name, row in copies.items()} == {name: sizes[name] for name in copies}


def test_what_a_break_hands_over_has_no_name_of_torchs() -> None:
    def handed_over(xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[1] * int(xs[0].sum().item())

    rows = capture(handed_over, [torch.ones(3), torch.ones(5)]).memory("name").rows
    assert rows and not any("stack" in row.name for row in rows)


def _assigned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[0] = 2.0
    return (y @ w).sin()


@torch.compiler.nested_compile_region
def _stacked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.stack([x @ w, x @ w * 2]).relu()


@columns
@pytest.mark.parametrize(
    ("call", "expression", "saved"),
    [
        (lambda x, w: checkpoint(_assigned, x, w, use_reentrant=False).exp(), "y[0] = 2.0", 0),
        (lambda x, w: _stacked(x, w).exp().sum(0), "torch.stack([x @ w, x @ w * 2])", 2 * 8 * 16 * 4),
    ],
    ids=["checkpoint", "region"],
)
def test_values_of_a_body_are_named_by_its_lines(call: Any, expression: str, saved: int) -> None:
    """By hand: a checkpoint saves nothing of its body, and a region saves the result that its ``relu`` needs."""
    x, w = torch.rand(8, 16, requires_grad=True), torch.rand(16, 16, requires_grad=True)
    (row,) = (row for row in capture(call, x, w).memory("name").rows if row.name == expression)
    assert (row.kind, row.saved) == ("value", saved)
