/** Where keys and pointers move a line, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { afterKey, atShare } = await load("slider.js");

const rows = { min: 1, max: 23, whole: 24, step: 1, leap: 4, down: 1 };
const share = { min: 0, max: 100, whole: 100, step: 1, leap: 10, down: -1 };
const keys = (range, value) => Object.fromEntries(
  ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].map(
    (key) => [key, afterKey(key, value, range)]));

test("on a picture the downward keys move a line down, on a scale they make less", () => {
  assert.deepEqual(keys(rows, 12), {
    ArrowLeft: 11, ArrowRight: 13, ArrowUp: 11, ArrowDown: 13, PageUp: 8, PageDown: 16,
    Home: 1, End: 23,
  });
  assert.deepEqual(keys(share, 50), {
    ArrowLeft: 49, ArrowRight: 51, ArrowUp: 51, ArrowDown: 49, PageUp: 60, PageDown: 40,
    Home: 0, End: 100,
  });
});

test("keys end at the limits, and other keys are none", () => {
  assert.equal(afterKey("ArrowDown", 23, rows), 23);
  assert.equal(afterKey("PageUp", 3, rows), 1);
  for (const key of ["a", "Tab", "Enter", "toString"]) assert.equal(afterKey(key, 3, rows), null);
});

test("a pointer finds the nearest line between rows, within the limits", () => {
  assert.deepEqual([0, 0.02, 0.5, 0.515, 0.53, 1, -3, 7].map((at) => atShare(at, rows)),
    [1, 1, 12, 12, 13, 23, 1, 23]);
  assert.equal(atShare(0.496, share), 50);
});
