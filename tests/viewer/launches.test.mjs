import assert from "node:assert/strict";
import { test } from "node:test";

import { partName } from "../../compile_lens/views/live/web/code/launches.js";

test("a name in a bar is whole where it has room, else true: a number is never cut", () => {
  assert.equal(partName("pow_1", 5), "pow_1");
  assert.equal(partName("pow_12", 5), "pow12");
  assert.equal(partName("model.py:107", 5), "107");
  assert.equal(partName("layer_norm", 5), "laye…");
  assert.equal(partName("sigmoid_12", 5), "si…12");
  assert.equal(partName("log_softmax", 10), "logsoftmax");
});
