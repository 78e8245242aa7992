"""``expect``: each assertion passes for one program, fails for another, and gives a useful reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import samples
import torch
from short_programs import around_a_sort, broken, one, over_the_wrong_dimension
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table

import compile_lens
from compile_lens import Capture, ExpectationError, UsageError, expect
from compile_lens.record import claims
from compile_lens.record.missing import Missing
from compile_lens.results.expectations import Expectations

pytestmark = pytest.mark.torch

X = torch.rand(64, 64)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def compiled_again(x: torch.Tensor) -> torch.Tensor:
    for n in (3, 4):
        torch._dynamo.graph_break()
        helper(x[:n])
    return x


def widened(x: torch.Tensor) -> torch.Tensor:
    return x.double().exp().float()


def chooses(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: torch.sort(x)[0].sin(), lambda x: x.cos(), (x,))


def squared(x: torch.Tensor) -> torch.Tensor:
    return (x.exp() * x.sin()).sum()


class Programs:
    """Captures by function and options, each made once."""

    def __init__(self) -> None:
        self._made: dict[Any, Capture] = {}

    def __call__(self, fn: Callable[..., Any], grad: bool = False, **options: Any) -> Expectations:
        key = (fn, grad, *options.items())
        if key not in self._made:
            x = X.clone().requires_grad_(grad)
            self._made[key] = compile_lens.capture(fn, x, **options)
        return expect(self._made[key])


@pytest.fixture(scope="module")
def of() -> Programs:
    return Programs()


def fails(asked: Callable[[], object]) -> str:
    with pytest.raises(ExpectationError) as caught:
        asked()
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value.capture, Capture)
    return str(caught.value)


def test_launches(of: Programs) -> None:
    of(one).launches(1).launches(at_most=1).launches(at_least=1).launches(within=(0, 1))
    message = fails(lambda: of(over_the_wrong_dimension, target="h100").launches(at_most=1))
    assert "launches: expected at most 1, found 3, measured" in message
    assert "triton_per_fused_sum_0, reduction, 1 launch ← short_programs.py:" in message
    assert "(reduction barrier)" in message and "Reduce over the last dimension" in message
    assert "for NVIDIA H100 SXM" in message
    fails(lambda: of(one).launches(2))
    fails(lambda: of(one).launches(at_least=2))
    fails(lambda: of(one).launches(within=(2, 3)))


def test_launches_of_one_phase(of: Programs) -> None:
    of(squared, grad=True).launches(2).launches(1, phase="forward").launches(1, phase="backward")
    message = fails(lambda: of(squared, grad=True).launches(1))
    assert "Forward and backward are two graphs" in message and "backward=False" in message
    assert "launches of the backward: expected 0" in fails(
        lambda: of(squared, grad=True).launches(0, phase="backward")
    )
    with pytest.raises(UsageError, match="phase='inference' is not one of 'forward', 'backward'"):
        of(squared, grad=True).launches(1, phase="inference")
    with pytest.raises(UsageError, match="graphs counts the whole capture"):
        of(one).graphs(1, phase="forward")


def test_groups(of: Programs) -> None:
    of(one).groups(1)
    message = fails(lambda: of(over_the_wrong_dimension).groups(at_most=2))
    assert "groups: expected at most 2" in message and "sum_1 ← short_programs.py:" in message
    assert "to try:" in message


def test_graphs(of: Programs) -> None:
    of(one).graphs(1)
    said = fails(lambda: of(broken).graphs(1))
    assert "found 2" in said and "0/0: broken" in said and "A graph break ← short_programs.py:" in said


def test_graph_breaks(of: Programs) -> None:
    of(one).graph_breaks(0)
    of(broken).graph_breaks(1)
    message = fails(lambda: of(broken).graph_breaks(0))
    assert "torch._dynamo.graph_break()" in message and "short_programs.py:" in message


def test_recompiles(of: Programs) -> None:
    of(one).recompiles(0)
    message = fails(lambda: of(compiled_again).recompiles(0))
    assert "recompiles: expected 0, found 1" in message and "helper" in message
    assert "is a recompile of helper" in message and "expected 3, actual 4" in message
    assert "mark_dynamic(x, 0)" in message and "graph_break" not in message  # which is not the reason
    # The advice helps.
    of(compiled_again, dynamic=True).recompiles(0)


def test_bytes(of: Programs) -> None:
    of(one).bytes(2 * 64 * 64 * 4)  # read once, written once
    message = fails(lambda: of(around_a_sort).bytes(at_most=2 * 64 * 64 * 4))
    assert "modelled" in message and "torch.ops.aten.sort.stable, library call, ~" in message
    assert "at most ~32.8 kB less" in message


def test_extern(of: Programs) -> None:
    of(one).extern(0)
    of(around_a_sort).extern(1)
    message = fails(lambda: of(around_a_sort).extern(0))
    assert "torch.ops.aten.sort.stable, library call, 1 launch ← short_programs.py:" in message
    assert "Inductor generates sorts itself where its backend can" in message
    assert "compile_lens.support('aten.sort.stable')" in message
    assert compile_lens.support("aten.sort.stable").overloads  # the operator that it names has support data
    product = fails(lambda: of(lambda x: x @ x).extern(0))
    assert (
        "a library computes it" in product and "max-autotune" not in product
    )  # it would change nothing on a CPU


def test_peak(of: Programs) -> None:
    of(one).peak(2 * 64 * 64 * 4)  # the input and the result
    message = fails(lambda: of(around_a_sort).peak(at_most=2 * 64 * 64 * 4))
    assert "are live at once, at line" in message and "buf0, intermediate, ~16 KiB" in message


def test_saved(of: Programs) -> None:
    of(squared, grad=True).saved(0)  # the saved tensor is the input, which exists anyway
    message = fails(lambda: of(lambda x: (x @ x).sin().sum(), grad=True).saved(0))
    assert "found 16,384, modelled" in message and "to compute again than to save" in message
    assert "activation_memory_budget" in message
    with torch._functorch.config.patch(activation_memory_budget=0.0):  # the advice helps
        expect(lambda x: (x @ x).sin().sum(), X.clone().requires_grad_()).saved(0)
    assert "there is no backward" in fails(lambda: of(one).saved(0))
    assert "backward=False" in fails(lambda: of(one, backward=False).saved(0))


def test_compiled(of: Programs) -> None:
    of(one).compiled()
    message = fails(lambda: of(broken).compiled())
    assert "expected all of it compiled" in message and "graph break after 0/0" in message


def test_fused_and_apart(of: Programs) -> None:
    of(one).fused("sin", "mul")
    of(around_a_sort).not_fused("gelu", "sort")
    message = fails(lambda: of(around_a_sort).fused("gelu", "sort"))
    assert "expected gelu and sort fused, found gelu and sort (0/0 inference): not fused, extern" in message
    assert "expected sin and mul not fused" in fails(lambda: of(one).not_fused("sin", "mul"))
    with pytest.raises(UsageError):
        of(one).fused("sin", "tan")


def two_steps(x: torch.Tensor) -> torch.Tensor:
    a = x.sin()
    b = torch.sort(a)[0]
    return b * 2


def test_a_pair_that_fails_says_where_each_is(of: Programs) -> None:
    at = two_steps.__code__.co_firstlineno
    message = fails(lambda: of(two_steps).fused("sin", "sort"))
    _, found, _ = re.split(r"^(?:found|why):\n", message, flags=re.M)
    assert [line.partition(": a = ")[0].partition(": b = ")[0].strip() for line in found.splitlines()] == [
        f"inference: sin is in op0 · sin ← test_expect.py:{at + 1}",
        f"inference: sort is in op1 · aten.sort.stable ← test_expect.py:{at + 2}",
    ]
    message = fails(lambda: of(two_steps).fused(at + 1, at + 3))
    assert f"line {at + 1} is in op0 · sin ← test_expect.py:{at + 1}" in message
    message = fails(lambda: of(one).not_fused("sin", "mul"))
    assert "sin is in op0 · " in message and "mul is in op0 · " in message


def test_no_library_call_where_one_was_expected_says_what_there_is(of: Programs) -> None:
    message = fails(lambda: of(one).extern(1))
    (kernel,) = of(one).capture.kernels
    assert f"found:\n  inference: {kernel.name}, pointwise, 1 launch ← short_programs.py:" in message


def independent(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin(), y.cos()


def turned(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.t().contiguous().sin(), y.cos()


@pytest.mark.full
@pytest.mark.parametrize(
    ("fn", "target", "sizes", "helps"),
    [
        (independent, "h100", [(1024,), (1024,)], True),
        (independent, "h100", [(1024,), (1000, 1000)], True),
        (turned, "h100", [(1000, 1000), (8, 3)], False),  # a kernel over two dimensions stays alone
        (independent, "mps", [(1024,), (1024,)], False),
        (independent, None, [(1024,), (1000,)], False),
    ],
)
@pytest.mark.cases(full=2)
def test_one_launch_for_independent_kernels_is_said_where_it_works(
    fn: Callable[..., Any], target: str | None, sizes: list[tuple[int, ...]], helps: bool
) -> None:
    given = [torch.rand(size) for size in sizes]
    message = fails(lambda: expect(fn, *given, target=target).launches(at_most=0))
    assert ("combo_kernels" in message) == helps
    combined: dict[str, Any] = {"target": target, "options": {"combo_kernels": True}}
    before = expect(fn, *given, target=target).capture.ledger.total.launches
    after = expect(fn, *given, **combined).capture.ledger.total.launches
    if target is not None:
        assert (before, after) == (2, 1 if helps else 2)
    assert "combo_kernels" not in fails(lambda: expect(fn, *given, **combined).launches(at_most=0))


def test_saved_leaves_out_a_result_that_is_kept() -> None:
    """Plain autograd saves the result itself, and no other tensor with its own memory."""
    x = X.clone().requires_grad_()
    held = expect(torch.softmax, x, -1).saved(0)
    result = torch.softmax(x, -1)
    assert result.grad_fn is not None and result.grad_fn._saved_result.data_ptr() == result.data_ptr()
    assert "forward: div" in fails(lambda: held.saved(1))


def test_no_operator(of: Programs) -> None:
    of(one).no("aten.sort").no("sort").no("aten.mm")
    for name in ("aten.sort", "sort", "aten.sort.stable"):
        message = fails(lambda name=name: of(around_a_sort).no(name))
        assert f"expected no {name}, found it" in message and "short_programs.py:" in message
    fails(lambda: of(chooses).no("aten.sort"))  # in a branch
    fails(lambda: of(lambda x: x @ x).no("aten.mm"))
    with pytest.raises(UsageError, match=r"no operator 'aten.srot'.*aten\.sort"):
        of(one).no("aten.srot")


@pytest.mark.full
def test_an_operator_that_no_graph_has_is_refused() -> None:
    """Programs that call it have other operators in their graphs, so ``no`` would always pass."""
    calls: dict[str, Callable[[Any], Any]] = {
        "softmax": lambda x: x.softmax(-1),
        "aten.silu": torch.nn.functional.silu,
        "conv1d": lambda x: torch.conv1d(x, torch.ones(3, 64, 2)),
        "aten.dropout.default": lambda x: torch.dropout(x, 0.5, True),
    }
    for name, call in calls.items():
        graphs: list[Any] = []

        def kept(graph: Any, inputs: Any, graphs: list[Any] = graphs) -> Any:
            return graphs.append(graph) or graph

        plain = aot_autograd(fw_compiler=kept, decompositions=select_decomp_table())
        torch.compile(call, backend=plain)(X)
        base = name.removeprefix("aten.").removesuffix(".default")
        assert graphs and all(f"aten.{base}." not in str(node.target) for node in graphs[0].graph.nodes)
        with pytest.raises(
            UsageError, match=rf"no\('{name}'\) holds for any program: torch decomposes {name}"
        ):
            expect(call, X).no(name)
        torch._dynamo.reset()
    expect(torch.sin, X).no("aten.addmm").no("convolution").no("native_dropout").no("cat")


@pytest.mark.parametrize(
    ("name", "functional", "call"),
    [
        ("add_", "add", lambda x: x.clone().add_(1)),
        ("aten.mul_.Tensor", "mul", lambda x: x.clone().mul_(x)),
        ("masked_fill_", "masked_fill", lambda x: x.clone().masked_fill_(x > 0, 1.0).sin()),
        ("aten.addmm_", "addmm", lambda x: x.clone().addmm_(x, x)),
        ("sin.out", "sin", lambda x: torch.sin(x, out=torch.empty_like(x))),
    ],
)
def test_an_operator_that_writes_in_place_is_refused(name: str, functional: str, call: Any) -> None:
    graphs = []

    def kept(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(gm)
        return gm

    torch.compile(call, backend=aot_autograd(fw_compiler=kept, decompositions=select_decomp_table()))(X)
    torch._dynamo.reset()
    written = [
        n
        for n in graphs[0].graph.nodes
        if isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable
    ]
    assert not written
    with pytest.raises(UsageError, match=rf"and {name} is ({functional} there|in none)"):
        expect(call, X).no(name)


@pytest.mark.parametrize(
    "name",
    ["exp", " exp ", "aten::exp", "torch.ops.aten.exp", "aten.exp.default", "torch.ops.aten.exp.default"],
)
def test_an_operator_has_one_name(name: str) -> None:
    captured = compile_lens.capture(torch.exp, X)
    with pytest.raises(ExpectationError, match="found it"):
        expect(captured).no(name)
    expect(captured).dtype("float32", of=name)
    expect(compile_lens.capture(torch.sin, X)).no(name)


def test_an_operator_of_a_library_needs_no_namespace() -> None:
    @torch.library.custom_op("compile_lens_expected::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    doubled.register_fake(torch.empty_like)
    with pytest.raises(ExpectationError, match="found it"):
        expect(lambda x: doubled(x) + 1, X).no("doubled")
    expect(torch.sin, X).no("doubled").no("compile_lens_expected::doubled")


def test_higher_order_operators_are_expected() -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    expect(torch.sin, X).no("cond").no("torch.ops.higher_order.while_loop").no("flex_attention")
    captured = compile_lens.capture(either, X)
    for name in ("cond", "higher_order.cond", "torch.ops.higher_order.cond"):
        with pytest.raises(ExpectationError, match="found it"):
            expect(captured).no(name)


def test_writes_that_inductor_makes_are_expected() -> None:
    def scattered(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.index_put_((i,), torch.ones(2, 64), accumulate=True)

    expect(torch.sin, X).no("copy_").no("index_put_").no("scatter_reduce_").no("_foreach_add_")
    for name in ("copy_", "index_put_"):
        with pytest.raises(ExpectationError, match=f"expected no {name}, found it"):
            expect(scattered, X.clone(), torch.tensor([0, 1])).no(name)


def test_types(of: Programs) -> None:
    of(one).dtype("float32").dtype("float32", "int64", of="aten.sin")
    message = fails(lambda: of(widened).dtype("float32"))
    assert "aten.exp makes float64 ← test_expect.py:" in message
    assert "found no aten.mm" in fails(lambda: of(one).dtype("float32", of="aten.mm"))
    with pytest.raises(UsageError, match="no type"):
        of(one).dtype()


def test_types_that_there_are_not(of: Programs) -> None:
    held = of(one)
    for name in ("float33", "torch.float33", 3):
        with pytest.raises(
            UsageError, match=rf"dtype\({name!r}\): torch has no type.* it has .*bfloat16, bits"
        ):
            held.dtype("float32", name)
    with pytest.raises(UsageError, match="did you mean 'float32'"):
        held.dtype("float33", of="aten.sin")
    held.dtype("float").dtype("torch.float32").dtype(str(torch.float))  # torch.float is torch.float32
    assert "expected results in int64, found others" in fails(lambda: held.dtype("long"))


def test_what_a_call_decides_is_not_sure(of: Programs) -> None:
    found = of(chooses).capture.ledger.total.launches
    low, high = found.least, found.most
    assert low < high
    of(chooses).launches(within=(low, high)).launches(at_most=high).launches(at_least=low)
    assert "which is not certain" in fails(lambda: of(chooses).launches(low))
    assert "which is not certain" in fails(lambda: of(chooses).launches(at_most=low))
    assert "not certain" not in fails(lambda: of(chooses).launches(at_most=low - 1))


@pytest.mark.parametrize(
    "asked",
    [
        lambda e: e.launches(at_most=10**9),
        lambda e: e.groups(at_least=2),
        lambda e: e.bytes(at_most=10**9),
        lambda e: e.extern(0),
        lambda e: e.peak(at_most=10**12),
        lambda e: e.saved(at_most=10**12),
    ],
)
def test_what_is_missing_never_passes(asked: Callable[[Expectations], object]) -> None:
    """The sample lacks its backward's code, groups, memory and partition."""
    message = fails(lambda: asked(expect(samples.missing())))
    assert "not known" in message or "which is not certain" in message


