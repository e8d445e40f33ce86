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

const GLANCE = 200; // ms; values that Gradio sets make no event

/** A component of the page by its selector, looked at whenever it may have changed. */
export class Target {
  #look;
  #timer;

  /** look(root) gets the component's root, or null while it is not on the page. */
  constructor(selector, look) {
    this.selector = selector;
    this.#look = () => look(this.root);
    for (const kind of ["input", "change"]) document.addEventListener(kind, this.#look);
    this.#timer = setInterval(this.#look, GLANCE);
  }

  get root() {
    return this.selector ? document.querySelector(this.selector) : null;
  }

  stop() {
    for (const kind of ["input", "change"]) document.removeEventListener(kind, this.#look);
    clearInterval(this.#timer);
  }
}

/** Write into an input as if it had been typed. */
export function type(input, value) {
  input.value = value;
  for (const kind of ["input", "change"]) input.dispatchEvent(new Event(kind, { bubbles: true }));
}
