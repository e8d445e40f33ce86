/** The switch of older workflows and prompts, and the words shown of a run, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { paragraphs } from "../../web/preview/drawn_from.js";
import { asPrompted, asSaved } from "../../web/comfy/expansion.js";
import { IDLE, fold } from "../../web/preview/protocol.js";
import { started } from "./messages.mjs";

/** A node as ComfyUI's page makes and configures it: values are taken by position. */
function sampler(names = ["prompt", "seed", "expand", "ssd_preview"]) {
  const defaults = { prompt: "a tent", seed: 7, expand: true };
  const node = {
    widgets: names.map((name) => ({ name, value: defaults[name] ?? "" })),
    configure(saved) {
      saved.widgets_values?.forEach((value, i) => { node.widgets[i].value = value; });
      node.onConfigure?.(saved);
    },
    value: (name) => node.widgets.find((widget) => widget.name === name)?.value,
  };
  return node;
}

function configured(saved) {
  const node = sampler();
  asSaved(node);
  node.configure(saved);
  return node;
}

test("a new node has the switch on", () => {
  const node = sampler();
  asSaved(node);
  assert.equal(node.value("expand"), true);
});

test("a workflow saved before the switch has it off, and keeps its other values", () => {
  const node = configured({ widgets_values: ["a boat", 3] });
  assert.deepEqual([node.value("prompt"), node.value("seed"), node.value("expand")],
    ["a boat", 3, false]);
  assert.equal(configured({ widgets_values_named: { prompt: "a boat" } }).value("expand"), false);
  assert.equal(configured({ widgets_values: ["a boat", 3, null] }).value("expand"), false);
});

test("a workflow saved with the switch has it as it was", () => {
  for (const on of [true, false]) {
    assert.equal(configured({ widgets_values: ["a boat", 3, on] }).value("expand"), on);
    const named = { widgets_values: ["a boat", 3, on], widgets_values_named: { expand: on } };
    assert.equal(configured(named).value("expand"), on);
  }
});

test("what a node did when it was configured it still does; others are left alone", () => {
  const node = sampler(), seen = [];
  node.onConfigure = (...args) => seen.push(args);
  asSaved(node);
  const saved = { widgets_values: ["a boat"] };
  node.configure(saved);
  assert.deepEqual(seen, [[saved]]);
  const other = sampler(["prompt"]);
  asSaved(other);
  assert.equal(other.onConfigure, undefined);
});

test("a prompt in API form without the switch has it off", () => {
  const nodes = { 1: sampler(), 2: sampler(), 3: sampler(["prompt"]) };
  const graph = { getNodeById: (id) => (typeof id === "number" ? nodes[id] : null) };
  asPrompted(graph, { 1: { inputs: { seed: 1 } }, 2: { inputs: { expand: true } }, 3: {}, 4: {} });
  assert.deepEqual([1, 2].map((id) => nodes[id].value("expand")), [false, true]);
});

const WORDS = [["a", false], [" lone", true], [" tent", false]];
const shown = (...messages) => paragraphs(
  Object.values(messages.reduce((state, one) => fold(state, one), IDLE).panels));

test("words that all pictures have are said once, without their numbers", () => {
  const two = [started({ words: [WORDS, WORDS] }), started({ panel: 1, words: [WORDS, WORDS] })];
  assert.deepEqual(shown(...two), [{ pictures: null, pieces: WORDS }]);
});

test("other words are told with the numbers of their pictures, over all panels", () => {
  const other = [["a tent", false]];
  assert.deepEqual(
    shown(started({ words: [WORDS, other] }), started({ panel: 1, words: [WORDS] })),
    [{ pictures: [1, 3], pieces: WORDS }, { pictures: [2], pieces: other }]);
});

test("a run that is drawn as typed says nothing, and malformed words are refused", () => {
  assert.deepEqual(shown(started()), []);
  const { problem } = fold(IDLE, started({ words: [["a tent"]] }));
  assert.deepEqual(problem, { kind: "started", field: "words" });
});