def test_why_it_is_missing_is_said() -> None:
    message = fails(lambda: expect(samples.missing()).launches(at_most=10))
    assert "≥ 1 (1 of 2 graphs)" in message and "cache hit" in message
    expect(samples.missing()).launches(at_least=1).launches(1, phase="forward")


def test_a_lost_graph_is_not_free_of_an_operator() -> None:
    import dataclasses

    from compile_lens.record.missing import Missing

    capture = samples.sample()
    expect(capture).no("aten.sort")
    compilation = capture.compilations[0]
    stages = tuple(
        Missing(s.key, "torch 2.99 lacks this hook") if s.key == "backward.post_grad" else s
        for s in compilation.stages
    )
    lost = dataclasses.replace(capture, compilations=(dataclasses.replace(compilation, stages=stages),))
    message = fails(lambda: expect(lost).no("aten.sort"))
    assert "that is not known" in message and "torch 2.99 lacks this hook" in message
    expect(lost).no("aten.sort", phase="forward")


def test_of_what_did_not_compile_nothing_holds() -> None:
    nothing = expect(compile_lens.capture(lambda x: 3, X))
    nothing.graphs(0)
    for asked in (
        lambda: nothing.launches(0),
        lambda: nothing.graph_breaks(0),
        lambda: nothing.recompiles(0),
        lambda: nothing.no("aten.sort"),
        lambda: nothing.compiled(),
        lambda: nothing.not_fused("sin", "cos"),
    ):
        assert "nothing was compiled" in fails(asked)
    with pytest.raises(compile_lens.CaptureError) as caught:
        expect(lambda x: x.sin() @ torch.rand(3), X)
    assert "failed in stage" in fails(lambda: expect(caught.value.capture).graphs(0))


