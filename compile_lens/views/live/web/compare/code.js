// Code in a column of a comparison: lines that are longer than it is wide are broken, as those of the source are.

import { CodePane } from "../code/pane.js";
import { GUTTER, LETTER, NARROW, NARROWEST } from "../listing/display.js";
import { cuts } from "../listing/abbreviations.js";
import { roomOf } from "../listing/unit_marks.js";
import { breaksOf } from "../listing/line_wrap.js";
import { Wrap } from "../listing/line_wrap.js";

/** @import { CodePage } from "../code/pane.js" */

export class WrappedCode extends CodePane {
  /** @override @param {CodePage} page */
  enlarge(page) {
    const roomy = super.enlarge(page);
    const { listing } = page;
    if (!roomy || !listing) return roomy;
    listing.rows.wrap ??= new CodeWrap(listing);
    listing.rows.wrap.fit(this.element.clientWidth);
    return roomy;
  }

  /** Pixels below the last row that is shown, but for one. */
  blank() {
    const [listing] = this.listings();
    return listing ? Math.max(0, listing.element.clientHeight - listing.rows.top(listing.folds.rows + 1)) : 0;
  }

  /** @override */
  toggleTidy() {
    super.toggleTidy();
    this.fit();
  }
}

class CodeWrap extends Wrap {
  /** @override @param {number} width */
  fit(width) {
    const { lines, first, element, coloured, tidy } = this.listing;
    element.classList.add("fits");
    const size = Number.parseFloat(element.style.getPropertyValue("--size"));
    const digits = String(first + lines.count - 1).length;
    const beside = width < NARROW ? GUTTER.narrow : GUTTER.usual;
    this.set(size, (line) => {
      const text = lines.line(line);
      const left = tidy < 0 ? [] : cuts(text, tidy, width < NARROWEST);
      const shown = left.reduceRight((now, [from, to]) => now.slice(0, from) + now.slice(to), text);
      const room = width - beside - roomOf(coloured.tags(line), width < NARROW);
      return breaksOf(shown.slice(0, this.listing.limit(line)), Math.floor(room / (size * LETTER)) - digits);
    });
  }
}
