import assert from "node:assert/strict";
import { test } from "node:test";

import { Reach, labelOf, shortPlace } from "../../compile_lens/views/live/web/data/reasons.js";
import { UNSAID, capture, diced } from "./captures.mjs";

const MADE = capture(
  [
    [
      -1,
      "python",
      [
        ["/home/me/m.py:3", "python"],
        ["/home/me/m.py:9", "python"],
      ],
    ],
    [
      0,
      "dynamo",
      [
        ["x", "input"],
        ["sin", "pointwise", ["python /home/me/m.py:3"]],
        ["expand", "view", ["python /home/me/m.py:3"]],
        ["relu", "pointwise", ["python /home/me/m.py:3"]],
      ],
    ],
    [
      0,
      "joint",
      [
        ["x", "input", ["dynamo x"]],
        ["sin", "pointwise", ["dynamo sin"]],
        ["expand", "view", ["dynamo expand"]],
        ["mul", "pointwise", ["dynamo sin"]],
        ["seed", "random", [], "made by autograd alone"],
      ],
    ],
    [
      0,
      "forward",
      [
        ["x", "input", ["joint x"]],
        ["sin", "pointwise", ["joint sin"]],
        ["expand", "view", ["joint expand"]],
        ["seed", "random", ["joint seed"]],
        ["out", "output"],
      ],
    ],
    [
      0,
      "forward.post_grad",
      [
        ["x", "input", ["forward x"]],
        ["sin", "pointwise", ["forward sin"]],
        ["expand", "view", ["forward expand"]],
        ["out", "output", ["forward out"]],
      ],
    ],
    [
      0,
      "forward.loops",
      [
        ["x", "input", ["forward.post_grad x"]],
        ["op0", "pointwise", ["forward.post_grad sin"]],
        ["op1", "nop", ["forward.post_grad sin"]],
      ],
    ],
    [
      0,
      "forward.groups",
      [
        ["x", "input", ["forward.loops x"]],
        ["op0", "pointwise", ["forward.loops op0"]],
        ["op1", "nop", ["forward.loops op1"]],
      ],
    ],
    [
      0,
      "forward.code",
      [
        ["cpp_0", "kernel", ["forward.groups op0"]],
        ["extern", "kernel", ["forward.post_grad sin"]],
      ],
    ],
    [
      0,
      "backward",
      [
        ["mul", "pointwise", ["joint mul"]],
        ["sin", "pointwise", ["joint sin"]],
      ],
    ],
    [0, "backward.loops", [["op0", "pointwise", [], "Inductor recorded no origin for it"]]],
    [1, "dynamo", [["neg", "pointwise", ["python /home/me/m.py:9"]]]],
    [1, "joint", []],
  ],
  [
    [0, "backward.post_grad", "cache hit", "backward"],
    [1, "forward", "backend is eager", ""],
  ],
);

function whyNone(model, chain, items, stage) {
  return new Reach(model, chain, items).why(stage);
}

function whyNoneAt(model, chain, items, step) {
  return new Reach(model, chain, items).whyAt(step);
}

function why(addresses, compilation, key) {
  return whyNone(MADE.model, MADE.chain, MADE.items(...[addresses].flat()), MADE.model.stage(compilation, key));
}

test("a stage that shows the chain needs no reason", () => {
  assert.equal(why("joint sin", 0, "dynamo"), "");
  assert.equal(why("joint sin", 0, "joint"), "");
  assert.equal(why("joint sin", 0, "forward.code"), "");
  assert.equal(why("joint sin", -1, "python"), "");
});

test("a step that was not seen says the record's reason", () => {
  const [lane] = MADE.model.core.compilations[0].lanes.filter((l) => l.phase === "backward");
  const step = lane.steps.find((s) => s.key === "backward.post_grad");
  assert.equal(whyNoneAt(MADE.model, MADE.chain, MADE.items("joint sin"), step), "the stage was not seen: cache hit");
  assert.equal(whyNoneAt(MADE.model, MADE.chain, MADE.items("joint mul"), lane.steps[0]), "");
  assert.equal(
    whyNoneAt(MADE.model, MADE.chain, MADE.items("dynamo relu"), lane.steps[0]),
    why("dynamo relu", 0, "backward"),
  );
});

test("a stage that was not seen on the way is named", () => {
  assert.equal(
    why("backward mul", 0, "backward.loops"),
    "the stage between, backward post-grad, was not seen: cache hit",
  );
  assert.match(
    why("dynamo sin", 0, "backward.loops"),
    /^it was last seen in backward as `mul`, `sin`; the stage between, backward post-grad, was not seen: cache hit$/,
  );
});

