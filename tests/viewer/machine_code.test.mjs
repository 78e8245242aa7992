import assert from "node:assert/strict";
import { test } from "node:test";

import { formInks } from "../../compile_lens/views/live/web/code/machine_code.js";
import { Lines } from "../../compile_lens/views/live/web/listing/lines.js";

const INKS = { 0: "plain", 1: "comment", 2: "mark", 3: "operation", 4: "number", 7: "text" };

/** The parts of a line with an ink, as `ink text`. */
function inked(text, line = 0) {
  return new Lines({ text, inks: formInks(text) })
    .pieces(line)
    .filter(([, ink]) => ink)
    .map(([piece, ink]) => `${INKS[ink]} ${piece}`);
}

test("SASS: addresses are comments, then predicates, then the operation", () => {
  assert.deepEqual(inked("        /*0020*/              @!P0 LDG.E.64 R2, desc[UR4][R2.64+0x10] ;"), [
    "comment /*0020*/",
    "operation LDG.E.64",
    "number 0x10",
  ]);
  assert.deepEqual(inked("        /*0060*/                   FFMA R7, R6, 1.5e-3, R5 ;  /* 0x00 */"), [
    "comment /*0060*/",
    "operation FFMA",
    "number 1.5e-3",
    "comment ;  /* 0x00 */",
  ]);
  assert.deepEqual(inked(".L_x_0:"), ["mark .L_x_0:"]);
});

test("PTX: directives, labels, comments", () => {
  assert.deepEqual(inked("\t.reg .b32 \t%r<20>;"), ["mark .reg", "number 20"]);
  assert.deepEqual(inked("\t@%p1 ld.global.v2.b32 { %r2, %r3 }, [ %rd1 + 0 ];"), [
    "operation ld.global.v2.b32",
    "number 0",
  ]);
  assert.deepEqual(inked("$L__BB0_1:\n\tret; // done", 1), ["operation ret", "comment // done"]);
});

test("Triton's dialects and LLVM's: the operation behind the value that it gives", () => {
  assert.deepEqual(inked("    %tmp0_3 = tt.load %1 : tensor<256x!tt.ptr<f32>> loc(#loc3)"), ["operation tt.load"]);
  assert.deepEqual(inked('#loc3 = loc("k.py":8:11)'), ['text "k.py"', "number 8", "number 11"]);
  assert.deepEqual(inked("  %5 = fmul float %4, 2.0 ; twice"), ["operation fmul", "number 2.0", "comment ; twice"]);
});

test("assembly of a CPU", () => {
  assert.deepEqual(inked("\tvmovups\t(%rdi,%rax,4), %zmm0\t# load 1"), [
    "operation vmovups",
    "number 4",
    "comment # load 1",
  ]);
  assert.deepEqual(inked('\t.file\t"k.cpp"'), ["mark .file", 'text "k.cpp"']);
});

test("runs cover the text from its start and no more, whatever it holds", () => {
  for (const text of [
    "",
    "\n\n",
    "/*",
    '"',
    "a\u{1f600}b 1",
    "@ @\n; \n# x",
    "%".repeat(500),
    `${"a.".repeat(3000)}\n${" ".repeat(3000)}b`,
  ]) {
    const inks = formInks(text);
    const length = inks.reduce((sum, run) => sum + (run >> 4), 0);
    assert.ok(length <= text.length && inks.every((run) => run >> 4 > 0), JSON.stringify(text.slice(0, 20)));
  }
});
