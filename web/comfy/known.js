/**
 * The server's lists for the backbone that is connected to a node; each is fetched once. Knows no
 * ComfyUI by itself.
 */

import { sourceOf, widgetOf } from "./graph.js";

const LOADER = "SSD_LoadBackbone";

/** `ask(name)` fetches a list from the server, [] if it has none. */
export class Known {
  #answers = new Map();

  constructor(ask) {
    this.ask = ask;
  }

  /** The list for a node's backbone; [] without one. */
  of(node) {
    const source = sourceOf(node, "backbone");
    const name = source?.type === LOADER && widgetOf(source, "backbone")?.value;
    if (!name) return Promise.resolve([]);
    if (!this.#answers.has(name)) {
      this.#answers.set(name, Promise.resolve(this.ask(name)).catch(() => {
        this.#answers.delete(name);
        return [];
      }));
    }
    return this.#answers.get(name);
  }

  /** Forget all lists, because the folder may have new backbones. */
  forget() {
    this.#answers.clear();
  }
}
