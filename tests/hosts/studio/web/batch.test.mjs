/** The jobs of seeds as one batch: which are shown, what the bar says, how large tiles are. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { barLine, columnsFor, shareOf, shownJobs, totals } = await load("batch.js");

const job = (id, kind, seed, state, more = {}) => ({ id, kind, seed, state, expired: false,
  rows: null, saved: [], seconds: 0, seconds_left: null, ...more });
const paused = (id, seed) => job(id, "seeds", seed, "paused",
  { rows: [16, 24], seconds: 2, seconds_left: 1 });
const ids = (jobs) => shownJobs(jobs).map(({ id }) => id);

test("a seed keeps its place when its rest is drawn", () => {
  const jobs = [job("a", "seeds", "1", "done"), paused("b", "2"),
    job("c", "finish", "1", "running"), job("d", "draw", null, "running")];
  assert.deepEqual(ids(jobs), ["c", "b"]);
});

test("stopped tops and those that were kept elsewhere are left out, expired ones are not", () => {
  assert.deepEqual(ids([job("a", "seeds", "1", "cancelled"), job("b", "seeds", "2", "done"),
    job("c", "seeds", "3", "cancelled", { expired: true }), job("d", "seeds", "4", "failed"),
    job("e", "seeds", "5", "waiting")]), ["c", "d", "e"]);
});

test("a tile shows the rows that are drawn, or that will be", () => {
  assert.equal(shareOf(paused("a", "1"), 0.5), 16 / 24);
  assert.equal(shareOf(job("a", "seeds", "1", "waiting"), 0.5), 0.5);
  assert.equal(shareOf(job("a", "finish", "1", "waiting"), 0.5), 1);
});

test("only paused seeds count as ticked; their seconds are summed", () => {
  const sum = totals([paused("a", "1"), paused("b", "2"), job("c", "finish", "3", "done",
    { saved: [{}] })], new Set(["a", "c"]));
  assert.deepEqual([sum.ticked, sum.seconds, sum.paused, sum.saved], [1, 1, 2, 1]);
});

test("the time left is that of the seeds before, and unknown until one is drawn", () => {
  const rest = [job("b", "seeds", "2", "running", { seconds: 0.5 }),
    job("c", "seeds", "3", "waiting")];
  assert.equal(totals([paused("a", "1"), ...rest], new Set()).left, 3.5);
  assert.equal(totals(rest, new Set()).left, null);
});

test("the bar says what is most pressing", () => {
  const words = { going: "{drawn} of {count}", left: ", {seconds} s", ticked: "{ticked} ticked",
    paused: "{paused} paused", expired: "expired", saved: "{saved} saved" };
  const line = (jobs, ticked = []) => barLine(totals(jobs, new Set(ticked)), words);
  const running = job("b", "seeds", "2", "running", { seconds: 0.5 });
  const gone = job("c", "seeds", "3", "cancelled", { expired: true });
  const done = job("d", "finish", "4", "done", { saved: [{}] });
  assert.equal(line([running]), "0 of 1");
  assert.equal(line([paused("a", "1"), running], ["a"]), "1 of 2, 2 s");
  assert.equal(line([paused("a", "1"), gone], ["a"]), "1 ticked");
  assert.equal(line([paused("a", "1"), gone, done]), "1 paused");
  assert.equal(line([gone, done]), "expired");
  assert.equal(line([done]), "1 saved");
  assert.equal(line([]), "");
});

test("tiles are as large as lets all of them be seen", () => {
  assert.equal(columnsFor(8, { width: 980, height: 600 }, 2 / 3), 4);
  assert.equal(columnsFor(2, { width: 980, height: 600 }, 2 / 3), 2);
  assert.equal(columnsFor(8, { width: 980, height: 100 }, 2 / 3), 5); // they scroll
  assert.equal(columnsFor(8, { width: 150, height: 100 }, 2 / 3), 1);
});
