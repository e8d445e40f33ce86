/** The jobs of seeds as one batch: a job for each seed, what is ticked, how far all are. Pure. */

import { say } from "./core/strings.js";

const TOP = "seeds", REST = "finish"; // kinds of jobs: they draw the top of a seed, or the rest
const NARROW = 180, GAP = 8; // px: of the narrowest tile, between tiles
const EDGE = 16, WORDS = 44; // px: of a tile beside its picture, and above and below it
const ACTIVE = new Set(["waiting", "running"]);

export const isActive = ({ state }) => ACTIVE.has(state);
export const isPaused = ({ state }) => state === "paused";
export const isRest = ({ kind }) => kind === REST;

/**
 * The job to show for each seed, in the order they were asked for: the one that draws its rest,
 * else the one that drew its top. Left out are tops that were stopped, and those whose rest was
 * kept elsewhere.
 */
export function shownJobs(jobs) {
  const bySeed = new Map();
  for (const job of jobs) if (job.kind === TOP) bySeed.set(job.seed, job);
  for (const job of jobs) if (isRest(job)) bySeed.set(job.seed, job);
  return [...bySeed.values()].filter((job) => isRest(job) || isShownTop(job));
}

function isShownTop(job) {
  return isActive(job) || isPaused(job) || job.expired || job.state === "failed";
}

/** The share of a picture that its tile shows; part: what of a top is drawn, until it is known. */
export function shareOf(job, part) {
  if (isRest(job)) return 1;
  const [drawn, all] = job.rows ?? [];
  return all ? drawn / all : part;
}

/** Counts over the shown jobs; ticked: ids. */
export function totals(jobs, ticked) {
  const paused = jobs.filter(isPaused), active = jobs.filter(isActive);
  const chosen = paused.filter(({ id }) => ticked.has(id));
  return { count: jobs.length, active: active.length, paused: paused.length,
    drawn: jobs.length - active.length, ticked: chosen.length,
    saved: jobs.filter(({ saved }) => saved.length > 0).length,
    expired: jobs.filter(({ expired }) => expired).length,
    seconds: chosen.reduce((sum, { seconds_left: left }) => sum + (left ?? 0), 0),
    left: secondsLeft(jobs, active) };
}

/** Seconds until no job is active, by those of the same kind that are over; null if unknown. */
function secondsLeft(jobs, active) {
  const own = (job) => jobs.filter((other) => !isActive(other) && other.kind === job.kind
    && other.seconds > 0);
  let sum = 0;
  for (const job of active) {
    const over = own(job);
    if (over.length === 0) return null;
    const mean = over.reduce((total, { seconds }) => total + seconds, 0) / over.length;
    sum += Math.max(0, mean - job.seconds);
  }
  return sum;
}

/** What the bar says of a batch. */
export function barLine(sum, words) {
  if (sum.active) {
    const line = say(words.going, sum);
    return sum.left ? line + say(words.left, { seconds: Math.ceil(sum.left) }) : line;
  }
  if (sum.ticked) return say(words.ticked, { ...sum, seconds: Math.ceil(sum.seconds) });
  if (sum.paused) return say(words.paused, sum);
  if (sum.expired) return words.expired;
  return sum.saved ? say(words.saved, sum) : "";
}

/**
 * Columns for so many tiles that all fit a box {width, height} and are as large as that allows;
 * ratio: height of a tile's picture by its width. Where they never fit: as many as stay legible.
 */
export function columnsFor(count, { width, height }, ratio) {
  const most = Math.max(1, Math.floor((width + GAP) / (NARROW + GAP)));
  for (let columns = 1; columns <= most; columns += 1) {
    const side = (width + GAP) / columns - GAP;
    const lines = Math.ceil(count / columns);
    if (lines * ((side - EDGE) * ratio + WORDS + GAP) - GAP <= height) return columns;
  }
  return most;
}
