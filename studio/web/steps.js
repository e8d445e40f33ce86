/** The steps of an edit in a line below the stage: the pictures that were made from each other. */

import { button, make } from "./core/elements.js";

export class Steps {
  entries = [];

  /** choose(entry): a step was clicked. */
  constructor(app, choose) {
    Object.assign(this, { app, words: app.words.edit, choose });
    this.element = make("div", "filmstrip steps", { role: "group", id: "steps",
      "aria-label": this.words.steps });
  }

  /** Ask for the family of a picture. */
  async refresh(id) {
    const answer = await this.app.attempt(this.app.api.get("steps", { id }));
    if (!answer) return;
    this.entries = answer.entries;
    this.element.replaceChildren(...this.entries.map((entry, n) => this.#tile(entry, n)));
    this.mark(id);
  }

  entry(id) {
    return this.entries.find((entry) => entry.id === id) ?? null;
  }

  numberOf(id) {
    return this.entries.findIndex((entry) => entry.id === id) + 1;
  }

  /** The picture that one was made from, and the last one that was made from it. */
  before({ source }) {
    return this.entry(source);
  }

  after({ id }) {
    return this.entries.findLast(({ source }) => source === id) ?? null;
  }

  #tile(entry, n) {
    const from = this.numberOf(entry.source);
    const branch = from > 0 && from !== n;
    const label = from ? this.app.say(this.words.stepFrom, { number: n + 1, from })
      : this.app.say(this.words.step, { number: n + 1 });
    const image = make("img", "", { src: entry.thumbnail, alt: "", height: "72",
      draggable: "false" });
    const number = make("span", "step-number stamp", { "aria-hidden": "true" },
      [branch ? `${n + 1} ← ${from}` : String(n + 1)]);
    return button([image, number], () => this.choose(entry), { class: "", "data-id": entry.id,
      title: `${label} · ${entry.prompt ?? entry.name}`, "aria-label": label });
  }

  /** Mark the step that the stage shows. */
  mark(id) {
    for (const tile of this.element.children) {
      const here = tile.dataset.id === id;
      tile.setAttribute("aria-pressed", String(here));
      if (here) this.element.scrollTo({ left: tile.offsetLeft - this.element.clientWidth / 2 });
    }
  }
}
