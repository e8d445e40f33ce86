/**
 * The visitor's jobs on the server: asked for while one of them is not over, watched by the page.
 */

const BUSY = 400; // ms between questions while something runs or waits
const RESTING = 5000; // while only paused jobs are left, which may expire
const OVER = new Set(["done", "failed", "cancelled"]);

export const isOver = (job) => OVER.has(job.state);

/** Whether a job was taken out of the queue. */
export const neverBegan = ({ state, seconds }) => state === "cancelled" && seconds === 0;
const isActive = (job) => job.state === "running" || job.state === "waiting";

export class Jobs {
  #watchers = new Set();
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

  /** Ask for a run; resolves to its job, or to a list of jobs. */
  async submit(path, values) {
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
        if (job && !isOver(job)) return;
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
    await this.api.post(`queue/${action}`);
    await this.refresh();
  }

  async refresh() {
    clearTimeout(this.#timer);
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const { jobs } = await this.api.get("jobs");
      if (asked !== this.#asked) return;
      this.#tellLost("");
      this.#show(jobs);
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
