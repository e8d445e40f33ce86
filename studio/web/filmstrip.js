/** The last saved pictures, in a line below the stage. */

import { button, make } from "./core/elements.js";

const SHOWN = 24;

export class Filmstrip {
  #key = "";
  #marked = []; // ids of the pictures that the stage shows

  /** choose(entry): a picture was clicked. */
  constructor(app, choose) {
    Object.assign(this, { app, choose });
    this.element = make("div", "filmstrip", { role: "group", id: "filmstrip",
      "aria-label": app.words.create.last });
  }

  async refresh() {
    let entries;
    try {
      ({ entries } = await this.app.api.get("history", { limit: SHOWN }));
    } catch {
      return; // the jobs' own questions say that the server does not answer
    }
    const key = entries.map(({ id }) => id).join(" ");
    if (key === this.#key) return;
    this.#key = key;
    this.element.replaceChildren(...entries.map((entry) => this.#tile(entry)));
    this.mark(this.#marked);
  }

  #tile(entry) {
    const image = make("img", "", { src: entry.thumbnail, alt: "", loading: "lazy",
      height: "72", draggable: "false" });
    return button(image, () => {
      this.mark([entry.id]);
      this.choose(entry);
    }, { class: "", "data-id": entry.id, title: entry.title, "aria-label": entry.title });
  }

  /** Mark the pictures that the stage shows. */
  mark(ids) {
    this.#marked = ids;
    for (const tile of this.element.children) {
      tile.setAttribute("aria-pressed", String(ids.includes(tile.dataset.id)));
    }
  }
}
