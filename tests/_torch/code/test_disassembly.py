"""The parser of objdump and addr2line output: functions, instructions, names, lines, vector width."""

from __future__ import annotations

import pytest

from compile_lens._torch.code import objdump
from compile_lens._torch.code.objdump import Function, Instruction

OBJDUMP = """
/tmp/one.so:     file format elf64-x86-64


Disassembly of section .text:

0000000000001000 <Sleef_sinf16_u35@plt>:
    1000:\tjmp    QWORD PTR [rip+0x3000]        # 4000 <Sleef_sinf16_u35@Base>

0000000000001100 <kernel [clone .cold]>:
    1100:\tcall   1300 <std::throw_it(char const*)@plt>

0000000000001200 <kernel>:
    1200:\tlea    rdi,[rip+0xf9]        # 1280 <kernel [clone ._omp_fn.0]>
    1207:\tcall   1010 <GOMP_parallel@plt>
    120c:\tjne    1100 <kernel [clone .cold]>
    1212:\tret
    1213:\tnop    WORD PTR [rax+rax*1+0x0]
    121d:\txchg   ax,ax

0000000000001280 <kernel [clone ._omp_fn.0]>:
    1280:\tvmovaps zmm0,ZMMWORD PTR [rip+0x1d76]        # 3000 <_fini+0xe6c>
    1288:\tdata16 cs nop WORD PTR [rax+rax*1+0x0]
    1290:\tcall   1000 <Sleef_sinf16_u35@plt>
    1295:\tvmulps zmm1,zmm0,ZMMWORD PTR [rip+0x1d60]        # 3000 <_fini+0xe6c>
    129c:\tcall   1500 <helper<float>(float*)>
    12a1:\tjg     1290 <kernel [clone ._omp_fn.0]+0x10>
    12a3:\tmov    rax,QWORD PTR [rip+0x2000]        # 3fb0 <flag@@Base>
    12aa:\tret

0000000000001500 <helper<float>(float*)>:
    1500:\tvaddps ymm0,ymm0,ymm1
    1504:\tret

0000000000001600 <PyInit_kernel>:
    1600:\tcall   1200 <kernel@plt>

/tmp/two.so:     file format elf64-x86-64

0000000000001000 <kernel>:
    1000:\tret
"""


@pytest.fixture
def one() -> tuple[Function, ...]:
    return objdump.libraries(OBJDUMP)["/tmp/one.so"]


def code(*texts: str) -> list[Function]:
    return [Function("kernel", tuple(Instruction(i, text) for i, text in enumerate(texts)))]


def test_each_library_has_its_functions(one: tuple[Function, ...]) -> None:
    found = objdump.libraries(OBJDUMP)
    assert list(found) == ["/tmp/one.so", "/tmp/two.so"]
    assert [f.name for f in found["/tmp/two.so"]] == ["kernel"]
    assert "kernel._omp_fn.0" in [f.name for f in one] and "kernel.cold" in [f.name for f in one]


def test_padding_behind_a_function_is_none_of_it(one: tuple[Function, ...]) -> None:
    kernel = next(f for f in one if f.name == "kernel")
    assert [i.text for i in kernel.instructions][-1] == "ret"


def test_a_kernel_reaches_its_parts_and_what_they_call(one: tuple[Function, ...]) -> None:
    names = {f.name for f in objdump.reachable(one, "kernel")}
    assert names >= {"kernel", "kernel._omp_fn.0", "kernel.cold", "helper<float>(float*)"}
    assert "PyInit_kernel" not in names


