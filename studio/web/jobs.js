/**
 * The visitor's jobs on the server: asked for while one of them is not over, watched by the page.
 */

const BUSY = 400; // ms between questions while something runs or waits
const RESTING = 5000; // while only paused jobs are left, which may expire
const REPEATABLE = new Set(["draw", "edit", "redo", "control", "race"]);
const OVER = new Set(["done", "failed", "cancelled"]);

export const isOver = (job) => OVER.has(job.state);
/** Whether a job can be asked for once more, exactly as it was. */
export const isRepeatable = ({ kind }) => REPEATABLE.has(kind);
/** Whether a job was taken out of the queue. */
export const neverBegan = ({ state, seconds }) => state === "cancelled" && seconds === 0;
const isActive = (job) => job.state === "running" || job.state === "waiting";

export class Jobs {
  #watchers = new Set();
  #sent = new Map(); // by path and values of what was asked for: a promise of its answer
  #timer = null;
  #asked = 0; // questions so far; of answers that overtake each other the last question's counts

  /** failed(line): told once when the server stops answering, and "" when it answers again. */
  constructor(api, failed = () => {}) {
    Object.assign(this, { api, failed, list: [], lost: false });
  }

  get active() {
    return this.list.filter(isActive);
  }

  get running() {
    return this.list.find((job) => job.state === "running") ?? null;
  }

  job(id) {
    return this.list.find((job) => job.id === id) ?? null;
  }

  /** Call look(jobs) now and after every change; returns the end of it. */
  watch(look) {
    this.#watchers.add(look);
    look(this.list);
    return () => this.#watchers.delete(look);
  }

  /**
   * Ask for a run; resolves to its job, or to a list of jobs. Asked for again before it is over,
   * the same run is one job.
   */
  async submit(path, values) {
    const key = JSON.stringify([path, values]);
    if (this.#sent.has(key)) return this.#sent.get(key);
    const answer = this.#post(path, values);
    this.#sent.set(key, answer);
    const over = () => this.#sent.delete(key);
    answer.then((made) => Promise.all([made].flat().map(({ id }) => this.ended(id))))
      .then(over, over);
    return answer;
  }

  async #post(path, values) {
    const answer = await this.api.post(path, values);
    await this.refresh();
    return answer.jobs ?? answer;
  }

  /** Do something with a job ("stop", "move", "repeat", "keep"); resolves to the answer. */
  async act(job, action, values = {}) {
    const answer = await this.api.post(`jobs/${job}/${action}`, values);
    await this.refresh();
    return answer;
  }

  /** Resolves to a job as soon as it is over, or to null if it is forgotten before. */
  ended(id) {
    return new Promise((resolve) => {
      const end = this.watch(() => {
        const job = this.job(id);
        if (job && !isOver(job) && job.state !== "paused") return;
        resolve(job);
        queueMicrotask(() => end());
      });
    });
  }

  async remove(job) {
    await this.api.remove(`jobs/${job}`);
    await this.refresh();
  }

  /** "clear": take out what waits; "stop": stop what runs, too. */
  async queue(action) {
    const answer = await this.api.post(`queue/${action}`);
    await this.refresh();
    return answer;
  }

  async refresh() {
    clearTimeout(this.#timer);
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const { jobs } = await this.api.get("jobs");
      if (asked !== this.#asked) return;
      this.#tellLost("");
      this.#show(jobs.filter((job) => !(neverBegan(job) && isRepeatable(job))));
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#tellLost(error.message);
    }
    const pause = this.lost || this.active.length ? BUSY : RESTING;
    if (this.lost || !this.list.every(isOver)) {
      this.#timer = setTimeout(() => this.refresh(), pause);
    }
  }

  #tellLost(line) {
    if (this.lost === (line !== "")) return;
    this.lost = line !== "";
    this.failed(line);
  }

  #show(jobs) {
    if (JSON.stringify(jobs) === JSON.stringify(this.list)) return;
    this.list = jobs;
    for (const look of this.#watchers) look(jobs);
  }
}
