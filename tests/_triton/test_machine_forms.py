"""Parsed compiler output keeps the relevant text and links each line to a line of the kernel."""

from __future__ import annotations

import pytest

from compile_lens._triton import llvm_ir, mlir, nvidia_text
from compile_lens._triton.listing import KERNEL_FILE, Listing, Numbers
from compile_lens.record.kernel import Form

TTIR = f"""\
#loc = loc("{KERNEL_FILE}":18:0)
#loc1 = loc(unknown)
#loc14 = loc("/somewhere/{KERNEL_FILE}":38:37)
#loc46 = loc("tmp6"(#loc14))
module {{
  tt.func public @k(%in: !tt.ptr<f32> {{tt.divisibility = 16 : i32}} loc("in"(#loc)), %n: i32 loc("n"(#loc))) {{
    %c = arith.constant 1000 : i32 loc(#loc1)
    %m = ttg.local_alloc %c {{note = "a \\" loc(#loc) in a text"}} : i32 loc(#loc20)
    %s = "tt.reduce"(%m) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: f32 loc(callsite(#loc1 at #loc46)), %b: f32 loc(unknown)):
      %x = arith.cmpf ogt, %a, %b : f32 loc(#loc63)
    }}) : (tensor<1xf32>) -> tensor<1xf32> loc(#loc59)
    scf.if %x {{
      tt.print "}}" : i32 loc(#loc5)
    }} else {{
    }} loc(#loc4)
    tt.return loc(fused[#loc4, #loc5])
  }} loc(#loc)
}} loc(#loc)
#loc3 = loc("/lib/triton_helpers.py":182:29)
#loc4 = loc("{KERNEL_FILE}":40:8)
#loc5 = loc("{KERNEL_FILE}":41:8)
#loc20 = loc("m"(#loc3))
#loc59 = loc(callsite(#loc3 at #loc46))
#loc63 = loc(callsite(#loc3 at #loc59))
"""


def linked(form: Form) -> dict[str, list[int]]:
    """Kernel lines, keyed by the text of each linked line."""
    lines = form.text.split("\n")
    found: dict[str, list[int]] = {}
    for line, source in form.links:
        found.setdefault(lines[line - 1].strip(), []).append(source)
    return found


def test_mlir_loses_its_locations_and_keeps_everything_else() -> None:
    form = mlir.read(TTIR, "ttir")
    assert "#loc" not in form.text.replace('" loc(#loc) in a text"', "")
    assert form.text.startswith("module {\n") and form.text.endswith("\n}\n")
    assert '%m = ttg.local_alloc %c {note = "a \\" loc(#loc) in a text"} : i32\n' in form.text
    assert "(%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {" in form.text


def test_mlir_is_linked_through_names_calls_and_fused_locations() -> None:
    found = linked(mlir.read(TTIR, "ttir"))
    assert found["%x = arith.cmpf ogt, %a, %b : f32"] == [38]
    assert found["tt.return"] == [40, 41]
    assert "%c = arith.constant 1000 : i32" not in found
    assert not any("local_alloc" in line for line in found), (
        "its location is in a library, called from nowhere"
    )


def test_a_line_that_opens_a_region_comes_from_where_its_operation_does() -> None:
    found = linked(mlir.read(TTIR, "ttir"))
    assert found['%s = "tt.reduce"(%m) <{axis = 1 : i32}> ({'] == [38]
    assert found["scf.if %x {"] == [40]
    assert found["} else {"] == [40]
    assert found['tt.print "}" : i32'] == [41]


