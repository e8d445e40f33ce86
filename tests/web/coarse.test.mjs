/** Soft rows: what is painted where, on stand-ins for canvases in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { Coarse } from "../../web/preview/coarse.js";

/** A canvas that notes from which line to which it was cleared, and whole strips. */
function canvasOf(width, height) {
  const drawn = [];
  const context = { save() {}, beginPath() {}, rect() {}, clip() {}, restore() {},
    clearRect: (x, top, _, tall) => drawn.push(["soft", top, tall]),
    drawImage: ({ name }, x, y) => name && drawn.push([name, y]) };
  return { width, height, drawn, setAttribute() {}, append() {}, getContext: () => context };
}

globalThis.document = { createElement: () => canvasOf(0, 0) };
const strip = (name, height) => ({ name, height, width: 32 });

test("a coarse strip is painted soft, a decoded one as it is", () => {
  const canvas = canvasOf(32, 32);
  const coarse = new Coarse(canvas, 4, 4);
  coarse.paint(strip("", 8), 0);
  coarse.sharpen(strip("decoded", 8), 0);
  assert.deepEqual(canvas.drawn, [["soft", 0, 8], ["decoded", 0]]);
});

test("soft colours never cover what is decoded", () => {
  const canvas = canvasOf(32, 32);
  const coarse = new Coarse(canvas, 4, 4);
  coarse.sharpen(strip("decoded", 16), 0);
  coarse.paint(strip("", 16), 8);
  coarse.paint(strip("", 8), 8);
  assert.deepEqual(canvas.drawn, [["decoded", 0], ["soft", 16, 8]]);
});

test("the cells are kept one pixel each", () => {
  const coarse = new Coarse(canvasOf(32, 64), 8, 4);
  assert.deepEqual([coarse.cells.width, coarse.cells.height], [4, 8]);
});
