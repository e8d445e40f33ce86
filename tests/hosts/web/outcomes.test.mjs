/** Errors and notes where they are seen, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { refusals } from "../../../web/comfy/failures.js";
import { Outcomes } from "../../../web/comfy/outcomes.js";

const SENTENCE = "strict drafts with heads and none are loaded";
const EMPTY = { type: "custom_validation_failed", details: "prompt - it is empty" };

/** A page with one node of a preview, what it shows, and ComfyUI's messages about a run. */
function page({ isForm = false } = {}) {
  const shown = { error: null, dim: false, toasts: [] };
  const preview = {
    fail: (sentence) => Object.assign(shown, { error: sentence, dim: true }),
    sayError: () => { shown.error = null; },
  };
  const node = { title: "SSD Sampler" };
  const manager = {
    add: (one) => shown.toasts.push(one),
    remove: (one) => { shown.toasts = shown.toasts.filter((other) => other !== one); },
  };
  const listeners = {};
  const api = { addEventListener: (kind, take) => { listeners[kind] = take; } };
  const refused = { errors: null }; // as ComfyUI's page keeps them
  const outcomes = new Outcomes({ nodeOf: (id) => (id === "4" || id === "9:4" ? node : null),
    previewOf: () => preview, nodeErrors: () => refused.errors, toasts: () => manager,
    isForm: () => isForm });
  outcomes.watch(api);
  const raise = (kind = "SSD_Sampler", id = "4") => listeners.execution_error({ detail: {
    node_id: id, node_type: kind, exception_message: `${SENTENCE}\n` } });
  return { shown, outcomes, raise, refused, listeners,
    start: () => listeners.execution_start({}) };
}

test("the sentence of an error stands on the node until the next run; the old picture is dim", () => {
  const { shown, raise, start } = page();
  raise();
  assert.deepEqual(shown, { error: SENTENCE, dim: true, toasts: [] });
  start();
  assert.deepEqual(shown, { error: null, dim: true, toasts: [] });
  raise("KSampler");
  raise("SSD_Sampler", "77");
  assert.equal(shown.error, null, "other packs' errors, and nodes that are not here");
});

test("where no node is in sight, it is a message of the page, until the next run", () => {
  for (const [form, id] of [[true, "4"], [false, "9:4"]]) {
    const { shown, raise, start } = page({ isForm: form });
    raise("SSD_Sampler", id);
    assert.deepEqual(shown.toasts,
      [{ severity: "error", summary: "SSD Sampler", detail: SENTENCE }]);
    start();
    assert.deepEqual(shown.toasts, []);
  }
});

test("notes are messages of the page in app mode, once each; of a cached result, too", () => {
  const note = { node: "4", kind: "started", notes: ["unknown: dragon", "no heads"] };
  const { shown, outcomes, start } = page({ isForm: true });
  outcomes.noted(note);
  outcomes.notedIn({ ssd_preview: [{ messages: [note, { kind: "finished" }] }] });
  outcomes.noted({ node: "4", kind: "started" });
  assert.deepEqual(shown.toasts.map((one) => [one.severity, one.detail]),
    [["warn", "unknown: dragon\nno heads"]]);
  start();
  outcomes.notedIn({ ssd_preview: [{ messages: [note] }] });
  assert.equal(shown.toasts.length, 1);
  const graph = page();
  graph.outcomes.noted(note);
  assert.deepEqual(graph.shown.toasts, [], "the node shows them");
});

test("a prompt that is refused says why on its node, as soon as the page knows", (t) => {
  const waiting = new Map(), wait = (run) => waiting.set(run, run) && run;
  t.mock.method(globalThis, "setTimeout", wait);
  t.mock.method(globalThis, "clearTimeout", (run) => waiting.delete(run));
  const look = () => [...waiting.keys()].forEach((run) => waiting.delete(run) && run());
  const { shown, refused, listeners, start } = page();
  refused.errors = { 4: { class_type: "SSD_Sampler", errors: [EMPTY] },
    5: { class_type: "KSampler", errors: [EMPTY] } };
  listeners.promptQueueing();
  assert.equal(shown.error, null, "those are of the prompt before");
  const { errors } = refused;
  refused.errors = null;
  look();
  assert.equal(shown.error, null);
  refused.errors = errors;
  look();
  assert.equal(shown.error, "prompt: it is empty");
  start();
  assert.equal(shown.error, "prompt: it is empty", "the rest of the prompt runs");
  refused.errors = null;
  listeners.promptQueueing();
  assert.equal(shown.error, null);
  listeners.promptQueued();
  refused.errors = errors;
  look();
  assert.equal(shown.error, null, "nobody looks at a prompt that was taken");
});

test("of what was refused, ComfyUI itself words ranges and lists", () => {
  const range = { type: "value_smaller_than_min", details: "cfg" };
  assert.deepEqual(refusals({ 4: { class_type: "SSD_Race", errors: [range, EMPTY] } }),
    [["4", "prompt: it is empty"]]);
  assert.deepEqual(refusals(undefined), []);
});
