/** What is asked of the server, how often, and when no more, with a clock of the test's own. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { Jobs } = await load("jobs.js");

const entry = (state, messages = [], next = messages.length, position = 0) => (
  { state, position, messages, next });
const job = (id, state) => ({ id, kind: "draw", state, seconds: 1 });

/** Let promises settle. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Jobs whose server gives these answers in turn (an Error is thrown), the last one for ever. feed:
 * by id of a job. lists: of [id, state].
 */
function bench(t, { feed = [{}], lists = [[]] } = {}) {
  t.mock.timers.reset();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [], taken = [], lost = [];
  const get = async (path, query) => {
    const answers = path === "feed" ? feed : lists;
    asked.push(path === "feed" ? new URLSearchParams(query).toString() : path);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer instanceof Error) throw answer;
    return path === "feed" ? answer : { jobs: answer.map(([id, state]) => job(id, state)) };
  };
  const jobs = new Jobs({ get }, (line) => lost.push(line));
  const follow = (id) => jobs.follow(id, ({ state, messages }) => taken.push(
    [id, state, ...messages].join(" ")));
  const pass = async (ms) => {
    await settle();
    t.mock.timers.tick(ms);
    await settle();
  };
  return { jobs, asked, taken, lost, follow, pass, times: (path) => asked.filter(
    (each) => each.startsWith(path)).length };
}

test("one loop asks for followed jobs ten times a second, and for the list at times", async (t) => {
  const { asked, taken, follow, pass, times } = bench(t, { lists: [[["a", "running"]]],
    feed: [{ a: entry("running", ["x"], 1) }, { a: entry("running", [], 1) }] });
  follow("a");
  await pass(99);
  assert.deepEqual(asked, ["job=a&after=0", "jobs"]); // its state has changed
  await pass(1);
  assert.equal(asked.at(-1), "job=a&after=1");
  for (let n = 0; n < 40; n += 1) await pass(100);
  assert.deepEqual(taken.slice(0, 2), ["a running x", "a running"]);
  assert.deepEqual([times("job="), times("jobs")], [42, 11]);
});

test("who follows a job later is given all its messages, and nobody one twice", async (t) => {
  const { asked, taken, follow, pass } = bench(t, { lists: [[["a", "running"]]],
    feed: [{ a: entry("running", ["x", "y"], 2) }, { a: entry("running", ["x", "y", "z"], 3) },
      { a: entry("done", [], 3) }] });
  follow("a");
  await pass(50);
  follow("a");
  await pass(0);
  assert.deepEqual(asked.filter((each) => each !== "jobs"), Array(2).fill("job=a&after=0"));
  assert.deepEqual(taken, ["a running x y", "a running z", "a running x y z"]);
});

for (const state of ["done", "failed", "cancelled", "gone"]) {
  test(`a job that is ${state} is not asked for again`, async (t) => {
    const { asked, taken, follow, pass } = bench(t, { lists: [[["b", "running"]], []],
      feed: [{ a: entry(state) }, { b: entry("running") }, { b: entry("done") }] });
    follow("a");
    follow("b");
    for (let n = 0; n < 10; n += 1) await pass(100);
    assert.deepEqual(taken, [`a ${state}`, "b running", "b done"]);
    const before = asked.length;
    await pass(60_000);
    assert.equal(asked.length, before);
  });
}

test("a job that the answer leaves out is gone", async (t) => {
  const { taken, follow, pass } = bench(t);
  follow("a");
  await pass(0);
  assert.deepEqual(taken, ["a gone"]);
});

test("what waits behind others is asked for with the list, what is next at full pace", async (t) => {
  for (const [place, often] of [[3, 10], [1, 40]]) {
    const { follow, pass, times } = bench(t, { lists: [[["a", "waiting"]]],
      feed: [{ a: entry("waiting", [], 0, place) }] });
    follow("a");
    for (let n = 0; n < 40; n += 1) await pass(100);
    assert.equal(times("job="), 1 + often);
  }
});

test("only paused jobs are asked for every five seconds", async (t) => {
  const { jobs, follow, pass, asked } = bench(t, { lists: [[["a", "paused"]]],
    feed: [{ a: entry("paused") }] });
  follow("a");
  await jobs.refresh();
  await pass(0);
  const before = asked.length;
  await pass(4999);
  assert.equal(asked.length, before);
  await pass(1);
  assert.deepEqual(asked.slice(before), ["job=a&after=0", "jobs"]);
});

test("while all are over and none is followed nothing is asked", async (t) => {
  const { jobs, pass, asked } = bench(t, { lists: [[["a", "done"], ["b", "failed"]]] });
  await jobs.refresh();
  await pass(60_000);
  assert.deepEqual(asked, ["jobs"]);
});

test("failures are told once, tried again ever more slowly, and forgotten at an answer", async (t) => {
  const failures = Array.from({ length: 7 }, () => new Error("503"));
  const { asked, lost, follow, pass } = bench(t, { feed: [...failures, { a: entry("running") }] });
  follow("a");
  for (const pause of [200, 400, 800, 1600, 3200, 5000]) {
    await settle();
    const before = asked.length;
    await pass(pause - 1);
    assert.equal(asked.length, before, `${pause}`);
    await pass(1);
  }
  assert.deepEqual(lost, ["503"]);
  await pass(5000);
  assert.deepEqual(lost, ["503", ""]);
  await pass(100);
  assert.equal(asked.at(-1), "job=a&after=0");
});

test("a list that fails is asked for again, too", async (t) => {
  const { jobs, lost, pass } = bench(t, { lists: [new Error("503"), new Error("503"), []] });
  await jobs.refresh();
  for (let n = 0; n < 20; n += 1) await pass(100);
  assert.deepEqual(lost, ["503", ""]);
});

test("who has ended to follow is told nothing by an answer under way", async (t) => {
  const { asked, taken, follow, pass } = bench(t, { feed: [{ a: entry("running") }] });
  follow("a")();
  await pass(1000);
  assert.deepEqual([asked[0], taken], ["job=a&after=0", []]);
  await pass(60_000);
  assert.ok(asked.filter((each) => each.startsWith("job=")).length === 1);
});
