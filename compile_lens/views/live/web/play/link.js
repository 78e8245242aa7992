// A program and its settings in the fragment of an address, as `from_link` of Python reads it.

/** @import { PlayProgram } from "./play.d.ts" */

const NAME = "p";

/** @param {PlayProgram} program */
export async function fragmentOf(program) {
  const packed = new Blob([JSON.stringify(program)]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `#${NAME}=${text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/**
 * The program in a fragment; null if it holds none.
 * @param {string} fragment
 * @returns {Promise<PlayProgram | null>}
 */
export async function programIn(fragment) {
  const text = new URLSearchParams(fragment.slice(1)).get(NAME);
  if (!text) return null;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const program = JSON.parse(await new Response(plain).text());
    return typeof program?.source === "string" && typeof program.settings === "object" ? program : null;
  } catch {
    return null;
  }
}
