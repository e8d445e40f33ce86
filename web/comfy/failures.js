/**
 * Shows the server's error on its node until the next run begins. ComfyUI's page itself shows only
 * that a node failed. Knows no ComfyUI by itself.
 */

import { make } from "../preview/elements.js";
import { addElement } from "./room.js";

const WIDGET = "ssd_error";
const LINE = 17; // px
const LETTER = 6.5; // px, at most, so that no line is cut off
const AROUND = 28; // px of padding and margins
const REFUSED = "custom_validation_failed";

/**
 * The errors of a refused prompt as [node id, sentence], of SSD nodes only. ComfyUI puts the name
 * of the input before them: "prompt - it is empty".
 */
export function refusals(nodeErrors) {
  return Object.entries(nodeErrors ?? {})
    .filter(([, { class_type: kind }]) => kind?.startsWith("SSD_"))
    .flatMap(([id, { errors }]) => errors.filter(({ type }) => type === REFUSED)
      .map(({ details }) => [id, details.replace(" - ", ": ")]));
}

/** Sentences on nodes that have no preview to show them. */
export class Sentences {
  #entries = new Map(); // by node: the widget, and the height before

  show(node, sentence) {
    this.#take(node);
    const element = make("div", "ssd-error", { role: "alert" }, [sentence]);
    const lines = () => Math.ceil((sentence.length * LETTER) / (node.size[0] - 2 * AROUND));
    const height = () => AROUND + LINE * lines();
    const widget = addElement(node, WIDGET, WIDGET, element,
      { getMinHeight: height, getMaxHeight: height });
    this.#entries.set(node, { widget, height: node.size[1] });
    node.setSize([node.size[0], Math.max(node.size[1], node.computeSize()[1])]);
  }

  clear() {
    for (const node of [...this.#entries.keys()]) this.#take(node);
  }

  #take(node) {
    const entry = this.#entries.get(node);
    if (!entry) return;
    this.#entries.delete(node);
    if (!node.widgets?.includes(entry.widget)) return;
    node.removeWidget(entry.widget);
    node.setSize([node.size[0], entry.height]);
  }
}
