/** What a run with the current settings takes: one question at a time, the last answer counts. */

const PAUSE = 250; // ms without a change until the server is asked
const AGAIN = 2000; // ms until a server that cannot be reached is asked again

export class Planner {
  #watchers = new Set();
  #timer = null;
  #abort = null;

  constructor(app) {
    Object.assign(this, { app, answer: null });
    app.settings.watch(() => this.#soon());
  }

  /** Call look(answer) now, if there is one, and with every answer of `POST /api/plan`. */
  watch(look) {
    this.#watchers.add(look);
    if (this.answer) look(this.answer);
    return () => this.#watchers.delete(look);
  }

  #soon(pause = this.answer ? PAUSE : 0) {
    if (page) page.body.dataset.stale = "true"; // what is told is of the settings before
    this.#abort?.abort(); // what it tells would be of the settings before
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.ask(), pause);
  }

  /** Ask now; resolves to the answer, or to null if there is none. */
  async ask() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const abort = this.#abort = new AbortController();
    try {
      const answer = await this.app.api.post("plan",
        { settings: this.app.settings.values }, abort.signal);
      if (!abort.signal.aborted) this.#tell(answer);
    } catch (error) {
      if (error.status > 0) this.#tell({ problem: error.message, text: "", notes: [] });
      else if (error.status === 0) this.#soon(AGAIN);
    }
    return this.answer;
  }

  #tell(answer) {
    this.answer = answer;
    afterClick(() => {
      if (this.answer !== answer) return;
      if (page) delete page.body.dataset.stale;
      for (const look of this.#watchers) look(answer);
    });
  }
}

// A click must end where it began: what moves the page waits while a button is pressed

const LONGEST = 1000; // ms; a pointer may be released outside the window
const CONTROLS = "button, a, summary, label";
const page = globalThis.document; // none in Node
let waiting = null; // what to do after the click; null while no button is pressed

page?.addEventListener("pointerdown", ({ target }) => {
  if (waiting || !target.closest(CONTROLS)) return;
  waiting = [];
  setTimeout(release, LONGEST);
}, true);
for (const end of ["pointerup", "pointercancel"]) {
  page?.addEventListener(end, () => setTimeout(release), true); // the click comes before
}

/** Do something now, or after the click that is being made. */
function afterClick(act) {
  if (waiting) waiting.push(act);
  else act();
}

function release() {
  const acts = waiting ?? [];
  waiting = null;
  for (const act of acts) act();
}
