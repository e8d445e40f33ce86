/** What the page remembers of every node, in bare Node. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Memory, NO_ID } from "../../../web/comfy/memory.js";
import { cells, finished, pass, rows, started } from "./messages.mjs";

let serial = 0;
const sent = (message, changes = {}) => ({ ...message, graph: "g", serial: ++serial, ...changes });
const kinds = (memory, node = "12:5") => memory.get("g", node).messages.map(({ kind }) => kind);

test("a run is remembered in order, without rows that were painted over", () => {
  const memory = new Memory();
  [started(), rows(), pass(), rows({ first: 1, last: 2 }), rows({ first: 0, last: 2 }), finished()]
    .forEach((message) => assert.equal(memory.add(sent(message)), true));
  assert.deepEqual(kinds(memory), ["started", "pass", "rows", "finished"]);
  assert.equal(memory.get("g", "12:5").messages[2].last, 2);
});

test("of the cells in flight only the newest are remembered, each panel's own", () => {
  const memory = new Memory();
  [started(), cells(), cells({ panel: 1 }), rows(), cells({ first: 2, last: 4 })]
    .forEach((message) => memory.add(sent(message)));
  assert.deepEqual(kinds(memory), ["started", "cells", "rows", "cells"]);
  assert.deepEqual(memory.get("g", "12:5").messages.map(({ panel }) => panel), [0, 1, 0, 0]);
});

test("what was told before is no news", () => {
  const memory = new Memory();
  const first = sent(started());
  assert.deepEqual([memory.add(first), memory.add({ ...first })], [true, false]);
  assert.deepEqual(kinds(memory), ["started"]);
});

test("a new run takes the place of the old one, on its own panel only", () => {
  const memory = new Memory();
  memory.add(sent(started()));
  memory.add(sent(started({ run: "right", panel: 1 })));
  memory.add(sent(rows({ run: "right", panel: 1 })));
  memory.add(sent(started({ run: "second" })));
  assert.deepEqual(kinds(memory), ["started", "rows", "started"]);
  assert.equal(memory.knows({ graph: "g", node: "12:5", run: "first" }), false);
  assert.equal(memory.knows({ graph: "g", node: "12:5", run: "right" }), true);
});

test("workflows and nodes are told apart, and a graph without an id is no workflow", () => {
  const memory = new Memory();
  memory.add(sent(started()));
  memory.add(sent(started({ node: "6" })));
  memory.add(sent(started(), { graph: "other" }));
  memory.add(sent(started(), { graph: NO_ID }));
  assert.deepEqual(memory.of("g").map(({ node }) => node), ["12:5", "6"]);
  assert.deepEqual([memory.of(NO_ID), memory.of("")], [[], []]);
});

test("an older run may be put back, and later news still counts", () => {
  const memory = new Memory();
  const old = [sent(started({ run: "old" })), sent(finished({ run: "old" }))];
  const late = sent(started({ run: "late" }));
  memory.add(late);
  memory.replace("g", "12:5", old);
  assert.deepEqual([memory.add(late), kinds(memory)], [false, ["started", "finished"]]);
  assert.equal(memory.add(sent(started({ run: "next" }))), true);
});

test("only so many nodes are remembered, the latest of them", () => {
  const memory = new Memory();
  for (let node = 0; node < 100; node++) memory.add(sent(started({ node: String(node) })));
  assert.deepEqual([memory.of("g").length, memory.of("g").at(-1).node], [64, "99"]);
});
