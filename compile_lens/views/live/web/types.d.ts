/**
 * The data that the page carries: made by the Python beside this folder, read by the scripts here. Types only: nothing of
 * this file reaches the page.
 */

/** A text and its colours. `inks` runs over the text: each number is `length * 16 + ink`; the rest is plain. */
export interface Text {
  text: string;
  inks: number[];
}

/** A part of the page's data, by name, each compressed by itself and read when it is wanted. */
export type PartName = string;

export interface Core {
  version: 1;
  function: string;
  /** Function, torch, target, date: the title of the page. */
  title: string;
  created: string;
  /** Short facts about where the capture was made. */
  environment: string[];
  stamp: string;
  /** The same in a few words. */
  shortStamp: string;
  asked: string;
  /** The device that the code is for. */
  device: string;
  inputs: string[];
  outcome: Outcome;
  /** The places where Python took over: what happened, and the compiler's reason. */
  eager: Eager[];
  /** The places of the source where graphs broke, and how often; "" and 0 where it is not known. */
  breaks: {
    file: string;
    line: number;
    count: number;
    what: string;
    hint: string;
    start: number | null;
    end: number | null;
    next: number;
  }[];
  /** The answers with which the page of a model opens. */
  answers: OpeningAnswer[];
  /** `[what, before, after, large]`, `~` marks a modelled figure; a large one has the colour of a saving. */
  savings: [string, string, string, boolean][];
  ledger: Ledger;
  /** The reason why there are none; "" where there are. */
  noSource: string;
  sources: Source[];
  compilations: Compilation[];
  /** The compilation that is shown at first. */
  first: number;
  /** The phase in which the compiler failed; "" if it did not, or before there are any. */
  phase: string;
  /** Null where each module has one kernel. */
  cost: CoreCost | null;
  findings: FindingHead[];
  /** Notes about the whole capture. */
  notes: string[];
  words: Words;
}

export interface Outcome {
  state: "compiled" | "partial" | "nothing" | "failed";
  verdict: string;
  failure: Failure | null;
  /** That it failed, broke, was compiled again or ran eagerly, a few words each, and what more is said of. */
  warnings: [string, "" | "break" | "recompile" | "eager"][];
  /** Words about what stands below it; "" where nothing need be said. */
  below: string;
}

/** Sentences that the page without scripts says too, the same for every capture. */
export interface Words {
  ledger: string;
  sources: string;
  recompile: string;
  broke: string;
  wholeMessage: string;
  noStage: string;
  /** Words of a column of a comparison. */
  noCode: string;
  /** Definition of what counts as nodes, calls and ops. */
  counted: string;
  /** Words about stages that hold the same operations. */
  unchanged: string;
  saved: string;
  modelled: string;
  /** The reason why nothing is above a node that may have come from anything before it. */
  unsaidOrigin: string;
  /** Words for a node that does no work, by its kind. */
  /** Definitions of the steps from one stage to the next, by their names. */
  verbs: Record<string, string>;
  noWork: {
    input: string;
    output: string;
    constant: string;
    symbol: string;
    view: string;
    allocation: string;
    nop: string;
  };
}

export interface Failure {
  stage: string;
  type: string;
  message: string;
  traceback: string;
  /** The error, in one line. */
  reason: string;
  hint: string;
  /** The stack of the program there, innermost first; columns count from 0 and are null where Python gave none. */
  frames: { file: string; line: number; start: number | null; end: number | null }[];
}

export interface Ledger {
  /** Titles of the columns and what each counts. */
  columns: { title: string; meaning: string }[];
  /** One row for each phase and a total; a figure reads `~` for modelled, `—` for unknown. */
  rows: { name: string; figures: string[] }[];
  /** Notes on what is measured and what is modelled, and why figures are unknown. */
  notes: string[];
}

export interface Source {
  file: string;
  first: number;
  name: string;
  /** The number of modules that ran it, in short and in words; both "" where that is not known of several. */
  ran: [string, string];
  code: Text;
  /** `[line number, item]` for each line that the record knows. */
  items: [number, number][];
  /** Its modules' share of the cost, in percent and in words; nothing where that is not known. */
  share: string[];
  /** Of a function of a library its facts in short: `library, 5 %`; "" for a function of the program's. */
  library: string;
  /** `[line number, length of a bar from 0 to 1, share of the cost in percent, and in words]`. */
  costs: [number, number, string, string][];
}

