// The playground: what one types goes to the server, and the newest answer is what one sees. A page that is not of the
// program in the editor is dimmed, and says so.

import { openCompare } from "../compare/page.js";
import { button, h, plural, put } from "../dom.js";
import { CapturePage, PageState } from "./capture_page.js";
import { Controls } from "./controls.js";
import { fragmentOf, programIn } from "./link.js";

/** @import { PlayAnswer, PlayEditor, PlayEditorOptions, PlayHello, PlayProgram } from "./play.d.ts" */

/** Milliseconds of rest until the address has the program. */
const ADDRESS_REST = 500;
/** Width below which one of editor and page is shown at a time, as `play.css` has it. */
const NARROW = "(max-width: 719px)";
/** Key of the last address that this tab wrote. */
const OWN = "compile-lens-own";
/** Seconds that a page takes without its graphs before it, from which on these are shown first. */
const SLOW = 0.3;
/** Code of the server for a page whose place another has taken. */
const ELSEWHERE = 4001;

export class Playground {
  /**
   * @param {ShadowRoot} root
   * @param {WebSocket} socket
   * @param {PlayHello} hello
   * @param {(options: PlayEditorOptions) => PlayEditor} createEditor
   */
  constructor(root, socket, hello, createEditor) {
    this.socket = socket;
    this.hello = hello;
    /** The number of the newest edit, when it was made, and that of the page. */
    this.edit = 0;
    this.editedAt = 0;
    this.shown = 0;
    /** The number of the edit whose graphs are shown, and seconds from the key to them. */
    this.traced = 0;
    this.tracedAfter = 0;
    /** True if the last page took so long, its graphs left out, that they are shown before the next one. */
    this.slow = false;
    /** The number of the last edit whose page has come. */
    this.answered = 0;
    /** Parts of the page by name. @type {Record<string, string>} */
    this.parts = {};
    /** The program of the page, which is what is saved. @type {PlayProgram | null} */
    this.captured = null;
    /** Programs that were sent and not answered, by edit. @type {Map<number, PlayProgram>} */
    this.sent = new Map();
    this.timer = 0;
    /** True while the program is one that came with the address, and the reader has not let it run. */
    this.foreign = false;
    this.ended = false;
    /** True if the page is to be saved once the capture that runs has ended. */
    this.saves = false;
    this.page = new CapturePage(hello.inside, true, openCompare);
    this.controls = new Controls(hello, hello.program.settings, () => this.change());
    this.state = h("span", { class: "state", role: "status" });
    this.note = h("p", { class: "stale-note", hidden: true });
    this.inputs = h("p", { class: "inputs" });
    this.menu = this.snippets();
    const editor = h("div", { class: "editor" });
    this.element = h(
      "div",
      { class: "play" },
      h(
        "header",
        { class: "head" },
        h("h1", {}, "play"),
        this.menu,
        h("span", { class: "room" }),
        this.state,
        this.presents(),
        button("link", () => void this.copy(), { label: "copy a link to this program and its settings" }),
        button("save", () => this.save(), { label: "save the page of the last version that compiled, as one file" }),
      ),
      this.controls.element,
      this.controls.popover.element,
      h(
        "div",
        { class: "sides", "data-side": "editor" },
        h("section", { class: "side-editor", "aria-label": `editor, ${hello.file}` }, editor, this.inputs),
        h("section", { class: "side-page", "aria-label": "capture" }, this.note, this.page.element),
      ),
      this.tabs(),
    );
    this.standing = new PageState(this.element);
    root.append(this.element);
    this.editor = createEditor({
      holder: editor,
      root,
      text: hello.program.source,
      changed: () => this.change(),
      lineClicked: (line) => this.page.pin(hello.file, line),
    });
    socket.addEventListener("message", ({ data }) => void this.answer(JSON.parse(data)));
    socket.addEventListener("close", ({ code }) => this.end(code));
    addEventListener("hashchange", () => void this.follow());
  }

  async begin() {
    if (!(await this.follow())) this.change();
    this.editor.focusText();
  }