LLIR = f"""\
define ptx_kernel void @k(ptr %0) !dbg !5 {{
  %1 = call i32 @a(), !dbg !13
  #dbg_value(i32 %1, !90, !DIExpression(), !13)
  %2 = fcmp ogt float 1.0, 2.0, !dbg !23
  %3 = add i32 %1, 1, !dbg !29
  br label %4, !dbg !30, !llvm.loop !40
}}

!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2, !3}}
!llvm.ident = !{{!4}}

!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1)
!1 = !DIFile(filename: "{KERNEL_FILE}", directory: "/home/someone")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!3 = !{{i32 4, !"nvvm-reflect-ftz", i32 1}}
!4 = !{{!"clang"}}
!5 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 18, unit: !0)
!13 = !DILocation(line: 24, column: 28, scope: !5)
!23 = !DILocation(line: 169, column: 15, scope: !24, inlinedAt: !26)
!24 = distinct !DILexicalBlockFile(scope: !5, file: !25, discriminator: 0)
!25 = !DIFile(filename: "triton_helpers.py", directory: "/home/someone/torch")
!26 = !DILocation(line: 9, column: 4, scope: !28, inlinedAt: !27)
!27 = !DILocation(line: 38, column: 37, scope: !28)
!28 = distinct !DILexicalBlockFile(scope: !5, file: !1, discriminator: 0)
!29 = !DILocation(line: 0, scope: !5)
!30 = !DILocation(line: 171, column: 2, scope: !24)
!40 = distinct !{{!40, !13, !13, !41}}
!41 = !{{!"llvm.loop.mustprogress"}}
"""


def test_llvm_ir_keeps_no_debug_information_and_all_other_metadata() -> None:
    form = llvm_ir.read(LLIR)
    assert form.text.endswith(
        '!llvm.module.flags = !{!3}\n!llvm.ident = !{!4}\n\n!3 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'
        '!4 = !{!"clang"}\n!40 = distinct !{!40, !41}\n!41 = !{!"llvm.loop.mustprogress"}\n'
    )
    assert "br label %4, !llvm.loop !40" in form.text
    assert not any(word in form.text for word in ("dbg", "!DI", "someone", KERNEL_FILE))


def test_llvm_ir_is_linked_through_what_is_inlined() -> None:
    found = linked(llvm_ir.read(LLIR))
    assert found == {
        "define ptx_kernel void @k(ptr %0) {": [18],
        "%1 = call i32 @a()": [24],
        "%2 = fcmp ogt float 1.0, 2.0": [
            9,
            38,
        ],  # a function of the kernel's own text, and its call
    }


def test_files_of_assertions_lose_their_folder() -> None:
    tail = ', align 1\n@other = internal constant [9 x i8] c"/home/a/\\00"\n'
    for path, size in (("/home/a/torch/h\\22elpers.py", 28), ("h\\22elpers.py", 14)):
        text = f'@assertFile_0 = internal constant [{size} x i8] c"{path}\\00"{tail}'
        short = '@assertFile_0 = internal constant [12 x i8] c"h\\22elpers.py\\00"'
        assert llvm_ir.without_folders(text) == short + tail


def test_numbers_stand_for_the_lines_of_a_location() -> None:
    text, numbers = llvm_ir.numbered(LLIR)
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith("!") and " = " in line)
    for name, sources, scope in (("!13", (24,), 5), ("!23", (9, 38), 28), ("!29", (), 5), ("!30", (), 24)):
        number = numbers.of(sources)
        assert lines[name] == f"!DILocation(line: {number}, column: 0, scope: !{scope})"
        assert numbers.lines(number) == sources
    assert lines["!40"] == "distinct !{!40, !13, !13, !41}"
    assert numbers.lines(numbers.of((9, 38)) + 3) == (9, 38), "compilers count on in inline assembly"
    assert numbers.lines(24) == numbers.lines(0) == ()