test("upwards: where the chain ends, in the record's words", () => {
  assert.equal(why("joint seed", 0, "dynamo"), "made by autograd alone");
  assert.equal(why("forward seed", -1, "python"), "the chain upward ends at `seed` in joint: made by autograd alone");
  assert.equal(why("dynamo x", -1, "python"), "an input: it computes nothing");
  assert.equal(
    why("forward.groups x", -1, "python"),
    "the chain upward ends at `x` in dynamo: an input: it computes nothing",
  );
  assert.equal(why("backward.loops op0", 0, "backward"), "Inductor recorded no origin for it");
  assert.equal(why("forward out", 0, "joint"), "the record names no origin for it");
  const bare = capture([
    [-1, "python", []],
    [0, "dynamo", [["y", "pointwise"]]],
  ]);
  assert.equal(whyNone(bare.model, bare.chain, [0], 0), "the record names no origin for it");
});

test("upwards and downwards: links that lead past a stage", () => {
  assert.equal(
    why("forward.code extern", 0, "forward.loops"),
    "the record leads from `extern` in forward code past this stage to `sin` in forward post-grad",
  );
  const past = capture([
    [-1, "python", []],
    [0, "dynamo", [["a", "pointwise"]]],
    [0, "pre_grad", [["b", "pointwise", ["dynamo a"]]]],
    [0, "joint", [["c", "pointwise", ["dynamo a"]]]],
  ]);
  const said = "the record leads from `c` in joint past this stage to `a` in dynamo";
  assert.equal(whyNone(past.model, past.chain, past.items("joint c"), 2), said);
  const only = capture([
    [-1, "python", []],
    [0, "dynamo", [["a", "pointwise"]]],
    [0, "pre_grad", [["b", "pointwise"]]],
    [0, "joint", [["c", "pointwise", ["dynamo a"]]]],
  ]);
  assert.equal(whyNone(only.model, only.chain, only.items("dynamo a"), 2), said);
});

test("downwards: where it was last seen, and what it is", () => {
  assert.equal(
    why("forward.post_grad expand", 0, "forward.loops"),
    "it is a view: it moves no data, so no loop was made of it",
  );
  assert.equal(
    why("dynamo expand", 0, "forward.code"),
    "it was last seen in forward post-grad as `expand`, a view: it moves no data, so no loop was made of it",
  );
  assert.equal(
    why("joint x", 0, "forward.code"),
    "it was last seen in forward groups as `x`, an input: it computes nothing",
  );
  assert.equal(
    why("forward.loops op1", 0, "forward.code"),
    "it was last seen in forward groups as `op1`, a nop: it runs nothing",
  );
  assert.equal(
    why("forward out", 0, "forward.loops"),
    "it was last seen in forward post-grad as `out`, the result of the graph: it computes nothing",
  );
  assert.equal(why("dynamo relu", 0, "forward.loops"), "the record names nothing in joint that came from it");
  assert.equal(
    why("forward seed", 0, "forward.code"),
    "the record names nothing in forward post-grad that came from it",
  );
  assert.equal(why("joint x", 0, "backward"), "it became part of the forward only; this stage belongs to the backward");
});

test("a kind is a reason only before stages that hold none of it", () => {
  // An input is in every graph: being one does not explain why the joint graph lacks it.
  const lost = capture([
    [-1, "python", []],
    [
      0,
      "dynamo",
      [
        ["x", "input"],
        ["v", "view"],
      ],
    ],
    [0, "joint", [["y", "pointwise"]]],
  ]);
  assert.equal(
    whyNone(lost.model, lost.chain, lost.items("dynamo x"), 2),
    "the record names nothing in joint that came from it",
  );
  assert.equal(
    whyNone(lost.model, lost.chain, lost.items("dynamo v"), 2),
    "the record names nothing in joint that came from it",
  );
});

test("the other phase, and what has a part in both", () => {
  assert.equal(
    why("forward sin", 0, "backward"),
    "it is part of the forward; this stage belongs to the backward (`sin` in joint has a part in both)",
  );
  assert.equal(
    why("forward expand", 0, "backward"),
    "it is part of the forward; this stage belongs to the backward",
    "a Python line in common says nothing",
  );
  assert.equal(
    why("backward mul", 0, "forward.loops"),
    "it is part of the backward; this stage belongs to the forward (`sin` in dynamo has a part in both)",
  );
  assert.equal(
    why("joint mul", 0, "forward"),
    "it became part of the backward only; this stage belongs to the forward",
  );
});

