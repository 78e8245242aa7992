"""Traffic and arithmetic on small records made by hand, in which every figure can be counted."""

from __future__ import annotations

import json

import pytest
from full_text import full
from samples import BYTES, N, sample

from compile_lens.measures.arithmetic import Unknown, length, operations, special
from compile_lens.measures.ledger import ledger
from compile_lens.measures.traffic import KernelTraffic, traffic
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation, DynamicDim
from compile_lens.record.graph import Graph, Node, Ref, Tensor, Value
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpu")


def tensor(*shape: int | str, dtype: str = "float32") -> Tensor:
    return Tensor(dtype, shape, None, "cpu", 64)


def given(name: str, *shape: int | str, dtype: str = "float32") -> Node:
    return Node(name, "placeholder", name, "input", outputs=(tensor(*shape, dtype=dtype),))


def node(
    name: str, target: str, kind: str, args: tuple[Value, ...], *shape: int | str, dtype: str = "float32"
) -> Node:
    return Node(
        name,
        "call_function",
        target,
        kind,
        True,
        args,
        outputs=(tensor(*shape, dtype=dtype),),
        reads=8,
        writes=4,
    )


def count(made: Node, *inputs: Node, **sizes: int) -> int:
    return operations(made, {n.name: n for n in inputs}, sizes)


A, B = Ref("a"), Ref("b")