def test_a_listing_names_places_not_addresses(one: tuple[Function, ...]) -> None:
    order = ["kernel", "kernel._omp_fn.0", "kernel.cold"]
    form = objdump.listing([next(f for f in one if f.name == n) for n in order], {0x1290: 7, 0x1207: 3})
    assert (
        form.text
        == """\
kernel:
        lea          rdi,kernel._omp_fn.0[rip]
        call         GOMP_parallel
        jne          kernel.cold
        ret

kernel._omp_fn.0:
        vmovaps      zmm0,ZMMWORD PTR .LC1[rip]
        data16 cs nop WORD PTR [rax+rax*1+0x0]
.L1:
        call         Sleef_sinf16_u35
        vmulps       zmm1,zmm0,ZMMWORD PTR .LC1[rip]
        call         helper<float>(float*)
        jg           .L1
        mov          rax,QWORD PTR flag[rip]
        ret

kernel.cold:
        call         std::throw_it(char const*)
"""
    )
    lines = form.text.splitlines()
    assert [(lines[at - 1].split()[1], line) for at, line in form.links] == [
        ("GOMP_parallel", 3),
        ("Sleef_sinf16_u35", 7),
    ]


def test_frames_of_an_address_go_outward_and_unknown_ones_are_left_out() -> None:
    said = (
        "0x0000000000001280\n/inc/vec.h:41 (discriminator 3)\n/k.cpp:21\n"
        "0x1281\n??:0\n0x1282\n:?\n0x1283\n/k.cpp:?\n"
    )
    assert objdump.frames(said) == {0x1280: (("/inc/vec.h", 41), ("/k.cpp", 21))}


def test_a_call_of_the_runtime_does_not_belong_to_the_line_before_it() -> None:
    source = ["#pragma omp parallel", "tid = omp_get_thread_num();", "x.store(y);"]
    functions = code(
        "call   10 <GOMP_parallel@plt>",
        "call   20 <omp_get_thread_num@plt>",
        "call   30 <omp_get_num_threads@plt>",
        "idiv   rcx",
        "vmovups ZMMWORD PTR [rax],zmm0",
        "call   40 <GOMP_barrier@plt>",
        "pop    rbx",
        "vmovups ZMMWORD PTR [rax],zmm1",
    )
    lines = {0: 1, 1: 2, 2: 2, 3: 2, 4: 3, 5: 3, 6: 3, 7: 2}
    frames = {address: (("/k.cpp", line),) for address, line in lines.items()}
    assert objdump.without_runtime(functions, lines, frames, source) == {0: 1, 1: 2, 4: 3, 7: 2}


@pytest.mark.parametrize(
    ("bits", "texts"),
    [
        (512, ["vaddps zmm0,zmm1,zmm2", "vmulps ymm0,ymm1,ymm2"]),
        (512, ["vpdpbusd zmm0,zmm1,ZMMWORD PTR [rax]"]),
        (512, ["vcmpunordps k0,zmm0,ZMMWORD PTR [r13+rax*4+0x0]"]),
        (256, ["vfmadd231ps ymm0,ymm1,ymm2", "vmovups zmm0,ZMMWORD PTR [rax]"]),
        (256, ["vcvtph2ps ymm0,xmm1"]),
        (128, ["addps  xmm0,xmm1"]),
        (0, ["vaddss xmm0,xmm1,xmm2", "vcvtsi2ss xmm0,xmm0,rax", "vcvtph2ps xmm0,xmm1", "push rbp"]),
        (0, ["vmovdqa YMMWORD PTR [rbp-0x50],ymm0", "vandps xmm0,xmm0,xmm1", "vxorps zmm0,zmm0,zmm0"]),
        (512, ["vmovups zmm0,ZMMWORD PTR [rsi+rax*4]", "vmovups ZMMWORD PTR [rdi+rax*4],zmm0"]),
        (None, ["vmovdqu xmm0,XMMWORD PTR [rdi]"]),
        (128, ["fadd   v0.4s, v1.4s, v2.4s"]),
        (0, ["fadd   s0, s1, s2", "mov    v0.16b, v1.16b", "fmov   s0, wzr"]),
        (256, ["fadd   z0.s, p0/m, z0.s, z1.s"]),
    ],
)
def test_the_width_is_that_of_registers_that_compute(bits: int | None, texts: list[str]) -> None:
    assert objdump.vector_bits(code(*texts), scalable=256) == bits
