/** The page around the elements: its language, and inputs of Gradio's that an element works. */

import { stringsFor } from "./core/strings.js";
import { TEXTS } from "./texts.js";

/** The language the page was told to have, else the browser's. */
export function pageLanguage() {
  return document.documentElement.dataset.ssdLanguage || navigator.language;
}

export function pageWords() {
  return stringsFor(pageLanguage(), TEXTS);
}

/** The items of an attribute such as "a, b", without blanks. */
export function listOf(element, name) {
  return (element.getAttribute(name) ?? "").split(",").map((item) => item.trim()).filter(Boolean);
}