@pytest.mark.parametrize(
    ("target", "args", "shapes", "made", "expected"),
    [
        ("aten.mm.default", (A, B), ((3, 5), (5, 7)), (3, 7), 2 * 3 * 7 * 5),
        ("aten.bmm.default", (A, B), ((2, 3, 5), (2, 5, 7)), (2, 3, 7), 2 * 2 * 3 * 7 * 5),
        ("aten.addmm.default", (Ref("c"), A, B), ((3, 5), (5, 7)), (3, 7), 2 * 3 * 7 * 5 + 3 * 7),
        ("aten.mv.default", (A, B), ((3, 5), (5,)), (3,), 2 * 3 * 5),
        ("aten.dot.default", (A, B), ((5,), (5,)), (), 2 * 5),
        ("mkldnn._linear_pointwise.default", (A, B, Ref("c")), ((3, 5), (7, 5)), (3, 7), 2 * 3 * 7 * 5 + 21),
        (
            "aten.convolution.default",
            (A, B, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
            ((2, 3, 8, 8), (4, 3, 3, 3)),
            (2, 4, 6, 6),
            2 * (2 * 4 * 6 * 6) * (3 * 3 * 3),
        ),
        (
            "aten.convolution.default",
            (A, B, None, (1, 1), (0, 0), (1, 1), True, (0, 0), 1),
            ((2, 4, 6, 6), (4, 3, 3, 3)),
            (2, 3, 8, 8),
            2 * (2 * 4 * 6 * 6) * (3 * 3 * 3),
        ),
    ],
)
def test_matrix_products(
    target: str,
    args: tuple[Value, ...],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    made: tuple[int, ...],
    expected: int,
) -> None:
    one, two = shapes
    assert count(node("m", target, "matmul", args, *made), given("a", *one), given("b", *two)) == expected


def test_a_grouped_convolution_meets_the_weights_of_its_group() -> None:
    args = (A, B, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 2)
    made = node("c", "aten.convolution.default", "matmul", args, 2, 8, 6, 6)
    assert count(made, given("a", 2, 4, 8, 8), given("b", 8, 2, 3, 3)) == 2 * (2 * 8 * 6 * 6) * (2 * 3 * 3)


def test_the_backward_of_a_convolution_takes_what_its_mask_asks_for() -> None:
    inputs = (given("g", 2, 4, 6, 6), given("a", 2, 3, 8, 8), given("b", 4, 3, 3, 3))
    once = 2 * (2 * 4 * 6 * 6) * 27
    for mask, expected in (
        ((True, True, False), 2 * once),
        ((False, True, False), once),
        ((False, False, True), 2 * 4 * 6 * 6),
    ):
        args = (Ref("g"), A, B, (4,), (1, 1), (0, 0), (1, 1), False, (0, 0), 1, mask)
        assert count(node("c", "aten.convolution_backward.default", "matmul", args, 1), *inputs) == expected


def test_attention_counts_its_products() -> None:
    inputs = [given(n, 1, 4, 64, 32) for n in "gqkv"]
    args = tuple(Ref(n) for n in "qkv")
    name = "aten._scaled_dot_product_flash_attention_for_cpu"
    assert count(node("s", f"{name}.default", "matmul", args, 1), *inputs) == 2 * (2 * 4 * 64 * 64 * 32)
    backward = node("t", f"{name}_backward.default", "matmul", (Ref("g"), *args), 1)
    assert count(backward, *inputs) == 5 * (2 * 4 * 64 * 64 * 32)


@pytest.mark.parametrize(
    ("target", "kind", "made", "expected"),
    [
        ("aten.sin.default", "pointwise", (6, 4), 24),
        ("prims.fma.default", "pointwise", (6, 4), 48),
        ("aten.clone.default", "pointwise", (6, 4), 0),
        ("prims.convert_element_type.default", "pointwise", (6, 4), 0),
        ("aten.sum.dim_IntList", "reduction", (6,), 24),
        ("aten.var_mean.correction", "reduction", (6,), 96),
        ("aten.cumsum.default", "scan", (6, 4), 24),
        ("prims.inductor_random.default", "random", (6, 4), 24),
        ("aten.add_.Tensor", "mutation", (6, 4), 24),
        ("aten.copy_.default", "mutation", (6, 4), 0),
    ],
)
def test_elementwise_and_reductions(target: str, kind: str, made: tuple[int, ...], expected: int) -> None:
    assert count(node("x", target, kind, (A,), *made), given("a", 6, 4)) == expected


def test_scatters_add_what_they_are_given() -> None:
    inputs = (given("a", 10), given("i", 6), given("b", 6))
    add = node("s", "aten.scatter_add.default", "other", (A, 0, Ref("i"), B), 10)
    assert count(add, *inputs) == 6
    put = ("aten.index_put.default", "other", (A, (Ref("i"),), B))
    assert count(node("p", *put[:2], (*put[2], True), 10), *inputs) == 6
    assert count(node("p", *put[:2], put[2], 10), *inputs) == 0


def test_windows() -> None:
    pool = node("p", "aten.avg_pool2d.default", "other", (A, (2, 2)), 1, 3, 4, 4)
    assert count(pool, given("a", 1, 3, 8, 8)) == 3 * 16 * 4


def test_the_backward_of_a_pool_adds_each_gradient_once() -> None:
    """The forward saved the positions; Metal's operator has none, and compares four values again for each."""
    inputs = (given("a", 1, 3, 4, 4), given("b", 1, 3, 8, 8), given("i", 1, 3, 4, 4))
    window = ((2, 2), (2, 2), (0, 0), (1, 1), False)
    kept = ("aten.max_pool2d_with_indices_backward.default", "other", (A, B, *window, Ref("i")))
    assert count(node("p", *kept, 1, 3, 8, 8), *inputs) == 3 * 16
    metals = node("p", "aten.max_pool2d_backward.default", "other", (A, B, *window), 1, 3, 8, 8)
    assert count(metals, *inputs) == 3 * 16 * (4 + 1)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (node("s", "aten.sort.default", "other", (A,), 6), "depends on how it is done"),
        (node("s", "mylib.magic.default", "custom", (A,), 6), "mylib.magic.default"),
        (node("s", "aten._linalg_svd.default", "other", (A,), 6), "not modelled"),
        (node("s", "cond", "control", (A,), 6), "body"),
        (node("s", "aten.sin.default", "pointwise", (A,), "u0"), "depends on data"),
        (node("s", "aten.mm.default", "matmul", (A, Ref("nobody")), "s0", 2), "depends on data"),
        (node("s", "aten.mm.default", "matmul", (Ref("nobody"), A), 2, 2), "not in the record"),
        (node("s", "aten.sin.default", "pointwise", (A,), 6, dtype="complex64"), "complex"),
    ],
)
def test_what_is_unknown_says_why(made: Node, reason: str) -> None:
    with pytest.raises(Unknown, match=reason):
        count(made, given("a", 6, 2))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (7, 7),
        ("s0", 6),
        ("2*s0 + 1", 13),
        ("s0**2", 36),
        ("FloorDiv(s0, 4)", 1),
        ("((s0//2))", 3),
        ("-1 + s0", 5),
        ("Max(1, s0)", 6),
    ],
)
def test_sizes_are_those_that_were_seen(size: int | str, expected: int) -> None:
    assert length(size, {"s0": 6}) == expected


