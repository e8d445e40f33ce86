/**
 * A line on a node that tells what it is going to do, before anything runs: the passes of its
 * method, or the pictures that drafts could learn from.
 *
 * Nothing runs on import; the line updates itself when its node's inputs change.
 */

import { chain } from "./chain.js";
import { addStyleSheet, make, setText } from "../preview/elements.js";
import { modelOf } from "./known.js";
import { addElement } from "./room.js";

const LINE = 20; // px
const MARGIN = 4; // px above and below, on the canvas

/** The query from which the server makes the text of a node; of its widgets those that matter. */
export function queryOf(node, matters = () => true) {
  const widgets = (node.widgets ?? []).filter(
    ({ name, serialize }) => serialize !== false && matters(name));
  return {
    widgets: JSON.stringify(Object.fromEntries(widgets.map(({ name, value }) => [name, value]))),
    model: modelOf(node) ?? "",
  };
}

/** Add an empty line to a node; its `show` fills it. */
export function addLine(node) {
  addStyleSheet();
  const text = make("div", "");
  const element = make("div", "ssd-plan", { role: "status" }, [text]);
  const height = () => Math.max(LINE, text.offsetHeight + 4) + 2 * MARGIN;
  addElement(node, "ssd_plan", "ssd_plan", element,
    { margin: MARGIN, getMinHeight: height, getMaxHeight: height });
  return {
    show(line) {
      setText(text, line);
      element.style.minHeight = `${text.offsetHeight + 4}px`; // for Nodes 2.0
      const [width, tall] = node.size;
      node.setSize([width, Math.max(tall, node.computeSize()[1])]);
      node.setDirtyCanvas?.(true, true);
    },
  };
}

/** Keep a line up to date; `ask(query)` returns a promise of {plan}. */
export function attachPlan(node, ask) {
  const line = addLine(node);
  let known = "";
  const plan = {
    /** `anew`: also if the inputs are those of the text. */
    async refresh(anew = false) {
      const query = queryOf(node);
      const key = JSON.stringify(query);
      if (key === known && !anew) return;
      known = key;
      const answer = await ask(query).catch(() => null);
      if (known === key) line.show(answer?.plan ?? ""); // else a later query is under way
    },
  };
  const later = () => setTimeout(() => plan.refresh());
  for (const input of node.widgets) chain(input, "callback", later);
  chain(node, "onConnectionsChange", later);
  later();
  return plan;
}
