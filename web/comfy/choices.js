/**
 * Names of choices in the page's language. Saved and sent values stay English. Pure.
 */

import { stringsFor } from "../preview/strings.js";

const LISTS = ["quality", "preset"]; // widgets whose choices have names
const NAMES = {
  en: {},
  zh: {
    Faithful: "忠实", Balanced: "均衡", Fast: "快速", custom: "自定义",
    "SSD for this backbone": "此主干模型的 SSD",
  },
};

/** Show the choices of a node's lists by their names; choices without a name stay as they are. */
export function nameChoices(node, language) {
  const names = stringsFor(language, NAMES);
  if (names === NAMES.en) return;
  for (const widget of node.widgets ?? []) {
    if (!LISTS.includes(widget.name)) continue;
    widget.options.getOptionLabel = (value) => names[value] ?? String(value ?? "");
  }
}
