/**
 * The switch that fills in what a prompt leaves open. Pure: works on any object shaped like
 * ComfyUI's graph.
 *
 * It is on where a node is new. What was saved before there was such a switch, was drawn as typed,
 * and is drawn so again.
 */

import { widgetOf } from "./graph.js";

const SWITCH = "expand";

/** Have a node's switch off after it was loaded from a workflow that does not know it. */
export function asSaved(node) {
  if (!widgetOf(node, SWITCH)) return;
  const then = node.onConfigure;
  node.onConfigure = function (saved, ...rest) {
    if (!knows(node, saved)) widgetOf(node, SWITCH).value = false;
    return then?.call(this, saved, ...rest);
  };
}

/** Whether a saved node has a value for the switch; values are saved by position, or by name. */
function knows(node, saved) {
  const position = node.widgets.findIndex((widget) => widget.name === SWITCH);
  return typeof saved?.widgets_values_named?.[SWITCH] === "boolean"
    || typeof saved?.widgets_values?.[position] === "boolean";
}

/** The same for the nodes of a graph that was made of a prompt in API form. */
export function asPrompted(graph, prompt) {
  for (const [id, { inputs }] of Object.entries(prompt)) {
    const node = graph?.getNodeById(id) ?? graph?.getNodeById(Number(id));
    const widget = node && widgetOf(node, SWITCH);
    if (widget && !(SWITCH in (inputs ?? {}))) widget.value = false;
  }
}
