"""Cost by line, kernel and module: on records made by hand with simple figures, and on captures."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import torch
from samples import sample
from torch._higher_order_ops import while_loop

import compile_lens
from compile_lens.errors import UsageError
from compile_lens.measures.cost import Cost, cost
from compile_lens.measures.launch_costs import NodeCost, node_costs
from compile_lens.measures.unfused_pairs import all_unfused_pairs
from compile_lens.record.benchmark import (
    BY_LINE,
    Benchmark,
    DeviceSpeed,
    MeasuredGraph,
    MeasuredKernel,
    Profile,
)
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import AtLeast, Figure
from compile_lens.record.graph import Frame, Graph, Node, Ref, Tensor
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.lowering import Lowered
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture
from compile_lens.views.findings.cost import launches_of_each
from compile_lens.views.words import quantities
from compile_lens.views.words.quantities import launch_words

FILE = "/home/ada/model.py"
ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpu")
LARGE, SMALL = 4000, 400


def tensor(nbytes: int) -> Tensor:
    return Tensor("float32", (nbytes // 4,), (1,), "cpu", nbytes)


def given(name: str, nbytes: int = LARGE) -> Node:
    return Node(name, "placeholder", name, "input", outputs=(tensor(nbytes),))


def op(name: str, line: int, inputs: str, module: str, **more: object) -> Node:
    frame = Frame(FILE, line, "forward", f"line {line}")
    node = Node(
        name,
        "call_function",
        "aten.mul.Tensor",
        "pointwise",
        True,
        tuple(map(Ref, inputs.split())),
        outputs=(tensor(LARGE),),
        module=module,
        module_type="Block",
        frames=(frame,),
        reads=LARGE * len(inputs.split()),
        writes=LARGE,
    )
    return dataclasses.replace(node, **more)  # type: ignore[arg-type]


def hand_made() -> Capture:
    """Line 2: ``a = x * y``; line 3: ``b = a * z``, fused into one kernel that stores ``b``; line 4: ``b @ w``, twice.

    The kernel reads x, y (line 2), z (line 3) and writes b (line 3): 4 times 4,000 bytes.
    """
    aten = Graph(
        "post_grad",
        "inference",
        "",
        (
            *(given(name) for name in "xyzw"),
            op("a", 2, "x y", "layers.0"),
            op("b", 3, "a z", "layers.0.inner"),
            op("mm", 4, "b w", "layers.1", kind="matmul", target="aten.mm.default"),
            op("mm_1", 4, "b w", "layers.1", kind="matmul", target="aten.mm.default"),
        ),
    )
    loops = Graph(
        "loops",
        "inference",
        "inference.post_grad",
        (
            *(given(name) for name in "xyzw"),
            Node(
                "op0",
                "loop",
                "Pointwise",
                args=tuple(map(Ref, "xyz")),
                outputs=(tensor(LARGE),),
                origins=("a", "b"),
            ),
            Node(
                "op1", "extern", "mm", args=(Ref("op0"), Ref("w")), outputs=(tensor(LARGE),), origins=("mm",)
            ),
            Node(
                "op2",
                "extern",
                "mm",
                args=(Ref("op0"), Ref("w")),
                outputs=(tensor(LARGE),),
                origins=("mm_1",),
            ),
        ),
    )
    sizes = {"op0": (3 * LARGE, LARGE), "op1": (2 * LARGE, LARGE), "op2": (2 * LARGE, LARGE)}
    groups = Graph(
        "groups",
        "inference",
        "inference.loops",
        tuple(
            Node(name, "group", name, outputs=(tensor(LARGE),), members=(name,), reads=reads, writes=writes)
            for name, (reads, writes) in sizes.items()
        ),
    )

    def kernel(name: str, group: str, line: int, *origins: str) -> Kernel:
        language = "extern" if name.startswith("extern") else "cpp"
        reads, writes = sizes[group]
        return Kernel(
            name, "inference", language, language, "", launch_lines=(line,), groups=(group,), origins=origins,
            reads=reads, writes=writes,
        )  # fmt: skip

    kernels = (
        kernel("cpp_fused_0", "op0", 10, "a", "b"),
        kernel("extern_kernels.mm", "op1", 11, "mm"),
        kernel("extern_kernels.mm#2", "op2", 12, "mm_1"),
    )
    lowered = (
        Lowered("inference", "a", ("op0",)),
        Lowered("inference", "b", ("op0",), "op0"),
        Lowered("inference", "mm", ("op1",), "op1"),
        Lowered("inference", "mm_1", ("op2",), "op2"),
    )
    stages = (aten, loops, groups, Code("inference", "", "", "cpu", kernels))
    return Capture(
        "f", ENVIRONMENT, compilations=(Compilation("0/0", "f", FILE, 1, stages, lowered=lowered),)
    )


def amounts(one: Cost) -> dict[str, float | None]:
    return {row.name: row.amount for row in one.rows}


def shares(one: Cost) -> float:
    return sum(row.share or 0 for row in one.rows)


def test_loads_and_stores_go_to_their_lines() -> None:
    capture = hand_made()
    by_line = capture.cost()
    assert (by_line.unit, by_line.basis, by_line.total) == ("bytes", "bytes", 10 * LARGE)
    assert amounts(by_line) == {"model.py:4": 6 * LARGE, "model.py:2": 2 * LARGE, "model.py:3": 2 * LARGE}
    first = by_line.rows[0]
    assert (first.expression, first.launches, first.share) == ("line 4", 2, 0.6)
    assert shares(by_line) == pytest.approx(1)


def test_equal_library_calls_are_one_row() -> None:
    rows = hand_made().cost("kernel").rows
    assert [(r.name, r.launches, r.order) for r in rows] == [
        ("extern_kernels.mm", 2, 2),
        ("cpp_fused_0", 1, 1),
    ]
    assert rows[0].kernels == ("extern_kernels.mm", "extern_kernels.mm#2")
    assert [frame.line for frame in rows[1].lines] == [2, 3]


def test_modules_and_their_totals() -> None:
    by_module = hand_made().cost("module")
    assert amounts(by_module) == {"layers.1": 6 * LARGE, "layers.0": 2 * LARGE, "layers.0.inner": 2 * LARGE}
    assert by_module.rows[2].address == "module:layers.0.inner"
    (total,) = by_module.modules
    assert (total.pattern, total.type, total.paths) == ("layers.*", "Block", ("layers.0", "layers.1"))
    assert (total.amount, total.share, total.launches) == (10 * LARGE, 1, (1, 2))


def test_measured_time_is_shared_as_bytes_are() -> None:
    times = (("cpp_fused_0", 4.0), ("extern_kernels.mm", 3.0), ("extern_kernels.mm#2", 1.0))
    kernels = tuple(MeasuredKernel(n, BY_LINE, n, 2, s, s, s, s) for n, s in times)
    graph = MeasuredGraph("0/0", "inference", "0/0", 2, 8.0, kernels)
    capture = dataclasses.replace(hand_made(), profile=Profile("a clock", "cpu", (graph,), calls=2))
    by_line = capture.cost()
    assert (by_line.unit, by_line.basis, by_line.total) == ("seconds", "measured", 4.0)
    assert amounts(by_line) == {"model.py:4": 2.0, "model.py:2": 1.0, "model.py:3": 1.0}
    assert capture.cost(basis="bytes").total == 10 * LARGE

    partly = dataclasses.replace(graph, kernels=kernels[:2])
    capture = dataclasses.replace(capture, profile=Profile("a clock", "cpu", (partly,)))
    assert capture.cost().basis == "bytes"
    assert "extern_kernels.mm#2" in "".join(capture.cost().missing)
    with pytest.raises(UsageError, match="1 of the kernels have no measured time"):
        capture.cost(basis="measured")


def test_roofline_time_where_speeds_are_known() -> None:
    capture = compile_lens.capture(lambda x: torch.sin(x) * 2, torch.ones(1000), target="h100")
    by_line = capture.cost()
    assert by_line.basis == "roofline" and "published peaks" in by_line.origin
    assert by_line.total == pytest.approx(capture.roofline().seconds)


def test_what_is_not_known_is_no_zero() -> None:
    capture = hand_made()
    (compilation,) = capture.compilations
    code = compilation.code["inference"]
    first = dataclasses.replace(code.kernels[0], reads=None)
    stages = (*compilation.stages[:3], dataclasses.replace(code, kernels=(first, *code.kernels[1:])))
    changed = dataclasses.replace(compilation, stages=stages)
    rows = dataclasses.replace(capture, compilations=(changed,)).cost()
    assert rows.at_least and rows.total == 6 * LARGE
    assert amounts(rows) == {"model.py:4": 6 * LARGE, "model.py:2": None, "model.py:3": None}
    assert "cpp_fused_0" in rows.missing[0]

    lost = dataclasses.replace(
        compilation, stages=(*compilation.stages, Missing("backward.code", "a reason"))
    )
    rows = dataclasses.replace(capture, compilations=(lost,)).cost()
    assert rows.at_least and "a reason" in rows.missing


@pytest.mark.parametrize("arguments", [{"by": "lines"}, {"basis": "time"}, {"basis": "roofline"}])
def test_what_there_is_not_is_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        cost(hand_made(), **arguments)


def test_a_speed_that_was_measured_is_named_so() -> None:
    speed = DeviceSpeed("a CPU", 1e9, 1e9, "float32", True)
    capture = dataclasses.replace(sample(), benchmark=Benchmark((), "a CPU", "a clock", 1, speed=speed))
    assert "measured speeds" in capture.cost().origin


def test_repeated_products_of_one_line_are_one_row() -> None:
    w = torch.randn(8, 8)

    def f(x: torch.Tensor) -> torch.Tensor:
        for _ in range(16):
            x = x @ w
        return x.sin()

    capture = compile_lens.capture(f, torch.randn(4, 8))
    first, second = capture.cost("kernel").rows
    assert first.launches == 16 and second.launches == 1
    assert first.amount == 16 * 4 * (4 * 8 + 8 * 8 + 4 * 8)
    assert first.addresses[0] in capture.chain and capture.chain.lines(first.address)


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.up(self.norm(x))
        return x + self.down(torch.nn.functional.gelu(inner))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.layers:
            x = block(x)
        return x.sum()


@pytest.mark.full
def test_of_a_model_all_bytes_are_shared_out() -> None:
    capture = compile_lens.capture(Model(), torch.randn(8, 16))
    moved = capture.ledger.total.bytes_after
    for by in ("line", "kernel", "module"):
        one = cost(capture, by)
        assert sum(row.amount or 0 for row in one.rows) == pytest.approx(moved)
        assert shares(one) == pytest.approx(1)
        assert not one.at_least and not one.missing
        assert {phase for row in one.rows for phase in row.phases} == {"forward", "backward"}
    (total,) = cost(capture, "module").modules
    assert total.type == "Block" and len(total.paths) == 3


def test_modules_have_addresses() -> None:
    capture = hand_made()
    nodes = capture.chain.find("module:layers.0")
    assert nodes == (("0/0", "inference.post_grad", "a"), ("0/0", "inference.post_grad", "b"))
    assert capture.chain.find("module:layers.0.inner") == nodes[1:]
    assert [kernel.name for kernel in capture.chain.kernels("module:layers.0")] == ["cpp_fused_0"]
    with pytest.raises(
        UsageError, match=r"no operation belongs to this module; there are layers\.0, layers\.0\.inner"
    ):
        capture.chain.find("module:layers.4")
    with pytest.raises(UsageError):
        capture.chain.find("module:")
    assert "module:layer" not in capture.chain


@pytest.mark.full
def test_why_takes_modules() -> None:
    capture = compile_lens.capture(Model(), torch.randn(8, 16))
    one = capture.why("module:layers.0.norm", "module:layers.0.up", "forward")
    assert one.verdict == "not fused" and "addmm" in str(one)
    compile_lens.expect(capture).not_fused("module:layers.0.norm", "module:layers.0.up", phase="forward")
    for row in capture.cost("module").rows:
        assert not row.address or capture.chain.kernels(row.address)


def test_nodes_have_their_part_in_the_launches() -> None:
    costs = node_costs(hand_made())
    own = {node: costs["0/0", "inference.post_grad", node] for node in ("a", "b", "mm", "mm_1")}
    assert own == {
        "a": NodeCost(frozenset([1]), 2 * LARGE),
        "b": NodeCost(frozenset([1]), 2 * LARGE),
        "mm": NodeCost(frozenset([2]), 3 * LARGE),
        "mm_1": NodeCost(frozenset([3]), 3 * LARGE),
    }
    assert own["a"] + own["b"] + own["mm"] == NodeCost(frozenset([1, 2]), 7 * LARGE)
    unknown = NodeCost(frozenset([4]), None, True)
    assert own["a"] + unknown == NodeCost(frozenset([1, 4]), 2 * LARGE, True)
    assert unknown + unknown == unknown


def test_the_nodes_of_a_graph_share_all_of_its_cost() -> None:
    captured = compile_lens.capture(
        torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3))), torch.ones(4, 8)
    )
    total = cost(captured).total
    for keys in (("forward", "backward"), ("forward.post_grad", "backward.post_grad")):
        shared = [one.amount for (_, stage, _), one in node_costs(captured).items() if stage in keys]
        assert sum(filter(None, shared)) == pytest.approx(total), keys


def chosen(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(
        x.sum() > 0,
        lambda x: x.sin() + 1,
        lambda x: x.cos() * 2,
        (x,),
    )


def chosen_twice(x: torch.Tensor) -> torch.Tensor:
    def positive(x: torch.Tensor) -> torch.Tensor:
        large = x.amax() > 1
        return torch.cond(
            large,
            lambda x: x.tan(),
            lambda x: x.exp(),
            (x,),
        )

    return torch.cond(x.sum() > 0, positive, lambda x: x.cos() * 2, (x,))


def turned(x: torch.Tensor) -> torch.Tensor:
    def fewer(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return i < 3

    def step(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return i + 1, x.sin() + x

    return while_loop(fewer, step, (torch.zeros((), dtype=torch.int64), x))[1]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "rows"),
    [
        (chosen, {"x.sum()": "1 launch", "x.sin()": "0 or 1 launch", "x.cos()": "0 or 1 launch"}),
        (chosen_twice, {"x.tan()": "0 or 1 launch", "x.exp()": "0 or 1 launch"}),
        (turned, {"i < 3": "launches: 1 + 1 per iteration", "i + 1": "1 launch per iteration"}),
    ],
)
def test_a_row_tells_how_often_a_call_launches_it(program: Any, rows: dict[str, str]) -> None:
    """One of two branches runs; a body runs once per iteration of its loop, and the condition once more."""
    capture = compile_lens.capture(program, torch.ones(8, 16))
    lines = {row.expression: launch_words(row.launches) for row in capture.cost("line").rows}
    for text, words in rows.items():
        (own,) = (launched for expression, launched in lines.items() if text in expression)
        assert own.endswith(words)
    for row in capture.cost("kernel").rows:
        assert launch_words(row.launches) in str(capture.cost("kernel"))
    numbers = {row["expression"]: row["launches"] for row in capture.cost("line").to_dict()["rows"]}
    assert {numbers[text] for text, words in lines.items() if words == "1 launch"} <= {1}
    assert {numbers[text] for text, words in lines.items() if " or " in words or "iteration" in words} == {
        None
    }
    assert "2 launches" not in capture.text().partition("Cost by line")[2].replace("1 or 2 launches", "")


def cleared_or_not(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: torch.zeros_like(x) + 1, (x,))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "bytes_of_lines"),
    [
        (chosen, {"x.sin()": "~0 B or 1,024 B", "x.cos()": "~0 B or 1,024 B"}),
        (cleared_or_not, {"x.sin()": "~1,033 B or 1,545 B"}),
        (turned, {"i < 3": "~9 B + 9 B per iteration", "i + 1": "~1,040 B per iteration"}),
    ],
)
def test_what_loops_and_branches_move_is_said_as_the_ledger_says_it(
    program: Any, bytes_of_lines: dict[str, str]
) -> None:
    """128 floats, which a branch or an iteration reads and writes, or only writes; a counter is read and written, and
    a condition reduces its input to one byte. One line also has the sum: 512 bytes read, a number written and read."""
    captured = compile_lens.capture(program, torch.ones(8, 16))
    cost = captured.cost("line")
    moved = captured.ledger.total.bytes_after
    assert moved is not None and not cost.at_least
    if isinstance(moved, AtLeast):
        assert cost.varies is not None and cost.varies.count == moved.count
    else:
        assert cost.varies is None and cost.total == moved
    text = str(cost)
    assert quantities.amount(moved) in text.partition("\n")[0]
    for code, words in bytes_of_lines.items():
        (line,) = (line for line in text.splitlines()[1:] if code in line)
        assert words in line
    shares = [row.share for row in cost.rows]
    assert (None in shares) == any(row.varies for row in cost.rows)
    for row in captured.cost("kernel").rows:
        assert row.amount is not None and (row.share is None or cost.varies is None)


def several_functions(x: torch.Tensor) -> torch.Tensor:
    return sum(t.cos() for t in (x, x + 1)) + sum([t.exp() for t in (x, x * 2)]) + (lambda t: t.tanh())(x)


def before_and_after_a_break(x: torch.Tensor) -> torch.Tensor:
    y = x.sin(); torch._dynamo.graph_break(); return (y * x).exp()  # fmt: skip  # noqa: E702


@pytest.mark.torch
@pytest.mark.parametrize("program", [several_functions, before_and_after_a_break])
def test_a_line_is_one_row_whatever_functions_stand_in_it(program: Any) -> None:
    """All operators are on one line: in a generator, a lambda, a comprehension, or after a graph break."""
    captured = compile_lens.capture(program, torch.ones(8, 16, requires_grad=True))
    (row,) = captured.cost("line").rows
    assert row.share == 1 and row.launches == captured.ledger.total.launches
    lines = [row.name for row in captured.memory("line").rows if row.line is not None]
    assert len(lines) == len(set(lines))


class Layer(torch.nn.Module):
    """A loop, or two branches: one with a sine, one with a cosine and a sort."""

    def __init__(self, loops: bool) -> None:
        super().__init__()
        self.loops = loops

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.loops:
            return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin() + x), (torch.tensor(0), x))[1]
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos().sort()[0], (x,))


class Layers(torch.nn.Module):
    def __init__(self, loops: bool) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(loops) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.torch
@pytest.mark.parametrize(
    ("loops", "words"), [(False, "2 or 3 launches"), (True, "launches: 2 + 2 per iteration")]
)
def test_repeated_modules_tell_how_often_a_call_launches_each(loops: bool, words: str) -> None:
    """A layer's sum runs in each call, and one of two branches: one launch, or a cosine's and a sort's. A loop has its
    start, and its condition once more than its body."""
    captured = compile_lens.capture(Layers(loops), torch.ones(8, 16))
    (total,) = captured.cost("module").modules
    assert total.paths == ("layers.0", "layers.1")
    assert f"(layers.*): {words} each" in str(captured.cost("module"))
    assert total.launches == tuple({row.launches: None for row in captured.cost("module").rows})
    assert launches_of_each(dataclasses.replace(total, launches=(Figure(5), *total.launches))) == (
        "at least 2 launches" if loops else "2 to 5 launches"
    )


def test_kernels_of_both_phases_are_told_apart() -> None:
    a, b = (torch.randn(16, 16, requires_grad=True) for _ in range(2))
    text = str(compile_lens.capture(lambda a, b: a @ b, a, b).cost("kernel"))
    assert re.findall(r"extern_kernels.mm +(\d launch\w* in \w+)", text) == [
        "2 launches in backward",
        "1 launch in forward",
    ]
    assert " in inference" not in str(compile_lens.capture(torch.sin, a.detach()).cost("kernel"))


def weighted(x: torch.Tensor, bias: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    weights = rows.to(torch.int16) * 2
    centred = x - x.amax(1, keepdim=True)
    return (centred * weights[:, None] + bias).sum(0)


@pytest.mark.torch
@pytest.mark.full
def test_lines_have_the_same_bytes_with_symbolic_sizes_as_with_fixed_ones() -> None:
    inputs = torch.rand(6, 14), torch.rand(14), torch.arange(6, dtype=torch.uint8)
    fixed, symbolic = (
        {
            row.expression: row.amount
            for row in compile_lens.capture(weighted, *inputs, dynamic=dynamic).cost().rows
        }
        for dynamic in (False, True)
    )
    assert len(fixed) == 3
    assert symbolic == pytest.approx(fixed)


def reduced(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = (x @ w).tanh()
    return y.sum(0), y.amax(1)


@pytest.mark.torch
def test_fusing_saves_the_same_bytes_with_symbolic_sizes_as_with_fixed_ones() -> None:
    inputs = torch.rand(24, 6), torch.rand(6, 10)
    fixed, symbolic = (
        [
            pair.why.saved
            for pair in all_unfused_pairs(compile_lens.capture(reduced, *inputs, dynamic=dynamic))
        ]
        for dynamic in (False, True)
    )
    assert fixed and None not in fixed and symbolic == fixed


def remembered(cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    cache[3] = x + 1
    return cache.sort()[0]


@pytest.mark.torch
def test_what_was_in_a_buffer_before_is_no_saving() -> None:
    """The sort reads 64 rows, of which the other loop writes one with 8 floats; all remain in the caller's buffer."""
    captured = compile_lens.capture(remembered, torch.ones(64, 8), torch.ones(8))
    (pair,) = all_unfused_pairs(captured)
    assert pair.why.saved == 8 * 4


shadow = torch.zeros(16, 16)


@torch.no_grad()
def averaged(xs: list[torch.Tensor]) -> torch.Tensor:
    shadow.mul_(0.9).add_(xs[0])
    return shadow.norm()


@pytest.mark.torch
def test_what_only_runs_before_a_write_shares_no_data_with_it() -> None:
    """The sum under the root ends before its input is overwritten; the overwriting loop does not read the sum."""
    captured = compile_lens.capture(averaged, [torch.ones(16, 16)])
    for pair in all_unfused_pairs(captured):
        assert "no data in common" not in pair.why.sentence, pair
        assert pair.why.saved in (8, 1024, 2048), pair  # the sum, or the 16 × 16 floats that two kernels read
    names = {row.name for row in captured.memory("name").rows}
    assert {"shadow", "xs[0]"} <= names, names