/** The unit of all costs (`time`, `bytes`), and what the columns of ranked kernels mean. */
export interface CoreCost {
  what: string;
  columns: Record<"order" | "lines" | "kernel" | "times" | "limit" | "kind" | "amount" | "share", string>;
}

/** The cost of one kernel. Equal library calls are one row, and have the same cost. */
export interface KernelCost {
  /** The first kernel of its row, by its number in the module counted from 0. */
  row: number;
  /** The number of its first launch in the order of all code, which sorting does not change. */
  order: number;
  /** The length of a bar from 0 to 1, and the share in percent. */
  bar: number;
  words: string;
  amount: string;
  /** `memory`, `compute`, or "". */
  limit: string;
  /** Launches of the row in one call; 0 where loops or branches decide, which `launched` says in words. */
  times: number;
  launched: string;
  /** Bytes that its remedy could save at most; 0 without one. */
  saved: number;
  /** Labels, "" for none, each with a sentence: what bounds it, why it is not fused, what to try. */
  answer: [string, string][];
}

export interface Compilation {
  id: string;
  function: string;
  /** The same as a reader knows it: `f, after line 7`. */
  name: string;
  /** `name.py:7`. */
  place: string;
  /** The reason: in a few words, in the compiler's own ("" without), and whether an earlier form did not fit. */
  began: { short: string; whole: string; again: boolean };
  recompile: string[];
  ending: Ending | null;
  dynamic: string[];
  /** `[kind, text]`. */
  guards: [string, string][];
  /** Their number, and their purpose. */
  guardsMeaning: string;
  /** The number of those left out, and where they are; "" if none is. */
  guardsLeft: string;
  lanes: Lane[];
  ledger: Ledger;
}

/** The reason why compiled code ended: `link` is the compiler's own page about it, `whole` its message. */
export interface Ending {
  what: string;
  why: string;
  hint: string;
  link: string;
  frames: string[];
  /** The line itself; "" and 0 where it is not known. */
  file: string;
  line: number;
  whole: string;
}

/** A place where Python took over: what happened there, what became of the function for it, and why. */
export interface Eager extends Ending {
  head: string;
  became: string;
}

/** Stages that follow each other; `phase` is "" for those that all phases share. */
export interface Lane {
  phase: string;
  steps: Step[];
  /** Pairs of its groups that are not fused though they touch common data. */
  notFused: number;
}

export interface Step {
  /** `"dynamo"`, `"forward"`, `"forward.loops"`, `"forward.code"`. */
  key: string;
  title: string;
  meaning: string;
  /** `"20 nodes"`, `"3 kernels"`. */
  facts: string[];
  /** `"12 ms"`, or "". */
  time: string;
  /** The reason why it could not be seen; "" if it was. */
  missing: string;
  kind: "graph" | "code" | "missing" | "none";
  /** Its number in `Index.stages`; -1 if missing. */
  stage: number;
  /** Title of the stage that holds the same operations under the same names; "" if none does. */
  unchanged: string;
  /** The same in words. */
  same: string;
}

/**
 * Every item of the capture under one number, stage by stage: Python lines (stage 0), nodes (those of
 * subgraphs too, as `"true_graph_0/sin"`), kernels, lines of kernels. And the links between them.
 */
export interface Index {
  stages: IndexStage[];
  /** Name of each item: `"file:line"`, a node's, a kernel's, `"kernel:line"`. */
  names: string[];
  /** The items that item `i` directly came from: `above[offsets[i] … offsets[i+1]-1]`. */
  offsets: number[];
  above: number[];
  /** Runs of lines of kernels: the first, the last, and what all of them stand in. */
  within: number[][];
  /** `[item, why nothing is above it]`, as the record says it. */
  noOrigin: [number, string][];
  /** For each Python line (items of stage 0) its text without indentation. */
  lineTexts: string[];
  /** And its name as `capture.chain` takes it: without its folder, where no other file has its name. */
  lineAddresses: string[];
  /** Kinds by letter index: `kinds[kindOf[i]]`; for a Python line "python", a kernel "kernel", its line "line". */
  kinds: string[];
  kindOf: number[];
  /** Nodes of joint graphs that autograd made, each with the operators for whose derivative: `"cos, mul of line 7"`. */
  derivatives: [number, string][];
  /** Units, each with a colour of its own: those of one compilation follow each other, in the order of the source. */
  units: Unit[];
  /** Sets of units by number, in order; the first is empty. */
  unitSets: number[][];
  /** The set of units that each item came from, by number. A Python line has none: `Unit.line` names it. */
  unitsOf: number[];
}

