/** Masks: what shapes cover, how masks are packed and taken back. */

import assert from "node:assert/strict";
import test from "node:test";

import { Mask, Undoable, below, cellAt, lasso, rectangle, stroke }
  from "../../../web/preview/mask.js";

const grid = { rows: 6, columns: 10 };
const mask = (shape) => new Mask(6, 10).with(shape);
const sorted = (cells) => [...new Set(cells)].sort((a, b) => a - b);

test("a brush of one cell paints the cell under it, one of three a square", () => {
  assert.deepEqual(sorted(stroke(grid, [2.9, 1.1], [2.9, 1.1], 1)), [12]);
  assert.deepEqual(sorted(stroke(grid, [2.5, 1.5], [2.5, 1.5], 3)), [1, 2, 3, 11, 12, 13, 21, 22,
    23]);
});

test("a quick stroke leaves no gap", () => {
  const painted = mask(stroke(grid, [0.5, 0.5], [9.5, 5.5], 1));
  for (let x = 0; x < 10; x++) {
    assert.ok([0, 1, 2, 3, 4, 5].some((y) => painted.has(x, y)), `column ${x}`);
  }
});

test("a rectangle holds the cells that it touches, drawn either way", () => {
  const cells = [12, 13, 22, 23];
  assert.deepEqual(rectangle(grid, [2.9, 1.9], [3.1, 2.1]), cells);
  assert.deepEqual(rectangle(grid, [3.1, 2.1], [2.9, 1.9]), cells);
});

test("a lasso holds what is inside and under its line", () => {
  const cells = mask(lasso(grid, [[1.5, 1.5], [6.5, 1.5], [6.5, 4.5], [1.5, 4.5]]));
  assert.equal(cells.count, 6 * 4);
  assert.ok(cells.has(3, 3) && !cells.has(7, 3));
});

test("points beside the picture belong to its nearest cell", () => {
  assert.deepEqual(cellAt(grid, [-3, 99]), [0, 5]);
});

test("what stays is packed as in recipes, and read back", () => {
  const painted = mask(below(grid, 1)).with([5]);
  const packed = painted.packed();
  assert.deepEqual(packed.shape, [6, 10]);
  const bytes = [...atob(packed.data)].map((letter) => letter.charCodeAt(0));
  assert.deepEqual(bytes.slice(0, 2), [0b11111011, 0b11000000]);
  assert.ok(Mask.unpacked(packed).equals(painted));
  assert.equal(painted.inverted().count, 60 - painted.count);
});

test("strokes are taken back and made again until another one follows", () => {
  const strokes = new Undoable(0);
  strokes.set(1);
  strokes.set(2);
  strokes.undo();
  assert.deepEqual([strokes.value, strokes.canUndo, strokes.canRedo], [1, true, true]);
  strokes.redo();
  assert.equal(strokes.value, 2);
  strokes.undo();
  strokes.set(3);
  assert.deepEqual([strokes.value, strokes.canRedo], [3, false]);
});
