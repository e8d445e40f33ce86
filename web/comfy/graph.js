/**
 * Where a node's inputs come from, and which node an id names. Pure: works on any object shaped
 * like ComfyUI's graph.
 *
 * An execution id is "12", or "12:5" for node 5 inside the subgraph node 12. Frontends differ in
 * whether ids are numbers or strings.
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

/** The node that an execution id names, or null. */
export function nodeAt(graph, id) {
  let node = null;
  for (const part of String(id).split(":")) {
    graph = node === null ? graph : node.subgraph;
    node = byId(graph, part);
    if (node === null) return null;
  }
  return node;
}

/** The execution id of a node, "12:5" inside the subgraph node 12; null if it is in no graph. */
export function idOf(graph, node, before = "") {
  for (const other of graph?._nodes ?? []) {
    const id = `${before}${other.id}`;
    const match = other === node ? id : other.subgraph && idOf(other.subgraph, node, `${id}:`);
    if (match) return match;
  }
  return null;
}

function byId(graph, id) {
  return graph?.getNodeById(Number(id)) ?? graph?.getNodeById(id) ?? null;
}
