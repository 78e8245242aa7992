// The address of a program's page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressOf, readAddress } from "../../compile_lens/views/live/web/program/address.js";

test("an address gives back what it was made of", () => {
  for (const one of [
    { cause: 0, find: "", open: [] },
    { cause: 3, find: "x & y=1#2 +%", open: ["breaks", "compilations"] },
  ])
    assert.deepEqual(readAddress(addressOf(one)), one);
});

test("an address that nobody made selects nothing", () => {
  for (const hash of ["", "#", "#cause=x", "#cause=-1", "#cause=1.5", "#cause=1e9e"])
    assert.equal(readAddress(hash).cause, 0, hash);
});
