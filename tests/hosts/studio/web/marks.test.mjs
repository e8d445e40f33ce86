/** Where the unknown words of a prompt stand, and where they are after more was typed; in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { shifted, unknownIn } = await load("marks.js");
const { Settings } = await load("settings.js");

const unknown = (start, end, nearest = null) => ({ kind: "unknown", start, end, nearest });
const words = (marks, text) => marks.map(({ start, end }) => text.slice(start, end));

test("words are found behind blanks at the front and characters of two code units", () => {
  const text = "  🏠🏠 hous, a 𠀀龙 zzxq";
  const marks = unknownIn([unknown(3, 7, "house"), unknown(11, 13), unknown(14, 18),
    { kind: "moved", start: null, end: null }, unknown(null, null)], text);
  assert.deepEqual(words(marks, text), ["hous", "𠀀龙", "zzxq"]);
  assert.deepEqual(marks.map(({ word, nearest }) => [word, nearest]),
    [["hous", "house"], ["𠀀龙", null], ["zzxq", null]]);
});

test("marks follow what is typed before and after them, and go with what is typed in them", () => {
  const before = "a hous and a zzxq";
  const marks = unknownIn([unknown(2, 6), unknown(13, 17)], before);
  const after = (text) => words(shifted(marks, before, text), text);
  assert.deepEqual(after("a big hous and a zzxq"), ["hous", "zzxq"]);
  assert.deepEqual(after("a hous and a zzxq, at night"), ["hous", "zzxq"]);
  assert.deepEqual(after("a hous with a zzxq"), ["hous", "zzxq"]);
  assert.deepEqual(after("a house and a zzxq"), ["zzxq"]);
  assert.deepEqual(after("a hos and a zzxq"), ["zzxq"]);
  assert.deepEqual(after("a hous and a zzxq "), ["hous", "zzxq"]);
  assert.deepEqual(after("a hous and a zzxqs"), ["hous"]);
  assert.deepEqual(after("a bhous and a zzxq"), ["zzxq"]);
  assert.deepEqual(after("a boat"), []);
  assert.deepEqual(after(""), []);
  assert.deepEqual(after(before), ["hous", "zzxq"]);
});

test("words to draw and additions left open hold for the prompt that they were set for", () => {
  const defaults = { prompt: "", negative: null, open: [], prompt_expanded: null,
    negative_expanded: null, size: null };
  const settings = new Settings({ settings: defaults });
  const own = { open: ["sky"], prompt_expanded: "a house under a sky" };
  settings.set({ prompt: "a house", ...own });
  settings.set({ size: "1x1", prompt: "a house " });
  assert.deepEqual([settings.get("open"), settings.get("prompt_expanded")], Object.values(own));
  settings.set({ negative: "fog" });
  assert.deepEqual([settings.get("open"), settings.get("prompt_expanded")], [["sky"], null]);
  settings.set({ prompt: "a boat" });
  assert.deepEqual(settings.get("open"), []);
});