test("another compilation", () => {
  assert.equal(why("python /home/me/m.py:9", 0, "dynamo"), "what it became was compiled in 0/1, not in 0/0");
  assert.equal(why("joint sin", 1, "dynamo"), "it is part of compilation 0/0; this stage belongs to 0/1");
  assert.equal(why("joint sin", 1, "joint"), "the stage is empty");
});

test("several items are spoken of as several", () => {
  assert.match(why(["dynamo sin", "dynamo relu"], 1, "dynamo"), /^they are part of/);
  assert.equal(
    why(["forward expand", "forward x"], 0, "backward"),
    "they are part of the forward; this stage belongs to the backward",
  );
  assert.equal(why(["forward.post_grad expand", "forward.post_grad sin"], 0, "forward.loops"), "");
});

test("a hostile name is quoted in short", () => {
  const long = capture([
    [-1, "python", []],
    [
      0,
      "dynamo",
      [
        ["a".repeat(10000), "pointwise"],
        ["b", "other"],
      ],
    ],
    [0, "joint", [["y", "pointwise", ["dynamo b"]]]],
    [0, "forward", []],
    [0, "forward.loops", [["z", "x"]]],
  ]);
  assert.ok(whyNone(long.model, long.chain, [0], 4).length < 200);
});

test("on any record: a reason exactly where nothing is lit, and items are sorted into their stages", () => {
  let reasons = 0;
  for (let seed = 1; seed <= 300; seed++) {
    const { model, chain, index, roll } = diced(seed);
    const count = index.names.length;
    if (count === 0) continue;
    const items = [...new Set(Array.from({ length: 1 + roll(2) }, () => roll(count)))];
    const reach = new Reach(model, chain, items);
    const lit = chain.through(items);
    assert.deepEqual(
      [...reach.stages.values()].flat(),
      [...lit].sort((a, b) => a - b),
    );
    index.stages.forEach(({ start, count: held }, stage) => {
      const shown = [...lit].filter((item) => item >= start && item < start + held);
      assert.deepEqual(
        reach.stages.get(stage) ?? [],
        shown.sort((a, b) => a - b),
      );
      const said = reach.why(stage);
      assert.equal(said === "", shown.length > 0, `seed ${seed}, stage ${stage}: ${said}`);
      assert.doesNotMatch(said, /undefined|NaN|Infinity|``/, `seed ${seed}, stage ${stage}`);
      reasons += said ? 1 : 0;
    });
    for (const { lanes } of model.core.compilations) {
      for (const step of lanes.flatMap((l) => l.steps))
        if (step.stage < 0) assert.equal(reach.whyAt(step), `the stage was not seen: no ${step.key} here`);
    }
  }
  assert.ok(reasons > 500);
});

test("a Python line goes by the name of its file, a node of a subgraph by its whole path", () => {
  assert.equal(shortPlace("/home/me/m.py:3"), "m.py:3");
  assert.equal(shortPlace("C:\\me\\m.py:3"), "m.py:3");
  assert.equal(shortPlace("<string>:3"), "<string>:3");
  assert.equal(labelOf(MADE.model, 0), "m.py:3");
  const inner = capture([
    [-1, "python", []],
    [0, "dynamo", [["true_graph_0/sin", "pointwise"]]],
  ]);
  assert.equal(labelOf(inner.model, 0), "true_graph_0/sin");
});

test("a line of a kernel has the number that it has in the module", () => {
  const { model } = capture([
    [-1, "python", []],
    [
      0,
      "forward.code",
      [
        ["cpp_0", "kernel"],
        ["mm", "kernel"],
        ["cpp_0:4", "line"],
      ],
    ],
  ]);
  model.index.stages[1].firsts = [42, 0];
  assert.equal(labelOf(model, 2), "cpp_0:45");
});

test("what a pass made without a word may be it, and a stage that there is not keeps nothing from the next", () => {
  const { model, chain, item } = capture(
    [
      [-1, "python", [["/m.py:3", "python"]]],
      [0, "dynamo", [["mul", "pointwise", ["python /m.py:3"]]]],
      [
        0,
        "inference",
        [
          ["convert", "pointwise", [], UNSAID],
          ["mul_tensor", "pointwise", [], UNSAID],
          ["seed", "random", [], "an input of its own"],
        ],
      ],
    ],
    [[0, "joint", "no gradient is needed", "dynamo"]],
  );
  const steps = model.core.compilations[0].lanes.flatMap((lane) => lane.steps);
  steps.find(({ key }) => key === "joint").kind = "none";
  assert.equal(
    whyNone(model, chain, [item("dynamo mul")], model.stage(0, "inference")),
    `the record names nothing in inference that came from it; \`convert\`, \`mul_tensor\` may have: ${UNSAID}`,
  );
});
