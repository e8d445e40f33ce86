/**
 * Asks the server again and again what its jobs have to say.
 *
 * Knows ids, positions in a job's messages and when to ask next; nothing about what messages mean.
 */

const BUSY = 100; // ms between an answer and the next question
const RESTING = 1000; // while nothing but paused jobs is left
const WAITING = 2000; // at most, while jobs wait and nothing changes; every pause is longer
const LONGEST = 5000; // after failures, which double the pause
const OVER = new Set(["done", "failed", "cancelled", "gone"]);
const GONE = Object.freeze({ state: "gone", position: 0, messages: [], error: null });

export class Feed {
  #after;
  #timer = null;
  #failures = 0;
  #waited = 0; // answers without news of jobs that wait
  #abort = new AbortController();

  /**
   * take(id, entry) gets every answer about a job: {state, position, messages, next, error}, the
   * messages being those it has not had. lost(flag) is told when the server stops answering and
   * when it answers again. ask(query, signal) fetches; it resolves to {id: entry}.
   */
  constructor(jobs, { take, lost = () => {}, ask = askServer }) {
    this.#after = new Map(jobs.map((id) => [id, 0]));
    Object.assign(this, { take, lost, ask });
    this.#poll();
  }

  /** Whether there is nothing left to ask. */
  get over() {
    return this.#after.size === 0 || this.#abort.signal.aborted;
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  async #poll() {
    if (this.over) return;
    let answer;
    try {
      answer = await this.ask(this.#query(), this.#abort.signal);
    } catch {
      return this.#fail();
    }
    if (this.over) return;
    if (this.#failures > 0) this.lost(false);
    this.#failures = 0;
    this.#again(this.#pause(this.#deliver(answer)));
  }

  /** ms until the next question, for the liveliest state that a job has. */
  #pause(state) {
    this.#waited = state === "waiting" ? this.#waited + 1 : 0;
    if (state === "waiting") return Math.min(WAITING, BUSY * 1.3 ** this.#waited);
    return state === "running" ? BUSY : RESTING;
  }

  /** Why it failed does not matter: only another try can tell whether it passes. */
  #fail() {
    if (this.over) return;
    if (this.#failures === 0) this.lost(true);
    this.#failures += 1;
    this.#again(Math.min(LONGEST, BUSY * 2 ** this.#failures));
  }

  #again(pause) {
    if (!this.over) this.#timer = setTimeout(() => this.#poll(), pause);
  }

  #query() {
    return new URLSearchParams(
      [...this.#after].flatMap(([id, after]) => [["job", id], ["after", after]])).toString();
  }

  /** Hand every entry on; "running" if a job runs, else "waiting" if one waits, else "". */
  #deliver(answer) {
    const states = new Set();
    for (const id of [...this.#after.keys()]) {
      const entry = answer[id] ?? GONE;
      if (OVER.has(entry.state)) this.#after.delete(id);
      else this.#after.set(id, entry.next);
      states.add(entry.state);
      this.take(id, entry);
    }
    return ["running", "waiting"].find((state) => states.has(state)) ?? "";
  }
}

async function askServer(query, signal) {
  const response = await fetch(`api/feed?${query}`, { signal, cache: "no-store" });
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}
