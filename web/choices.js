/**
 * Names of choices in the page's language. What is saved and sent stays English. Pure.
 */

const NAMED = ["quality", "preset"]; // widgets whose choices have names

/** Show the choices of a node's lists under these names; names that lack one stay as they are. */
export function nameChoices(node, names) {
  if (!Object.keys(names).length) return;
  for (const widget of node.widgets ?? []) {
    if (!NAMED.includes(widget.name)) continue;
    widget.options.getOptionLabel = (value) => names[value] ?? String(value ?? "");
  }
}
