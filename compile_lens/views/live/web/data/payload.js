// The data that the page carries: parts by name, read once they are wanted. Small ones are packed together.

import { turnOfOthers } from "../dom.js";

export class Payload {
  /**
   * @param {Record<string, string>} parts packed JSON; `small` holds several parts
   * @param {(packed: string) => Promise<string>} unpack
   */
  constructor(parts, unpack) {
    this.parts = parts;
    this.unpack = unpack;
    /** @type {Map<string, Promise<any>>} */
    this.read = new Map();
  }

  /**
   * A part of the data.
   * @param {string} name
   * @returns {Promise<any>}
   */
  get(name) {
    let known = this.read.get(name);
    if (known === undefined) {
      known = name in this.parts ? this.whole(name) : this.among(name);
      this.read.set(name, known);
    }
    return known;
  }

  /**
   * A part by itself. Several that are asked for at once are unpacked in turns.
   * @param {string} name
   */
  async whole(name) {
    await turnOfOthers();
    return readPart(await this.unpack(this.parts[name]));
  }

  /**
   * A part among the small ones.
   * @param {string} name
   */
  async among(name) {
    const small = "small" in this.parts && name !== "small" ? await this.get("small") : {};
    if (!(name in small)) throw new Error(`the page carries no part ${name}`);
    return small[name];
  }
}

/**
 * Data from its JSON. The thousands of bodies of a large graph are texts in it: each is read when it is drawn,
 * or reading them all would hold up the page.
 * @param {string} text
 * @returns {any}
 */
export function readPart(text) {
  const part = JSON.parse(text);
  if (typeof part.bodies?.[0] === "string") {
    part.bodies = new Proxy(part.bodies, {
      get(bodies, key) {
        if (typeof bodies[key] === "string") bodies[key] = JSON.parse(bodies[key]);
        return bodies[key];
      },
    });
  }
  return part;
}