/** One of the answers with which the page of a model opens. */
export interface OpeningAnswer {
  title: string;
  words: string;
  /** The item that it is about; -1 for none. */
  item: number;
  /** The item of a kernel that it opens; -1 for none. */
  kernel: number;
  /** The key of the finding that it leads to; "" for none. */
  finding: string;
}

/** A Python line that a compilation works in, or a call in its only one. */
export interface Unit {
  compilation: number;
  /** Its short name, which stands beside its colour everywhere. */
  tag: string;
  /** 0 to 5; the same again, with broken edges, are 6 to 11. */
  colour: number;
  /** As `capture.chain` takes it: `"f.py:7:11-23"`. */
  address: string;
  /** The item of its Python line. */
  line: number;
  /** The first character of a call in its line, counted from 0, and the one past its last; -1 of a line. */
  column: number;
  end: number;
  /** The nodes that were traced from it. */
  items: number[];
}

export interface IndexStage {
  /** Number of the compilation; -1 for Python. */
  compilation: number;
  key: string;
  /** Its title, with its phase where it has one: `"forward post-grad"`. */
  title: string;
  start: number;
  count: number;
  /** Code only: how many of its items are kernels; their lines follow. */
  kernels: number;
  /** Graphs only: items, by number in the stage, that its count (`21 calls`, `5 ops`) does not have in it. */
  uncounted: number[];
  /** Code only: of each kernel the line of the module that is its first; 0 where its source does not stand there. */
  firsts: number[];
  /** The part that holds its `GraphData` or `CodeData`; "" for Python. */
  part: PartName;
}

/** The data of a series beyond its captures: what differs, and its values in the order of the slider. */
export interface Series {
  name: string;
  values: string[];
}

/** The data of a comparison beyond the captures in it. */
export interface Compared {
  function: string;
  /** The saving on each target, or the largest consequence of a difference; "" for none. */
  headline: string;
  agreement: string;
  /** Lines above all else: the first cause, and what it came to. */
  summary: string[];
  facts: string[];
  columns: { target: string; failure: string; facts: string[] }[];
  /** Generated modules that stand for each other; values stand in the order of the columns. */
  modules: ComparedModule[];
  /** Words about lines that have no sign. */
  alike: string;
  /** Items of the first and the second that are the same; null where all are of one program. */
  same: [number, number][] | null;
  /** The same of the graphs that Inductor is handed and lowers. */
  lowered: [number, number][];
  /** For each column `[item, words]`: nodes of graphs that the other has otherwise, or has not, with no words. */
  differ: [number, string][][];
  /**
   * For each column `[source, line of it, words, at]`: lines that the other lacks, and the character from which on its
   * line is otherwise; empty where one source is that of all.
   */
  sources: [number, number, string, number][][];
  levels: { title: string; open: boolean; changes: ComparedChange[] }[];
  mayDiffer: string[];
}

export interface ComparedChange {
  mark: string;
  sentence: string;
  /** A Python line, and the column and the item that it is there. */
  places: [string, [number, number] | null][];
  facts: [string, string][];
}

export interface ComparedModule {
  title: string;
  compilation: string;
  /** Compile id and phase in each column. */
  places: ([string, string] | null)[];
  /** `["loops", ["5", "4", "4"]]`. */
  counts: [string, string[]][];
  /** For each column `[item of a kernel, line, words]`: lines that no other column has. */
  own: [number, number, string][][];
  /** Items of kernels that are the same in two captures; null beside one that the other has not. */
  partners: [number | null, number | null][];
}