@pytest.mark.parametrize(
    "size", ["u0", "__import__('os')", "s0 +", "s0**99", "s0//0", "open('x')", "s0.real"]
)
def test_no_other_size_is_evaluated(size: str) -> None:
    with pytest.raises(Unknown):
        length(size, {"s0": 6})


@pytest.mark.parametrize(
    "size",
    [
        "s0\0",
        "\ud800",
        "9" * 1900,
        "9" * 5000,
        "-1",
        "2**63 * 2",
        "(" * 900 + "s0" + ")" * 900,
        "-" * 1900 + "1",
        "1" + "+1" * 9000,
        "(" * 300 + "s0" + "**8)" * 300,
        "Mod(1)",
        "Max()",
    ],
    ids=range(12),
)
def test_a_text_that_is_no_size_is_unknown(size: str) -> None:
    with pytest.raises(Unknown):
        length(size, {"s0": 6})


def test_a_power_beyond_a_float_is_whole() -> None:
    tensor = Tensor("float32", (8,), (1,), "cpu", 32)
    node = Node("p", "call_function", "aten.pow.Tensor_Scalar", args=(Ref("x"), 10**400), outputs=(tensor,))
    assert special(node, 8) == 0


def test_a_product_of_sizes_that_no_device_holds_is_unknown() -> None:
    tensor = Tensor("float32", (2**63,) * 40, None, "cpu", None)
    node = Node("s", "call_function", "aten.sin.default", "pointwise", compute=True, outputs=(tensor,))
    with pytest.raises(Unknown):
        operations(node, {"s": node}, {})


def made_by_hand(kernels: tuple[Kernel, ...], nodes: tuple[Node, ...]) -> Capture:
    graph = Graph("post_grad", "inference", "inference", nodes)
    stages = (graph, Code("inference", "", "generated only", "cpu", kernels))
    return Capture("f", ENVIRONMENT, compilations=(Compilation("0/0", "f", "f.py", 1, stages),))


def kernel(name: str, line: int, *origins: str, language: str = "cpp", kind: str = "pointwise") -> Kernel:
    return Kernel(
        name, "inference", language, kind, "", launch_lines=(line,), origins=origins, reads=10, writes=6
    )


def test_the_waves_by_hand() -> None:
    seen = sample()
    forward, backward = traffic(seen).kernels
    assert forward.nbytes == 2 * BYTES and forward.before == 11 * BYTES and forward.flops == 5 * N
    # sin and cos count as 8, two squares and a sum as one
    assert forward.work == (2 * 8 + 3) * N and forward.intensity == 19 * N / (2 * BYTES) == 2.375
    assert backward.nbytes == 3 * BYTES and backward.flops == 12 * N
    assert forward.dtype == "float32" and not forward.notes and forward.products == 0
    found = ledger(seen)
    assert forward.before == found.forward.bytes_before and backward.before == found.backward.bytes_before
    total = traffic(seen)
    assert total.nbytes == found.total.bytes_after and total.flops == 17 * N


def test_elementwise_work_counts_in_each_kernel_that_does_it() -> None:
    nodes = (given("a", 6), node("sin", "aten.sin.default", "pointwise", (A,), 6))
    one, two = traffic(made_by_hand((kernel("k0", 1, "sin"), kernel("k1", 2, "sin")), nodes)).kernels
    assert one.flops == two.flops == 6 and one.before == two.before == 12


def test_a_reduction_in_two_steps_counts_once() -> None:
    nodes = (given("a", 6), node("sum", "aten.sum.default", "reduction", (A,)))
    late, early = traffic(made_by_hand((kernel("k0", 9, "sum"), kernel("k1", 2, "sum")), nodes)).kernels
    assert (early.flops, late.flops) == (6, 0), "in the order in which they are launched"


def test_a_library_call_counts_where_it_is_made() -> None:
    nodes = (
        given("a", 3, 5),
        given("b", 5, 7),
        node("clone", "aten.clone.default", "pointwise", (A,), 3, 5),
        node("mm", "aten.mm.default", "matmul", (Ref("clone"), B), 3, 7),
    )
    kernels = (
        kernel("layout", 1, "clone", "mm"),
        kernel("mm", 2, "clone", "mm", language="extern", kind="extern"),
    )
    layout, product = traffic(made_by_hand(kernels, nodes)).kernels
    assert layout.flops == 0 and layout.before == 12
    assert product.flops == product.products == 2 * 3 * 5 * 7 and product.before == 12


