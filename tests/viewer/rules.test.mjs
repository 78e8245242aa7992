// Dependencies among the viewer's scripts, and actions that the built ones never take.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const VIEWER = join(dirname(fileURLToPath(import.meta.url)), "../../compile_lens/views/live");
const LONGEST = 400;

/** The rooms from the top down; each may use only later ones. `boot` and `editor` are used by none. */
const ORDER = [
  "boot",
  "editor",
  "widget",
  "series",
  "translation",
  "play",
  "compare",
  "answers",
  "program",
  "shell",
  "chain",
  "panes",
  "findings",
  "fusion",
  "graph",
  "drawing",
  "code",
  "listing",
  "controls",
  "data",
  "dom",
  "types",
];
/** Files in one folder. */
const MOST_FILES = 25;

/** Imports of values, imports of types, and those of style sheets. */
const IMPORT =
  /^import (?:[^;"]* from )?"([^"]+)";|^\/\*\* @import .* from "([^"]+)" \*\/|^import type .* from "([^"]+)";|^@import "([^"]+)";/gm;
/** Every other way to name a file: none of them is used, so that the pattern above matches every import. */
const OTHER_IMPORT = /\bimport\s*\(|\bimport\s*\.\s*meta\b|\brequire\s*\(|^export .* from /m;

/** Patterns of actions that a page must never take, whatever its data are. */
const FORBIDDEN = {
  "requests to the outside":
    /\b(?:fetch|importScripts)\s*\(|\b(?:XMLHttpRequest|WebSocket|EventSource)\b|\bsendBeacon\b/,
  "markup made of data": /\b(?:innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe)\b|\bdocument\s*\.\s*write/,
  "code made of data": /\beval\s*\(|\bnew\s+Function\b/,
  "files of its own": /\bimport\s*\(|\bimport\s*\.\s*meta\b|\brequire\s*\(/,
};

/** The texts of `web/` by path, such as `graph/pane.js`. */
function sources() {
  const all = readdirSync(join(VIEWER, "web"), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const root = join(VIEWER, "web");
  const paths = all.map((entry) =>
    join(entry.parentPath ?? entry.path, entry.name)
      .slice(root.length + 1)
      .replaceAll("\\", "/"),
  );
  return new Map(
    paths
      .filter((path) => path !== "package.json")
      .sort()
      .map((path) => [path, readFileSync(join(root, path), "utf-8")]),
  );
}

/** The files that a file names, by their paths. The editor alone may name packages too, which have none. */
function named(path, text, pattern = IMPORT) {
  return [...text.matchAll(pattern)]
    .map((match) => match.slice(1).find(Boolean))
    .filter((name) => !(room(path) === "editor" && /^@(?:codemirror|lezer)\//.test(name)))
    .map((name) => posix.join(posix.dirname(path), name));
}

/** The room of a file: its folder, or itself at the top. */
function room(path) {
  return path.split(/[/.]/)[0];
}

/** Arrows that do not lead down, as `a.js → b.js`. */
function upward(files) {
  return [...files].flatMap(([path, text]) =>
    named(path, text)
      .filter((other) => room(other) !== room(path) && ORDER.indexOf(room(other)) <= ORDER.indexOf(room(path)))
      .map((other) => `${path} → ${other}`),
  );
}

/** A cycle among files that need each other's values; empty if there is none. */
function circle(files) {
  const values = /^import (?:[^;"]* from )?"([^"]+)";/gm;
  const done = new Set();
  const visit = (path, way) => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
    if (done.has(path)) return [];
    for (const other of named(path, files.get(path), values)) {
      const found = visit(other, [...way, path]);
      if (found.length) return found;
    }
    done.add(path);
    return [];
  };
  return [...files.keys()].map((path) => visit(path, [])).find((found) => found.length) ?? [];
}

test("the rooms are those of the plan, and none has many files", () => {
  const files = [...sources().keys()];
  assert.deepEqual([...new Set(files.map(room))].sort(), [...ORDER].sort());
  for (const one of ORDER) assert.ok(files.filter((path) => room(path) === one).length <= MOST_FILES, one);
});

test("imports lead down the rooms, those of types and styles too", () => {
  assert.deepEqual(upward(sources()), []);
});

test("an import that leads up is told", () => {
  const up = (text, path = "data/model.js") => upward(new Map([[path, text]]));
  assert.deepEqual(up('import { a } from "../graph/pane.js";\n'), ["data/model.js → graph/pane.js"]);
  assert.deepEqual(up('import {\n  a,\n  b,\n} from "../graph/pane.js";\n'), ["data/model.js → graph/pane.js"]);
  assert.deepEqual(up('/** @import { A } from "../graph/pane.js" */\n'), ["data/model.js → graph/pane.js"]);
  assert.deepEqual(up('import type { A } from "../shell/main.js";\n', "data/app.d.ts"), [
    "data/app.d.ts → shell/main.js",
  ]);
  assert.deepEqual(up('import "../boot/boot.js";\n', "shell/main.js"), ["shell/main.js → boot/boot.js"]);
  assert.deepEqual(up('@import "../shell/shell.css";\n', "graph/graph.css"), ["graph/graph.css → shell/shell.css"]);
  assert.deepEqual(up('import { h } from "../dom.js";\nimport { b } from "./chain.js";\n'), []);
});

test("every import is one that is looked at, and of a file that is there", () => {
  const files = sources();
  for (const [path, text] of files) {
    assert.doesNotMatch(text, OTHER_IMPORT, path);
    for (const other of named(path, text)) assert.ok(files.has(other), `${path} names ${other}`);
  }
});

test("no file needs itself by way of others", () => {
  assert.deepEqual(circle(sources()), []);
  const round = new Map([
    ["a.js", 'import { b } from "./b.js";\n'],
    ["b.js", 'import { a } from "./a.js";\n'],
  ]);
  assert.deepEqual(circle(round), ["a.js", "b.js", "a.js"]);
});

test("the pages carry every file", () => {
  const files = sources();
  const reached = new Set();
  const visit = (path) => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const other of named(path, files.get(path))) visit(other);
  };
  for (const start of [
    "boot/boot.js",
    "boot/host.css",
    "shell/start.js",
    "shell/viewer.css",
    "compare/start.js",
    "compare/start.css",
    "answers/start.js",
    "answers/start.css",
    "program/start.js",
    "program/start.css",
    "boot/entry.js",
    "editor/start.js",
    "play/start.js",
    "play/start.css",
    "play/beside.css",
    "widget/start.js",
    "widget/start.css",
    "series/start.js",
    "series/start.css",
    "translation/start.js",
  ])
    visit(start);
  assert.deepEqual(
    [...files.keys()].filter((path) => !reached.has(path)),
    [],
  );
});

test("files are short", () => {
  for (const [path, text] of sources()) {
    // The contract with Python is one list.
    if (path !== "types.d.ts")
      assert.ok(text.split("\n").length <= LONGEST + 1, `${path} has more than ${LONGEST} lines`);
  }
});

test("no rule is for what stands in something by a part of its class attribute", () => {
  // Otherwise a browser restyles everything in an element whenever any of its classes changes.
  for (const [path, text] of sources())
    if (path.endsWith(".css")) assert.doesNotMatch(text, /\[class[~|^$*]?=[^\]]*\][^,{}]*[\s>+~]+[.\w#:[*&]/, path);
});

test("a page asks for nothing and makes no code or markup of its data", () => {
  for (const name of ["boot.min.js", "viewer.min.js", "answers.min.js", "compare.min.js"]) {
    const text = readFileSync(join(VIEWER, "built", name), "utf-8");
    assert.ok(text.length > 500);
    for (const [what, pattern] of Object.entries(FORBIDDEN)) assert.doesNotMatch(text, pattern, `${name}: ${what}`);
  }
});

test("what a page must not do is told", () => {
  const bad = [
    'fetch("x")',
    "new WebSocket(a)",
    'a.innerHTML=""',
    "document.write(a)",
    "eval(a)",
    "new Function(a)",
    'import("./a.js")',
  ];
  for (const text of bad)
    assert.ok(
      Object.values(FORBIDDEN).some((pattern) => pattern.test(text)),
      text,
    );
});

test("what stands in the page as it is ends neither its script nor its style", () => {
  for (const name of ["boot.min.js", "host.min.css"]) {
    assert.doesNotMatch(readFileSync(join(VIEWER, "built", name), "utf-8"), /<\/|<!--/, name);
  }
});