/** One graph stage. Numbers of nodes are local: item = stage.start + local. */
export interface GraphData {
  /** Strings that are used below by number. */
  strings: string[];
  /** For each node. */
  op: number[];
  target: number[];
  module: number[];
  moduleType: number[];
  /** Tensors that each node makes: numbers in `tensors`. */
  outputs: number[][];
  tensors: TensorFacts[];
  /** Innermost user frame last, as numbers in `strings` (`"file:line in function: text"`). */
  frames: number[][];
  /** `[local, modelled bytes read or -1, written or -1]`, where known. */
  traffic: [number, number, number][];
  /** `[local, text]`: the loop's body, arguments that are no nodes, … */
  detail: [number, string][];
  /** `[local, locals of its members]`, for groups: the loops in it, as items of the loops stage (global). */
  members: [number, number[]][];
  /** Nodes saved for backward. */
  saved: number[];
  /** Pairs of groups that are not fused though they touch common data, and why. */
  notFused: PairData[];
  code: Text;
  /** `[line of code.text counted from 1, local]`. */
  lineOf: [number, number][];
  /** The graph itself first, then the bodies of its higher-order operators. */
  scenes: Scene[];
  /** In a large part each stands as a text of its own, which `payload.js` reads when it is asked for. */
  bodies: Body[];
  layouts: Layout[];
}

/** Two groups that are not one, in the order in which they run (locals); words as numbers in `strings`. */
export interface PairData {
  first: number;
  second: number;
  /** The way in which they touch: the second reads what the first writes, or both read the same. */
  how: number;
  reason: number;
  sentence: number;
  remedy: number;
  /** `"~4,000 B"`: what fusing them could have saved. */
  saved: number;
}

export interface TensorFacts {
  dtype: string;
  shape: string;
  stride: string;
  device: string;
  bytes: number | null;
  grad: boolean;
}

/** A drawing of one graph in two forms; a number in `bodies`, or -1 with the reason in `note`. */
export interface Scene {
  name: string;
  /** Every node, nothing collapsed. */
  whole: number;
  /** Collapsed by module (else by runs of neighbours); boxes open one by one. */
  folded: number;
  note: string;
}

/** The contents of a layout. Bodies of equal shape share one layout. */
export interface Body {
  layout: number;
  boxes: BodyBox[];
  /** Label of each edge of the layout ("" without). */
  labels: string[];
  /** For each stub of the layout: names at its far ends, and the lines drawn. */
  stubs: { others: string[]; lines: string[] }[];
}

export interface BodyBox {
  /** The node's name, or the module path or span of the nodes it holds. */
  name: string;
  kind: string;
  /** `[text, role]`, role `name`, `target`, `cost` or `small`. */
  lines: [string, string][];
  /** Locals of the nodes it stands for. */
  members: number[];
  /** The body inside, a number in `bodies`; -1 for a plain node or one that cannot be opened. */
  body: number;
}

/** Coordinates in pixels, rounded to one decimal. */
export interface Layout {
  width: number;
  height: number;
  /** `[x, y, width, height]`. */
  boxes: [number, number, number, number][];
  /** Cubic Bézier chains `[from box, to box, x0, y0, x1, y1, …]`, 1 + 3k points; and the label's middle. */
  edges: { ends: [number, number]; points: number[]; label: [number, number] | null }[];
  /** Cut edges on one side of a box; `points` go in the direction of the data. */
  stubs: { box: number; outgoing: boolean; at: [number, number, number, number]; points: number[] }[];
}

/** One generated module. Line numbers count from 1. */
export interface CodeData {
  phase: string;
  /** `"generated only: nothing was built or run"`. */
  stamp: string;
  device: string;
  /** Things that may differ on the device, where only a model of it was there. */
  remarks: Remark[];
  module: Text;
  /** Boilerplate that opens folded: first and last line, and what it is. */
  folds: Fold[];
  kernels: KernelData[];
}

/** A short text; its lines, if it has any, open below it. */
export interface Remark {
  title: string;
  lines: string[];
}

export interface Fold {
  first: number;
  last: number;
  label: string;
}

