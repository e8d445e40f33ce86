/**
 * An element at the bottom of a node, for as long as it is needed. The node grows by it as far as
 * nothing is below it, and shrinks again afterwards. Knows no ComfyUI by itself.
 */

import { addElement } from "./room.js";

const AROUND = 20; // px that classic nodes leave around a widget
const TITLE = 30; // px of a node's title, which stands above its place
const GAP = 44; // px between two nodes, with the line that Nodes 2.0 adds below one that failed

/** The height of nodes before their first box, and how many boxes they have. */
const nodes = new WeakMap();

export class NodeBox {
  /** natural(): the px that the element would like to have; least: those that it gets anyway. */
  constructor(node, name, element, natural, least) {
    const before = node.size[1];
    const { height, boxes } = nodes.get(node) ?? { height: before, boxes: 0 };
    nodes.set(node, { height, boxes: boxes + 1 });
    this.node = node;
    this.element = element;
    this.height = () => Math.min(natural(), Math.max(least, roomBelow(node, before)));
    const around = () => this.height() + AROUND;
    this.widget = addElement(node, name, name, element,
      { getMinHeight: around, getMaxHeight: around });
  }

  /** Make the node as tall as its widgets and this element need it to be. */
  fit() {
    this.element.style.maxHeight = `${this.height()}px`; // Nodes 2.0 does not ask for it
    this.#resize();
  }

  remove() {
    const { height, boxes } = nodes.get(this.node);
    if (boxes > 1) nodes.set(this.node, { height, boxes: boxes - 1 });
    if (this.node.widgets?.includes(this.widget)) {
      this.node.removeWidget(this.widget);
      this.#resize();
    }
    if (boxes <= 1) nodes.delete(this.node);
  }

  #resize() {
    const { height } = nodes.get(this.node);
    this.node.setSize([this.node.size[0], Math.max(height, this.node.computeSize()[1])]);
    this.node.setDirtyCanvas?.(true, true); // after a refusal nothing else draws the canvas anew
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
