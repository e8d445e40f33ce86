/** What a panel paints of rows and of cells in flight, on a page of stand-ins in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { Panel } from "../../web/preview/panel.js";
import { IDLE, fold } from "../../web/preview/protocol.js";
import { stringsFor } from "../../web/preview/strings.js";
import { cells, pass, rows, started } from "./messages.mjs";

/** An element that takes everything; a canvas notes from which line on strips are drawn. */
function element() {
  const painted = [];
  return {
    painted, style: {}, dataset: {}, classList: { toggle() {} }, clientWidth: 100,
    setAttribute() {}, append() {}, replaceChildren() {},
    getContext: () => ({ drawImage() {}, clearRect: (x, y) => painted.push(y), save() {},
      beginPath() {}, rect() {}, clip() {}, restore() {} }),
  };
}

Object.assign(globalThis, {
  document: { createElement: element }, window: { devicePixelRatio: 1 },
  ResizeObserver: class { observe() {} },
  createImageBitmap: async () => ({ height: 8, close() {} }),
});

/** A panel after these messages, and all its elements. */
async function shown(...messages) {
  const made = [];
  document.createElement = () => made[made.push(element()) - 1];
  const panel = new Panel(stringsFor("en"), { fills: false }, () => {});
  let state = IDLE;
  for (const message of messages) {
    state = fold(state, message);
    panel.take(state.panels[0], message);
  }
  await panel.settled();
  panel.render(false);
  return made;
}

const pens = (made) => made.filter(({ className }) => className === "ssd-pen");
const canvases = (made) => made.filter(({ className }) => className === "ssd-pixels");

test("cells in flight are painted in their place, and the pen stays above them", async () => {
  const made = await shown(started(), pass(), rows({ last: 1 }), cells({ first: 1, top: 8 }));
  assert.deepEqual(canvases(made).map(({ painted }) => painted), [[0, 8], [0, 8]]);
  assert.deepEqual(pens(made).map(({ style }) => style.top), ["25%", "25%"]);
});

test("rows that are complete move the pen", async () => {
  const made = await shown(started(), cells({ first: 0, top: 0 }), rows({ last: 3 }));
  assert.deepEqual(pens(made).map(({ style }) => style.top), ["75%", "75%"]);
});
