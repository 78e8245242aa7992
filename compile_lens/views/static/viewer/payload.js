// The data that the page carries: parts by name, read once they are wanted. Small ones are packed together.

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
      known = name in this.parts ? this.unpack(this.parts[name]).then(JSON.parse) : this.among(name);
      this.read.set(name, known);
    }
    return known;
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
