/** Icons of one set, drawn in the colour of the text: see icons.svg. */

import { make } from "./core/elements.js";

const SVG = "http://www.w3.org/2000/svg";
const SHEET = new URL("icons.svg", import.meta.url).href;

/** The icon of this name; screen readers skip it. */
export function icon(name) {
  const [svg, use] = ["svg", "use"].map((tag) => document.createElementNS(SVG, tag));
  svg.setAttribute("class", "sign");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${SHEET}#${name}`);
  svg.append(use);
  return svg;
}

/** An icon with its name, which only screen readers say; the tooltip is the control's own. */
export function sign(name, label) {
  return [icon(name), make("span", "unseen", {}, [label])];
}