  /** Takes the program of the address; true if it holds one. */
  async follow() {
    const program = await programIn(location.hash);
    if (!program) return false;
    if (JSON.stringify(program) === JSON.stringify(this.program())) return this.edit > 0;
    // Any page can lead this tab to an address of its own, and what runs here has the reader's permissions.
    this.foreign = location.hash !== sessionStorage.getItem(OWN);
    this.controls.take({ ...this.hello.program.settings, ...program.settings });
    this.take(program.source);
    return true;
  }

  /** @returns {PlayProgram} */
  program() {
    return { source: this.editor.text(), settings: { ...this.controls.settings } };
  }

  /** Shows another program. @param {string} source */
  take(source) {
    if (source === this.editor.text()) this.change();
    else this.editor.replaceText(source);
  }

  /** Program or settings are other ones: the server is asked, and what it does for the last ones ends. */
  change() {
    if (this.ended) return;
    if (this.foreign) {
      this.hold();
      return;
    }
    const program = this.program();
    this.edit++;
    this.editedAt = performance.now();
    this.sent = new Map([[this.edit, program]]);
    this.socket.send(JSON.stringify({ edit: this.edit, program, early: this.slow }));
    this.tell("waits", "capturing …", "Capturing this one.");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.remember(), ADDRESS_REST);
  }

  /** Says that a program came with the address, and offers to run it. */
  hold() {
    this.edit++; // what is still captured is another one
    this.tell("failed", "not run", "This program came with the address. Run it only if you trust it.");
    this.note.append(
      " ",
      button("run", () => {
        this.foreign = false;
        this.change();
      }),
    );
  }

  /** Writes the program into the address, so that it outlives a reload. */
  async remember() {
    const fragment = await fragmentOf(this.program());
    if (this.foreign) return;
    sessionStorage.setItem(OWN, fragment);
    history.replaceState(null, "", fragment);
  }

  /** @param {PlayAnswer} answer */
  async answer(answer) {
    const { of, parts, names, page, traced } = answer;
    const arrived = performance.now();
    if (traced) await this.paintTraced(of, traced);
    else if (page !== undefined) this.download(page);
    else if (answer.starting && of === this.edit) this.tell("waits", "starting torch …", "Torch is starting.");
    else if (parts && names) {
      this.answered = of;
      this.parts = Object.fromEntries(names.map((name) => [name, parts[name] ?? this.parts[name]]));
      await this.paint(answer, arrived);
    } else if (of === this.edit) this.refuse(answer);
  }

  /**
   * Shows the graphs of a program that is being lowered.
   * @param {number} of
   * @param {Record<string, string>} parts
   */
  async paintTraced(of, parts) {
    const wanted = () => of === this.edit && this.answered < of;
    if (!wanted() || !(await this.page.showTraced(parts, wanted))) return;
    const capture = this.page.traced?.shell;
    this.traced = of;
    this.tracedAfter = this.seconds();
    this.editor.reportFault(null);
    this.editor.colourLines(this.page.lines(this.hello.file, this.editor.text().split("\n"), capture));
    const broken = capture?.model.core.breaks.length ?? 0;
    const breaks = broken ? `${plural(broken, "graph break")} so far.` : "";
    this.tell("lowering", `lowering … · ${this.tracedAfter.toFixed(2)} s`, breaks);
  }

  /** Seconds since the newest edit. */
  seconds() {
    return (performance.now() - this.editedAt) / 1000;
  }

  /**
   * Shows the page of an answer.
   * @param {PlayAnswer} answer
   * @param {number} arrived milliseconds
   */
  async paint(answer, arrived) {
    const { of, seconds: captured = 0, reported = 0 } = answer;
    const program = this.sent.get(of) ?? null;
    if (!(await this.page.show({ ...this.parts }))) return;
    this.shown = of;
    this.captured = program;
    if (of !== this.edit) return;
    this.controls.hear(answer);
    this.editor.reportFault(answer.error ?? null);
    this.editor.colourLines(this.page.lines(this.hello.file, this.editor.text().split("\n")));
    put(this.inputs, [...(answer.inputs ?? []), `torch ${answer.torch}`].join(" · "));
    const seconds = this.seconds();
    this.slow = captured - reported + (performance.now() - arrived) / 1000 > SLOW;
    this.tell("fresh", `up to date · ${seconds.toFixed(2)} s`, "");
    this.state.title = this.traced === of ? `graph after ${this.tracedAfter.toFixed(2)} s` : "";
  }

  /** Says why there is no page of the newest program. @param {PlayAnswer} answer */
  refuse({ error, stopped, message = "" }) {
    if (error) {
      const at = error.line ? `line ${error.line}` : error.type || "no capture";
      const what = error.type === "SyntaxError" ? "does not parse" : "failed";
      this.editor.reportFault(error);
      this.tell("failed", at, error.line ? `Line ${error.line} ${what}.` : "This one was not captured.");
      return;
    }
    const words =
      stopped === "time"
        ? `stopped after ${this.hello.seconds} s: the program or its capture takes longer than that`
        : `the process of the capture ended: ${message}`;
    this.editor.reportFault({ type: "", message: words, line: 0 });
    this.tell(
      "failed",
      stopped === "time" ? `stopped after ${this.hello.seconds} s` : "ended",
      "This one was stopped.",
    );
  }

  /**
   * Says how page and program stand to each other.
   * @param {"fresh" | "waits" | "lowering" | "failed"} state
   * @param {string} words
   * @param {string} reason
   */
  tell(state, words, reason) {
    this.standing.set(state);
    put(this.state, words);
    this.state.title = "";
    if (state === "failed") this.page.dropTraced();
    this.note.hidden = state === "fresh";
    if (this.saves && state !== "waits" && state !== "lowering") this.save();
    put(this.note, this.shown ? `${this.age()} ${reason}` : reason);
  }

  /** How old what is shown is. */
  age() {
    const page = plural(this.edit - this.shown, "edit");
    if (!this.page.traced) return `Last version that compiled, ${page} ago.`;
    const graph = this.edit - this.traced;
    return `The graph is ${graph ? `${plural(graph, "edit")} old` : "of this version"}, all else ${page} old.`;
  }

  /** The server is gone, or another page has taken this one's place. @param {number} code */
  end(code) {
    this.ended = true;
    const words = code === ELSEWHERE ? "open in another tab" : "ended";
    this.tell("failed", words, code === ELSEWHERE ? "Another tab has taken over." : "compile-lens play has ended.");
  }

  snippets() {
    const { menu } = this.hello;
    const options = menu.map(({ title }, number) => h("option", { value: String(number) }, title));
    const list = h(
      "select",
      { class: "menu", "aria-label": "programs" },
      h("option", { value: "" }, "programs"),
      options,
    );
    list.addEventListener("change", () => {
      const chosen = menu[Number(list.value)];
      list.value = "";
      if (!chosen) return;
      this.foreign = false;
      this.controls.take({ ...this.controls.settings, function: "" });
      this.take(chosen.source);
      this.editor.focusText();
    });
    return list;
  }

  presents() {
    const present = button("present", () => {
      const on = this.element.classList.toggle("presents");
      present.setAttribute("aria-pressed", String(on));
      this.editor.measureAgain();
    });
    present.title = "large type, for the back of a room";
    present.setAttribute("aria-pressed", "false");
    return present;
  }

  /** Buttons of a narrow page, which shows the editor or the capture. */
  tabs() {
    const sides = /** @type {const} */ (["editor", "capture"]);
    const buttons = sides.map((side) =>
      button(side, () => show(side), { class: "side-tab", pressed: side === "editor" }),
    );
    const show = (/** @type {string} */ side) => {
      /** @type {HTMLElement} */ (this.element.querySelector(".sides")).dataset.side = side;
      buttons.forEach((one, number) => one.setAttribute("aria-pressed", String(sides[number] === side)));
      if (matchMedia(NARROW).matches && side === "editor") this.editor.measureAgain();
    };
    return h("nav", { class: "side-tabs", "aria-label": "Sides" }, buttons);
  }

  async copy() {
    await this.remember();
    try {
      await navigator.clipboard.writeText(location.href);
      put(this.state, "link copied");
    } catch {
      put(this.state, "the link is in the address");
    }
  }

  /** Asks for the page as one file, once nothing is captured: the request would take the place of a program. */
  save() {
    this.saves = ["waits", "lowering"].includes(this.element.dataset.state ?? "");
    if (this.saves || !this.captured) return;
    this.socket.send(JSON.stringify({ edit: this.shown, program: this.captured, page: true }));
  }

  /** @param {string} page */
  download(page) {
    const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    const name = `${this.hello.file.replace(/\.py$/, "")}.html`;
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}
