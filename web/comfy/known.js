/**
 * The server's lists for the model that is connected to a node; each is fetched once. Knows no
 * ComfyUI by itself.
 */

import { sourceOf, widgetOf } from "./graph.js";

export const LOADER = "SSD_LoadModel";
const AUTO = "auto"; // the size that is the model's own
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

/** Sizes by a model's name; `ask(name)` fetches them from the server, [] if it has none. */
export class Sizes extends Known {
  #all = new WeakMap(); // the whole list of a widget, from the server
  #offered = new WeakMap(); // the model's sizes that a widget had last

  /**
   * Update a node's list; without a model it has all sizes. A size that the model does not
   * draw gives way to the model's own when another model was connected. What a workflow or a
   * picture brings stays: its run says which sizes there are, and draws no other picture.
   */
  async refresh(node) {
    const widget = widgetOf(node, "size");
    if (!widget) return;
    if (!this.#all.has(widget)) this.#all.set(widget, [...widget.options.values]);
    const all = this.#all.get(widget);
    const own = await this.of(node);
    widget.options.values = own.length ? [AUTO, ...own.filter((size) => all.includes(size))] : all;
    const before = this.#offered.get(widget);
    this.#offered.set(widget, own);
    const isOther = before !== undefined && String(before) !== String(own);
    if (isOther && !widget.options.values.includes(widget.value)) widget.value = AUTO;
  }
}
