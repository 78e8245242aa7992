// Sentences in another language, by a table of sentences with places in them.
//
// A key of the table is English. `{}` stands for any text, with a semicolon or a raised dot in it only at the beginning
// of a key; `{n}` for an amount, `{w}` for a word, `{c}` for a compile id, `{=}` for names that stay as they are, `[s]`
// for letters that may be missing, `[is|are]` for one of several. A value has the same places in their order, or by
// number: `{2}`. What stands in a place is translated too. A text without an entry is cut at lines, sentences and lists,
// and each part is looked up; what no entry covers stays as it is.

/** @typedef {{ pattern: RegExp, value: string, asTheyAre: boolean[] }} Entry */

const PLACES = /\{([nwc=]?)\}|\[([^\]]*)\]/;
/** @type {Record<string, string>} */
const PATTERNS = {
  n: "((?:at least |up to )?[~≥≈<–−-]?\\d[\\d.,]*(?:[ \u00a0]?(?:[kKMGTµmn]i?)?(?:B|s|%)(?![a-z]))?)",
  w: "(\\S+)",
  c: "(\\d+/\\d+(?:_\\d+)?)",
  "=": "((?:(?!; | · ).)+?)",
  "": "((?:(?!; | · ).)+?)",
};

const LINES = /\n/;
const SENTENCES = /(?<=[.?!][)”"]?)\s+(?=["“‘`(]?[A-Z\d`])/;

/** Where else a text is cut, and what stands there after a part that was translated, and after another one. */
const CUTS = /** @type {[RegExp, string, string][]} */ ([
  [/ · /, " · ", " · "],
  // The story is Chinese already, and quotes reasons.
  [/(?<=[：；。])/, "", ""],
  [/ … /, " … ", " … "],
  [/; /, "；", "; "],
  // The first alone: what follows may be a sentence with another one.
  [/(?<=^(?:(?!: ).)*): /s, "：", ": "],
  [/, /, "，", ", "],
]);

const ENDS = /** @type {Record<string, string>} */ ({ ".": "。", "。": "。", ":": "：", ";": "；", ",": "，" });

export class Translator {
  /** @param {[string, string][]} table English and the other language */
  constructor(table) {
    /** @type {Map<string, string>} */
    this.plain = new Map();
    /** By their first word, `""` for those that begin with a place. @type {Map<string, Entry[]>} */
    this.entries = new Map();
    /** @type {Map<string, string>} */
    this.known = new Map();
    const weight = (/** @type {string} */ key) => key.replace(/\{.?\}|\[.*?\]/g, "").length;
    for (const [key, value] of [...table].sort(([a], [b]) => weight(b) - weight(a))) {
      if (!PLACES.test(key)) this.plain.set(key, value);
      else {
        const first = /^[^\s{[]+(?= )/.exec(key)?.[0] ?? "";
        this.entries.set(first, [...(this.entries.get(first) ?? []), entryOf(key, value)]);
      }
    }
  }

  /**
   * @param {string} text
   * @returns {string}
   */
  translate(text) {
    let known = this.known.get(text);
    if (known === undefined) {
      const [, before, words, after] = /** @type {RegExpExecArray} */ (/^(\s*)(.*?)(\s*)$/s.exec(text));
      known = /[A-Za-z]{2}/.test(words) ? before + this.whole(words) + after : text;
      this.known.set(text, known);
    }
    return known;
  }

  /** @param {string} text */
  whole(text) {
    if (text.endsWith(" …")) return `${this.translate(text.slice(0, -2))} …`;
    const small = text.slice(0, 1).toLowerCase() + text.slice(1);
    return (
      this.plain.get(text) ??
      this.cut(text, LINES, "\n", "\n") ??
      this.ended(text, text.split(" ", 1)[0]) ??
      this.ended(small, small.split(" ", 1)[0]) ??
      this.cut(text, SENTENCES, "", " ") ??
      this.ended(text, "") ??
      // A list of nothing but names.
      (/^\w+(?:, \w+)+$/.test(text) ? text : this.listed(text))
    );
  }

  /** @param {string} text */
  listed(text) {
    for (const [at, between, plain] of CUTS) {
      const parts = this.cut(text, at, between, plain);
      if (parts !== undefined) return parts;
    }
    return text;
  }

  /**
   * @param {string} text
   * @param {RegExp} at
   * @param {string} between
   * @param {string} plain
   */
  cut(text, at, between, plain) {
    const parts = text.split(at);
    if (parts.length < 2) return undefined;
    const translated = parts.map((part) => this.translate(part));
    return translated.reduce((all, part, i) => all + (translated[i - 1] === parts[i - 1] ? plain : between) + part);
  }

  /**
   * By an entry, with or without the sign at its end.
   * @param {string} text
   * @param {string} begins
   */
  ended(text, begins) {
    const end = ENDS[text.at(-1) ?? ""];
    const entry = end && this.entry(text.slice(0, -1), begins);
    return entry === undefined || !end ? this.entry(text, begins) : entry + end;
  }

  /**
   * @param {string} text
   * @param {string} begins the first word of the entries
   * @returns {string | undefined}
   */
  entry(text, begins) {
    const plain = this.plain.get(text);
    if (plain !== undefined) return plain;
    for (const { pattern, value, asTheyAre } of this.entries.get(begins) ?? []) {
      const match = pattern.exec(text);
      if (!match) continue;
      let place = 0;
      return value.replace(/\{(\d?)\}/g, (_, number) => {
        const at = number ? Number(number) - 1 : place++;
        return asTheyAre[at] ? match[at + 1] : this.translate(match[at + 1]);
      });
    }
    return undefined;
  }
}

/**
 * @param {string} key
 * @param {string} value
 * @returns {Entry}
 */
function entryOf(key, value) {
  /** @type {boolean[]} */
  const asTheyAre = [];
  const source = key.split(new RegExp(PLACES, "g")).reduce((all, part, i) => {
    if (part === undefined) return all;
    if (i % 3 === 1) asTheyAre.push(part === "=");
    if (i % 3 === 1) return all + (all || part ? PATTERNS[part] : "(.+?)");
    if (i % 3 === 2) return `${all}(?:${part})${part.includes("|") ? "" : "?"}`;
    return all + part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  }, "");
  return { pattern: new RegExp(`^${source}$`, "s"), value, asTheyAre };
}
