import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { deflateSync } from "node:zlib";

const BOOT = new URL("../../compile_lens/views/live/web/boot/boot.js", import.meta.url);
const SIGNS = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).filter((s) => !'"<\\'.includes(s));

/** Base 91 in the plainest way: a text of zeros and ones, cut into thirteens; a rest of up to six is one sign. */
function signs(bytes) {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let made = "";
  for (let at = 0; at < bits.length; at += 13) {
    const some = bits.slice(at, at + 13);
    const value = Number.parseInt(some.padEnd(some.length > 6 ? 13 : 6, "0"), 2);
    made += SIGNS[value % 91] + (some.length > 6 ? SIGNS[Math.floor(value / 91)] : "");
  }
  return made;
}

/** Runs the parts that a page's script reads. */
async function started(parts) {
  return new Promise((done, failed) => {
    const page = {
      hasAttribute: () => false,
      setAttribute() {},
      querySelector: () => ({ textContent: JSON.stringify(parts) }),
      append: (element) => done({ script: element.textContent, ...page.compileLens }),
      prepend: (element) => failed(new Error(element.textContent)),
    };
    const document = {
      currentScript: { closest: () => page },
      createElement: () => ({ remove() {}, setAttribute() {} }),
    };
    readFile(BOOT, "utf8").then((text) => new Function("document", text)(document), failed);
  });
}

test("a page unpacks texts whose packed bytes end anywhere", async () => {
  const { unpack, script, style } = await started({
    script: signs(deflateSync("let a")),
    style: signs(deflateSync("b{}")),
  });
  assert.deepEqual([script, style], ["let a", "b{}"]);
  const seen = new Set();
  for (let length = 0; length < 80; length++) {
    const text = `é${randomBytes(length).toString("base64")}`;
    const packed = deflateSync(text);
    seen.add(packed.length % 13);
    assert.equal(await unpack(signs(packed)), text);
  }
  assert.equal(seen.size, 13);
});
