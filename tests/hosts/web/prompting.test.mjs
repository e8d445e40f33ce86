/** Clicks on words: what they make of a prompt, in English and Chinese. */

import assert from "node:assert/strict";
import test from "node:test";

import { clicked, has, usable } from "../../../web/preview/prompting.js";

const chip = (attribute, phrases, plural = false) => ({ attribute, phrases, plural });
const KINDS = [
  { role: "thing", chips: [chip("kind", ["house", "cottage", "房子"]),
    chip("kind", ["boat", "sailboat", "小船"]), chip("kind", ["boats", "几艘船"], true)] },
  { role: "colour", chips: [chip("colour", ["red", "红色"]), chip("colour", ["orange", "橙色"])] },
  { role: "place", chips: [chip("place", ["on the left", "to the left", "在左边"]),
    chip("place", ["on the right", "在右边"])] },
  { role: "scene", chips: [chip("time", ["at dawn", "at sunrise", "黎明"]),
    chip("time", ["at night", "夜晚"]), chip("ground", ["on a lake", "湖上"])] },
];
const [THING, COLOUR, PLACE, SCENE] = KINDS;

/** The prompt after clicks on [kind, number of the chip] in turn. */
const after = (prompt, ...clicks) => clicks.reduce(
  (text, [kind, n]) => clicked(text, kind, kind.chips[n], KINDS), prompt);

test("clicks write a whole prompt from nothing", () => {
  assert.equal(after("", [THING, 0], [COLOUR, 0], [PLACE, 0], [THING, 2], [COLOUR, 1],
    [SCENE, 2], [SCENE, 1]),
  "a red house on the left, some orange boats, on a lake, at night");
});

test("a second click takes back what the first one wrote", () => {
  const prompt = "a red house on the left, on a lake, at dawn";
  for (const click of [[THING, 1], [COLOUR, 1], [PLACE, 1], [SCENE, 1]]) {
    const before = click[0] === THING || click[0] === SCENE ? prompt : "a house, at dawn";
    if (click[0] === SCENE) continue; // takes the place of another time
    assert.equal(after(before, click, click), before);
  }
  assert.equal(after("a house, at dawn", [SCENE, 0]), "a house");
});

test("colours and places go to the thing that was named last, and replace others", () => {
  const prompt = "a red house on the left, a boat, at dawn";
  assert.equal(after(prompt, [COLOUR, 1], [PLACE, 1]),
    "a red house on the left, an orange boat on the right, at dawn");
  assert.equal(after("an orange cottage to the left", [COLOUR, 0], [PLACE, 1]),
    "a red cottage on the right");
});

test("of one attribute a scene has one part, however it was put", () => {
  assert.equal(after("a house, at sunrise, on a lake", [SCENE, 1]), "a house, at night, on a lake");
});

test("things joined by and, and sentences, are parts of their own", () => {
  const prompt = "a red house on the left and an orange boat. at night, on a lake.";
  assert.ok(has(prompt, THING, THING.chips[0], KINDS) && has(prompt, THING, THING.chips[1], KINDS));
  assert.ok(has(prompt, SCENE, SCENE.chips[1], KINDS));
  assert.equal(after(prompt, [THING, 1]), "a red house on the left, at night, on a lake");
  assert.equal(after(prompt, [COLOUR, 0], [SCENE, 0]),
    "a red house on the left, a red boat, at dawn, on a lake");
});

test("prose for a model that knows all words stays as it is typed", () => {
  const style = { role: "style", chips: [chip("oil", ["oil painting"])] };
  assert.equal(clicked("A man and a dog. They walk", style, style.chips[0], [style]),
    "A man and a dog. They walk, oil painting");
});

test("what the prompt says is pressed, and what needs a thing waits for one", () => {
  assert.ok(has("some red boats", THING, THING.chips[2], KINDS));
  assert.ok(!has("some red boats", THING, THING.chips[1], KINDS), "boats are not a boat");
  assert.ok(has("a red house", COLOUR, COLOUR.chips[0], KINDS));
  assert.ok(!usable("at dawn", COLOUR, KINDS) && usable("at dawn", SCENE, KINDS));
});

test("Chinese words are written as Chinese is", () => {
  const chinese = KINDS.map((kind) => ({ ...kind,
    chips: kind.chips.map((one) => ({ ...one, phrases: [one.phrases.at(-1)] })) }));
  const write = (prompt, kind, n) => clicked(prompt, chinese[kind], chinese[kind].chips[n], chinese);
  let prompt = "";
  for (const [kind, n] of [[0, 0], [1, 0], [2, 0], [3, 2], [3, 1]]) prompt = write(prompt, kind, n);
  assert.equal(prompt, "红色的房子在左边，湖上，夜晚");
  assert.equal(write(prompt, 1, 0), "房子在左边，湖上，夜晚");
});
