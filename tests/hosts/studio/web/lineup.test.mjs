/** Who races: values as they are typed, the pictures of a grid, and who was quickest. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { areValues, cellsOf, extremes, firstValues, picturesOf, sentValues, valuesIn } = await load(
  "lineup.js");

test("numbers stand between commas or blanks, Chinese ones too; prompts have a line each", () => {
  assert.deepEqual(valuesIn("seed", " 7, 8\n9，10、11 "), ["7", "8", "9", "10", "11"]);
  assert.deepEqual(valuesIn("prompt", "a house, red\n\n a boat \n"), ["a house, red", "a boat"]);
  assert.deepEqual(valuesIn("cfg", " , "), []);
});

test("what cannot be a value of the setting is seen", () => {
  assert.ok(areValues("seed", ["0", "18446744073709551615"]));
  for (const seed of ["-1", "1.5", "seven"]) assert.ok(!areValues("seed", [seed]), seed);
  assert.ok(areValues("cfg", ["1", "2.5"]) && !areValues("temperature", ["1", "warm"]));
  assert.ok(areValues("prompt", ["anything"]));
});

test("seeds are sent as text, since numbers end at 2^53, guidance and temperature as numbers", () => {
  assert.deepEqual(sentValues("seed", ["18446744073709551615"]), ["18446744073709551615"]);
  assert.deepEqual(sentValues("cfg", ["1", "2.5"]), [1, 2.5]);
  assert.deepEqual(sentValues("prompt", ["7"]), ["7"]);
});

test("the first values lie around the settings; after the last seed comes the first one", () => {
  const settings = { seed: "18446744073709551615", prompt: "a boat" };
  assert.equal(firstValues("seed", settings), "18446744073709551615, 0, 1");
  assert.equal(firstValues("prompt", settings), "a boat\n");
  assert.ok(areValues("temperature", valuesIn("temperature", firstValues("temperature", settings))));
});

test("pictures come row by row; without rows there is one for each racer", () => {
  const grid = { racers: ["a", "b"], setting: "seed", values: ["1", "2"] };
  assert.deepEqual(cellsOf(grid), [["a", "1"], ["b", "1"], ["a", "2"], ["b", "2"]]);
  assert.equal(picturesOf(grid), 4);
  const plain = { racers: ["a", "b", "c"], setting: "", values: [] };
  assert.deepEqual(cellsOf(plain), [["a", null], ["b", null], ["c", null]]);
  assert.equal(picturesOf(plain), 3);
});

test("the quickest is told beside the slowest, unless they are as quick", () => {
  const rows = [["Reference", "576", "4.00", ""], ["Fast", "45", "0.50", ""]];
  const { quickest, slowest, times } = extremes(rows);
  assert.deepEqual([quickest.name, slowest.name, times], ["Fast", "Reference", 8]);
  assert.equal(extremes([["a", "1", "1.00"], ["b", "1", "1.02"]]), null);
  assert.equal(extremes([["a", "1", "0.00"]]), null);
});
