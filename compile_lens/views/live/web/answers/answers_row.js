// The answers with which the page of a model opens, a button each that leads to the evidence.

import { h } from "../dom.js";

/** @import { OpeningAnswer } from "../types.d.ts" */

/**
 * @param {OpeningAnswer[]} answers
 * @param {(answer: OpeningAnswer) => void} lead
 */
export function answersRow(answers, lead) {
  return h(
    "div",
    { class: "answers", role: "group", "aria-label": "answers" },
    answers.map((answer) =>
      h(
        "button",
        { type: "button", class: "answer", title: `${answer.title}: ${answer.words}`, onclick: () => lead(answer) },
        h("span", {}, h("b", {}, answer.title), ` ${answer.words}`),
      ),
    ),
  );
}
