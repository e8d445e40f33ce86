/**
 * What a schedule will take, as a text on its node before anything runs.
 *
 * Nothing runs on import; the text asks for itself when its node's inputs change.
 */

import { chain } from "./chain.js";
import { addStyleSheet, make, setText } from "../preview/elements.js";
import { sourceOf, widgetOf } from "./graph.js";

const HEIGHT = 48; // px: three lines

/** What the server must know of a node's inputs to plan it. */
export function queryOf(node) {
  const widgets = (node.widgets ?? []).filter((one) => one.serialize !== false);
  const source = sourceOf(node, "backbone");
  return {
    widgets: JSON.stringify(Object.fromEntries(widgets.map(({ name, value }) => [name, value]))),
    backbone: (source && widgetOf(source, "backbone")?.value) ?? "",
  };
}

/** Add the text to a node. */
export function attachPlan(node, ask) {
  const plan = new PlanText(node, ask);
  const later = () => setTimeout(() => plan.refresh());
  const widget = node.addDOMWidget("ssd_plan", "ssd_plan", plan.element, {
    serialize: false,
    hideOnZoom: false,
    getMinHeight: () => HEIGHT,
    getMaxHeight: () => HEIGHT,
  });
  widget.serialize = false; // the option keeps it out of the prompt, this out of the workflow
  for (const one of node.widgets) chain(one, "callback", later);
  chain(node, "onConnectionsChange", later);
  later();
  return plan;
}

class PlanText {
  #node;
  #ask;
  #asked = "";

  /** ask: from a query to the text. */
  constructor(node, ask) {
    this.#node = node;
    this.#ask = ask;
    addStyleSheet();
    this.element = make("div", "ssd-plan", { role: "status" });
  }

  /** Show what the node's inputs take now. */
  async refresh() {
    const query = queryOf(this.#node);
    const key = JSON.stringify(query);
    if (key === this.#asked) return;
    this.#asked = key;
    const text = await this.#ask(query).catch(() => "");
    if (this.#asked === key) setText(this.element, text); // else a later one was asked for
  }
}
