/**
 * The line of figures under a picture, and the text for screen readers. Pure: state to text.
 */

import { VERSION, meanAcceptance } from "./protocol.js";
import { say } from "./strings.js";

const EARLY = 2; // s until the time left can be estimated
const LONG = 100; // s, above which the time is given in minutes

/** Rounded down, so that 100% means all. */
const percent = (share) => `${Math.floor(share * 100 + 1e-9)}%`;
const round = (value) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));

/**
 * What a person wants to know: "row 12 of 24, about 3 s left", or how the run ended. painted: the
 * rows that one sees, if the panel is ahead of them.
 */
export function figures(panel, words, painted = panel.row) {
  return joined(panel.end ? endFigures(panel, words)
    : [rowFigure(panel, painted, words), leftFigure(panel, words)], words.comma);
}

/** What was counted: "pass 41 of 80 · AR needs 576 · 310 tokens/s · 71% of drafts accepted" */
export function details(panel, words) {
  const { end } = panel;
  if (end?.kind !== "finished") {
    return joined([...passFigures(panel, words), speedFigure(panel, words),
      acceptanceFigure(meanAcceptance(panel), words)]);
  }
  return joined([donePasses(end, words),
    speedFigure({ tokensPerSecond: end.tokens_per_second }, words),
    acceptanceFigure(end.acceptance, words), identicalFigure(panel, words)]);
}

const joined = (parts, comma = " · ") => parts.filter((part) => part !== null).join(comma);

/** Estimated seconds until the end of the run, or null while it is too early to estimate. */
export function secondsLeft({ start, row, index, seconds }) {
  if (!start || seconds < EARLY) return null;
  const rows = row - start.first_row;
  const share = start.passes ? index / start.passes : rows / (start.rows - start.first_row);
  return share > 0 ? Math.max(0, seconds / share - seconds) : null;
}

function leftFigure(panel, words) {
  const left = secondsLeft(panel);
  if (left === null || left < 1) return null;
  if (left < LONG) return say(words.left, { seconds: Math.round(left) });
  return say(words.leftLong, { minutes: Math.round(left / 60) });
}

function rowFigure({ start, row }, painted, words) {
  if (!start) return say(words.rowAlone, { row });
  const seen = Math.max(start.first_row, painted);
  if (start.prepares && seen === start.first_row) return words.prepares;
  return say(words.row, { row: seen, rows: start.rows });
}

function passFigures({ start, index }, words) {
  if (!start) return [say(words.passesAlone, { passes: index })];
  const template = start.passes === null ? words.passesOpen : words.passes;
  const isAR = start.passes === start.ar_passes;
  return [say(template, { passes: index, planned: start.passes, most: start.passes_max }),
    isAR ? null : say(words.arNeeds, { passes: start.ar_passes })];
}

function speedFigure({ tokensPerSecond }, words) {
  return tokensPerSecond ? say(words.speed, { speed: round(tokensPerSecond) }) : null;
}

function acceptanceFigure(share, words) {
  return share === null ? null : say(words.acceptance, { share: percent(share) });
}

/** "0.4 s, exactly as the model draws it" */
function endFigures({ end, row }, words) {
  if (end.kind !== "finished") {
    return [say({ failed: words.failed, paused: words.paused }[end.reason] ?? words.interrupted,
      { row })];
  }
  const { seconds, guarantee } = end;
  return [say(words.seconds, { seconds: seconds.toFixed(seconds < 10 ? 1 : 0) }),
    words.guarantee[guarantee] ?? guarantee];
}

/** The share of AR's tokens, where it was measured and says something. */
function identicalFigure({ start, end: { identical } }, words) {
  return identical === null || start?.method === "ar" ? null
    : say(words.identicalShare, { share: percent(identical) });
}

function donePasses({ passes, ar_passes: ar, step_acceleration: times }, words) {
  const fewer = times !== null && times > 1;
  return say(fewer ? words.donePasses : words.donePassesPlain, { passes, ar });
}

/** The heading of a panel. */
export function heading(panel, words) {
  return panel.start?.label ?? (panel.end ? "" : words.middle);
}

/** What picture n of a run shows: the words that it is drawn from, else the prompt as typed. */
export function shownIn({ start }, n, prompt = "") {
  return start?.words?.[n]?.map(([text]) => text).join("").trim() || prompt;
}

/**
 * The text for screen readers: at the start, at every quarter of the picture, and at the end what
 * it shows.
 */
export function aloud(panel, words, prompt = "") {
  const { start, row, end } = panel;
  if (!start) return "";
  const label = start.label;
  if (end?.kind === "finished") {
    const done = say(words.doneAloud, { label, seconds: end.seconds.toFixed(1) });
    const drawn = shownIn(panel, 0, prompt);
    return drawn ? `${done}. ${drawn}` : done;
  }
  if (end) return `${label}: ${figures(panel, words)}`;
  const quarter = Math.floor((4 * row) / start.rows);
  if (quarter === 0) return say(words.startedAloud, { label, rows: start.rows });
  const reached = Math.ceil((quarter * start.rows) / 4);
  return say(words.rowAloud, { label, row: reached, rows: start.rows });
}

/** The line shown for a message that the preview could not read. */
export function problemText(problem, words) {
  if (problem === null) return "";
  if ("version" in problem) {
    return say(words.wrongVersion, { mine: VERSION, theirs: problem.version ?? "?" });
  }
  return say(words.wrongMessage, problem);
}
