/**
 * Names of choices in the page's language. Saved and sent values stay English. Pure.
 */

import { widgetOf } from "./graph.js";
import { stringsFor } from "../preview/strings.js";

const LIST = "quality"; // the widget whose choices have names
const NAMES = {
  en: {},
  zh: {
    Faithful: "忠实", Balanced: "均衡", Fast: "快速", custom: "自定义",
  },
};

/** Show the choices of a node's lists by their names; choices without a name stay as they are. */
export function nameChoices(node, language) {
  const names = stringsFor(language, NAMES);
  if (names === NAMES.en) return;
  const widget = widgetOf(node, LIST);
  if (widget) {
    widget.options.getOptionLabel = (value) => names[value] ?? String(value ?? "");
  }
}
