"""The wrapper reader finds every kernel and every launch, in Python and in C++ wrappers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import Capture, CaptureError, capture, versions
from compile_lens._torch.code import wrapper
from compile_lens.record.figures import AtLeast
from compile_lens.record.graph import Node

pytestmark = pytest.mark.torch

WRAPPER = '''
cpp_fused_sin_0 = async_compile.cpp_pybinding(['const float*'], r"""
extern "C" void kernel() {}
""")
triton_poi_1 = async_compile.triton("triton_poi_1", """
def triton_poi_1(): pass
""", device_str="cuda")
mps_lib_0 = compile_mps_shader("""
kernel void generated_kernel() {}
""")
generated_kernel_0 = async_compile.metal("generated_kernel_0", """
kernel void generated_kernel_0() {}
""", ["utils"])
class Runner:
    def call(self, args):
        cpp_fused_sin_0(a)
        extern_kernels.mm(a, b, out=c)
        triton_poi_1.run(a, stream=0)
        cpp_fused_sin_0(b)
        buf = torch.ops.aten.sort.stable(a)
        alias = torch.ops.aten.view.dtype(a, b)
        mps_lib_0.generated_kernel(a)
        generated_kernel_0(a, threads=[64])
        extern_kernels.mm(c, b, out=d)
def benchmark_compiled_module():
    cpp_fused_sin_0(a)
'''


def group(name: str, *members: str) -> Node:
    return Node(name, "group", "", kind="pointwise", members=members, reads=4, writes=4)


def test_kernels_and_launches_are_read_from_the_text() -> None:
    loops = [Node(f"op{i}", "loop", "", origins=(f"n{i}",)) for i in range(6)]
    groups = [group(f"op{i}", f"op{i}") for i in range(6)]
    launched = [
        ("cpp_fused_sin_0", ("op0",)),
        ("extern_kernels.mm", ("op1",)),
        ("triton_poi_1", ("op2",)),
        ("cpp_fused_sin_0", ("op3",)),
        ("aten.sort", ("op4",)),
        ("extern_kernels.mm", ("op5",)),
    ]
    kernels, _, note = wrapper.kernels(WRAPPER, "forward", launched, groups, loops)
    assert not note
    found = {k.name: k for k in kernels}
    assert list(found) == [
        "cpp_fused_sin_0",
        "extern_kernels.mm",
        "triton_poi_1",
        "torch.ops.aten.sort.stable",
        "mps_lib_0",
        "generated_kernel_0",
        "extern_kernels.mm#2",
    ]
    assert [k.language for k in kernels] == ["cpp", "extern", "triton", "extern", "metal", "metal", "extern"]
    sine = found["cpp_fused_sin_0"]
    assert sine.launches == 2 and sine.origins == ("n0", "n3") and sine.reads == 8
    assert WRAPPER.splitlines()[sine.first_line - 1].startswith("cpp_fused_sin_0 =")
    assert found["extern_kernels.mm#2"].origins == ("n5",)
    assert found["torch.ops.aten.sort.stable"].origins == ("n4",)
    assert not found["mps_lib_0"].origins and found["mps_lib_0"].no_origin


NEWER = """
nv_universal_gemm_0 = async_compile.nv_universal_gemm('nv_universal_gemm_0', r'''
import cutlass_api
''')
flydsl_fused_mm_1 = async_compile.flydsl('flydsl_fused_mm_1', r'''
import flydsl
''')
xpu_fused_2 = async_compile.xpu(r'''
void xpu_fused_2() {}
''', 'so')
def call(args):
    nv_universal_gemm_0.run(a, b, stream=s)
    flydsl_fused_mm_1.run(a, b, stream=s)
    xpu_fused_2.xpu_fused_2(a, b)
