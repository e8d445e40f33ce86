/** What is decided about saved pictures without a page, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { Choice, between } = await load("choice.js");
const { held, spread } = await load("zoom.js");
const { rowsToKeep } = await load("edit_tools.js");
const { sizeText } = await import("../../../../web/preview/strings.js");
const { problemOf } = await load("incoming.js");
const { whenSaved } = await load("tile.js");
const { differences } = await load("picture_actions.js");

const ids = ["a", "b", "c", "d", "e"];

test("Shift takes in all from the last one that was turned, in either order", () => {
  assert.deepEqual(between(ids, "b", "d"), ["b", "c", "d"]);
  assert.deepEqual(between(ids, "d", "b"), ["b", "c", "d"]);
  assert.deepEqual(between(ids, null, "c"), ["c"]);
  assert.deepEqual(between(ids, "gone", "c"), ["c"]);
});

test("pictures are chosen, taken out and forgotten", () => {
  let changes = 0;
  const choice = new Choice(() => (changes += 1));
  choice.turn("d");
  choice.turn("b", true, ids);
  assert.deepEqual(choice.among(ids), ["b", "c", "d"]);
  choice.turn("c");
  assert.deepEqual(choice.among(ids), ["b", "d"]);
  choice.drop(["d", "gone"]);
  assert.equal(choice.size, 1);
  choice.drop();
  assert.equal(choice.size, 0);
  assert.equal(changes, 5);
});

test("a picture stays in the middle, or without a gap at an edge", () => {
  assert.equal(held(999, 50, 100), 25);
  assert.equal(held(10, 300, 100), 0);
  assert.equal(held(-999, 300, 100), -200);
  assert.equal(held(-50, 300, 100), -50);
});

test("one pointer has a place, two are also apart", () => {
  assert.deepEqual(spread(new Map([[1, [3, 4]]])), { x: 3, y: 4, apart: 0 });
  assert.deepEqual(spread(new Map([[1, [0, 0]], [2, [6, 8]]])), { x: 3, y: 4, apart: 10 });
});

test("all rows can be kept only of a picture that is extended", () => {
  const whole = { rows: 24, finished: null };
  assert.deepEqual(rowsToKeep(whole, ""), { min: 1, max: 23, first: 12 });
  assert.deepEqual(rowsToKeep(whole, "384x512"), { min: 1, max: 24, first: 24 });
  const stopped = { rows: 24, finished: 7 };
  for (const size of ["", "384x512"]) {
    assert.deepEqual(rowsToKeep(stopped, size), { min: 1, max: 7, first: 7 });
  }
});

test("sizes are told in decimal units", () => {
  assert.deepEqual([0, 999, 1000, 139_240, 1e6, 4.16e9].map(sizeText),
    ["0 B", "999 B", "1.0 kB", "139.2 kB", "1.0 MB", "4.2 GB"]);
});

test("files that are no pictures, or too large, are refused by name", () => {
  const app = { schema: { limits: { upload: 40 << 20 } }, say: (_, values) => values,
    words: { incoming: { kind: "", large: "" } } };
  assert.equal(problemOf(app, { name: "a.webp", type: "image/webp", size: 9 }), "");
  assert.equal(problemOf(app, { name: "a.HEIC", type: "", size: 9 }), "");
  for (const [name, type] of [["a.svg", "image/svg+xml"], ["a.txt", ""]]) {
    assert.deepEqual(problemOf(app, { name, type, size: 9 }), { name });
  }
  assert.deepEqual(problemOf(app, { name: "a.png", type: "image/png", size: (40 << 20) + 1 }),
    { name: "a.png", size: 41, most: 40 });
});

test("a picture of today has its time, others their day, of other years with the year", () => {
  const now = new Date("2026-03-05T18:00:00");
  const said = (at) => whenSaved(at, "en-GB", now);
  assert.deepEqual(["2026-03-05T12:04:06", "2026-03-04T23:00:00", "2025-12-31T01:02:03"].map(said),
    ["12:04", "4 Mar", "31 Dec 2025"]);
});

test("two pictures are told apart by what differs", () => {
  const one = { prompt: "a house", quality: "Fast", seed: "7", name: "1" };
  const labels = (other) => differences([one, { ...one, ...other }], "seed {seed}");
  assert.deepEqual(labels({ seed: "8", name: "2" }), ["seed 7", "seed 8"]);
  assert.deepEqual(labels({ quality: "Balanced", prompt: "a boat" }),
    ["a house · Fast", "a boat · Balanced"]);
  assert.deepEqual(labels({ name: "2" }), ["1", "2"]);
  assert.deepEqual(labels({ prompt: null, quality: null, seed: null, name: "2" }),
    ["a house · Fast · seed 7", "2"]);
});
