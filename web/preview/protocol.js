/**
 * The preview protocol, version 1: checks messages and folds them into a state.
 *
 * Pure: knows neither the page, nor a host, nor a language. A state is never changed in place;
 * `fold` returns the same object if it ignores a message (of an older run, a late row, an unknown
 * kind), so `next === state` means "ignored".
 */

export const VERSION = 1;

const PANELS = 64; // the largest batch of the app, with a panel for each picture
const PAST_RUNS = 32;

const isText = (value) => typeof value === "string";
const isNumber = (value) => Number.isFinite(value);
const isCount = (value) => Number.isInteger(value) && value >= 0;
const isSize = (value) => Number.isInteger(value) && value > 0;
const isShare = (value) => isNumber(value) && value >= 0 && value <= 1;
const isFlag = (value) => typeof value === "boolean";
const orNull = (rule) => (value) => value === null || rule(value);
const maybe = (rule) => (value) => value === undefined || rule(value);
const listOf = (rule) => (value) => Array.isArray(value) && value.every(rule);
const isMarks = (value) => isText(value) && /^[ardc.]*$/.test(value);
const isBase64 = (value) => isText(value) && /^[A-Za-z0-9+/]+={0,2}$/.test(value);
const isPiece = (value) => Array.isArray(value) && isText(value[0]) && isFlag(value[1]);
const isPanel = (value) => isCount(value) && value < PANELS;

const ENVELOPE = { node: orNull(isText), run: isText, panel: isPanel, kind: isText };

/** The fields of each kind of message; other fields are ignored. */
const FIELDS = {
  started: {
    label: isText, rows: isSize, columns: isSize, width: isSize, height: isSize, pictures: isSize,
    method: isText, guarantee: isText, passes: orNull(isCount), passes_max: isCount,
    ar_passes: isCount, first_row: isCount, notes: maybe(listOf(isText)),
    prepares: maybe(isFlag),
    words: maybe(listOf(listOf(isPiece))),
  },
  pass: {
    index: isCount, stage: isText, round: isCount, seconds: isNumber,
    tokens_per_second: orNull(isNumber), acceptance: orNull(isShare), row: isCount,
    first: (value) => isCount(value) || listOf(isCount)(value), marks: listOf(isMarks),
  },
  rows: {
    first: isCount, last: isCount, top: isCount, strips: listOf(isBase64), refined: isFlag,
    known: maybe(isFlag), index: maybe(isCount), seconds: maybe(isNumber),
    tokens_per_second: maybe(orNull(isNumber)),
  },
  cells: {
    first: isCount, last: isCount, top: isCount, strips: listOf(isBase64), known: maybe(isFlag),
  },
  finished: {
    passes: isCount, ar_passes: isCount, step_acceleration: orNull(isNumber), seconds: isNumber,
    tokens_per_second: orNull(isNumber), acceptance: orNull(isShare), guarantee: isText,
    identical: orNull(isShare),
  },
  cancelled: { reason: isText },
};

/** `panels` by number; `past`: the runs that newer ones replaced. */
export const IDLE = Object.freeze({ panels: {}, past: [], problem: null });

/** The error of a message by itself, {version} or {kind, field}; null if it is valid. */
export function complaint(message) {
  if (message?.version !== VERSION) return { version: message?.version ?? null };
  const own = Object.hasOwn(FIELDS, message.kind) ? FIELDS[message.kind] : {};
  const fields = { ...ENVELOPE, ...own };
  const field = Object.keys(fields).find((name) => !fields[name](message[name]));
  return field === undefined ? null : { kind: String(message.kind), field };
}

/** The state after a message; the same object if the message is ignored. */
export function fold(state, message) {
  const problem = complaint(message);
  if (problem) return withProblem(state, problem);
  if (!Object.hasOwn(FIELDS, message.kind)) return state;
  const old = state.panels[message.panel];
  const panel = old?.run === message.run ? old : successor(state, old, message);
  if (panel === null || isOver(panel, message)) return state;
  const misfit = misfitting(panel.start, message);
  if (misfit) return withProblem(state, { kind: message.kind, field: misfit });
  const panels = { ...state.panels, [message.panel]: STEPS[message.kind](panel, message) };
  return { panels, past: pastWith(state.past, old, panel), problem: null };
}

/** Report a problem once, however many messages have it. */
function withProblem(state, problem) {
  return JSON.stringify(state.problem) === JSON.stringify(problem) ? state : { ...state, problem };
}

