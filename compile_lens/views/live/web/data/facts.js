// The facts of an item in the record: plain rows first, then the elements that show them.

import { grouped, h, plural, shortened } from "../dom.js";
import { pairOf, pairWords, pairLines, notFusedPairs } from "./not_fused.js";
import { PYTHON } from "./model.js";
import { labelOf, shortPlace } from "./reasons.js";

/** @import { CodeData, GraphData, KernelData, TensorFacts } from "../types.d.ts" */
/** @import { Model } from "./model.js" */

/**
 * @typedef {object} Facts
 * @property {string} title
 * @property {string} where the stage's title
 * @property {string} kind
 * @property {[string, string][]} rows label and value; a value may have several lines
 * @property {{ label: string, text: string }[]} texts longer ones, such as the body of a loop
 */

/** So many tensors, frames or names are listed; then how many more. */
const FACTS_LISTED = 12;
/** So many characters of a value or of a longer text are shown. */
const FACTS_LONGEST = 4000;

/**
 * `8,000 B`; from 10,000 on with a unit that reads well: `46.1 MB (46,080,000 B)`.
 * @param {number} count
 */
export function bytesInFull(count) {
  const exact = `${grouped(count)} B`;
  return count < 10_000 ? exact : `${bytesInShort(count)} (${exact})`;
}

/**
 * `8,000 B`, `46.1 MB`.
 * @param {number} count
 */
