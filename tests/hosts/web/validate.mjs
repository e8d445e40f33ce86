/** Fold a JSON list of messages from stdin; print what was refused or ignored, and the end. */

import { readFileSync } from "node:fs";

import { IDLE, fold } from "../../../web/preview/protocol.js";

const refused = [], ignored = [];
let state = IDLE;
for (const [index, message] of JSON.parse(readFileSync(0, "utf8")).entries()) {
  const next = fold(state, message);
  if (next === state) ignored.push(index);
  else if (next.problem) refused.push({ index, ...next.problem });
  state = next;
}
const panels = Object.values(state.panels).map(({ row, end }) => ({ row, end: end?.kind ?? null }));
console.log(JSON.stringify({ refused, ignored, panels }));
