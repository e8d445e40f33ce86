/** Icons of one set, drawn in the colour of the text: see icons.svg. */

import { make } from "./core/elements.js";

const SHEET = new URL("icons.svg", import.meta.url).href;

/** The icon of this name; screen readers skip it. */
export function icon(name) {
  const parsed = document.createElement("template");
  parsed.innerHTML = `<svg class="sign" aria-hidden="true"><use href="${SHEET}#${name}"/></svg>`;
  return parsed.content.firstChild;
}

/** An icon with its name, which only screen readers say; the tooltip is the control's own. */
export function sign(name, label) {
  return [icon(name), make("span", "unseen", {}, [label])];
}