"""


def test_a_language_that_is_not_known_has_its_own_name() -> None:
    """The text is what torch's newer code generators emit: their kernels appear with source and launch."""
    kernels, _, note = wrapper.kernels(NEWER, "inference", [], [], [])
    assert not note
    assert [(k.language, k.launches) for k in kernels] == [
        ("nv_universal_gemm", 1),
        ("flydsl", 1),
        ("xpu", 1),
    ]
    assert [
        "cutlass_api" in kernels[0].source,
        "flydsl" in kernels[1].source,
        "void" in kernels[2].source,
    ] == [True] * 3


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def test_of_several_kernels_for_one_loop_a_call_launches_one() -> None:
    """Inductor generates two variants of a reduction for the device to time; the choice itself is not a kernel."""
    pytest.importorskip("triton")
    record = capture(softmax, torch.rand(64, 1024), target="h100", options={"triton.multi_kernel": 1})
    text = record.code["inference"]
    assert "async_compile.multi_kernel('multi_kernel_0'" in text  # as Inductor generated it
    one, two = record.kernels
    assert one.kind == two.kind == "reduction" and one.launch_lines == two.launch_lines
    assert "multi_kernel_0.run(" in text.splitlines()[one.launch_lines[0] - 1]
    assert record.ledger.total.launches == 1
    text = " ".join(full(record).split())
    assert "2 kernels, 1 launch" in text and text.count("instead: the device measures which is faster") == 2
    assert "more than once" not in str(record.story())
    # For comparison, the program without the option has one kernel, and no alternative.
    plain = capture(softmax, torch.rand(64, 1024), target="h100")
    assert "instead" not in str(plain) and len(plain.kernels) == 1


def test_a_text_that_is_not_python_is_said() -> None:
    kernels, _, note = wrapper.kernels("def call(:", "forward", [], [], [])
    assert kernels == () and "not Python" in note


def test_a_wrapper_in_cpp() -> None:
    x = torch.rand(8, 8, requires_grad=True)

    def fn(a: torch.Tensor) -> torch.Tensor:
        return (a @ a).sin().sum()

    record = capture(fn, x, options={"cpp_wrapper": True})
    assert record.ledger.forward.launches == 2
    for kernel in record.kernels:
        assert kernel.origins
        (line,) = kernel.launch_lines
        text = record.code[kernel.phase].splitlines()
        assert kernel.name.rpartition(".")[2] in text[line - 1]
        if kernel.language == "cpp":
            assert kernel.source.lstrip().startswith('extern "C"') and kernel.source.rstrip().endswith("}")
            assert kernel.source.count("{") == kernel.source.count("}")


def test_triton_kernels_of_a_wrapper_in_cpp() -> None:
    """A C++ wrapper contains them as strings for the device to compile; the launch is the call, not the function."""

    def fn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ((a.sin() + 1) @ b).relu().sum(-1)

    def captured() -> Capture:
        with torch.no_grad():
            return capture(
                fn, torch.rand(65, 63), torch.rand(63, 63), target="h100", options={"cpp_wrapper": True}
            )

    if versions.torch_version() < (2, 13):  # it runs the kernels before it generates the wrapper
        with pytest.raises(CaptureError, match="leave out cpp_wrapper"):
            captured()
        return
    record = captured()
    lines = record.code["inference"].splitlines()
    written = [k for k in record.kernels if k.language == "triton"]
    assert len(written) == 2 and len(record.kernels) == 3
    for kernel in record.kernels:
        (line,) = kernel.launch_lines
        assert kernel.name in lines[line - 1] and ";" in lines[line - 1]
    for kernel in written:
        assert f"def {kernel.name}(" in kernel.source and "TRITON" not in kernel.source
        assert kernel.kind in ("pointwise", "reduction")
    assert "sin" in written[0].source and "sin" in written[0].origins
    (compilation,) = record.compilations
    words = " ".join(compilation.code["inference"].may_differ)
    assert "launch configurations" in words and "padded" in words


def texts(fn: Any, *args: torch.Tensor) -> str:
    (compilation,) = capture(fn, *args).compilations
    return compilation.graphs["inference.loops"].text


def test_loops_are_loads_operations_and_stores() -> None:
    text = texts(lambda x: torch.softmax(x.sin(), -1), torch.rand(8, 512))
    assert "op0: Reduction max over 512" in text
    assert "for p0 in 8, p1 in 512:" in text
    assert "load = arg0_1[512*p0 + p1]" in text
    assert "sin = sin(load)" in text


