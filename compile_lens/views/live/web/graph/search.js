// Finding nodes by what is written about them.

/** @import { GraphData } from "../types.d.ts" */

/** @typedef {"name" | "op" | "shape" | "dtype" | "module"} SearchField */

/**
 * One word of a query, and where it is looked for; "" for everywhere.
 * @typedef {{ field: SearchField | "", text: string }} SearchTerm
 */

/** @type {Record<string, SearchField>} */
const FIELDS = { name: "name", op: "op", target: "op", shape: "shape", dtype: "dtype", module: "module" };

/** @type {Record<string, string>} */
const SHORT_DTYPES = {
  float64: "f64",
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint64: "u64",
  uint32: "u32",
  uint16: "u16",
  uint8: "u8",
  bool: "b8",
  complex32: "c32",
  complex64: "c64",
  complex128: "c128",
};

/**
 * The words of a query: all of them have to be found. `shape:8x16` looks at shapes only, and so on; `"[8, 16]"`
 * is one word.
 * @param {string} query
 * @returns {SearchTerm[]}
 */
export function searchTerms(query) {
  /** @type {SearchTerm[]} */
  const terms = [];
  for (const [word] of query.toLowerCase().matchAll(/(?:[a-z]+:)?"[^"]*"?|\S+/g)) {
    const colon = word.indexOf(":");
    const field = colon > 0 && Object.hasOwn(FIELDS, word.slice(0, colon)) ? FIELDS[word.slice(0, colon)] : "";
    const text = (field ? word.slice(colon + 1) : word).replace(/^"|"$/g, "");
    if (text) terms.push({ field, text });
  }
  return terms;
}

/**
 * A shape without its brackets and blanks: `8x16`.
 * @param {string} shape
 */
export function shortShape(shape) {
  return shape
    .replace(/,\s*\)/, "")
    .replace(/[[\]()\s]/g, "")
    .replace(/[,×]/g, "x")
    .toLowerCase();
}

export class NodeSearch {
  /**
   * @param {Pick<GraphData, "strings" | "op" | "target" | "module" | "moduleType" | "outputs" | "tensors">} data
   * @param {string[]} names of the nodes
   */
  constructor(data, names) {
    this.data = data;
    this.names = names;
    /** Made when the first query comes. @type {{ names: string[], strings: string[], shapes: string[], dtypes: string[] } | null} */
    this.lowered = null;
  }

  /**
   * The nodes that a query finds, in order; none for an empty one.
   * @param {string} query
   * @returns {number[]}
   */
  find(query) {
    const terms = searchTerms(query);
    if (terms.length === 0) return [];
    const tests = terms.map((term) => this.test(term));
    const matches = [];
    for (let local = 0; local < this.data.op.length; local++)
      if (tests.every((test) => test(local))) matches.push(local);
    return matches;
  }

  /**
   * True if a node has a word. Strings and tensors that many nodes share are looked at once.
   * @param {SearchTerm} term
   * @returns {(local: number) => boolean}
   */
  test({ field, text }) {
    const { op, target, module, moduleType, outputs } = this.data;
    const { names, strings, shapes, dtypes } = this.texts();
    const inString = once((i) => strings[i].includes(text));
    const shape = shortShape(text);
    // Brackets alone are in every shape.
    const inShape = once((i) => shape !== "" && shapes[i].includes(shape));
    const inDtype = once((i) => dtypes[i].includes(text));
    const inType = once((i) => inDtype(i) || shapes[i].includes(text) || (/[[\](),×]/.test(text) && inShape(i)));
    switch (field) {
      case "name":
        return (local) => names[local].includes(text);
      case "op":
        return (local) => inString(target[local]) || inString(op[local]);
      case "module":
        return (local) => inString(module[local]) || inString(moduleType[local]);
      case "shape":
        return (local) => outputs[local].some(inShape);
      case "dtype":
        return (local) => outputs[local].some(inDtype);
      default:
        return (local) =>
          names[local].includes(text) ||
          inString(target[local]) ||
          inString(op[local]) ||
          inString(module[local]) ||
          inString(moduleType[local]) ||
          outputs[local].some(inType);
    }
  }

  texts() {
    if (this.lowered === null) {
      const { strings, tensors } = this.data;
      this.lowered = {
        names: this.names.map((name) => name.toLowerCase()),
        strings: strings.map((string) => string.toLowerCase()),
        shapes: tensors.map((tensor) => shortShape(tensor.shape)),
        dtypes: tensors.map(({ dtype }) =>
          `${dtype} ${SHORT_DTYPES[dtype.replace(/^torch\./, "")] ?? ""}`.toLowerCase(),
        ),
      };
    }
    return this.lowered;
  }
}

/**
 * A test of numbers that is made once for each.
 * @param {(i: number) => boolean} test
 * @returns {(i: number) => boolean}
 */
function once(test) {
  /** @type {boolean[]} */
  const known = [];
  return (i) => (known[i] ??= test(i));
}