def ptx_text(numbers: Numbers) -> str:
    return f"""\
//
// Generated by LLVM NVPTX Back-End
//
.version 8.7
.target sm_90a
.visible .entry k(
	.param .u64 k_param_0
)
.reqntid 128
{{
	.reg .b32 	%r<9>;
	.loc	1 18 0                          // {KERNEL_FILE}:18:0
$L__func_begin0:
	.loc	1 18 0                          // {KERNEL_FILE}:18:0

// %bb.0:
	ld.param.b64 	%rd4, [k_param_0];
$L__tmp0:
	.loc	2 {numbers.of((38, 9))} 0 // {KERNEL_FILE}:9:9
	// begin inline asm
	.loc	2 {numbers.of((38, 9)) + 1} 0
	@%p1 ld.global.b32 {{ %r1 }}, [ %rd1 + 0 ];
	// end inline asm
	@!%p1 bra $L__BB0_2;
	.loc	1 0 0
	mov.b32 	%r2, $L__tmp9;
$L__tmp9:
$L__BB0_2:
	.loc	3 77 0
	ret;
$L__func_end0:
                                        // -- End function
}}
	.file	1 "/home/someone/{KERNEL_FILE}"
	.file	2 "/home/someone/triton_helpers.py"
	.section	.debug_abbrev
	{{
.b8 1                                   // Abbreviation Code
	}}
	.section	.debug_info
	{{
.b32 $L__tmp0
	}}
	.section	.debug_macinfo	{{	}}
"""


def test_ptx_keeps_what_an_assembler_needs() -> None:
    text = ptx_text(Numbers())
    form, _ = nvidia_text.read_ptx(text, Numbers())
    assert nvidia_text.arch(text) == nvidia_text.arch(form.text) == "sm_90a"
    assert ".loc" not in form.text and ".file" not in form.text and ".debug" not in form.text
    assert "$L__tmp0" not in form.text and "$L__func" not in form.text
    assert "$L__tmp9:\n$L__BB0_2:\n" in form.text, "a label that the code uses stays"
    assert form.text.startswith("//\n// Generated") and form.text.rstrip().endswith("}")


def test_ptx_is_linked_by_its_directives() -> None:
    numbers = Numbers()
    form, lines = nvidia_text.read_ptx(ptx_text(numbers), numbers)
    assert linked(form) == {
        "ld.param.b64 	%rd4, [k_param_0];": [18],
        "@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];": [9, 38],
        "@!%p1 bra $L__BB0_2;": [9, 38],
    }
    original = ptx_text(numbers).split("\n")
    assert {original[n - 1].strip().split()[0]: s for n, s in lines.items()} == {
        "ld.param.b64": (18,), "@%p1": (38, 9), "@!%p1": (38, 9),
    }  # fmt: skip


SASS = """\
	.headerflags	@"EF_CUDA_SM90"

//--------------------- .text.k --------------------------
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File ".nv_debug_ptx_txt", line 22
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File ".nv_debug_ptx_txt", line 30
        /*0010*/               @P0 LDG.E R4, desc[UR4][R10.64] ;
.L_x_1:
        /*0020*/                   EXIT ;
	//## File "/home/someone/other.cu", line 30
        /*0030*/                   NOP ;
.L_x_0:
        /*0040*/                   BRA `(.L_x_0);
        /*0050*/                   NOP ;
        /*0060*/                   NOP ;
"""


def test_sass_is_linked_by_way_of_ptx_and_counted() -> None:
    form, count = nvidia_text.read_sass(SASS, {30: (24, 25), 99: (1,)})
    assert count == 5, "padding behind the last instruction does no work"
    assert "//##" not in form.text and "someone" not in form.text
    assert form.text == "".join(x for x in SASS.splitlines(keepends=True) if "//##" not in x)
    assert linked(form) == {
        "/*0010*/               @P0 LDG.E R4, desc[UR4][R10.64] ;": [24, 25],
        "/*0020*/                   EXIT ;": [24, 25],
    }


@pytest.mark.parametrize("blank", [[], ["", "  "]])
def test_a_page_is_counted_from_its_first_line(blank: list[str]) -> None:
    page = Listing()
    for line in blank:
        page.add(line)
    page.add("a", (7,))
    page.add("b", (8, 7))
    page.link(len(blank) + 1, (9, 7))
    page.add("")
    assert page.form("ptx") == Form("ptx", "a\nb\n", ((1, 7), (1, 9), (2, 7), (2, 8)))
