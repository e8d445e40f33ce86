/** The chart of passes: where drafts changed, and how high it is. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { ceiling, changes } = await load("passes_chart.js");
const by = (quality, drafts) => ({ quality, drafts });

test("drafts changed where a quality is drawn by others than before", () => {
  const [none, old, fresh] = ["", "aa", "bb"].map((drafts) => by("Fast", drafts));
  assert.deepEqual(changes([none, none, old, old, fresh]), [2, 4]);
  assert.deepEqual(changes([old, by("rows", ""), old]), [], "a method without drafts");
  assert.deepEqual(changes([none, by("Faithful", ""), old, by("Faithful", "aa")]), [2], "once");
  assert.deepEqual(changes([none, by("Faithful", "aa"), old]), [2], "of what was drawn before");
});

test("the highest line is a round number that four lines divide", () => {
  assert.deepEqual([1, 4, 9, 72, 94, 101, 576, 2304].map(ceiling),
    [4, 4, 12, 80, 100, 120, 600, 2400]);
  for (let most = 1; most < 3000; most += 7) assert.ok(ceiling(most) >= most);
});
