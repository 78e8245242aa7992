// Bundles the page's scripts and styles into one script, and two additions that only some pages carry, those of several
// captures and those of several kernels: each uses what the script contains and is placed inside it
// (`views/live/page.py`), so that no code is duplicated.
//
// esbuild joins and shortens them; terser, which gives the shortest names to the most used ones, makes the script a
// twentieth smaller once it is packed, on every page. Zopfli, which searches a second for the shortest deflate stream,
// packs it and the style: another twenty-fifth. Names that only our classes know are shortened too: one byte of
// seventy. Terser's "unsafe" is safe for scripts like ours, which change no built-in and have pure getters.
//
//     node build.mjs [--outdir=FOLDER]

import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

import zopfli from "@gfx/zopfli";
import { build } from "esbuild";
import { minify } from "terser";

const WEB = "../../compile_lens/views/live/web";
const option = process.argv.find((one) => one.startsWith("--outdir="));
const outdir = option?.slice("--outdir=".length) ?? "../../compile_lens/views/live/built";

/** @type {import("esbuild").BuildOptions} */
const SHORT = { bundle: true, minify: true, charset: "utf8", target: "es2022", legalComments: "none" };

/** The object through which the addition reaches the script. */
const SHARED = "shared$";

const OPENING = '(()=>{"use strict";';
const CLOSING = "})();";

/** The texts of all scripts by path, without comments. */
async function texts(/** @type {string} */ ending) {
  const files = (await readdir(WEB, { recursive: true })).filter((file) => file.endsWith(ending)).sort();
  const read = async (/** @type {string} */ file) =>
    /** @type {[string, string]} */ ([
      file.replaceAll("\\", "/"),
      (await readFile(join(WEB, file), "utf8")).replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, ""),
    ]);
  return new Map(await Promise.all(files.map(read)));
}

const scripts = await texts(".js");

/**
 * Names of fields and methods of our classes that occur nowhere else: in no data of a page, no text of the scripts,
 * and, as terser ensures, no browser API.
 */
