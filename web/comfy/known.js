/**
 * The server's lists for the model that is connected to a node; each is fetched once. Knows no
 * ComfyUI by itself.
 */

import { sourceOf, widgetOf } from "./graph.js";

export const LOADER = "SSD_LoadModel";
const PASSING = ["SSD_LoadHeads", "SSD_TrainHeads"]; // they pass a model on

/** The name of the model that is connected to a node; undefined without one. */
export function modelOf(node) {
  let source = sourceOf(node, "model");
  while (PASSING.includes(source?.type)) source = sourceOf(source, "model");
  return source?.type === LOADER ? widgetOf(source, "model")?.value : undefined;
}

/** `ask(name)` fetches a list from the server, [] if it has none. */
export class Known {
  #answers = new Map();

  constructor(ask) {
    this.ask = ask;
  }

  /** The list for a node's model; [] without one. */
  of(node) {
    const name = modelOf(node);
    if (!name) return Promise.resolve([]);
    if (!this.#answers.has(name)) {
      this.#answers.set(name, Promise.resolve(this.ask(name)).catch(() => {
        this.#answers.delete(name);
        return [];
      }));
    }
    return this.#answers.get(name);
  }

  /** Forget all lists, because the folder may have new models. */
  forget() {
    this.#answers.clear();
  }
}
