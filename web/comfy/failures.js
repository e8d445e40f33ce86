/**
 * Shows the server's error on its node until the next run begins. ComfyUI's page itself shows only
 * that a node failed. Knows no ComfyUI by itself.
 */

import { Message } from "../preview/message.js";
import { addElement } from "./room.js";

const WIDGET = "ssd_error";
const BAR = 42; // px of the buttons and of what is around them
const LEAST = 60; // px: a line, and the buttons
const AROUND = 20; // px that classic nodes leave around a widget
const TITLE = 30; // px of a node's title, which stands above its place
const GAP = 44; // px between two nodes, with the line that Nodes 2.0 adds below one that failed
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
  #entries = new Map(); // by node: the widget, its message, and the height before

  /** words: those of a Message. */
  constructor(words) {
    this.words = words;
  }

  show(node, sentence) {
    this.#take(node);
    const before = node.size[1];
    const message = new Message(this.words(), sentence, () => grow());
    const height = () => Math.min(BAR + message.text.scrollHeight,
      Math.max(LEAST, roomBelow(node, before)));
    const widget = addElement(node, WIDGET, WIDGET, message.element,
      { getMinHeight: () => height() + AROUND, getMaxHeight: () => height() + AROUND });
    const grow = () => {
      message.element.style.maxHeight = `${height()}px`; // Nodes 2.0 does not ask for it
      node.setSize([node.size[0], Math.max(before, node.computeSize()[1])]);
    };
    this.#entries.set(node, { widget, message, height: before });
    grow();
  }

  clear() {
    for (const node of [...this.#entries.keys()]) this.#take(node);
  }

  #take(node) {
    const entry = this.#entries.get(node);
    if (!entry) return;
    this.#entries.delete(node);
    entry.message.dispose();
    if (!node.widgets?.includes(entry.widget)) return;
    node.removeWidget(entry.widget);
    node.setSize([node.size[0], entry.height]);
  }
}

/** The px that a node of this height can grow before it reaches another one. */
function roomBelow(node, height) {
  const [left, top] = node.pos, right = left + node.size[0];
  const below = (node.graph?._nodes ?? []).filter((other) => other !== node
    && other.pos[0] < right && other.pos[0] + other.size[0] > left && other.pos[1] > top);
  const edge = Math.min(...below.map((other) => other.pos[1] - TITLE));
  return edge - (top + height) - GAP - AROUND;
}
