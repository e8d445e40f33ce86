/**
 * Shows the server's error on its node until the next run begins. ComfyUI's page itself shows only
 * that a node failed. Knows no ComfyUI by itself.
 */

import { Message } from "../preview/message.js";
import { NodeBox } from "./node_box.js";

const BAR = 42; // px of the buttons and of what is around them
const LEAST = 60; // px: a line, and the buttons
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
  #shown = new Map(); // [message, box] by node

  /** words: those of a Message. */
  constructor(words) {
    this.words = words;
  }

  show(node, sentence) {
    this.forget(node);
    const message = new Message(this.words(), sentence, () => box.fit());
    const box = new NodeBox(node, "ssd_error", message.element,
      () => BAR + message.text.scrollHeight, LEAST);
    this.#shown.set(node, [message, box]);
    box.fit();
  }

  clear() {
    for (const node of [...this.#shown.keys()]) this.forget(node);
  }

  forget(node) {
    const [message, box] = this.#shown.get(node) ?? [];
    this.#shown.delete(node);
    message?.dispose();
    box?.remove();
  }
}
