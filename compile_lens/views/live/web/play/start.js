// Starts the playground in the place that the entry page made: an addition to the script of the page of one capture.

"use strict";

import "../answers/start.js";
import { h } from "../dom.js";
import { Playground } from "./playground.js";

/** @import { PlayDoor, PlayEditor, PlayEditorOptions } from "./play.d.ts" */
/** @type {{ create: (options: PlayEditorOptions) => PlayEditor }} */
// @ts-expect-error: the bundle of the editor stands before this one in the same script
const editor = editor$;

const place = /** @type {HTMLElement & { compileLens: PlayDoor }} */ (document.currentScript?.closest("main"));
const { socket, hello } = place.compileLens;
const root = place.attachShadow({ mode: "open" });
root.append(h("style", {}, hello.style));
void new Playground(root, socket, hello, editor.create).begin();
