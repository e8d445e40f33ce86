/** Short ways to write messages of the protocol in the tests; every argument is a change. */

export const STRIP = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
  + "awAAAABJRU5ErkJggg==";

const envelope = { version: 1, node: "12:5", run: "first", panel: 0 };

export const started = (changes = {}) => ({
  ...envelope, kind: "started", label: "ssd rounds=2", rows: 4, columns: 3, width: 24, height: 32,
  pictures: 2, method: "ssd", guarantee: "approximate", passes: 9, passes_max: 9, ar_passes: 12,
  first_row: 0, ...changes,
});

export const pass = (changes = {}) => ({
  ...envelope, kind: "pass", index: 3, stage: "joint", round: 1, seconds: 0.5,
  tokens_per_second: 120.25, acceptance: 0.5, row: 1, first: 3, marks: ["ard", "aac"], ...changes,
});

export const rows = (changes = {}) => ({
  ...envelope, kind: "rows", first: 0, last: 1, top: 0, strips: [STRIP, STRIP], refined: false,
  ...changes,
});

export const cells = (changes = {}) => ({
  ...envelope, kind: "cells", first: 1, last: 3, top: 8, strips: [STRIP, STRIP], ...changes,
});

export const finished = (changes = {}) => ({
  ...envelope, kind: "finished", passes: 9, ar_passes: 12, step_acceleration: 1.333, seconds: 1.5,
  tokens_per_second: 8, acceptance: 0.62, guarantee: "approximate", identical: null, ...changes,
});

export const cancelled = (changes = {}) => (
  { ...envelope, kind: "cancelled", reason: "interrupted", ...changes });

/** A panel's marks as strings, "." where nothing is known. */
export const marksOf = (panel) => panel.marks.map((cells) =>
  Array.from(cells, (code) => (code ? String.fromCharCode(code) : ".")).join(""));
