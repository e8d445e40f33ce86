/** What waits to be drawn, in a menu of the head: seen, reordered, emptied, brought back. */

import { button, make, setText } from "./core/elements.js";
import { isRepeatable } from "./jobs.js";

const SHORT = "(max-width: 720px)"; // where the head has room for a number only

/** The elements for the head: a button that counts what waits, and its menu. */
export function queueMenu(app) {
  return new Queue(app).elements;
}

class Queue {
  #waiting = [];

  constructor(app) {
    Object.assign(this, { app, words: app.words.queue });
    const { words } = this;
    this.button = make("button", "button plain small", { type: "button", id: "queue-open",
      popovertarget: "queue", title: words.title });
    this.list = make("ol", "queue stack");
    this.clear = this.#act("queue-clear", words.clear, "clear");
    this.stop = this.#act("queue-stop", words.stopAll, "stop");
    this.menu = make("section", "menu stack queue-box", { popover: "", id: "queue",
      "aria-label": words.title }, [this.list, make("div", "row", {}, [this.clear, this.stop])]);
    this.elements = [this.button, this.menu];
    const short = matchMedia(SHORT);
    short.addEventListener("change", () => this.#count());
    this.short = short;
    app.jobs.watch(() => this.#show());
  }

  #act(id, label, action) {
    return button(label, () => this.#empty(action), { class: "button plain small", id });
  }

  /** What waits has changed; the focus stays where it is in the list. */
  #show() {
    const { jobs } = this.app;
    this.#list(jobs.list.filter(({ state }) => state === "waiting"));
  }

  /** Show a change at once; if the server refuses it, all is as the server says. */
  async #at(change, promise) {
    change();
    const answer = await this.app.attempt(promise);
    if (answer === null) this.#show();
    return answer;
  }

  #list(waiting) {
    const { jobs } = this.app;
    const focus = this.#focus();
    this.#waiting = waiting;
    const none = this.#waiting.length === 0 && !this.#joins;
    this.stop.hidden = jobs.running === null;
    this.#count();
    this.list.replaceChildren(...this.#waiting.map((job, n) => this.#row(job, n)));
    if (focus) this.#restore(focus);
    if (none && this.menu.matches(":popover-open")) this.menu.hidePopover();
    this.button.style.visibility = none ? "hidden" : ""; // its room stays
  }

  /** Whether one more was asked for, which waits behind what is there. */
  get #joins() {
    return this.app.jobs.asking && this.app.jobs.active.length > 0;
  }

  #count() {
    const count = this.#waiting.length + Number(this.#joins);
    const line = this.app.say(this.words.count, { count });
    setText(this.button, this.short.matches ? String(count) : line);
    this.button.setAttribute("aria-label", line);
  }

  /** Where the focus is in the menu: {id, act, place}; null if it is not there. */
  #focus() {
    const focused = document.activeElement;
    if (!this.menu.contains(focused)) return null;
    const row = focused.closest("li");
    return { id: row?.dataset.id, act: focused.dataset.act,
      place: [...this.list.children].indexOf(row) };
  }

  #restore({ id, act, place }) {
    const rows = [...this.list.children];
    if (rows.length === 0) return this.#leave();
    if (place < 0) return null;
    const row = rows.find(({ dataset }) => dataset.id === id)
      ?? rows[Math.min(place, rows.length - 1)];
    const next = row.querySelector(`[data-act="${act}"]:enabled`)
      ?? row.querySelector("button:enabled");
    return next.focus();
  }

  /** The list is empty: the focus goes to what one does next. */
  #leave() {
    const main = [...document.querySelectorAll(".place:not([hidden]) .button.main")];
    (main.find((starts) => starts.checkVisibility() && !starts.disabled)
      ?? document.querySelector(".places [aria-current]"))?.focus();
  }

  #row(job, place) {
    const { app, words } = this;
    const waiting = this.#waiting;
    const prompt = job.settings?.prompt || app.say(words[job.kind] ?? job.kind, job);
    const move = (before) => () => this.#at(() => {
      const to = waiting.findIndex(({ id }) => id === before);
      const rest = this.#waiting.filter(({ id }) => id !== job.id);
      const [seat] = to < 0 ? [rest.length] : [rest.indexOf(waiting[to])];
      this.#list([...rest.slice(0, seat), job, ...rest.slice(seat)]);
    }, app.jobs.act(job.id, "move", { before }));
    const up = act("up", "↑", words.up, prompt, move(waiting[place - 1]?.id ?? ""));
    const down = act("down", "↓", words.down, prompt, move(waiting[place + 2]?.id ?? ""));
    up.disabled = place === 0;
    down.disabled = place === waiting.length - 1;
    const out = act("out", "×", words.remove, prompt, () => this.#remove(job));
    const seed = job.settings?.seed; // tells pictures of one prompt from each other
    const seeded = seed
      ? [make("span", "small hint", {}, [app.say(app.words.stage.seed, { seed })])] : [];
    return make("li", "queued row", { "data-id": job.id },
      [make("span", "grow queued-what", { title: prompt },
        [make("span", "clip", {}, [prompt]), ...seeded]), up, down, out]);
  }

  /** A run that is taken out can be brought back; others are forgotten. */
  async #remove(job) {
    const { app, words } = this;
    const back = this.#bringBack([job]);
    const gone = this.#at(() => this.#list(this.#waiting.filter(({ id }) => id !== job.id)),
      app.jobs[isRepeatable(job) ? "act" : "remove"](job.id, "stop"));
    if (await gone === null || !isRepeatable(job)) return;
    app.toast(words.removed, { action: { label: app.words.common.undo, run: back } });
  }

  /** action: "clear" what waits, or "stop" what runs, too. */
  async #empty(action) {
    const { app, words } = this;
    const back = this.#bringBack(action === "stop" ? app.jobs.active : this.#waiting);
    if (await this.#at(() => this.#list([]), app.jobs.queue(action)) === null) return;
    app.toast(words.cleared, { action: { label: app.words.common.undo, run: back } });
  }

  /** Ask for these once more, as they were and where they were. */
  #bringBack(jobs) {
    const { app } = this;
    const after = this.#waiting[this.#waiting.indexOf(jobs.at(-1)) + 1]?.id;
    return async () => {
      for (const { id } of jobs.filter(isRepeatable)) {
        const job = await app.attempt(app.jobs.act(id, "repeat", { same: true }));
        if (job === null) return;
        if (app.jobs.job(after)?.state === "waiting") {
          await app.attempt(app.jobs.act(job.id, "move", { before: after }));
        }
      }
    };
  }
}

function act(name, sign, label, prompt, run) {
  return button(sign, run,
    { class: "button plain icon", title: label, "data-act": name,
      "aria-label": `${label}: ${prompt}` });
}