async function ownNames() {
  const code = [...scripts.values()].join("\n");
  const contracts = ["types.d.ts", "play/play.d.ts"].map((path) => readFile(`${WEB}/${path}`, "utf8"));
  const types = (await Promise.all(contracts)).join("\n").replace(/\/\*[^]*?\*\//g, "");
  const known = new Set(`${types}\n${scripts.get("boot/boot.js")}`.match(/\w+/g));
  for (const [, name] of code.matchAll(/["'`](\w+)["'`]/g)) known.add(name);
  for (const [, name] of code.matchAll(/dataset\.(\w+)/g)) known.add(name);
  const own = [...code.matchAll(/this\.(\w{3,}) = |^  (?:async |get )?(\w{3,})\(.*\) \{$/gm)].map((m) => m[1] ?? m[2]);
  return [...new Set(own)].filter((name) => !known.has(name) && name !== "constructor").sort();
}

/** The scripts that a script needs, with the names that each of their importers takes from them. */
function reached(/** @type {string} */ start) {
  /** @type {Map<string, Map<string, Set<string>>>} */
  const needs = new Map();
  const visit = (/** @type {string} */ path) => {
    if (needs.has(path)) return;
    const taken = new Map();
    needs.set(path, taken);
    for (const [, names, from] of (scripts.get(path) ?? "").matchAll(/^import (?:\{([^}]*)\} from )?"([^"]+)";/gm)) {
      const other = join(dirname(path), from).replaceAll("\\", "/");
      taken.set(other, new Set((names ?? "").split(",").flatMap((name) => name.trim() || [])));
      visit(other);
    }
  };
  visit(start);
  return needs;
}

const base = reached("shell/start.js");
const ADDITIONS = ["answers", "compare", "play", "widget", "series"];
/** Names that the additions take from the script: path and name, each under a short key. @type {Map<string, string>} */
const keys = new Map();
for (const [path, taken] of ADDITIONS.flatMap((name) => [...reached(`${name}/start.js`)]))
  if (!base.has(path))
    for (const [other, names] of taken)
      if (base.has(other))
        for (const name of names) if (!keys.has(`${other} ${name}`)) keys.set(`${other} ${name}`, `_${keys.size}`);

/** Reads what the script contains from the shared object. @type {import("esbuild").Plugin} */
const fromShared = {
  name: "shared",
  setup(bundler) {
    bundler.onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
      const other = relative(join(process.cwd(), WEB), join(resolveDir, path)).replaceAll("\\", "/");
      return base.has(other) ? { path: other, namespace: "shared" } : undefined;
    });
    bundler.onLoad({ filter: /.*/, namespace: "shared" }, ({ path }) => {
      const own = [...keys].filter(([key]) => key.startsWith(`${path} `));
      const contents = own.map(([key, short]) => `export const ${key.split(" ")[1]} = ${SHARED}.${short};`).join("\n");
      return { contents };
    });
  },
};

const exported = [...keys].map(
  ([key, short]) => `export { ${key.split(" ")[1]} as ${short} } from "./${key.split(" ")[0]}";`,
);
const whole = await build({
  ...SHORT,
  stdin: { contents: `import "./shell/start.js";\n${exported.join("\n")}`, resolveDir: WEB },
  format: "esm",
  write: false,
});
const added = (/** @type {string} */ name) =>
  build({
    ...SHORT,
    entryPoints: [`${WEB}/${name}/start.js`],
    format: "iife",
    write: false,
    plugins: [fromShared],
  });
await build({
  ...SHORT,
  entryPoints: [
    { in: `${WEB}/boot/boot.js`, out: "boot" },
    { in: `${WEB}/boot/host.css`, out: "host" },
    { in: `${WEB}/shell/viewer.css`, out: "viewer" },
    { in: `${WEB}/answers/start.css`, out: "answers" },
    { in: `${WEB}/compare/start.css`, out: "compare" },
    { in: `${WEB}/program/start.js`, out: "program" },
    { in: `${WEB}/program/start.css`, out: "program" },
    { in: `${WEB}/boot/entry.js`, out: "entry" },
    { in: `${WEB}/translation/start.js`, out: "translation" },
    { in: `${WEB}/play/start.css`, out: "play" },
    { in: `${WEB}/play/beside.css`, out: "beside" },
    { in: `${WEB}/widget/start.css`, out: "widget" },
    { in: `${WEB}/series/start.css`, out: "series" },
  ],
  logLevel: "warning",
  outExtension: { ".js": ".min.js", ".css": ".min.css" },
  outdir,
});

// The editor of the playground is mostly CodeMirror, whose names are internal: a bundle that the script reaches by
// one name.
await build({
  ...SHORT,
  entryPoints: [{ in: `${WEB}/editor/start.js`, out: "editor" }],
  format: "iife",
  globalName: "editor$",
  banner: { js: `/*\n${await readFile("node_modules/@codemirror/view/LICENSE", "utf8")}*/` }, // all of its packages'
  nodePaths: ["node_modules"],
  outExtension: { ".js": ".min.js" },
  outdir,
});

const properties = { regex: new RegExp(`^(?:${(await ownNames()).join("|")})$`), keep_quoted: true };
const nameCache = {}; // a property has one short name in both
async function shortest(/** @type {string} */ text, /** @type {boolean} */ module) {
  const { code } = await minify(text, {
    ecma: 2022,
    module,
    compress: {
      passes: 3,
      lhs_constants: false,
      pure_getters: true,
      unsafe: true,
      unsafe_arrows: true,
      unsafe_comps: true,
    },
    mangle: { properties },
    nameCache,
    format: { ecma: 2022 },
  });
  if (!code) throw new Error("nothing is left of a script");
  return code;
}

const code = await shortest(whole.outputFiles[0].text, true);
const [clause, names] = /export\{([^}]*)\};?\s*$/.exec(code) ?? ["", ""];
const script = `${OPENING}${code.slice(0, code.length - clause.length)}${CLOSING}`;
const pairs = names.split(",").map((pair) => pair.split(" as ").reverse().join(":"));
const style = (await readFile(join(outdir, "viewer.min.css"), "utf8")).trimEnd();
await writeFile(join(outdir, "viewer.min.js"), `${script}\n`);
for (const name of ADDITIONS) {
  const text = await shortest((await added(name)).outputFiles[0].text, false);
  await writeFile(join(outdir, `${name}.min.js`), `;const ${SHARED}={${pairs.join(",")}};${text}\n`);
}
for (const [file, text] of Object.entries({ "viewer.min.js": script, "viewer.min.css": style }))
  await writeFile(join(outdir, `${file}.zlib`), await zopfli.zlibAsync(Buffer.from(text), { numiterations: 60 }));
