import assert from "node:assert/strict";
import { test } from "node:test";

import { Translator } from "../../compile_lens/views/live/web/translation/translator.js";

const { translate } = (() => {
  const translator = new Translator([
    ["{n} node[s]", "{} 个节点"],
    ["holds {n} node[s]: {=}", "含 {} 个节点：{}"],
    ["{n} of {n} call[s]", "{2} 次调用中的 {1} 次"],
    ["{c} {}", "{} {}"],
    ["forward {w}", "前向 {}"],
    ["groups", "组"],
    ["view", "视图"],
    ["no pass changed them", "没有 pass 改动它们"],
    ["it [is|was] read", "它被读取"],
    ["order: It is a sentence: with two signs", "顺序：一句话"],
    ["order", "顺序"],
    ["It is a sentence: with two signs", "一句话"],
  ]);
  return { translate: translator.translate.bind(translator) };
})();

test("an entry is a whole text, with amounts, words and compile ids in it", () => {
  assert.equal(translate("1 node"), "1 个节点");
  assert.equal(translate("1,204 nodes"), "1,204 个节点");
  assert.equal(translate("1 of 8 calls"), "8 次调用中的 1 次");
  assert.equal(translate("0/0 forward groups"), "0/0 前向 组");
  assert.equal(translate("it is read"), "它被读取");
  assert.equal(translate("it was read"), "它被读取");
});

test("blanks around a text and the sign at its end stay", () => {
  assert.equal(translate(" 2 nodes\n"), " 2 个节点\n");
  assert.equal(translate("No pass changed them."), "没有 pass 改动它们。");
});

test("lines, sentences and lists are translated part by part", () => {
  assert.equal(translate("2 nodes · f32[3]"), "2 个节点 · f32[3]");
  assert.equal(translate("2 nodes\nx = y"), "2 个节点\nx = y");
  assert.equal(translate("2 nodes; 1 node"), "2 个节点；1 个节点");
  assert.equal(translate("No pass changed them. It is read."), "没有 pass 改动它们。它被读取。");
  assert.equal(translate("order: It is a sentence: with two signs"), "顺序：一句话");
});

test("names stay, also those that are words", () => {
  assert.equal(translate("holds 2 nodes: sin, view"), "含 2 个节点：sin, view");
  assert.equal(translate("sin, view"), "sin, view");
});

test("what has no entry stays as it is", () => {
  for (const text of ["unknown sentence of torch: a, b; c", "x = torch.sin(y)", "", "  ", "~4,000 B"])
    assert.equal(translate(text), text);
});
