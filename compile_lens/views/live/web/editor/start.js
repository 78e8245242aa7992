// The editor of the playground, a bundle of its own: CodeMirror with Python, what is wrong on its line, and the colours
// of the lines.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { python } from "@codemirror/lang-python";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers, WidgetType } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** @import { EditorFault, EditorLine, PlayEditor, PlayEditorOptions } from "../play/play.d.ts" */
/** @import { Range, StateEffectType } from "@codemirror/state" */

/** Inks as those of the listings of the page. */
const INKS = HighlightStyle.define([
  { tag: tags.comment, color: "var(--code-1)" },
  { tag: tags.meta, color: "var(--code-2)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.bool, tags.null, tags.self], color: "var(--code-3)" },
  { tag: [tags.number, tags.typeName], color: "var(--code-4)" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--code-5)" },
  { tag: tags.string, color: "var(--code-7)" },
]);

const THEME = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--ground)", color: "var(--ink)", fontSize: "14px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "24px" },
  ".cm-content": { padding: "6px 0", caretColor: "var(--ink)" },
  ".cm-gutters": { border: "0", backgroundColor: "var(--ground)", color: "var(--faint)" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", cursor: "pointer" },
  ".cm-cursor": { borderLeft: "2px solid var(--accent)" },
  "& .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    background: "light-dark(#bcd6fb, #2c5486)",
  },
});

/** The message below a line. */
class FaultWidget extends WidgetType {
  /** @param {EditorFault} fault */
  constructor(fault) {
    super();
    this.fault = fault;
  }

  /** @override @param {FaultWidget} other */
  eq(other) {
    return other.fault.type === this.fault.type && other.fault.message === this.fault.message;
  }

  /** @override */
  toDOM() {
    const { type, message } = this.fault;
    const element = document.createElement("div");
    // Its margins would not be counted among the heights of lines: they are the padding of what is around it.
    element.className = "fault";
    const words = document.createElement("div");
    const name = document.createElement("b");
    name.textContent = type;
    words.append(name, type ? `: ${message}` : message);
    element.append(words);
    return element;
  }
}

/** @type {StateEffectType<EditorFault | null>} */
const setFault = StateEffect.define();
/** @type {StateEffectType<EditorLine[]>} */
const setLines = StateEffect.define();

/** What is wrong stays at its line while one types, until the next answer. */
const faults = StateField.define({
  create: () => Decoration.none,
  update(shown, transaction) {
    shown = shown.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setFault)) shown = faultAt(transaction.state, effect.value);
    return shown;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const lines = StateField.define({
  create: () => Decoration.none,
  update(shown, transaction) {
    shown = shown.map(transaction.changes);
    for (const effect of transaction.effects)
      if (effect.is(setLines)) shown = coloured(transaction.state, effect.value);
    return shown;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/**
 * @param {EditorState} state
 * @param {EditorFault | null} fault
 */
function faultAt(state, fault) {
  if (!fault) return Decoration.none;
  const { doc } = state;
  const line = doc.line(Math.min(Math.max(fault.line || doc.lines, 1), doc.lines));
  const widget = Decoration.widget({ widget: new FaultWidget(fault), block: true, side: 1 }).range(line.to);
  return Decoration.set(fault.line ? [Decoration.line({ class: "fault-line" }).range(line.from), widget] : [widget]);
}

/**
 * @param {EditorState} state
 * @param {EditorLine[]} wanted
 */
function coloured(state, wanted) {
  /** @type {Range<Decoration>[]} */
  const ranges = [];
  for (const { line, classes, start, end } of wanted) {
    if (line < 1 || line > state.doc.lines) continue;
    const { from, length } = state.doc.line(line);
    if (end < 0) ranges.push(Decoration.line({ class: `own-line ${classes}` }).range(from));
    else if (start < end && end <= length)
      ranges.push(Decoration.mark({ class: `call ${classes}` }).range(from + start, from + end));
  }
  return Decoration.set(ranges, true);
}

/**
 * An editor in a shadow root.
 * @param {PlayEditorOptions} options
 * @returns {PlayEditor}
 */
export function create({ holder, root, text, changed, lineClicked }) {
  const view = new EditorView({
    parent: holder,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers({
          domEventHandlers: { click: (editor, { from }) => lineClicked(editor.state.doc.lineAt(from).number) },
        }),
        history(),
        // A caret that blinks is an animation: the browser composes a frame for each of the display.
        drawSelection({ cursorBlinkRate: 0 }),
        indentOnInput(),
        indentUnit.of("    "),
        bracketMatching(),
        python(),
        syntaxHighlighting(INKS),
        THEME,
        EditorView.lineWrapping,
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({
          "aria-label": "program",
          "aria-description": "Tab indents. Escape, then Tab, leaves the editor.",
          spellcheck: "false",
          autocapitalize: "off",
        }),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
        lines,
        faults,
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    replaceText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    reportFault: (fault) => view.dispatch({ effects: setFault.of(fault) }),
    colourLines: (wanted) => view.dispatch({ effects: setLines.of(wanted) }),
    focusText: () => view.focus(),
    measureAgain: () => view.requestMeasure(),
  };
}
