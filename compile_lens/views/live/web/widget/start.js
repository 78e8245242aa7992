// Gives the module of an anywidget its `render`: an addition to the script of the page of one capture.

"use strict";

import "../answers/start.js";
import { h } from "../dom.js";
import { Widget } from "./widget.js";

/** @import { WidgetModule, WidgetStyles } from "../play/play.d.ts" */
// What Python writes before and behind this script: the styles, and the object that the module exports.
/** @type {WidgetStyles} */
// @ts-expect-error
const styles = styles$;
/** @type {WidgetModule} */
// @ts-expect-error
const exported = widget$;

exported.render = ({ model, el }) => {
  // JupyterLab takes no key from inside an element that says this.
  const host = h("div", { class: "compile-lens-widget", "data-lm-suppress-shortcuts": "true" });
  const root = host.attachShadow({ mode: "open" });
  const widget = new Widget(model, JSON.parse(model.get("hello")), styles.inside);
  root.append(h("style", {}, styles.around), widget.element);
  el.append(host);
  widget.change();
  return () => model.off("msg:custom", widget.hear);
};
