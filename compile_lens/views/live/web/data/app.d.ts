/** Types by which the parts of the viewer know each other: each gets the `App`, and none gets another part. Types only. */

import type { Chain } from "./chain.js";
import type { Model } from "./model.js";
import type { Selection } from "./selection.js";

/**
 * The marks of what is lit, by item. Bit `c` (0 to 5): in the chain of a pin of colour `c`; `HOVER` (bit 6): in the chain
 * of what the pointer or focus is on; `SELF` (bit 7): pinned or hovered itself.
 */
export type Marks = Map<number, number>;

export interface Pin {
  /** One item, or all that a collapsed box holds. */
  items: number[];
  /** Name to show, such as `sin` or `layers.0.attn`. */
  name: string;
  /** 0 to 5. */
  colour: number;
}

/** The part of a pane below its header. Panes ask nothing of each other: they talk through the selection. */
export interface Pane {
  element: HTMLElement;
  /** Controls of its own for the header (search, zoom, tabs); null without. */
  tools: HTMLElement | null;
  /** Light what is in `marks` and nothing else. Called for every change: must be quick. Without, nothing has a mark. */
  mark?(marks: Marks): void;
  /** Bring the first of these items into view, without moving the focus. False, or without, if it shows none of them. */
  reveal?(items: number[]): boolean;
  /** Pixels from the view to the nearest of these items: 0 if it is in view, infinite if none is shown. Without, nothing is known of it. */
  far?(items: number[]): number;
  /** The words of a graph above its drawing. */
  readonly note?: HTMLElement;
  /** The drawing of a graph. */
  readonly drawing?: { element: SVGSVGElement; complete(): void };
  /** The kernel of code that opened first, counted from 1, and why that one. */
  readonly first?: { page: number; why: string };
  /** Items of what is shown and has a colour, from the top, each with the pixels from the view to it. */
  inView?(): [number, number][];
  /** Buttons that lead to the kernels of a generated module and to all of it; each says whether it is shown. */
  pageTabs?(): HTMLElement[];
  /** Shows the kernels or the module. */
  turn?(page: "kernel" | "module"): void;
  /** The printed form. Without, a copy of what is shown. */
  paper?(): Node[];
  /** Another compilation is shown. */
  recolour?(): void;
  /** The pane has a size now, or another one. */
  resized?(): void;
  /** Lets go of timers and observers. */
  close?(): void;
}

/** The services that every part of the page may use. */
export interface App {
  model: Model;
  chain: Chain;
  selection: Selection;
  /** The number of the compilation that is shown. */
  compilation: number;
  /** True if the program stands in an editor beside the page. */
  edited?: boolean;
  /** Shows another compilation. */
  choose(compilation: number): void;
  /** Says a short sentence to screen readers. */
  say(sentence: string): void;
  /** Opens the pane of a stage (or brings it forward) and reveals items in it. */
  show(stage: number, items: number[]): void;
  /** Brings what the items came from and became into view beside the pane of a stage. */
  beside(stage: number, items: number[]): void;
}
