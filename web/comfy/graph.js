/**
 * Where a node's inputs come from. Pure: works on any object shaped like ComfyUI's graph.
 */

const HOPS = 20; // the longest chain of reroutes that is followed

/** The node whose output reaches an input, past reroutes; null if there is none in this graph. */
export function sourceOf(node, name) {
  let slot = node.inputs?.find((input) => input.name === name);
  for (let hop = 0; hop < HOPS; hop++) {
    const link = linkOf(node.graph, slot?.link);
    const source = link && node.graph.getNodeById(link.origin_id);
    if (!source) return null;
    if (source.type !== "Reroute") return source;
    [node, slot] = [source, source.inputs?.[0]];
  }
  return null;
}

/** The nodes that take an output, by its number. */
export function targetsOf(node, output) {
  return (node.outputs?.[output]?.links ?? [])
    .map((id) => linkOf(node.graph, id))
    .map((link) => link && node.graph.getNodeById(link.target_id))
    .filter(Boolean);
}

/** The widget of a node, by its name. */
export const widgetOf = (node, name) => node.widgets?.find((widget) => widget.name === name);

/** A link by its id; null if there is none. */
export function linkOf(graph, id) {
  if (!graph || id == null) return null;
  return graph.getLink?.(id) ?? graph.links?.get?.(id) ?? graph.links?.[id] ?? null;
}
