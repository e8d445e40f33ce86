/** The line beside a preview, and the table of texts. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";

import { load } from "./as_served.mjs";

const { seedText, statusText, timeLeft } = await load("status.js");
const table = JSON.parse(await readFile(new URL("../../../../studio/texts.json", import.meta.url)));
const stage = (n) => Object.fromEntries(
  Object.entries(table.stage).map(([key, texts]) => [key, texts[n]]));
const TEXTS = { en: stage(0), zh: stage(1) };

const text = (entry, begun = false) => statusText(entry, TEXTS.en, begun);

test("a waiting job says how many are ahead of it", () => {
  assert.equal(text({ state: "waiting", position: 1 }), "Waiting: one run is ahead of this one");
  assert.equal(text({ state: "waiting", position: 3 }), "Waiting: 3 runs are ahead of this one");
});

test("a job that just left the queue, or was not asked for yet, is ahead of none", () => {
  assert.equal(text({ state: "waiting", position: 0 }), TEXTS.en.starting);
  assert.equal(text(null), "");
});

test("a running job says nothing of its own once its preview speaks", () => {
  assert.equal(text({ state: "running" }), "Getting ready");
  assert.equal(text({ state: "running", seconds_left: null }, true), "");
  assert.equal(text({ state: "running", seconds_left: 12.4 }, true), "");
});

test("a seed that is to be finished says how many runs are ahead of it", () => {
  const words = { queued: "waiting", next: "next", ahead: "{ahead} ahead" };
  const said = (kind, position) => seedText({ state: "waiting", kind, position }, null, words);
  assert.deepEqual([said("seeds", 3), said("finish", 1), said("finish", 2)],
    ["waiting", "next", "2 ahead"]);
});

test("time left is told in seconds, then in minutes, and never as nothing", () => {
  const left = (seconds) => timeLeft({ state: "running", seconds_left: seconds }, TEXTS.en);
  assert.deepEqual([0.2, 119, 120, 400].map(left),
    ["about 1 s left", "about 119 s left", "about 2 min left", "about 7 min left"]);
  assert.equal(left(undefined), "");
  assert.equal(timeLeft(null, TEXTS.en), "");
  assert.equal(timeLeft({ state: "paused", seconds_left: 3 }, TEXTS.en), "");
});

test("ends are told where the preview cannot tell them", () => {
  assert.equal(text({ state: "failed", error: "out of memory: lower pictures" }, true),
    "Failed: out of memory: lower pictures");
  assert.equal(text({ state: "cancelled" }), "Stopped before the first row");
  assert.equal(text({ state: "cancelled" }, true), "");
  assert.equal(text({ state: "done" }, true), "");
  assert.match(text({ state: "gone" }, true), /Expired/);
});
