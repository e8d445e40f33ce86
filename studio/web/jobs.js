/**
 * The visitor's jobs on the server: asked for while one of them is not over, watched by the page,
 * and followed, message by message, by who shows them. Knows nothing of what messages mean. What
 * was asked for and is not answered yet is here, too, so that it can be shown and stopped at once.
 */

// ms between an answer and the next question:
const FOLLOWED = 100; // while a followed job runs, or is the next one
const BUSY = 400; // while something runs or waits
const RESTING = 5000; // while only paused jobs are left, which may expire; at most, after failures
const REPEATABLE = new Set(["draw", "edit", "redo", "control", "race"]);
const OVER = new Set(["done", "failed", "cancelled", "gone"]);
const GONE = Object.freeze({ state: "gone", position: 0, messages: [], error: null });

export const isOver = (job) => OVER.has(job.state);
/** Whether a job can be asked for once more, exactly as it was. */
export const isRepeatable = ({ kind }) => REPEATABLE.has(kind);
/** Whether a job was taken out of the queue. */
export const neverBegan = ({ state, seconds }) => state === "cancelled" && seconds === 0;
const isActive = (job) => job.state === "running" || job.state === "waiting";

export class Jobs {
  #watchers = new Set();
  #asking = []; // what was asked for and is not answered, as {dropped}
  #followers = new Set(); // {id, take, after, state, position}
  #sent = new Map(); // by path and values of what was asked for: a promise of its answer
  #timer = null;
  #asked = 0; // questions so far; of answers that overtake each other the last question's counts
  #listed = 0; // ms until the next question for the list
  #reading = false; // whether messages are asked for
  #failures = 0; // in a row

  /** failed(line): told once when the server stops answering, and "" when it answers again. */
  constructor(api, failed = () => {}) {
    Object.assign(this, { api, failed, list: [] });
  }

  get active() {
    return this.list.filter(isActive);
  }

  get running() {
    return this.list.find((job) => job.state === "running") ?? null;
  }

  /** Whether a run was asked for that the server has not taken yet. */
  get asking() {
    return this.#asking.length > 0;
  }

  /**
   * Ask for a run by work(isDropped), which resolves to a job or to null. Resolves to the same, or
   * to null as soon as `stop` ends it, although the server has not answered.
   */
  async ask(work) {
    const own = { dropped: false };
    const dropped = new Promise((resolve) => {
      own.drop = () => {
        own.dropped = true;
        resolve(null);
      };
    });
    this.#asking.push(own);
    this.#tellWatchers();
    const job = await Promise.race([work(() => own.dropped), dropped]).finally(() => {
      this.#asking = this.#asking.filter((each) => each !== own);
    });
    this.#tellWatchers();
    return job;
  }

  /** Stop what was asked for last and is not answered, or else a job. */
  stop(job) {
    const last = this.#asking.at(-1);
    if (!last) return this.act(job.id, "stop");
    last.drop();
    return Promise.resolve(true);
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
   * Let take(entry) have every answer about a job until it is over: {state, position, progress,
   * messages, error, saved}, the messages being those it has not had. Returns the end of it.
   */
  follow(id, take) {
    const follower = { id, take, after: 0, state: "waiting", position: 0 };
    this.#followers.add(follower);
    this.#read();
    return () => this.#followers.delete(follower);
  }

  /**
   * Ask for a run; resolves to its job, or to a list of jobs. Asked for again before it is over,
   * the same run is one job. isDropped(): whether nobody wants it any more, by `ask`.
   */
  async submit(path, values, isDropped = () => false) {
    const key = JSON.stringify([path, values]);
    if (this.#sent.has(key)) return this.#sent.get(key);
    const answer = this.#post(path, values, isDropped);
    this.#sent.set(key, answer);
    const over = () => this.#sent.delete(key);
    answer.then((made) => Promise.all([made].flat().map(({ id }) => this.ended(id))))
      .then(over, over);
    return answer;
  }

  async #post(path, values, isDropped) {
    const answer = await this.api.post(path, values);
    if (isDropped()) await this.api.post(`jobs/${answer.id}/stop`); // before it is seen
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

  /** Ask for the list now. */
  async refresh() {
    this.#asked += 1;
    const asked = this.#asked;
    const answer = await this.#ask("jobs");
    if (asked !== this.#asked) return;
    this.#listed = BUSY;
    this.#again(); // before others look, so that no error of theirs ends the questions
    if (answer) this.#show(answer.jobs.filter((job) => !(neverBegan(job) && isRepeatable(job))));
    this.#again();
  }

  /** Ask for the messages of followed jobs; of the list, too, if a job's state has changed. */
  async #read() {
    if (this.#reading) return;
    const asked = [...this.#followers];
    let isNews = false;
    if (asked.length) {
      this.#reading = true;
      const from = new Map(); // by id: the first message that a follower has not had
      for (const { id, after } of asked) from.set(id, Math.min(after, from.get(id) ?? after));
      const answer = await this.#ask("feed",
        [...from].flatMap(([id, after]) => [["job", id], ["after", after]]));
      this.#reading = false;
      this.#again(); // before followers take it, likewise
      if (!answer) return null;
      isNews = asked.map((each) => this.#tell(each, answer, from)).some(Boolean);
    }
    return isNews || this.#listed <= 0 ? this.refresh() : this.#again();
  }

  /** Give a follower what is new; returns whether its job has another state. */
  #tell(follower, answer, from) {
    const { id, after, state: before } = follower;
    if (!this.#followers.has(follower)) return false; // it has ended meanwhile
    const entry = answer[id] ?? GONE;
    const { state, position, next } = entry;
    Object.assign(follower, { state, position, after: next });
    if (OVER.has(state)) this.#followers.delete(follower);
    follower.take({ ...entry, messages: entry.messages.slice(after - from.get(id)) });
    return state !== before;
  }

  /** The answer to a question; null if there is none. */
  async #ask(path, query) {
    try {
      const answer = await this.api.get(path, query);
      if (this.#failures) this.failed("");
      this.#failures = 0;
      return answer;
    } catch (error) {
      if (this.#failures === 0) this.failed(error.message);
      this.#failures += 1;
      return null;
    }
  }

  #again() {
    clearTimeout(this.#timer);
    const pause = this.#pause;
    if (pause === null) return;
    this.#timer = setTimeout(() => {
      this.#listed -= pause;
      this.#read();
    }, pause);
  }

  /** ms until the next question; null while nothing can change. */
  get #pause() {
    if (this.#failures) return Math.min(RESTING, FOLLOWED * 2 ** this.#failures);
    const followed = [...this.#followers];
    if (followed.some(({ state, position }) => state === "running"
      || (state === "waiting" && position <= 1))) return FOLLOWED;
    if (followed.some(isActive) || this.active.length) return BUSY;
    return followed.length || !this.list.every(isOver) ? RESTING : null;
  }

  #show(jobs) {
    if (JSON.stringify(jobs) === JSON.stringify(this.list)) return;
    this.list = jobs;
    this.#tellWatchers();
  }
  #tellWatchers() {
    for (const look of this.#watchers) look(this.list);
  }
}