export function bytesInShort(count) {
  if (Math.abs(count) < 10_000) return `${grouped(count)} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let scaled = count / 1000;
  let unit = 0;
  while (Math.abs(scaled) >= 999.5 && unit < units.length - 1) {
    scaled /= 1000;
    unit += 1;
  }
  return `${Math.abs(scaled) < 999.5 ? String(Number(scaled.toPrecision(3))) : grouped(Math.round(scaled))} ${units[unit]}`;
}

/**
 * `float32 [32, 32]`.
 * @param {TensorFacts} tensor
 */
export function tensorInShort(tensor) {
  return [tensor.dtype, tensor.shape].filter(Boolean).join(" ");
}

/**
 * The facts of one item, or the sums over several (those of a collapsed box).
 * @param {Model} model
 * @param {number[]} items at least one, of one stage
 * @param {string} name what the page calls them
 * @returns {Promise<Facts>}
 */
export async function factsOf(model, items, name) {
  const facts = await factsWithout(model, items, name);
  const address = model.address(items);
  if (address) facts.rows.push(["in Python", address]);
  return facts;
}

/** @param {Model} model @param {number[]} items @param {string} name @returns {Promise<Facts>} */
async function factsWithout(model, items, name) {
  const stage = model.stageOf(items[0]);
  if (items.length > 1) return manyFacts(model, stage, items, name);
  if (stage === PYTHON) return lineFacts(model, items[0]);
  if (model.isCode(stage)) return codeFacts(model, stage, items[0], await model.code(stage));
  return nodeFacts(model, stage, items[0], await model.graph(stage));
}

/** @param {Model} model @param {number} item @returns {Facts} */
function lineFacts(model, item) {
  const place = model.name(item);
  const [file, number] = splitPlace(place);
  const within = model.core.sources.filter(
    (s) => s.file === file && s.first <= number && number < s.first + s.code.text.split("\n").length,
  );
  /** @type {[string, string][]} */
  const rows = [
    ["line", `${number} of ${file}`],
    ["text", model.index.lineTexts[item - model.index.stages[PYTHON].start] ?? ""],
    ["function", within.map((s) => s.name).join(", ")],
  ];
  return {
    title: shortPlace(place),
    where: model.stageTitle(PYTHON),
    kind: "Python line",
    rows: rows.filter(([, value]) => value),
    texts: [],
  };
}

/** @param {Model} model @param {number} stage @param {number} item @param {GraphData} graph @returns {Facts} */
function nodeFacts(model, stage, item, graph) {
  const local = item - model.index.stages[stage].start;
  /** @param {number} number */
  const word = (number) => graph.strings[number] ?? "";
  /** @type {[string, string][]} */
  const rows = [];
  const op = word(graph.op[local]);
  rows.push([
    "operation",
    [op.replace(/^(call_function|loop|group)$/, ""), word(graph.target[local])].filter(Boolean).join(" "),
  ]);
  const tensors = (graph.outputs[local] ?? []).map((number) => graph.tensors[number]);
  rows.push(...(tensors.length === 1 ? tensorRows(tensors[0]) : manyTensors(tensors)));
  const module = word(graph.module[local]);
  const type = word(graph.moduleType[local]);
  rows.push(["module", module && type ? `${module} (${type})` : module || type]);
  rows.push(["source", listedLines([...(graph.frames[local] ?? [])].reverse().map((number) => word(number)))]);
  if (graph.saved.includes(local)) rows.push(["saved", "for backward"]);
  rows.push(["traffic", trafficWords(graph.traffic.find(([node]) => node === local))]);
  const members = graph.members.find(([node]) => node === local)?.[1] ?? [];
  rows.push(["members", members.length ? `${plural(members.length, "loop")}: ${namesInShort(model, members)}` : ""]);
  const { start } = model.index.stages[stage];
  rows.push([
    "not fused with",
    listedLines(pairWords(notFusedPairs(graph), local, (other) => model.name(start + other))),
  ]);
  rows.push(["no origin", model.noOrigin.get(item) ?? ""]);
  const detail = graph.detail.find(([node]) => node === local)?.[1] ?? "";
  const label = model.index.stages[stage].key.endsWith(".loops") ? "loop body" : "in full";
  return {
    title: model.name(item),
    where: model.stageTitle(stage),
    kind: model.kind(item),
    rows: rows.filter(([, value]) => value),
    texts: detail ? [{ label, text: detail }] : [],
  };
}

/** @param {TensorFacts} tensor @returns {[string, string][]} */
function tensorRows(tensor) {
  return [
    ["dtype", tensor.dtype],
    ["shape", tensor.shape],
    ["stride", tensor.stride],
    ["device", tensor.device],
    ["bytes", tensor.bytes === null ? "not known: a size depends on data" : bytesInFull(tensor.bytes)],
    ["gradient", tensor.grad ? "required" : ""],
  ];
}

/** @param {TensorFacts[]} tensors @returns {[string, string][]} */
function manyTensors(tensors) {
  /** @type {[string, string][]} */
  const rows = tensors.slice(0, FACTS_LISTED).map((t, i) => {
    const stride = t.stride ? `stride ${t.stride}` : "";
    const bytes = t.bytes === null ? "bytes not known" : bytesInShort(t.bytes);
    return [
      `output ${i}`,
      [tensorInShort(t), stride, t.device, bytes, t.grad ? "requires grad" : ""].filter(Boolean).join(", "),
    ];
  });
  if (tensors.length > FACTS_LISTED) rows.push(["outputs", `and ${tensors.length - FACTS_LISTED} more`]);
  return rows;
}

/** @param {[number, number, number] | undefined} traffic */
function trafficWords(traffic) {
  if (!traffic) return "";
  const [, reads, writes] = traffic;
  /** @param {number} count */
  const words = (count) => (count < 0 ? "an unknown number of bytes" : bytesInShort(count));
  return `reads ${words(reads)}, writes ${words(writes)} (modelled)`;
}

/** @param {Model} model @param {number} stage @param {number} item @param {CodeData} code @returns {Facts} */
function codeFacts(model, stage, item, code) {
  const where = model.stageTitle(stage);
  // Calls of one library function share a name, and so an item.
  const kernels = code.kernels.filter((k) => k.item === item);
  if (kernels.length === 0) return kernelLineFacts(model, where, item, code);
  const [kernel] = kernels;
  /** @param {(k: KernelData) => string[]} pick */
  const all = (pick) => listedInline([...new Set(kernels.flatMap(pick))]);
  const numbers = kernels
    .flatMap((k) => k.launchLines)
    .slice(0, FACTS_LISTED)
    .join(", ");
  // What a call launches per iteration or branch is no number to add to.
  const counts = kernels.map((k) => k.launches).filter((n) => n !== null);
  const launches =
    counts.length === kernels.length
      ? plural(
          counts.reduce((sum, n) => sum + n, 0),
          "launch",
          "launches",
        )
      : kernels
          .map((k) => k.launched)
          .slice(0, FACTS_LISTED)
          .join(", ");
  const traffic = kernels
    .map((k) => k.traffic)
    .filter(Boolean)
    .slice(0, FACTS_LISTED)
    .join(", ");
  /** @type {[string, string][]} */
  const rows = [
    ["language", kernel.languageTitle],
    ["kind", kernel.kind === kernel.language ? "" : kernel.kind],
    ["launches", `${launches}${numbers ? ` (line ${numbers} of the module)` : ""}`],
    ["device", code.device],
    ["traffic", traffic && `${traffic} (modelled)`],
    ["machine code", kernel.facts.join(", ")],
    ["operators", all((k) => k.operators)],
    ["Python", all((k) => k.lines)],
    ["no origin", all((k) => (k.unknown ? [k.unknown] : []))],
    ["state", code.stamp],
  ];
  return { title: kernel.name, where, kind: "kernel", rows: rows.filter(([, value]) => value), texts: [] };
}

/** @param {Model} model @param {string} where @param {number} item @param {CodeData} code @returns {Facts} */
function kernelLineFacts(model, where, item, code) {
  const owner = code.kernels.find((k) => k.items.some(([, other]) => other === item));
  const line = owner?.items.find(([, other]) => other === item)?.[0] ?? splitPlace(model.name(item))[1];
  const number = owner && owner.first > 0 ? owner.first + line - 1 : line;
  /** @type {[string, string][]} */
  const rows = [
    ["kernel", owner?.name ?? ""],
    // Python's addresses count within the kernel.
    ["line", owner && owner.first > 0 ? `${number} of the module, ${line} in its address` : String(line)],
    ["text", owner?.source?.text.split("\n")[line - 1]?.trim() ?? ""],
    ["no origin", model.noOrigin.get(item) ?? ""],
  ];
  return {
    title: `line ${number}`,
    where,
    kind: "line of a kernel",
    rows: rows.filter(([, value]) => value),
    texts: [],
  };
}

/** @param {Model} model @param {number} stage @param {number[]} items @param {string} name @returns {Promise<Facts>} */
async function manyFacts(model, stage, items, name) {
  /** @type {Map<string, number>} */
  const kinds = new Map();
  for (const item of items) kinds.set(model.kind(item), (kinds.get(model.kind(item)) ?? 0) + 1);
  const sums = [...kinds].sort((one, other) => other[1] - one[1]).map(([kind, count]) => `${grouped(count)} ${kind}`);
  /** @type {[string, string][]} */
  const rows = [
    ["holds", plural(items.length, "item")],
    ["kinds", sums.join(", ")],
  ];
  if (stage !== PYTHON && !model.isCode(stage)) {
    const graph = await model.graph(stage);
    const { start } = model.index.stages[stage];
    const types = new Map(
      items.map((item) => [
        graph.strings[graph.module[item - start]] ?? "",
        graph.strings[graph.moduleType[item - start]] ?? "",
      ]),
    );
    const shared = sharedModule([...types.keys()]);
    rows.push(["module", shared && types.get(shared) ? `${shared} (${types.get(shared)})` : shared]);
    const pair = items.length === 2 ? pairOf(notFusedPairs(graph), items[0] - start, items[1] - start) : undefined;
    if (pair) rows.push(["why not fused", pairLines(pair).join("\n")]);
    const saved = new Set(graph.saved);
    const count = items.filter((item) => saved.has(item - start)).length;
    rows.push(["saved", count ? `${plural(count, "node")} for backward` : ""]);
  }
  rows.push(["items", namesInShort(model, items)]);
  return {
    title: name || plural(items.length, "item"),
    where: model.stageTitle(stage),
    kind: "collapsed",
    rows: rows.filter(([, value]) => value),
    texts: [],
  };
}

/**
 * The module path that all of some paths share, by whole steps: `layers.0` of `layers.0.attn` and `layers.0.norm`.
 * @param {string[]} paths
 */
export function sharedModule(paths) {
  if (paths.length === 0) return "";
  const steps = paths.map((path) => path.split("."));
  let length = 0;
  while (length < steps[0].length && steps.every((other) => other[length] === steps[0][length])) length += 1;
  return steps[0].slice(0, length).join(".");
}

/** File and line number of `file:line`. @param {string} place @returns {[string, number]} */
function splitPlace(place) {
  const colon = place.lastIndexOf(":");
  return [place.slice(0, colon), Number(place.slice(colon + 1))];
}

/** @param {Model} model @param {number[]} items */
function namesInShort(model, items) {
  const names = items.slice(0, FACTS_LISTED).map((item) => shortened(labelOf(model, item), 60));
  return names.join(", ") + (items.length > FACTS_LISTED ? ` and ${grouped(items.length - FACTS_LISTED)} more` : "");
}

/** @param {string[]} words */
function listedInline(words) {
  return words.slice(0, 40).join(", ") + (words.length > 40 ? ` and ${words.length - 40} more` : "");
}

/** @param {string[]} words */
function listedLines(words) {
  const some = words.slice(0, FACTS_LISTED);
  if (words.length > FACTS_LISTED) some.push(`and ${words.length - FACTS_LISTED} more`);
  return some.join("\n");
}

/**
 * The facts in one line, for a preview.
 * @param {Facts} facts
 */
export function factsInLine(facts) {
  /** @param {string} label */
  const value = (label) => facts.rows.find(([name]) => name === label)?.[1] ?? "";
  const tensor = [value("dtype"), value("shape")].filter(Boolean).join(" ");
  const first = value("output 0") || value("text") || value("holds") || value("launches");
  const parts = [
    shortened(facts.title, 80),
    facts.where,
    facts.kind,
    tensor || first,
    value("module"),
    value("traffic"),
  ];
  return parts
    .filter(Boolean)
    .map((text) => shortened(text, 120))
    .join(" · ");
}

/**
 * An element that shows facts.
 * @param {Facts} facts
 * @param {number} colour of the pin
 */
export function factsView(facts, colour) {
  const rows = facts.rows.map(([label, value]) => [
    h("dt", { class: "facts-label" }, label),
    h(
      "dd",
      { class: "facts-value", dir: "auto" },
      ...value.split("\n").map((line) => h("div", {}, shortened(line, FACTS_LONGEST))),
    ),
  ]);
  const texts = facts.texts.map(({ label, text }) =>
    h(
      "details",
      { class: "facts-text", open: text.length < 1500 },
      h("summary", {}, label),
      h("pre", { tabindex: "0", role: "group", "aria-label": label }, shortened(text, FACTS_LONGEST * 5)),
    ),
  );
  const head = h(
    "div",
    { class: "facts-head" },
    h("span", { class: `facts-dot pin-dot-${colour}`, "aria-hidden": "true" }),
    h("bdi", { class: "facts-title", title: shortened(facts.title, 300) }, shortened(facts.title, 300)),
    h("span", { class: "facts-where" }, `${facts.kind} · ${facts.where}`),
  );
  return h("div", { class: "facts" }, head, h("dl", { class: "facts-rows" }, ...rows.flat()), ...texts);
}
