/** The moments of a replay: the same as the server's films have. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./as_served.mjs";

const { filmSeconds, finishedStrips, timed, upTo } = await load("moments.js");

test("messages come in the order of their runs' own clocks", () => {
  const told = timed([
    { panel: 0, kind: "started" }, { panel: 1, kind: "started" },
    { panel: 0, kind: "rows", seconds: 2 }, { panel: 0, kind: "cells" },
    { panel: 1, kind: "rows", seconds: 1 },
  ]);
  assert.deepEqual(told.map(([seconds]) => seconds), [0, 0, 1, 2, 2]);
  assert.equal(told[2][1].panel, 1);
  assert.deepEqual([upTo(told, 0), upTo(told, 1.5), upTo(told, 9)], [2, 3, 5]);
});

test("of each run the pictures decoded last are its finished ones", () => {
  const rows = (run, first, refined, strip) => ({ kind: "rows", run, first, refined,
    strips: [strip] });
  const finished = finishedStrips([
    { kind: "started", run: "a" }, rows("a", 0, true, "kept"), rows("a", 0, false, "coarse"),
    rows("a", 3, true, "middle"), rows("b", 0, false, "coarse"), rows("a", 0, true, "whole"),
  ]);
  assert.deepEqual([...finished], [["a", ["whole"]]]);
});

test("a film is neither too short to see nor too long to watch", () => {
  assert.deepEqual([0.5, 7, 90].map(filmSeconds), [3, 7, 12]);
});