/** An empty panel for a run that may replace the old one, or null. */
function successor(state, old, message) {
  if (state.past.includes(message.run)) return null;
  const isBusy = old !== undefined && old.end === null;
  return isBusy && message.kind !== "started" ? null : { ...UNSEEN, run: message.run };
}

/** A run starts only once in a panel, and its messages after its end are ignored. */
function isOver(panel, message) {
  return panel.end !== null || (message.kind === "started" && panel.start !== null);
}

function pastWith(past, old, panel) {
  return old === undefined || old.run === panel.run ? past : [...past, old.run].slice(-PAST_RUNS);
}

/** The field of a message that does not fit the started picture, or null. */
function misfitting(start, message) {
  if (start === null) return null;
  const { pictures, rows, columns } = start;
  if (message.kind === "pass") return misfittingMarks(message, pictures, rows * columns);
  if (message.kind !== "rows" && message.kind !== "cells") return null;
  if (message.first > message.last || message.last > rows) return "last";
  return message.strips.length === pictures ? null : "strips";
}

function misfittingMarks({ first, marks }, pictures, cells) {
  if (marks.length !== pictures) return "marks";
  if (Array.isArray(first) && first.length !== pictures) return "first";
  const fits = marks.every((line, i) => firstOf(first, i) + line.length <= cells);
  return fits ? null : "first";
}

const firstOf = (first, picture) => (Array.isArray(first) ? first[picture] : first);

/**
 * A panel whose "started" message was missed, as after a reload of the page: figures, no geometry.
 * `marks` has an array for each picture: a letter code for each cell in raster order, 0 if unknown.
 * `shares` has the accepted shares of drafts, a list for each stage and round.
 */
const UNSEEN = Object.freeze({
  run: null, start: null, marks: [], row: 0, index: 0, stage: "", round: 0, seconds: 0,
  tokensPerSecond: null, shares: {}, end: null,
});

const STEPS = { started, pass, rows, cells, finished: ended, cancelled: ended };

function started({ run }, message) {
  const cells = message.rows * message.columns;
  const marks = Array.from({ length: message.pictures }, () => new Uint8Array(cells));
  return { ...UNSEEN, run, start: message, marks, row: message.first_row };
}

function pass(panel, message) {
  const marks = panel.marks.map(
    (cells, i) => marked(cells, message.marks[i], firstOf(message.first, i)));
  return {
    ...panel, marks, row: Math.max(panel.row, message.row), index: message.index,
    stage: message.stage, round: message.round, seconds: message.seconds,
    tokensPerSecond: message.tokens_per_second,
    shares: message.acceptance === null ? panel.shares : withShare(panel.shares, message),
  };
}

function withShare(shares, { stage, round, acceptance }) {
  const key = `${stage}/${round}`;
  return { ...shares, [key]: [...(shares[key] ?? []), acceptance] };
}

const COMMITTED = "c".charCodeAt(0);
const DRAFT = "d".charCodeAt(0);
const UNTOUCHED = ".".charCodeAt(0);

/** The marks with a new line applied; a commit keeps a verification's mark, "." keeps any. */
function marked(cells, line, first) {
  const next = cells.slice();
  for (let i = 0; i < line.length; i++) {
    const mark = line.charCodeAt(i);
    if (mark === UNTOUCHED) continue;
    next[first + i] = mark === COMMITTED ? settled(next[first + i]) : mark;
  }
  return next;
}

/** The mark of a cell that became final. */
const settled = (mark) => (mark === 0 || mark === DRAFT ? COMMITTED : mark);

function rows(panel, message) {
  const columns = panel.start?.columns ?? 0;
  const [from, to] = [message.first * columns, message.last * columns];
  const marks = panel.marks.map(
    (cells) => cells.map((mark, i) => (i >= from && i < to ? settled(mark) : mark)));
  return {
    ...panel, marks, row: Math.max(panel.row, message.last),
    index: message.index ?? panel.index, seconds: message.seconds ?? panel.seconds,
    tokensPerSecond: message.tokens_per_second ?? panel.tokensPerSecond,
  };
}

/** Cells of unfinished rows are pixels only. */
function cells(panel) {
  return { ...panel };
}

function ended(panel, message) {
  return { ...panel, end: message };
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean share of accepted drafts over stages and rounds of equal weight; null before the first. */
export function meanAcceptance({ shares }) {
  const means = Object.values(shares).map(mean);
  return means.length ? mean(means) : null;
}
