// Bundles the page's scripts and styles. esbuild joins and shortens them; terser, which gives the shortest names to what
// is named most, makes the largest of them a twentieth smaller once it is packed, on every page. Zopfli, which takes a
// second to look for the shortest form of deflate, packs it and the styles: another twenty-fifth. Names that only our
// classes know are short as well: one byte of seventy. What terser calls unsafe holds for scripts that change no built-in
// and whose getters do nothing else, as ours.
//
//     node build.mjs [--outdir=FOLDER]

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import zopfli from "@gfx/zopfli";
import { build } from "esbuild";
import { minify } from "terser";

const WEB = "../../compile_lens/views/live/web";
const given = process.argv.find((one) => one.startsWith("--outdir="));
const outdir = given?.slice("--outdir=".length) ?? "../../compile_lens/views/live/built";

await build({
  entryPoints: [
    { in: `${WEB}/boot/boot.js`, out: "boot" },
    { in: `${WEB}/boot/host.css`, out: "host" },
    { in: `${WEB}/shell/start.js`, out: "viewer" },
    { in: `${WEB}/shell/viewer.css`, out: "viewer" },
    { in: `${WEB}/compare/start.js`, out: "comparison" },
    { in: `${WEB}/compare/start.css`, out: "comparison" },
  ],
  bundle: true,
  minify: true,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
  outExtension: { ".js": ".min.js", ".css": ".min.css" },
  outdir,
});
/**
 * Names of fields and methods of our classes that nothing else knows: no data of a page, no text of the scripts, and, as
 * terser sees to, no browser.
 */
async function ownNames() {
  const read = async (/** @type {string} */ folder, /** @type {string} */ ending) => {
    const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(ending)).sort();
    return (await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")))).join("\n");
  };
  const scripts = (await read(WEB, ".js")).replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
  const uncommented = (/** @type {string} */ text) => text.replace(/\/\*[^]*?\*\//g, "");
  const data = `${uncommented(await readFile(`${WEB}/types.d.ts`, "utf8"))}\n${await read(`${WEB}/boot`, ".js")}`;
  const known = new Set(data.match(/\w+/g));
  for (const [, name] of scripts.matchAll(/["'`](\w+)["'`]/g)) known.add(name);
  for (const [, name] of scripts.matchAll(/dataset\.(\w+)/g)) known.add(name);
  const own = [...scripts.matchAll(/this\.(\w{3,}) = |^  (?:async |get )?(\w{3,})\(.*\) \{$/gm)].map(
    (m) => m[1] ?? m[2],
  );
  return [...new Set(own)].filter((name) => !known.has(name) && name !== "constructor").sort();
}

const properties = { regex: new RegExp(`^(?:${(await ownNames()).join("|")})$`), keep_quoted: true };
for (const page of ["viewer", "comparison"]) {
  const script = join(outdir, `${page}.min.js`);
  const style = join(outdir, `${page}.min.css`);
  const { code } = await minify(await readFile(script, "utf8"), {
    ecma: 2022,
    compress: {
      passes: 3,
      lhs_constants: false,
      pure_getters: true,
      unsafe: true,
      unsafe_arrows: true,
      unsafe_comps: true,
    },
    mangle: { properties },
    format: { ecma: 2022 },
  });
  if (!code) throw new Error(`nothing is left of ${script}`);
  await writeFile(script, `${code}\n`);
  const packed = { [script]: code, [style]: (await readFile(style, "utf8")).trimEnd() };
  for (const [file, text] of Object.entries(packed))
    await writeFile(`${file}.zlib`, await zopfli.zlibAsync(Buffer.from(text), { numiterations: 60 }));
}
