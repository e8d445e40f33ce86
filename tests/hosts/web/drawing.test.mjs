/** Sizes, overlay pixels, the order of strips, and the way to a node, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { CELL, GAP, StripQueue, fit, overlayPixels, panelColumns, tile } from "../../../web/preview/drawing.js";
import { nodeAt } from "../../../web/comfy/graph.js";

const letters = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

test("a picture takes the room there is, and its own size where there is little more", () => {
  assert.deepEqual(fit(1, 192, 480), { columns: 1, scale: 2.5 });
  assert.deepEqual(fit(1, 192, 240), { columns: 1, scale: 1.25 });
  assert.deepEqual(fit(1, 192, 239), { columns: 1, scale: 1 });
  assert.deepEqual(fit(1, 384, 192), { columns: 1, scale: 0.5 });
});

test("what is little more is counted in the screen's own pixels", () => {
  assert.equal(fit(1, 192, 216, 3).scale, 1.125);
  assert.equal(fit(1, 192, 192, 1.2).scale, 1 / 1.2);
  assert.equal(fit(1, 192, 96, 3).scale, 0.5);
});

test("a batch is a square", () => {
  assert.deepEqual([1, 2, 4, 5, 9].map((count) => fit(count, 100, 600).columns), [1, 2, 2, 3, 3]);
  assert.deepEqual(fit(9, 10, 30 + 2 * GAP), { columns: 3, scale: 1 });
});

const columnsOf = (width) => [1, 2, 3, 4, 5, 6].map((count) => panelColumns(count, width));

test("panels of a wide page stand in lines that are nearly full and legible", () => {
  assert.deepEqual(columnsOf(820), [1, 2, 3, 2, 3, 3]); // a laptop's stage
  assert.deepEqual(columnsOf(1200), [1, 2, 3, 4, 3, 3]);
  assert.deepEqual(columnsOf(1600), [1, 2, 3, 4, 5, 6]);
  assert.equal(panelColumns(4, 830, null, 200), 4); // on a node
});

test("panels on a phone stand in pairs", () => {
  assert.deepEqual(columnsOf(340), [1, 2, 2, 2, 2, 2]);
  assert.deepEqual(columnsOf(0), [1, 2, 2, 2, 2, 2]);
});

test("an element that is not on the page yet has no size and no nonsense", () => {
  assert.equal(fit(3, 192, 0).scale, 0);
});

const brightness = ([r, g, b, alpha]) => ((0.3 * r + 0.6 * g + 0.1 * b) * alpha) / 255;
const dots = (pixels) => Array.from({ length: pixels.length / 4 },
  (_, i) => Array.from(pixels.subarray(4 * i, 4 * i + 4)));

test("tints differ in pattern as well as in colour", () => {
  const kinds = ["a", "r", "d"].map((mark) => dots(tile(mark)).filter((dot) => dot[3] > 0));
  const shades = kinds.map((shown) => new Set(shown.map(String)).size);
  assert.deepEqual(shades, [1, 2, 2]);
  const dark = kinds[1].filter((dot) => brightness(dot) < 30).length;
  const bright = kinds[2].filter((dot) => brightness(dot) > 200).length;
  assert.ok(dark >= 10 && bright >= 4, `${dark} dark, ${bright} bright dots`);
});

test("a mark tints its own cell and no other", () => {
  const pixels = overlayPixels(letters("ca\0rcc"), 3, 2);
  const tinted = (cell) => dots(pixels).filter((dot, i) => {
    const [x, y] = [i % (3 * CELL), Math.floor(i / (3 * CELL))];
    return dot[3] > 0 && Math.floor(y / CELL) * 3 + Math.floor(x / CELL) === cell;
  }).length;
  const whole = (CELL - 1) ** 2;
  assert.deepEqual([0, 1, 2, 3, 4, 5].map(tinted), [0, whole, 0, whole, 0, 0]);
});

test("a committed cell is tinted until its pixels are there", () => {
  const alpha = (painted) => overlayPixels(letters("c"), 1, painted)[3];
  assert.ok(alpha(0) > 0);
  assert.equal(alpha(1), 0);
});

/** A canvas that notes what is drawn on it, and bitmaps that take their given time to decode. */
function bench(delays) {
  const painted = [], closed = [];
  const context = {
    globalCompositeOperation: "source-over",
    drawImage: ({ name }, x, y) => painted.push([name, y, context.globalCompositeOperation]),
  };
  const canvas = { getContext: () => context };
  const decode = async (name) => {
    await new Promise((resolve) => setTimeout(resolve, delays[name]));
    if (delays[name] === undefined) throw new Error("no PNG");
    return { name, close: () => closed.push(name) };
  };
  const paint = (bitmap, top) => context.drawImage(bitmap, 0, top);
  const queue = new StripQueue(decode);
  const add = (strip, top, finished) => queue.add(strip, top, { paint, canvas, finished });
  return { painted, closed, queue, add };
}