def test_the_backend_by_name_does_not_see_breaks() -> None:
    import dataclasses

    why = "the named backend does not see it"
    gaps = tuple(Missing(claim, why) for claim in (claims.BREAKS, claims.RECOMPILES))
    capture = dataclasses.replace(samples.sample(), not_observed=gaps)
    expect(capture).launches(2)
    assert "the named backend does not see it" in fails(lambda: expect(capture).graph_breaks(0))
    assert "the named backend does not see it" in fails(lambda: expect(capture).recompiles(at_most=5))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "was given nothing"),
        ({"equal": 1, "at_most": 2}, "equal=1, at_most=2"),
        ({"at_most": -1}, "at_most=-1 is not a whole number"),
        ({"equal": True}, "equal=True is not a whole number"),
        ({"equal": 1.0}, "equal=1.0 is not a whole number"),
        ({"within": 3}, "within=3 is not two numbers"),
        ({"within": (3, 1)}, "is empty"),
    ],
)
def test_bad_bounds(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        expect(samples.sample()).launches(**given)


def test_what_it_takes() -> None:
    with pytest.raises(UsageError, match="arguments as well"):
        expect(samples.sample(), X)
    with pytest.raises(UsageError, match="got int"):
        expect(3)


def test_texts_of_the_program_stay_text() -> None:
    """Line breaks and control characters in the user's text cannot forge lines of the message."""
    import dataclasses

    capture = dataclasses.replace(samples.sample(), function="f\nfound:\n  nothing\x1b[31m")
    message = fails(lambda: expect(capture).launches(9))
    assert "\x1b" not in message and message.count("found:\n") == 1


def test_a_record_is_held_without_torch(child: Callable[..., str], tmp_path: Any) -> None:
    path = samples.sample().save(tmp_path / "sample.json")
    program = f"""
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import compile_lens
held = compile_lens.expect(compile_lens.load({str(path)!r}))
held.launches(2).graphs(1).graph_breaks(0).groups(2).bytes(at_most=10**6).compiled().dtype("float32")
try:
    held.launches(1)
except compile_lens.ExpectationError as error:
    print(error)
print("torch" in sys.modules)
"""
    said = child(program)
    assert "launches: expected 1, found 2" in said and said.endswith("False\n")
