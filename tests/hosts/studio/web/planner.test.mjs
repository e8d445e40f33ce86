/** One question at a time about the settings, of which the last answer counts; in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { Planner } = await load("planner.js");
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A planner whose questions are answered by hand: asked[n] = {prompt, answer(), fail(), signal}. */
function planning(context) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = [];
  let look = null;
  const settings = { values: { prompt: "" }, watch: (call) => { look = call; call(); } };
  const api = { post: (path, { settings: { prompt } }, signal) => new Promise((answer, fail) => {
    asked.push({ path, prompt, signal, fail,
      answer: () => answer({ text: `plan of ${prompt}` }) });
  }) };
  const planner = new Planner({ settings, api });
  const told = [];
  planner.watch(({ text, problem }) => told.push(problem ?? text));
  const type = (prompt, pause = 300) => {
    settings.values = { prompt };
    look();
    context.mock.timers.tick(pause);
  };
  return { planner, asked, told, type, tick: (ms) => context.mock.timers.tick(ms) };
}

test("the server is asked when typing rests, and an answer that was overtaken is dropped",
  async (context) => {
    const { planner, asked, told, type, tick } = planning(context);
    tick(0);
    asked[0].answer();
    await settled();
    for (const prompt of ["a", "a h", "a house"]) type(prompt, 100);
    assert.equal(asked.length, 1);
    tick(300);
    type("a boat");
    assert.deepEqual(asked.map(({ prompt }) => prompt), ["", "a house", "a boat"]);
    assert.ok(asked[1].signal.aborted);
    asked[2].answer();
    asked[1].answer();
    await settled();
    assert.deepEqual(told, ["plan of ", "plan of a boat"]);
    assert.equal(planner.answer.text, "plan of a boat");
  });

test("a refusal is told; a server that cannot be reached is asked again", async (context) => {
  const { asked, told, type, tick } = planning(context);
  tick(0);
  asked[0].fail(Object.assign(new Error("prompt: wrong"), { status: 400 }));
  await settled();
  assert.deepEqual(told, ["prompt: wrong"]);
  type("a house");
  asked[1].fail(Object.assign(new Error("gone"), { status: 0 }));
  await settled();
  tick(2000);
  asked[2].answer();
  await settled();
  assert.deepEqual(told, ["prompt: wrong", "plan of a house"]);
});

test("who watches late is told the last answer at once", async (context) => {
  const { planner, asked, tick } = planning(context);
  tick(0);
  asked[0].answer();
  await settled();
  let text = null;
  planner.watch((answer) => { ({ text } = answer); });
  assert.equal(text, "plan of ");
});