def test_loops_with_masks_and_scatters() -> None:
    pad = texts(lambda x: torch.nn.functional.pad(x.sin(), (1, 1)), torch.rand(8, 8))
    assert "masked_subblock1(" in pad and "gives sin" in pad
    rows = torch.tensor([0, 1])
    add = texts(lambda x, y: x.index_add(0, rows, y), torch.rand(8, 8), torch.rand(2, 8))
    assert "+= " in add


def test_a_view_that_a_library_makes_is_no_launch() -> None:
    record = capture(lambda x: x.view(torch.int16), torch.rand(8, 8))
    assert record.ledger.inference.launches == 0
    assert record.ledger.inference.groups == 0


def test_a_reshape_that_a_library_makes_is_no_launch() -> None:
    """Inductor generates no code for complex numbers, and calls ATen's ``reshape`` for a view."""
    z = torch.randn(4, 6, dtype=torch.cfloat)
    record = capture(lambda z: (z * 2).sum(0).view(-1, 1), z)
    assert "aten.reshape.default(" in record.code["inference"]
    made = z.sum(0)
    assert torch.ops.aten.reshape.default(made, [-1, 1]).data_ptr() == made.data_ptr()
    assert [k.name for k in record.kernels] == ["torch.ops.aten.mul.Tensor", "torch.ops.aten.sum.dim_IntList"]
    assert record.ledger.inference.launches == 2


@pytest.mark.full
@pytest.mark.parametrize("name", ["t", "view", "reshape", "gather", "empty", "sin"])
def test_an_operator_of_the_programs_is_its_own_whatever_its_name(name: str) -> None:
    with torch.library._scoped_library("lens_names", "FRAGMENT") as lib:
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, torch.tanh, "CPU")
        lib.impl(name, torch.empty_like, "Meta")
        operator = getattr(torch.ops.lens_names, name)
        record = capture(lambda x: operator(x.sin()).cos(), torch.rand(16, 16))
    called = f"torch.ops.lens_names.{name}.default"
    assert [k.name for k in record.kernels][1] == called and record.ledger.inference.launches == 3
    (kernel,) = (k for k in record.kernels if k.name == called)
    assert (kernel.reads, kernel.writes) == (None, None), "nobody sees what it reads"
    row = record.ledger.inference
    assert isinstance(row.bytes_after, AtLeast) and row.bytes_after.least == 4 * 1024
    assert (row.eager_ops, row.aten_ops) == (3, 3)
    assert [n.kind for n in record.compilations[0].graphs["dynamo"].calls] == [
        "pointwise",
        "custom",
        "pointwise",
    ]


def test_bytes_that_depend_on_data_are_not_counted() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        record = capture(lambda x: torch.sin(x[x > 0.5]) * 2, torch.linspace(0, 1, 64))
    row = record.ledger.inference
    assert row.groups >= 1
    # The comparison reads 64 numbers and writes 64 booleans; the rest depends on how many elements are selected.
    assert isinstance(row.bytes_after, AtLeast) and row.bytes_after.least == 64 * 4 + 64
    assert row.bytes_after.most is None
    assert any("unknown" in note or "bytes" in note for note in row.notes)


def _copied(x: torch.Tensor) -> torch.Tensor:
    y = torch.fft.fftn(x)
    return y + 1


@pytest.mark.parametrize("needs", [False, True])
def test_a_copy_that_the_wrapper_makes_is_a_launch_of_its_line(needs: bool) -> None:
    record = capture(_copied, torch.rand(4, 6, requires_grad=needs))
    phase = "forward" if needs else "inference"
    module = record.compilations[0].code[phase]
    written = [i for i, line in enumerate(module.text.splitlines(), 1) if ".copy_(" in line]
    assert written, "this torch converts to a complex type by other means"
    copies = [k for k in module.kernels if "copy_" in k.name]
    assert [line for k in copies for line in k.launch_lines] == written
    first = _copied.__code__.co_firstlineno
    for kernel in copies:
        assert kernel.language == "extern" and kernel.groups and kernel.origins
        assert [f.line for f in record.chain.lines(kernel)] == [first + 1]
    assert record.chain.kernels(__file__, first + 1)[: len(copies)] == tuple(copies)
    row = getattr(record.ledger, phase)
    assert row.launches == sum(k.launches for k in module.kernels) >= len(written) + 2
