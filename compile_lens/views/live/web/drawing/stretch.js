// Room made along one axis of a drawing.

/** A line of which some parts grow: a map that never brings two points closer to each other. */
export class Stretch {
  /** @param {[number, number, number][]} wanted `[from, to, least length afterwards]` */
  constructor(wanted) {
    /** The places where the growth changes, in order. @type {number[]} */
    this.knots = [...new Set(wanted.flatMap(([low, high]) => [low, high]))].sort((a, b) => a - b);
    const lengths = this.knots.slice(1).map((knot, i) => knot - this.knots[i]);
    const order = new Map(this.knots.map((knot, i) => [knot, i]));
    const place = (/** @type {number} */ knot) => /** @type {number} */ (order.get(knot));
    // What grows for a narrow part is growth of the wide ones around it as well, so these come later.
    for (const [low, high, least] of [...wanted].sort((a, b) => a[1] - a[0] - (b[1] - b[0]) || a[0] - b[0])) {
      const [first, last] = [place(low), place(high)];
      let length = 0;
      for (let i = first; i < last; i++) length += lengths[i];
      if (length >= least || length <= 0) continue;
      for (let i = first; i < last; i++) lengths[i] *= least / length;
    }
    /** The places to which the knots go. @type {number[]} */
    this.to = [];
    this.knots.forEach((knot, i) => this.to.push(i === 0 ? knot : this.to[i - 1] + lengths[i - 1]));
  }

  /** @param {number} x */
  at(x) {
    const { knots, to } = this;
    if (x <= knots[0]) return x;
    const last = knots.length - 1;
    if (x >= knots[last]) return to[last] + (x - knots[last]);
    let low = 0;
    let high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle;
      else high = middle;
    }
    return to[low] + ((x - knots[low]) * (to[high] - to[low])) / (knots[high] - knots[low]);
  }
}