test("strips are painted in the order they came, however long each takes to decode", async () => {
  const { queue, painted, closed, add } = bench({ slow: 30, quick: 1, middling: 10 });
  add("slow", 0);
  add("quick", 8);
  add("middling", 16);
  await queue.settled();
  assert.deepEqual(painted, [["slow", 0, "source-over"], ["quick", 8, "source-over"],
    ["middling", 16, "source-over"]]);
  assert.deepEqual(closed, ["slow", "quick", "middling"]);
});

test("a strip of a run that is over looks as the finished picture where it is opaque", async () => {
  const { queue, painted, add } = bench({ strip: 1 });
  add("strip", 8, Promise.resolve({ name: "whole" }));
  await queue.settled();
  assert.deepEqual(painted, [["strip", 8, "source-over"], ["whole", 0, "source-atop"]]);
});

test("strips that wait are painted in one go, and their soft colours blended once", async () => {
  const { queue, painted } = bench({ first: 1, a: 1, b: 20, c: 5 });
  const seen = [];
  const canvas = {}, settle = () => seen.push("settled");
  const paint = ({ name }) => seen.push(name);
  queue.add("first", 0, { paint, canvas, settle });
  await new Promise((resolve) => setTimeout(resolve, 0));
  for (const name of ["a", "b", "c"]) queue.add(name, 8, { paint, canvas, settle });
  queue.whenPainted(() => seen.push("told"));
  await queue.settled();
  assert.deepEqual(seen, ["first", "settled", "a", "b", "c", "settled", "told"]);
  assert.deepEqual(painted, []);
});

test("a closed queue paints nothing more, not even what is being decoded", async () => {
  const { queue, painted, closed, add } = bench({ first: 5, second: 5 });
  add("first", 0);
  add("second", 8);
  await new Promise((resolve) => setTimeout(resolve, 1));
  queue.close();
  await queue.settled();
  assert.deepEqual([painted, closed], [[], ["first", "second"]]);
});

test("a strip that is no PNG is warned of and stops no other", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { queue, painted, add } = bench({ good: 1 });
  add("broken", 0);
  add("good", 8);
  await queue.settled();
  assert.deepEqual(painted, [["good", 8, "source-over"]]);
  assert.equal(warn.mock.callCount(), 1);
});

const graphOf = (nodes) => ({ getNodeById: (id) => nodes.find((node) => node.id === id) ?? null });

test("a node is found by number, by string and inside subgraphs", () => {
  const inner = { id: 5 }, deep = { id: "7" };
  const middle = { id: "3", subgraph: graphOf([deep]) };
  const graph = graphOf([{ id: 4 }, { id: "12", subgraph: graphOf([inner, middle]) }]);
  assert.equal(nodeAt(graph, "4").id, 4);
  assert.equal(nodeAt(graph, 4).id, 4);
  assert.equal(nodeAt(graph, "12:5"), inner);
  assert.equal(nodeAt(graph, "12:3:7"), deep);
});

test("ids of another graph find nothing and throw nothing", () => {
  const graph = graphOf([{ id: 4 }]);
  for (const id of ["9", "4:1", "x", "", "4:"]) assert.equal(nodeAt(graph, id), null, id);
  assert.equal(nodeAt(undefined, "4"), null);
});

test("in a given height the pictures are as large as fit", () => {
  const tall = (count, height, most) => fit(count, 192, 960, 1, { height: 192, tall: height, most });
  assert.deepEqual(tall(1, 480), { columns: 1, scale: 2.5 });
  assert.deepEqual(tall(4, 192), { columns: 4, scale: 1 });
  assert.equal(panelColumns(4, 1000, 400), 4);
  assert.equal(panelColumns(4, 600, 1200), 2);
});
