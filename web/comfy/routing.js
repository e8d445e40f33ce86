/**
 * From the node id in a message to the node in a graph. Pure.
 *
 * An id is "12", or "12:5" for node 5 inside the subgraph node 12. Frontends differ in whether
 * ids are numbers or strings.
 */

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
