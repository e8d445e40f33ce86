/**
 * The list of sizes on a node: only those of the connected backbone. Knows no ComfyUI by itself.
 */

import { sourceOf, widgetOf } from "./graph.js";

const LOADER = "SSD_LoadBackbone";
const AUTO = "auto";

/** Sizes by a backbone's name; `ask(name)` gets them from the server, [] where it knows none. */
export class Sizes {
  #known = new Map();
  #all = new WeakMap(); // the whole list of a widget, as the server gave it

  constructor(ask) {
    this.ask = ask;
  }

  /**
   * Bring a node's list up to date; without a backbone it has all sizes. A size that the backbone
   * does not draw gives way to its own.
   */
  async refresh(node) {
    const widget = widgetOf(node, "size");
    if (!widget) return;
    if (!this.#all.has(widget)) this.#all.set(widget, [...widget.options.values]);
    const all = this.#all.get(widget);
    const own = await this.#sizesOf(loaderOf(node));
    widget.options.values = own.length ? [AUTO, ...own.filter((size) => all.includes(size))] : all;
    if (own.length && !widget.options.values.includes(widget.value)) widget.value = AUTO;
  }

  #sizesOf(loader) {
    const name = loader && widgetOf(loader, "backbone")?.value;
    if (!name) return [];
    if (!this.#known.has(name)) {
      this.#known.set(name, Promise.resolve(this.ask(name)).catch(() => {
        this.#known.delete(name);
        return [];
      }));
    }
    return this.#known.get(name);
  }

  /** Forget what is known, as backbones may have come into the folder. */
  forget() {
    this.#known.clear();
  }
}

function loaderOf(node) {
  const source = sourceOf(node, "backbone");
  return source?.type === LOADER ? source : null;
}
