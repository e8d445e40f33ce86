/**
 * Limits a node's list of sizes to those of its model. Knows no ComfyUI by itself.
 */

import { widgetOf } from "./graph.js";
import { Known } from "./known.js";

const AUTO = "auto";

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
