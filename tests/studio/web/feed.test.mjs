/** What is asked of the server, how often, and when no more, with a clock of the test's own. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { Feed } = await load("feed.js");

const entry = (state, next = 0, messages = []) => ({ state, position: 0, messages, next });

/** Let promises settle. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A feed whose answers are given in turn (an Error is thrown); the last one is given for ever. */
function bench(t, jobs, ...answers) {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [], taken = [], lost = [];
  const ask = async (query) => {
    asked.push(query);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const take = (id, { state }) => taken.push(`${id} ${state}`);
  const feed = new Feed(jobs, { take, lost: (flag) => lost.push(flag), ask });
  const pass = async (ms) => {
    await settle();
    t.mock.timers.tick(ms);
    await settle();
  };
  return { feed, asked, taken, lost, pass };
}

test("every job is asked for from where it stands, ten times a second", async (t) => {
  const { asked, pass } = bench(t, ["a", "b"], { a: entry("running", 3), b: entry("waiting") });
  await pass(99);
  assert.deepEqual(asked, ["job=a&after=0&job=b&after=0"]);
  await pass(1);
  assert.equal(asked[1], "job=a&after=3&job=b&after=0");
});

for (const state of ["done", "failed", "cancelled", "gone"]) {
  test(`a job that is ${state} is not asked for again`, async (t) => {
    const { feed, asked, taken, pass } = bench(t, ["a", "b"],
      { a: entry(state), b: entry("running") }, { b: entry("done") });
    await pass(100);
    assert.equal(asked[1], "job=b&after=0");
    await pass(60_000);
    assert.equal(asked.length, 2);
    assert.deepEqual(taken, [`a ${state}`, "b running", "b done"]);
    assert.ok(feed.over);
  });
}

test("a job that the answer leaves out is gone", async (t) => {
  const { taken, feed, pass } = bench(t, ["a"], {});
  await pass(0);
  assert.deepEqual(taken, ["a gone"]);
  assert.ok(feed.over);
});

test("paused jobs are asked for once a second, and at full pace when one goes on", async (t) => {
  const { asked, pass } = bench(t, ["a", "b"], { a: entry("paused"), b: entry("paused") },
    { a: entry("running"), b: entry("paused") });
  await pass(999);
  assert.equal(asked.length, 1);
  await pass(1);
  await pass(100);
  assert.equal(asked.length, 3);
});

test("the longer a job waits, the more rarely it is asked for", async (t) => {
  const { asked, pass } = bench(t, ["a"], { a: entry("waiting") });
  await pass(120);
  assert.equal(asked.length, 1);
  for (let second = 0; second < 60; second++) await pass(1000);
  const before = asked.length;
  await pass(1999);
  assert.ok(asked.length - before <= 1 && before < 45, `${before}`);
});

test("failures are told once, tried again ever more slowly, and forgotten at an answer", async (t) => {
  const failures = Array.from({ length: 7 }, () => new Error("503"));
  const { asked, lost, pass } = bench(t, ["a"], ...failures, { a: entry("running") });
  for (const pause of [200, 400, 800, 1600, 3200, 5000]) {
    const before = asked.length;
    await pass(pause - 1);
    assert.equal(asked.length, Math.max(1, before), `${pause}`);
    await pass(1);
  }
  assert.deepEqual(lost, [true]);
  await pass(5000);
  assert.deepEqual(lost, [true, false]);
  await pass(100);
  assert.equal(asked.length, 9);
});

test("without jobs nothing is asked", async (t) => {
  const { feed, asked, pass } = bench(t, [], {});
  await pass(1000);
  assert.deepEqual([asked, feed.over], [[], true]);
});

test("after stop neither an answer under way nor a timer does anything", async (t) => {
  const { feed, asked, taken, pass } = bench(t, ["a"], { a: entry("running") });
  feed.stop();
  await pass(1000);
  assert.deepEqual([asked.length, taken], [1, []]);
  const later = bench(t, ["a"], { a: entry("running") });
  await later.pass(50);
  later.feed.stop();
  await later.pass(1000);
  assert.equal(later.asked.length, 1);
});

test("a question that stop breaks off is no failure", async (t) => {
  const { feed, lost, pass } = bench(t, ["a"], new Error("aborted"));
  feed.stop();
  await pass(1000);
  assert.deepEqual(lost, []);
});
