/**
 * Names of choices in the page's language. Saved and sent values stay English. Pure.
 */

import { stringsFor } from "../preview/strings.js";

const LIST = /^method(_\d)?$/; // the widgets whose choices have names
const NAMES = {
  en: {},
  zh: {
    Faithful: "忠实", Balanced: "均衡", Fast: "快速", none: "无",
    "Reference (AR)": "参考（AR）", "Rows (SSD without heads)": "Rows（不用草稿头的 SSD）",
  },
};

/** Show the choices of a node's lists by their names; choices without a name stay as they are. */
export function nameChoices(node, language) {
  const names = stringsFor(language, NAMES);
  if (names === NAMES.en) return;
  for (const widget of (node.widgets ?? []).filter(({ name }) => LIST.test(name))) {
    widget.options.getOptionLabel = (value) => names[value] ?? String(value ?? "");
  }
}
