"""Known numbers: the results of torch 2.13 for a few functions, to the node and to the byte.

N is 2^20, float32 unless stated. Each value was read or measured in torch itself; if another torch gives
another one, ``OTHER`` contains it with the reason.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from running import run
from zoo_tensors import chain, det3, lu_det, naive_attention, sin2_cos2, unpack_int4

from compile_lens import CaptureError, capture
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

N = 2**20
TORCH = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2])

# (torch version, name of the fact): (value, why it differs from 2.13)
OTHER: dict[tuple[tuple[int, int], str], tuple[Any, str]] = {}


def fact(name: str, value: Any) -> Any:
    """Return the expected value of a fact on this torch."""
    return OTHER.get((TORCH, name), (value, ""))[0]


def ramp(*shape: int, grad: bool = False) -> torch.Tensor:
    """Return a tensor of distinct values, the same in every process."""
    size = 1
    for s in shape:
        size *= s
    return torch.linspace(-3.0, 3.0, size).reshape(shape).requires_grad_(grad)


def kinds(found: Capture) -> tuple[int, int]:
    """Return the number of generated kernels and of library calls, each launch counted."""
    extern = sum(k.launches for k in found.kernels if k.language == "extern")
    return sum(k.launches for k in found.kernels) - extern, extern


@functools.cache
def seed() -> Capture:
    return capture(sin2_cos2, ramp(N, grad=True))


# sin(x)**2 + cos(x)**2, forward and backward.
@pytest.mark.full
@pytest.mark.parametrize(
    ("stage", "nodes", "calls"),
    [("dynamo", 7, 5), ("joint", 20, None), ("forward", 7, 5), ("backward", 15, 12)],
)
def test_seed_graphs(stage: str, nodes: int, calls: int | None) -> None:
    graph = seed().compilations[0].graphs[stage]
    assert len(graph.nodes) == fact(f"{stage} nodes", nodes)
    if calls is not None:
        assert len(graph.calls) == fact(f"{stage} calls", calls)


def test_seed_keeps_only_its_input_for_backward() -> None:
    graph = seed().compilations[0].graphs["forward"]
    (saved,) = graph.saved
    assert graph[saved].op == "placeholder"


def test_seed_is_one_loop_and_one_launch() -> None:
    ledger = seed().ledger
    for row in (ledger.forward, ledger.backward):
        assert (row.loops, row.groups, row.launches) == (1, 1, 1)
    assert ledger.total.launches == 2
    assert ledger.forward.eager_ops == 5
    assert ledger.forward.aten_ops == 5
    assert ledger.backward.aten_ops == 12


def test_seed_bytes() -> None:
    ledger = seed().ledger
    assert ledger.forward.bytes_before == 46_137_344 == 11 * N * 4
    assert ledger.forward.bytes_after == 8_388_608 == 2 * N * 4
    assert ledger.total.bytes_after == 20_971_520 == 5 * N * 4
    assert {f.basis for f in (ledger.forward.bytes_before, ledger.forward.bytes_after)} == {"modelled"}
    assert ledger.forward.launches.basis == "measured"


def test_seed_kernel_names() -> None:
    names = {k.phase: k.name for k in seed().kernels}
    assert names == {
        "forward": "cpp_fused_add_cos_pow_sin_0",
        "backward": "cpp_fused_add_cos_mul_neg_pow_sin_0",
    }


def test_seed_kernel_origins() -> None:
    origins = {k.phase: k.origins for k in seed().kernels}
    assert origins["forward"] == ("sin", "pow_1", "cos", "pow_2", "add")
    assert len(origins["backward"]) == 12


def test_seed_reaches_its_python_line() -> None:
    code = sin2_cos2.__code__
    for kernel in seed().kernels:
        (frame,) = {(f.file, f.line) for f in seed().chain.lines(kernel)}
        assert frame == (code.co_filename, code.co_firstlineno + 2)
    kernels = seed().chain.kernels(code.co_filename, code.co_firstlineno + 2)
    assert [k.phase for k in kernels] == ["forward", "backward"]


def test_openmp_only_where_it_pays() -> None:
    options = {"cpp.threads": 4}
    assert "omp for" in capture(sin2_cos2, ramp(N), options=options).code["inference"]
    assert "omp for" not in capture(sin2_cos2, ramp(1000), options=options).code["inference"]


@pytest.mark.slow
def test_seed_numbers() -> None:
    x = ramp(N)
    _, built = run(sin2_cos2, x, build=True)
    assert (built - 1).square().mean() < 1e-10
    assert (built - sin2_cos2(x)).abs().max() < 1e-6


# Fusion.
def test_square_of_square() -> None:
    row = capture(lambda x: torch.square(torch.square(x)), ramp(N)).ledger.inference
    assert (row.eager_ops, row.launches) == (2, 1)
    assert (row.bytes_before, row.bytes_after) == (16_777_216, 8_388_608)


@pytest.mark.parametrize(
    ("options", "groups", "arrays"), [(None, 1, 4), ({"max_fusion_size": 1}, 3, 6)], ids=["fused", "not"]
)
def test_three_readers_of_one_input(options: Any, groups: int, arrays: int) -> None:
    record = capture(lambda x: (torch.sin(x), torch.cos(x), torch.exp(x)), ramp(N), options=options)
    row = record.ledger.inference
    assert (row.loops, row.groups) == (3, groups)
    assert row.launches == 1  # the C++ backend writes groups that are not fused into one function
    assert row.bytes_after == arrays * N * 4


@pytest.mark.full
@pytest.mark.parametrize(("pairs", "loops"), [(10, 1), (40, 2), (100, 3), (200, 6)])
@pytest.mark.cases(full=2)
def test_long_chains_are_cut_in_loops_and_fused_again(pairs: int, loops: int) -> None:
    row = capture(chain, ramp(N), pairs).ledger.inference
    assert row.loops == fact(f"chain {pairs}", loops)
    assert (row.groups, row.launches) == (1, 1)


# Kernels and library calls.
def _sort(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(torch.sort(torch.sin(x)).values)


def _cumsum(x: torch.Tensor) -> torch.Tensor:
    return torch.cos(torch.cumsum(torch.sin(x), 0))


def _dequantise(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x @ (w.to(torch.float32) * scale)


@pytest.mark.parametrize(
    ("fn", "args", "generated", "extern"),
    [
        (_cumsum, (ramp(N),), 2, 1),
        (_sort, (ramp(N),), 2, 1),
        (lambda a, b: torch.relu(a @ b), (ramp(64, 32), ramp(32, 16)), 1, 1),
        (lambda x: F.layer_norm(x, (64,)), (ramp(32, 64),), 1, 0),
        (lambda x: torch.softmax(x, -1), (ramp(32, 64),), 1, 0),
        (lu_det, (ramp(5, 5).sin(),), 1, 1),
        (det3, (ramp(100, 3, 3),), 1, 0),
        (_dequantise, (torch.ones(16, 8, dtype=torch.int8), ramp(8), ramp(4, 16)), 1, 1),
        (unpack_int4, (torch.ones(64, 32, dtype=torch.int32), ramp(1)), 1, 0),
    ],
    ids=["cumsum", "sort", "mm_relu", "layer_norm", "softmax", "lu_det", "det3", "int8_mm", "int4"],
)
def test_kernels_and_library_calls(fn: Any, args: Any, generated: int, extern: int) -> None:
    assert kinds(capture(fn, *args)) == (generated, extern)


def test_lu_determinant_calls_the_library_by_name() -> None:
    m = ramp(5, 5).sin()
    record, det = run(lu_det, m)
    assert [k.name for k in record.kernels if k.language == "extern" and "lu_factor_ex" in k.name]
    torch.testing.assert_close(det, torch.linalg.det(m))


@pytest.mark.full
def test_two_thousand_determinants_are_one_launch() -> None:
    def alone(m: torch.Tensor) -> torch.Tensor:
        return torch.stack([det3(x).squeeze(0) for x in m])

    row = capture(det3, ramp(2000, 3, 3)).ledger.inference
    assert row.launches == 1
    assert capture(alone, ramp(4, 3, 3)).ledger.inference.eager_ops > row.eager_ops


def test_int4_unpack_is_two_loops_in_one_function() -> None:
    row = capture(unpack_int4, torch.ones(64, 32, dtype=torch.int32), ramp(1)).ledger.inference
    assert (row.aten_ops, row.loops, row.launches) == (10, 2, 1)


@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
def test_complex_numbers_are_left_to_libraries() -> None:
    record = capture(lambda z: torch.sin(z) * 2, torch.ones(16, dtype=torch.complex64))
    assert kinds(record) == (0, 2)


def test_fft_is_a_library_call() -> None:
    record = capture(lambda x: torch.fft.fft(x), ramp(64))
    assert any("fft" in k.name for k in record.kernels if k.language == "extern")


@pytest.mark.parametrize(("dim", "nbytes"), [(0, 6_299_648), (-1, 2_097_152)])
def test_softmax_traffic(dim: int, nbytes: int) -> None:
    row = capture(lambda x: torch.softmax(x, dim), ramp(512, 512)).ledger.inference
    assert row.bytes_after == fact(f"softmax {dim}", nbytes)


def test_mse_is_decomposed() -> None:
    one = torch.ones(1000)
    graphs = capture(lambda x: F.mse_loss(sin2_cos2(x), one), ramp(1000, grad=True)).compilations[0].graphs
    assert len(graphs["dynamo"].calls) == 6
    assert len(graphs["forward"].calls) == fact("mse forward", 8)
    # 15 with AOTAutograd's default partitioner; Inductor's saves x only and recomputes sin and cos.
    assert len(graphs["backward"].calls) == fact("mse backward", 18)


def test_attention_is_recognised() -> None:
    q = ramp(2, 4, 64, 32)
    record = capture(naive_attention, q, q + 1, q + 2)
    assert kinds(record) == (0, 1)
    assert "flash" in record.kernels[0].name


def test_attention_with_a_tanh_is_not() -> None:
    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.tanh(q @ k.transpose(-2, -1) / 32**0.5), dim=-1) @ v

    q = ramp(2, 4, 64, 32)
    record = capture(fn, q, q + 1, q + 2)
    assert kinds(record)[1] == 2
    assert all("bmm" in k.name for k in record.kernels if k.language == "extern")
    assert sum("softmax" in k.name for k in record.kernels) == 1


# Custom operators.
@torch.library.custom_op("lens_facts::plus", mutates_args=())
def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


plus.register_fake(lambda x, y: torch.empty_like(x))


@torch.library.custom_op("lens_facts::hidden", mutates_args=())
def hidden(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def test_custom_operator_is_a_wall_for_fusion() -> None:
    x, y = ramp(N), ramp(N) + 1  # plus reads two arrays and writes one: 2 + 3 + 2 against 3
    custom = capture(lambda x, y: torch.cos(plus(torch.sin(x), y)), x, y)
    plain = capture(lambda x, y: torch.cos(torch.sin(x) + y), x, y)
    assert kinds(custom) == (2, 1)
    moved = custom.ledger.inference.bytes_after
    assert str(moved) == f"≥ {4 * N * 4:,}", "what the operator itself reads and writes cannot be seen"
    assert kinds(plain) == (1, 0)
    assert plain.ledger.inference.bytes_after == 3 * N * 4


def test_custom_operator_without_fake_is_an_error() -> None:
    with pytest.raises(CaptureError, match="lens_facts"):
        capture(lambda x: hidden(x, x), ramp(8))


def test_custom_operator_without_autograd_has_no_backward() -> None:
    with pytest.raises(CaptureError) as caught:
        capture(lambda x: plus(torch.sin(x), x), ramp(8, grad=True))
    assert "lens_facts" in str(caught.value) or "lens_facts" in str(caught.value.__cause__)
    assert "dynamo" in caught.value.capture.compilations[0].graphs


# The C++ loop.
@pytest.mark.parametrize(("simdlen", "step"), [(256, 8), (1, 1)])
def test_vector_width(simdlen: int, step: int) -> None:
    code = capture(sin2_cos2, ramp(N), options={"cpp.simdlen": simdlen}).code["inference"]
    if step == 1:
        assert "at::vec::Vectorized" not in code
    elif "avx" in torch.backends.cpu.get_cpu_capability().lower():
        assert re.search(rf"x0\s*\+=\s*static_cast<int64_t>\({step}L?\)", code)
    else:
        pytest.skip(f"reason: this CPU has no AVX2 ({torch.backends.cpu.get_cpu_capability()})")


# Compilations.
def _print(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    print("", end="")
    return torch.cos(y)


def _item(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def _if(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.sum() > 0 else x - 1


@pytest.mark.parametrize("fn", [_print, _item, _if], ids=["print", "item", "if"])
def test_two_graphs(fn: Any) -> None:
    record = capture(fn, ramp(8))
    assert sum("dynamo" in c.graphs for c in record.compilations) == 2
    (ending,) = record.breaks
    assert ending.reason and ending.frames and ending.hint and ending.link


@pytest.mark.parametrize(("sizes", "compiles"), [(1, 1), (2, 2), (3, 2), (4, 2)])
def test_second_size_compiles_for_any_size(sizes: int, compiles: int) -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    def each(xs: list[torch.Tensor]) -> list[torch.Tensor]:
        out = []
        for x in xs:
            torch._dynamo.graph_break()
            out.append(one(x))
        return out

    record = capture(each, [ramp(8 * 2**i) for i in range(sizes)])
    mine = [c for c in record.compilations if c.function.split(".")[-1] == "one"]
    assert len(mine) == compiles
    if compiles == 2:
        assert mine[1].recompile_reasons
        assert mine[1].dynamic and mine[1].dynamic[0].hint == 16


def test_sizes_stop_at_the_recompile_limit() -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    def each(xs: list[torch.Tensor]) -> list[torch.Tensor]:
        out = []
        for x in xs:
            torch._dynamo.graph_break()
            out.append(one(x))
        return out

    record = capture(each, [ramp(4 + i) for i in range(12)], dynamic=False)
    assert sum(c.function.split(".")[-1] == "one" and "dynamo" in c.graphs for c in record.compilations) == 8
