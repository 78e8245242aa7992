/** What is wrong with a program of the playground; line 0 is none. */
export interface EditorFault {
  type: string;
  message: string;
  line: number;
}

/** What has a colour in a program: characters of a line, or all of it where `end` is -1. */
export interface EditorLine {
  line: number;
  start: number;
  end: number;
  classes: string;
}

export interface PlayEditorOptions {
  holder: HTMLElement;
  root: ShadowRoot;
  text: string;
  changed(): void;
  /** The number of a line was clicked. */
  lineClicked(line: number): boolean;
}

/** The editor, which is a bundle of its own: these names reach across. */
export interface PlayEditor {
  text(): string;
  replaceText(text: string): void;
  reportFault(error: EditorFault | null): void;
  colourLines(lines: EditorLine[]): void;
  focusText(): void;
  measureAgain(): void;
}

/** What the entry page of the playground leaves at its place. */
export interface PlayDoor {
  socket: WebSocket;
  hello: PlayHello;
}

/** Settings of the playground, as Python's `Settings`. */
export interface PlaySettings {
  function: string;
  target: string;
  /** A second target; "" for none. */
  beside: string;
  dtype: string;
  /** Name of a version of torch; "" for that of the server. */
  torch: string;
  rows: number;
  columns: number;
  requires_grad: boolean;
  dynamic: boolean;
  switches: string[];
  /** Sizes of a widget, by their keys. */
  [size: string]: unknown;
}

export interface PlayProgram {
  source: string;
  settings: PlaySettings;
}

/** What the controls offer. */
export interface PlayOffer {
  targets: [string, string][];
  /** The same of the second target. */
  beside: [string, string][];
  dtypes: string[];
  /** Versions of torch: names and words. */
  torches: [string, string][];
  /** Settings that are sizes, and what each is called. */
  sizes: [string, string][];
  largest: number;
}

/** What a widget begins with. */
export interface WidgetHello extends PlayOffer {
  settings: PlaySettings;
}

/** The first message of the playground's server. */
export interface PlayHello extends PlayOffer {
  file: string;
  program: PlayProgram;
  menu: { title: string; file: string; source: string }[];
  seconds: number;
  script: string;
  /** The style around the capture, and that inside of it. */
  style: string;
  inside: string;
}

/** What a widget has of its notebook: the part of an anywidget model that it uses. */
export interface WidgetModel {
  get(name: "hello"): string;
  send(message: { view: string; edit: number; settings: PlaySettings }): void;
  on(event: "msg:custom", hear: (answer: PlayAnswer) => void): void;
  off(event: "msg:custom", hear: (answer: PlayAnswer) => void): void;
}

/** Styles of a widget: around the capture, and inside of it. */
export interface WidgetStyles {
  around: string;
  inside: string;
}

/** What the module of a widget exports; the function that `render` returns ends the view. */
export interface WidgetModule {
  render?(given: { model: WidgetModel; el: HTMLElement }): () => void;
}

/** What the page sends: a program to capture, or whose page it wants as one file. */
export interface PlayRequest {
  edit: number;
  program: PlayProgram;
  page?: boolean;
  /** Whether graphs are wanted as soon as they are traced. */
  early?: boolean;
}

/** An answer to the edit `of`. */
export interface PlayAnswer {
  of: number;
  /** The view of a widget that asked. */
  view?: string;
  starting?: boolean;
  stopped?: "time" | "ended";
  message?: string;
  /** Beside parts: what failed for one of two targets. */
  error?: EditorFault;
  page?: string;
  /** Parts of the page of what was traced, before it is lowered. */
  traced?: Record<string, string>;
  /** Parts of the page that are otherwise than before, and the names of all. */
  parts?: Record<string, string>;
  names?: string[];
  /** Seconds that the child took, and how many of them for what was traced. */
  seconds?: number;
  reported?: number;
  functions?: string[];
  function?: string;
  inputs?: string[];
  own_inputs?: boolean;
  /** The version of torch that captured it. */
  torch?: string;
  switches?: Record<string, string>;
}
