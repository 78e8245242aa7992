// The capture as the page carries it: the outline, the numbered items, and the stages, read when wanted.

import { callOf, Units } from "./units.js";

/** @import { CodeData, Core, GraphData, Index, Step } from "../types.d.ts" */
/** @import { Payload } from "./payload.js" */

/** The stage that holds the Python lines. */
export const PYTHON = 0;

export class Model {
  /**
   * @param {Core} core
   * @param {Index} index
   * @param {Payload} payload
   */
  constructor(core, index, payload) {
    this.core = core;
    this.index = index;
    this.payload = payload;
    this.units = new Units(index);
    /** Reasons why nothing is above an item, where the record has one. @type {Map<number, string>} */
    this.noOrigin = new Map(index.noOrigin);
    /** Items that the count of their stage does not have in it. */
    this.uncounted = new Set(index.stages.flatMap(({ start, uncounted }) => uncounted.map((local) => start + local)));
  }

  /** True if the count that is said of its stage has an item in it. @param {number} item */
  counts(item) {
    return !this.uncounted.has(item);
  }

  /**
   * The number of the stage that holds an item.
   * @param {number} item
   */
  stageOf(item) {
    const stages = this.index.stages;
    let low = 0;
    let high = stages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (stages[middle].start <= item) low = middle;
      else high = middle - 1;
    }
    // Empty stages share their start with the next one; the item is in the one that has room.
    while (low > 0 && item >= stages[low].start + stages[low].count) low -= 1;
    return low;
  }

  /** @param {number} item */
  name(item) {
    return this.index.names[item];
  }

  /** @param {number} item */
  kind(item) {
    return this.index.kinds[this.index.kindOf[item]];
  }

  /**
   * The number of a kernel's line: that of its module, where its source stands there.
   * @param {number} item
   */
  lineNumber(item) {
    const { start, firsts } = this.index.stages[this.stageOf(item)];
    const name = this.name(item);
    const end = name.lastIndexOf(":");
    const kernel = this.index.names.indexOf(name.slice(0, end), start) - start;
    return Number(name.slice(end + 1)) + Math.max(0, (firsts[kernel] || 1) - 1);
  }

  /**
   * The title of a stage; with several compilations it says which one it belongs to.
   * @param {number} stage
   */
  stageTitle(stage) {
    const { compilation, title } = this.index.stages[stage];
    const many = this.core.compilations.length > 1 && compilation >= 0;
    return many ? `${this.core.compilations[compilation].id} ${title}` : title;
  }

  /**
   * The number of a stage by compilation and key, -1 if there is none.
   * @param {number} compilation
   * @param {string} key
   */
  stage(compilation, key) {
    return this.index.stages.findIndex((s) => s.compilation === compilation && s.key === key);
  }

  /**
   * The phase of a stage: forward, backward, inference, or "" for those that all phases share.
   * @param {number} stage
   */
  phase(stage) {
    const head = this.index.stages[stage].key.split(".")[0];
    return head === "forward" || head === "backward" || head === "inference" ? head : "";
  }

  /**
   * The step of the strip that a stage is; undefined for Python.
   * @param {number} stage
   * @returns {Step | undefined}
   */
  step(stage) {
    const { compilation } = this.index.stages[stage];
    if (compilation < 0) return undefined;
    return this.core.compilations[compilation].lanes.flatMap((l) => l.steps).find((t) => t.stage === stage);
  }

  /**
   * The data of a stage that is a graph.
   * @param {number} stage
   * @returns {Promise<GraphData>}
   */
  graph(stage) {
    return this.payload.get(this.index.stages[stage].part);
  }

  /**
   * The data of a stage that is code.
   * @param {number} stage
   * @returns {Promise<CodeData>}
   */
  code(stage) {
    return this.payload.get(this.index.stages[stage].part);
  }

  /**
   * The text by which `capture.chain` takes some items in Python: `"f.py:7:11-23"` or `("0/0", "forward", "sin")`; "" for
   * several that are no call.
   * @param {number[]} items
   */
  address(items) {
    const call = callOf(this.units.all, items);
    if (call) return JSON.stringify(call.address);
    if (items.length !== 1) return "";
    const { compilation, key } = this.index.stages[this.stageOf(items[0])];
    if (compilation >= 0)
      return `(${[this.core.compilations[compilation].id, key, this.name(items[0])].map((one) => JSON.stringify(one)).join(", ")})`;
    return JSON.stringify(this.index.lineAddresses[items[0]]);
  }

  /**
   * A finding by its key. Throws if the page has none of that key.
   * @param {string} key
   */
  finding(key) {
    const head = this.core.findings.find((finding) => finding.key === key);
    if (!head) throw new Error(`the page has no finding ${key}`);
    return head;
  }

  /**
   * True if a stage is a generated module.
   * @param {number} stage
   */
  isCode(stage) {
    return this.index.stages[stage].key.endsWith(".code");
  }
}