export interface KernelData {
  /** Its cost; null where it is the only one of its module. */
  cost: KernelCost | null;
  /** Its item. */
  item: number;
  name: string;
  /** `cpp`, `triton`, `metal`, `extern`, and as people say it. */
  language: string;
  languageTitle: string;
  kind: string;
  /** How often a call launches it; `null` where loops or branches decide. */
  launches: number | null;
  /** The same in words. */
  launched: string;
  /** Lines of the module that launch it. */
  launchLines: number[];
  /** The line of the module where its source begins; 0 where the module does not have it line for line. */
  first: number;
  last: number;
  /** Its own source. The number of its first line is `first`, or 1 where that is 0. `null` for a library call. */
  source: Text | null;
  folds: Fold[];
  /** `"~8,000 B"`, or "". */
  traffic: string;
  /** The same in words, or that it is unknown. */
  moved: string;
  /** The reason why there is no source to show; "" where there is. */
  sourceless: string;
  /** Operators and Python lines it came from, in words; `unknown` says why there are none. */
  operators: string[];
  /** Operators that other kernels of the module compute as well, and which. */
  again: [string, string][];
  /** Operators of a backward, each with `"for the derivative of sin"`. */
  whose: [string, string][];
  lines: string[];
  unknown: string;
  /** Figures of its machine code: `"32 registers a thread"`. */
  facts: string[];
  /** Notes: operators computed again, launch configurations, missing forms. */
  remarks: Remark[];
  /** Titles of the forms of its machine code, and the part that holds them (`FormsData`); "" without. */
  forms: string[];
  part: PartName;
  /** True if lines without an item of their own stand for the kernel: where none was followed. */
  whole: boolean;
  /** `[line of source counted from 1, item]`. */
  items: [number, number][];
  /** `[line of source counted from 1, why it has no origin]`. */
  noOrigin: [number, string][];
}

/** The forms of one kernel's machine code, in the order of its titles. */
export interface FormsData {
  forms: FormData[];
}

export interface FormData {
  text: string;
  /** `[line of text counted from 1, item of the line of the kernel that it came from]`. */
  items: [number, number][];
  /** Lines that are no instructions, counted from 1. */
  folds: Fold[];
}

/** The capture in sentences. */
export interface StoryData {
  title: string;
  chapters: StoryChapter[];
  /** The number of sentences that the page leaves out; "" for none. */
  left: string;
}

export interface StoryChapter {
  title: string;
  sentences: StorySentence[];
}

export interface StorySentence {
  /** The key of the sentence: `"inlined"`. */
  key: string;
  text: string;
  /** The number of the compilation that it tells of; -1 for the whole call. */
  compilation: number;
  /** The phase that it tells of; "" for none. */
  phase: string;
  /** Items that it is about. */
  items: number[];
}

/** Something that the record tells about why the code is as it is. */
export interface FindingHead {
  key: string;
  title: string;
  intro: string;
  /** In a few words. */
  fact: string;
  /** Its figure alone; "" without one. */
  badge: string;
  /** The reason why there is nothing to show; "" where there is. */
  missing: string;
  /** The part that holds its `FindingData`; "" where it is missing. */
  part: PartName;
}

export interface FindingData {
  /** The name in Python that gives all of it. */
  where: string;
  sections: FindingSection[];
}

export type FindingSection =
  TableSection | ProseSection | BlockSection | PictureSection | StepsSection | ColumnsSection;

export interface TableSection {
  kind: "table";
  title: string;
  words: string[];
  head: string[];
  /** A kind for each column; a "note" stands below its row. */
  kinds: ("text" | "name" | "number" | "note")[];
  /** Cells of each row, then the items that it is about. */
  rows: { cells: string[]; items: number[] }[];
  /** True if it opens folded: everything, for those who look for it. */
  full: boolean;
  /** The number of rows that are left out, and where they are. */
  left: string;
}

export interface ProseSection {
  kind: "prose";
  title: string;
  paragraphs: string[];
}

export interface BlockSection {
  kind: "block";
  title: string;
  code: Text;
}

export interface PictureSection {
  kind: "picture";
  title: string;
  /** An SVG document, shown as an image. */
  svg: string;
  alt: string;
  /** Parts of it that say something, from left to right. */
  spots: Spot[];
}

/** A part of a picture. */
export interface Spot {
  /** Its left and right edge, in hundredths of the width. */
  start: number;
  end: number;
  words: string;
  /** The items that it links to. */
  items: number[];
  /** It is said before anyone chooses another. */
  chosen: boolean;
}

export interface StepsSection {
  kind: "steps";
  title: string;
  steps: FindingStep[];
  left: string;
}

/** One change: texts before and after it. */
export interface FindingStep {
  title: string;
  words: string[];
  before: Text;
  after: Text;
  items: number[];
}

export interface ColumnsSection {
  kind: "columns";
  title: string;
  columns: FindingColumn[];
}

export interface FindingColumn {
  title: string;
  words: string[];
  /** `[what, how many]`. */
  figures: [string, string][];
  blocks: { title: string; code: Text }[];
  left: string;
}
