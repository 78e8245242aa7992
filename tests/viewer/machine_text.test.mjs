import assert from "node:assert/strict";
import { test } from "node:test";

import { compact } from "../../compile_lens/views/live/web/code/machine_text.js";

test("an instruction is its address, its operation and what that works on", () => {
  assert.equal(
    compact(
      "        /*00e0*/               @P4 BRA `(.L_x_1) ;\n        /*00f0*/                   FADD R4,  |R6|, -RZ ;",
    ),
    "00e0 @P4 BRA `(.L_x_1)\n00f0 FADD R4, |R6|, -RZ",
  );
  assert.equal(compact(".L_x_1:\n\tmov.b64 \t%SPL, __depot0;"), ".L_x_1:\n  mov.b64 %SPL, __depot0;");
});

test("texts in quotes keep their blanks, and lines stay lines", () => {
  assert.equal(compact('\t.ascii\t"a  b\\"  c"\n\n'), '  .ascii "a  b\\"  c"\n\n');
});
