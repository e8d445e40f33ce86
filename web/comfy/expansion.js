/**
 * The switch that fills in what a prompt leaves open. Pure: works on any object shaped like
 * ComfyUI's graph.
 *
 * It is on for new nodes, and off for workflows and prompts saved before the switch existed: they
 * were drawn as typed.
 */

import { widgetOf } from "./graph.js";

const SWITCH = "expand";

/** Switch a node's expansion off if it was loaded from a workflow without the switch. */
export function asSaved(node) {
  if (!widgetOf(node, SWITCH)) return;
  const then = node.onConfigure;
  node.onConfigure = function (saved, ...rest) {
    if (!knows(node, saved)) widgetOf(node, SWITCH).value = false;
    return then?.call(this, saved, ...rest);
  };
}

/** Whether a saved node has a value for the switch; values are saved by position or by name. */
function knows(node, saved) {
  const position = node.widgets.findIndex((widget) => widget.name === SWITCH);
  return typeof saved?.widgets_values_named?.[SWITCH] === "boolean"
    || typeof saved?.widgets_values?.[position] === "boolean";
}

/** Do the same for the nodes of a graph that was made from a prompt in API form. */
export function asPrompted(graph, prompt) {
  for (const [id, { inputs }] of Object.entries(prompt)) {
    const node = graph?.getNodeById(id) ?? graph?.getNodeById(Number(id));
    const widget = node && widgetOf(node, SWITCH);
    if (widget && !(SWITCH in (inputs ?? {}))) widget.value = false;
  }
}
