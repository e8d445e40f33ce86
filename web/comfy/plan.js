/**
 * What a node is going to do as a text on it, before anything runs: the passes of a method, or the
 * pictures that drafts could learn from.
 *
 * Nothing runs on import; the text updates itself when its node's inputs change.
 */

import { chain } from "./chain.js";
import { addStyleSheet, make, setText } from "../preview/elements.js";
import { modelOf } from "./known.js";
import { addElement } from "./room.js";

const HEIGHT = 48; // px: three lines, at least
const MARGIN = 20; // px that classic nodes leave around a widget

/** The query from which the server makes the text of a node. */
export function queryOf(node) {
  const widgets = (node.widgets ?? []).filter((widget) => widget.serialize !== false);
  return {
    widgets: JSON.stringify(Object.fromEntries(widgets.map(({ name, value }) => [name, value]))),
    model: modelOf(node) ?? "",
  };
}

/** Add the text to a node. */
export function attachPlan(node, ask) {
  const plan = new PlanText(node, ask);
  const later = () => setTimeout(() => plan.refresh());
  const height = () => plan.height;
  addElement(node, "ssd_plan", "ssd_plan", plan.element,
    { getMinHeight: height, getMaxHeight: height });
  for (const input of node.widgets) chain(input, "callback", later);
  chain(node, "onConnectionsChange", later);
  later();
  return plan;
}

class PlanText {
  #node;
  #ask;
  #key = "";

  /** ask(query) returns a promise of the text. */
  constructor(node, ask) {
    this.#node = node;
    this.#ask = ask;
    addStyleSheet();
    this.text = make("div", "");
    this.element = make("div", "ssd-plan", { role: "status" }, [this.text]);
  }

  /** Of the whole text: its node grows with it. */
  get height() {
    return Math.max(HEIGHT, this.text.offsetHeight + 4 + MARGIN);
  }

  #show(text) {
    setText(this.text, text);
    this.element.style.minHeight = `${this.text.offsetHeight + 4}px`; // for Nodes 2.0
    const [width, tall] = this.#node.size;
    this.#node.setSize([width, Math.max(tall, this.#node.computeSize()[1])]);
  }

  /** Show the text for the node's current inputs; `anew` also if they are those of the text. */
  async refresh(anew = false) {
    const query = queryOf(this.#node);
    const key = JSON.stringify(query);
    if (key === this.#key && !anew) return;
    this.#key = key;
    const text = await this.#ask(query).catch(() => "");
    if (this.#key === key) this.#show(text); // else a later query is under way
  }
}
