/**
 * The line below the stage: the steps of the shown picture, which were made from each other, and
 * then the last saved pictures.
 */

import { button, make } from "./core/elements.js";

const SHOWN = 24; // of the last pictures

export class Strip {
  #key = "";
  #last = []; // the last pictures
  #steps = []; // the family of the shown picture, if it is more than that one
  #marked = []; // ids of the pictures that the stage shows

  /** choose(entry): a picture was clicked. */
  constructor(app, choose) {
    Object.assign(this, { app, words: app.words.edit, choose });
    this.steps = make("div", "steps", { role: "group", id: "steps", hidden: "",
      "aria-label": this.words.steps });
    this.last = make("div", "last", { role: "group", id: "filmstrip",
      "aria-label": app.words.create.last });
    this.element = make("div", "filmstrip", {}, [this.steps, this.last]);
  }

  async refresh() {
    let entries;
    try {
      ({ entries } = await this.app.api.get("history", { limit: SHOWN }));
    } catch {
      return; // the jobs' own questions say that the server does not answer
    }
    this.#last = entries;
    this.#fill();
  }

  /** Ask for the steps of a picture that the stage shows, and mark it. */
  async show({ id }) {
    const { entries } = await this.app.api.get("steps", { id }).catch(() => ({ entries: [] }));
    this.#steps = entries;
    this.#fill();
    this.mark([id]);
  }

  /** Another picture is drawn: no steps are shown. */
  leave() {
    this.#steps = [];
    this.#fill();
  }

  #fill() {
    const [steps, last] = [this.#steps.length > 1 ? this.#steps : [], this.#last];
    const key = [steps, last].map((list) => list.map(({ id }) => id).join(" ")).join("|");
    if (key === this.#key) return;
    this.#key = key;
    const own = new Set(steps.map(({ id }) => id));
    this.steps.hidden = steps.length === 0;
    this.steps.replaceChildren(...steps.map((entry, n) => this.#step(entry, n)));
    this.last.replaceChildren(...last.filter(({ id }) => !own.has(id))
      .map((entry) => this.#tile(entry, entry.title)));
    this.mark(this.#marked);
  }

  /** A step of the shown picture, or null. */
  step(id) {
    return this.#steps.find((entry) => entry.id === id) ?? null;
  }

  /** The other steps of the shown picture. */
  others(id) {
    return this.#steps.filter((entry) => entry.id !== id);
  }

  /** The picture that one was made from, and the last one that was made from it. */
  before({ source }) {
    return this.step(source);
  }

  after({ id }) {
    return this.#steps.findLast(({ source }) => source === id) ?? null;
  }

  #numberOf(id) {
    return this.#steps.findIndex((entry) => entry.id === id) + 1;
  }

  #step(entry, n) {
    const from = this.#numberOf(entry.source);
    const branch = from > 0 && from !== n;
    const label = from ? this.app.say(this.words.stepFrom, { number: n + 1, from })
      : this.app.say(this.words.step, { number: n + 1 });
    const tile = this.#tile(entry, label, `${label} · ${entry.prompt ?? entry.name}`);
    tile.append(make("span", "step-number stamp", { "aria-hidden": "true" },
      [branch ? `${n + 1} ← ${from}` : String(n + 1)]));
    return tile;
  }

  #tile(entry, label, title = label) {
    const image = make("img", "", { src: entry.thumbnail, alt: "", loading: "lazy",
      height: "72", draggable: "false" });
    return button(image, () => this.choose(entry), { class: "", "data-id": entry.id, title,
      "aria-label": label });
  }

  /** Mark the pictures that the stage shows. */
  mark(ids) {
    this.#marked = ids;
    for (const tile of this.element.querySelectorAll("button")) {
      const here = ids.includes(tile.dataset.id);
      tile.setAttribute("aria-pressed", String(here));
      if (here) this.#reveal(tile);
    }
  }

  /** Scroll the line, not the page. */
  #reveal({ offsetLeft, offsetWidth }) {
    const { scrollLeft, clientWidth } = this.element;
    const hidden = offsetLeft < scrollLeft || offsetLeft + offsetWidth > scrollLeft + clientWidth;
    if (hidden) this.element.scrollTo({ left: offsetLeft - clientWidth / 2 });
  }
}