def test_a_scatter_counts_where_it_adds() -> None:
    nodes = (
        given("a", 10),
        given("i", 6),
        given("b", 6),
        node("put", "aten.scatter_add.default", "other", (A, 0, Ref("i"), B), 10),
    )
    kernels = (kernel("copy", 1, "put"), kernel("add", 2, "put"))
    copy, add = traffic(made_by_hand(kernels, nodes)).kernels
    assert (copy.flops, add.flops) == (0, 6) and (copy.before, add.before) == (0, 12)


def test_dynamic_sizes_use_what_was_seen() -> None:
    nodes = (given("a", "s0"), node("sin", "aten.sin.default", "pointwise", (A,), "s0"))
    seen = made_by_hand((kernel("k0", 1, "sin"),), nodes)
    assert traffic(seen).kernels[0].flops is None
    dynamic = Compilation(
        "0/0", "f", "f.py", 1, seen.compilations[0].stages, dynamic=(DynamicDim("x", "s0", 6),)
    )
    assert traffic(Capture("f", ENVIRONMENT, compilations=(dynamic,))).kernels[0].flops == 6


def test_the_body_of_a_branch_has_shapes_of_its_own() -> None:
    body = Graph(
        "post_grad",
        "inference",
        "inference",
        (given("a", 3), node("sin", "aten.sin.default", "pointwise", (A,), 3)),
    )
    outer = (given("a", 6), node("sin", "aten.sin.default", "pointwise", (A,), 6))
    graph = Graph("post_grad", "inference", "inference", outer, subgraphs=(("true_graph_0", body),))
    code = Code(
        "inference",
        "",
        "generated only",
        "cpu",
        (kernel("k0", 1, "true_graph_0/sin"), kernel("k1", 2, "sin")),
    )
    seen = Capture("f", ENVIRONMENT, compilations=(Compilation("0/0", "f", "f.py", 1, (graph, code)),))
    assert [k.flops for k in traffic(seen).kernels] == [3, 6]


def test_unknown_figures_stay_unknown() -> None:
    nodes = (given("a", 6), node("sort", "aten.sort.default", "other", (A,), 6))
    blind = Kernel("k", "inference", "extern", "extern", "", launch_lines=(1,), no_origin="nobody said")
    found = traffic(made_by_hand((kernel("k0", 1, "sort"), blind), nodes))
    assert [k.flops for k in found.kernels] == [None, None] and found.flops is None
    assert found.kernels[1].nbytes is None and found.kernels[1].before is None and found.nbytes is None
    assert any("nobody said" in n for n in found.kernels[1].notes)
    assert "?" in full(found) and "comparisons" in full(found)


def test_a_phase_without_code_says_why() -> None:
    graph = Graph("inference", "", "dynamo", (given("a", 6),))
    missing = Missing("inference.code", "the compiler failed before it")
    seen = Capture("f", ENVIRONMENT, compilations=(Compilation("0/0", "f", "f.py", 1, (graph, missing)),))
    assert traffic(seen).notes == ("the compiler failed before it",)
    assert traffic(Capture("f", ENVIRONMENT, nothing_compiled="no tensor was seen")).notes == (
        "no tensor was seen",
    )


def test_it_is_plain_data() -> None:
    found = json.loads(json.dumps(traffic(sample()).to_dict()))
    assert found["basis"] == "modelled" and found["kernels"][0]["intensity"] == 2.375
    assert KernelTraffic("k", "forward", reads=0, writes=0, flops=0).intensity is None


def test_totals_are_those_of_the_ledger() -> None:
    found = sample()
    moved, total = found.traffic(), ledger(found).total
    assert (moved.nbytes, moved.before) == (total.bytes_after, total.bytes_before)
    assert moved.to_dict()["bytes_before"] == total.bytes_before
    assert f"together: {total.bytes_after:,} ({total.bytes_before:,}, each operator once)" in str(moved)


@pytest.mark.parametrize(
    ("target", "args", "expected"),
    [
        ("aten.sin.default", (A,), 12),
        ("aten.add.Tensor", (A, B), 0),
        ("aten.pow.Tensor_Scalar", (A, 2), 0),
        ("aten.pow.Tensor_Scalar", (A, 0.5), 12),
        ("aten.div.Tensor", (A, B), 12),
    ],
)
def test_special_functions_are_told_apart(target: str, args: tuple[Value, ...], expected: int) -> None:
    made = node("x", target, "pointwise", args, 3, 4)
    assert special(made, count(made, given("a", 3, 4), given("b", 3, 4))) == expected
