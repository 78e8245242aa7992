"""Folding of machine code: texts as compilers write them, and which of their lines are instructions."""

from __future__ import annotations

import samples_machine as made
from hypothesis import given
from hypothesis import strategies as st

from compile_lens.views.words.folds import machine_folds

SASS = """\
	.headerflags	@"EF_CUDA_SM90"
	.elftype	@"ET_EXEC"


//--------------------- .text.kernel --------------------------
	.section	.text.kernel,"ax",@progbits
        .global         kernel
kernel:
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 BRA `(.L_x_0);
        /*0020*/                   EXIT ;
.L_x_0:
        /*0030*/                   BRA `(.L_x_0);
        /*0040*/                   NOP;
        /*0050*/                   NOP;
.L_x_1:
"""

AMDGCN = """\
	.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
	.text
kernel:                                 ; @kernel
; %bb.0:
	s_load_dwordx2 s[0:1], s[0:1], 0x0
	v_sin_f32_e32 v0, v0
	s_endpgm
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
"""

LLVM = """\
; ModuleID = 'LLVMDialectModule'
target datalayout = "e-i64:64"

@smem = external addrspace(3) global [0 x i8], align 16

define void @kernel(ptr %0) #0 {
  %2 = load float, ptr %0, align 4
  br label %loop

loop:
  ret void
}

declare float @llvm.sin.f32(float) #1

attributes #0 = { nounwind }
!0 = !{i32 4}
"""

COLD = """\
kernel:
        push         rbp
.L1:
        vmulps       ymm0,ymm0,ymm0
        jne          .L1
        jne          kernel.cold
        ret

kernel.cold:
        mov          edi,0x10
        call         __cxa_throw
"""

LOC = """\
	.text
kernel:
	.loc 1 4 2
	.loc 1 5 2
	.cfi_startproc
	vmulps %ymm0, %ymm1, %ymm2
	.loc 1 6 2
	vaddps %ymm0, %ymm1, %ymm2
	.loc 1 7 2
	.loc 1 8 2
	.cfi_offset 6, -16
	ret
	.cfi_endproc
"""


def shown(kind: str, text: str, linked: tuple[int, ...] = ()) -> list[str]:
    """Return the unfolded lines."""
    hidden = {n for fold in machine_folds(kind, text, linked) for n in range(fold.first, fold.last + 1)}
    return [line.strip() for n, line in enumerate(text.rstrip("\n").split("\n"), 1) if n not in hidden]


def test_instructions_and_their_labels_stand_open() -> None:
    assert [line[8:].strip(" ;") or line for line in shown("sass", SASS)] == [
        "LDC R1, c[0x0][0x28]",
        "@P0 BRA `(.L_x_0)",
        "EXIT",
        ".L_x_0:",
        "BRA `(.L_x_0)",
    ]
    assert [line.split()[0] for line in shown("amdgcn", AMDGCN)] == [
        "s_load_dwordx2",
        "v_sin_f32_e32",
        "s_endpgm",
    ]
    assert [line for line in shown("llir", LLVM) if line] == [
        "%2 = load float, ptr %0, align 4",
        "br label %loop",
        "loop:",
        "ret void",
    ]
    assert [line.split()[0] for line in shown("ptx", made.PTX)] == [
        "ld.param.b64",
        "mov.u32",
        "//",
        "@%p1",
        "//",
        "sin.approx.f32",
        "mul.f32",
        "cos.approx.f32",
        "$L__BB0_1:",
        "ret;",
        "}",  # a fold would take as much space
    ]
    assert [line.split()[0] for line in shown("assembly", LOC)] == [
        "vmulps",
        ".loc",
        "vaddps",
        "ret",
        ".cfi_endproc",
    ]


def test_a_fold_says_what_it_holds() -> None:
    assert [fold.label for fold in machine_folds("sass", SASS)] == [
        "directives, comments, labels",
        "padding, labels",
    ]
    assert machine_folds("ptx", made.PTX)[0].label == "comments, directives, signature, braces, registers"
    assert [fold.label for fold in machine_folds("llir", LLVM)] == [
        "comments, declarations, signature",
        "braces, declarations, attributes, metadata",
    ]
    assert [fold.label for fold in machine_folds("assembly", LOC)] == [
        "directives, labels, lines of the source",
        "lines of the source, directives",
    ]


def test_a_cold_part_is_folded_by_its_name() -> None:
    (fold,) = machine_folds("assembly", COLD)
    assert (fold.first, fold.last) == (9, 11)
    assert fold.label == "kernel.cold, which the compiler expects to run rarely"
    assert machine_folds("assembly", COLD, (10,)) == []
    assert (
        machine_folds("assembly", COLD[: COLD.index("kernel.cold:\n") + 12]) == []
    )  # its name alone: no space saved


def test_a_linked_line_stays() -> None:
    assert ".reg .b32 \t%r<20>;" in shown("ptx", made.PTX, (8,))


def test_what_is_not_known_is_shown_whole() -> None:
    assert (
        machine_folds("spirv", SASS) == machine_folds("ptx", "") == machine_folds("ptx", ".a\n.b\n.c") == []
    )


@given(
    st.sampled_from(["ttir", "llir", "ptx", "sass", "assembly"]),
    st.lists(st.sampled_from([*{*SASS.split("\n"), *LLVM.split("\n"), *COLD.split("\n"), *LOC.split("\n")}])),
    st.sets(st.integers(1, 20)),
)
def test_folds_are_in_order_and_hold_no_linked_line(kind: str, lines: list[str], linked: set[int]) -> None:
    folds = machine_folds(kind, "\n".join(lines), linked)
    ends = [n for fold in folds for n in (fold.first, fold.last)]
    assert ends == sorted(set(ends)) and all(1 <= n <= len(lines) for n in ends)
    assert not any(fold.first <= n <= fold.last for fold in folds for n in linked)
