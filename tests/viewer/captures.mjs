// Captures built by hand or at random, in the format of the page.

import { Chain } from "../../compile_lens/views/live/web/data/chain.js";
import { Model } from "../../compile_lens/views/live/web/data/model.js";

/** Pseudorandom numbers that are the same each time. */
export function dice(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

/** The reason why nothing is above a node that a pass created. */
export const UNSAID = "made by a pass that did not say what for";

/** Words for nodes that do no work, as in Python. */
const NO_WORK = {
  input: "an input: it computes nothing",
  output: "the result of the graph: it computes nothing",
  constant: "a constant: it computes nothing",
  symbol: "a size: the code around the kernels computes it",
  view: "a view: it moves no data",
  nop: "a nop: it runs nothing",
};

/**
 * A capture. Each stage is `[compilation, key, items]`, Python's first; an item is
 * `[name, kind, names of what it came from, reason why nothing]`, a name being `"key name"`, or `"id key name"`
 * in another compilation. `derivatives` maps a node that autograd created to the node of which it is the derivative. `missing` contains `[compilation, key, reason, key before it]`.
 */
export function capture(stages, missing = [], derivatives = {}) {
  const numbers = new Map();
  const index = {
    stages: [],
    names: [],
    offsets: [0],
    above: [],
    within: [],
    noOrigin: [],
    derivatives: [],
    lineAddresses: [],
    lineTexts: [],
    kinds: [],
    kindOf: [],
    units: [],
    unitSets: [[]],
    unitsOf: [],
  };
  const lanes = [];
  for (const [compilation, key, items] of stages) {
    const number = index.stages.length;
    const title = key === "python" ? "Python" : key.replace(".", " ").replace("_", "-");
    const kernels = items.filter(([, kind]) => kind === "kernel").length;
    index.stages.push({
      compilation,
      key,
      title,
      start: index.names.length,
      count: items.length,
      kernels,
      uncounted: [],
      firsts: Array.from({ length: kernels }, () => 0),
      part: `g${number}`,
    });
    if (compilation >= 0) lane(lanes, compilation, key).push(step(key, number, ""));
    for (const [name, kind, above = [], reason = ""] of items) {
      const item = index.names.length;
      numbers.set(`${key} ${name}`, numbers.has(`${key} ${name}`) ? numbers.get(`${key} ${name}`) : item);
      numbers.set(`${compilation} ${key} ${name}`, item);
      index.names.push(name);
      if (key === "python") index.lineTexts.push(`text of ${name}`);
      if (key === "python") index.lineAddresses.push(name.replace(/^.*\//, ""));
      if (!index.kinds.includes(kind)) index.kinds.push(kind);
      index.kindOf.push(index.kinds.indexOf(kind));
      for (const other of above) index.above.push(numbers.get(`${compilation} ${other}`) ?? numbers.get(other));
      index.offsets.push(index.above.length);
      if (reason) index.noOrigin.push([item, reason]);
    }
  }
  for (const [address, words] of Object.entries(derivatives)) index.derivatives.push([numbers.get(address), words]);
  for (const [compilation, key, reason, before] of missing) {
    const steps = lane(lanes, compilation, key);
    const at = steps.findIndex((known) => known.key === before);
    steps.splice(at + 1, 0, step(key, -1, reason));
  }
  const words = { noWork: NO_WORK, unsaidOrigin: UNSAID };
  const core = { words, sources: [], compilations: lanes.map((found, i) => ({ id: `0/${i}`, lanes: found })) };
  const model = new Model(core, index, {
    read: new Map(),
    get: (name) => Promise.reject(new Error(`no part ${name}`)),
  });
  const item = (address) => numbers.get(address);
  return { model, chain: new Chain(index), index, item, items: (...addresses) => addresses.map(item) };
}

const phases = ["forward", "backward", "inference"];

function lane(lanes, compilation, key) {
  lanes[compilation] ??= [];
  const head = key.split(".")[0];
  const phase = phases.includes(head) ? head : "";
  let found = lanes[compilation].find((known) => known.phase === phase);
  if (!found) {
    found = { phase, steps: [] };
    lanes[compilation].push(found);
    lanes[compilation].sort((one, other) => phases.indexOf(one.phase) - phases.indexOf(other.phase));
  }
  return found.steps;
}

function step(key, stage, missing) {
  const title = key.split(".").pop().replace("_", "-");
  return {
    key,
    title,
    meaning: "",
    facts: [],
    time: "",
    missing,
    kind: missing ? "missing" : "graph",
    stage,
    unchanged: "",
    same: "",
  };
}

/** A capture with random links: stages of one or two compilations, each item from some items before it. */
export function diced(seed) {
  const roll = dice(seed);
  const keys = [
    "dynamo",
    "joint",
    "forward",
    "forward.post_grad",
    "forward.loops",
    "forward.groups",
    "forward.code",
    "backward",
    "backward.loops",
    "backward.code",
  ];
  const stages = [[-1, "python", Array.from({ length: roll(5) }, (_, i) => [`m.py:${i + 1}`, "python"])]];
  const compilations = 1 + roll(2);
  const missing = [];
  for (let compilation = 0; compilation < compilations; compilation++) {
    const before = stages[0][2].map(([name]) => ({ address: `python ${name}`, phase: "" }));
    let last = "";
    for (const key of keys) {
      if (roll(8) === 0) {
        missing.push([compilation, key, `no ${key} here`, last]);
        continue;
      }
      const phase = phases.includes(key.split(".")[0]) ? key.split(".")[0] : "";
      const open = before.filter((other) => other.phase === "" || other.phase === phase);
      const items = [];
      for (let i = 0; i < roll(7); i++) {
        const above = [
          ...new Set(
            Array.from(
              { length: open.length ? roll(4) : 0 },
              () => open[Math.max(0, open.length - 1 - roll(9))].address,
            ),
          ),
        ];
        const kind = key.endsWith(".code") ? "kernel" : ["pointwise", "view", "input", "nop", "output"][roll(5)];
        items.push([`n${i}`, kind, above, above.length || roll(2) ? "" : "no origin by dice"]);
      }
      stages.push([compilation, key, items]);
      before.push(...items.map(([name]) => ({ address: `${key} ${name}`, phase })));
      last = key;
    }
  }
  return { ...capture(stages, missing), roll };
}
