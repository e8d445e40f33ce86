/** What is said of a job beside its preview. Pure: a job, or an answer about it, to text. */

import { say } from "./core/strings.js";

const MINUTE = 60; // s

/** One line about a job, empty where its preview says it all. `entry` is null before an answer. */
export function statusText(entry, words, begun) {
  switch (entry?.state) {
    case "waiting": return waitingText(entry.position, words);
    case "running": return begun ? "" : words.starting;
    case "failed": return say(words.failed, { error: entry.error });
    case "cancelled": return begun ? "" : words.stopped;
    case "gone": return words.gone;
    default: return "";
  }
}

function waitingText(position, words) {
  if (position < 1) return words.starting; // it left the queue just now
  return position === 1 ? words.next : say(words.waiting, { ahead: position });
}

/** A top waits among others; what was ticked is told its place. */
function placeText({ kind, position }, words) {
  if (kind !== "finish" || position < 1) return words.queued;
  return position === 1 ? words.next : say(words.ahead, { ahead: position });
}

/** The short line under one of many small pictures. `panel` is its preview's, or undefined. */
export function seedText(entry, panel, words) {
  const at = { row: panel?.row ?? 0, rows: panel?.start?.rows };
  switch (entry?.state) {
    case "waiting": return placeText(entry, words);
    case "running": return panel?.start ? say(words.rowOf, at) : words.starting;
    case "paused": return panel?.start ? say(words.pausedAt, at) : words.queued;
    case "done": return words.done;
    case "cancelled": return words.cancelled;
    default: return statusText(entry, words, false);
  }
}

/** "about 12 s left" of a job that draws; empty where the server does not say. */
export function timeLeft(entry, words) {
  const seconds = entry?.state === "running" ? entry.seconds_left : null;
  if (seconds === null || seconds === undefined) return "";
  return seconds < 2 * MINUTE
    ? say(words.secondsLeft, { seconds: Math.max(1, Math.round(seconds)) })
    : say(words.minutesLeft, { minutes: Math.round(seconds / MINUTE) });
}
