/**
 * Words to click on a node, by kind, which write its prompt for a model with a limited
 * vocabulary.
 * What a click does to a prompt is in preview/prompting.js. Knows no ComfyUI by itself.
 */

import { addStyleSheet, button, make } from "../preview/elements.js";
import { sourceOf, widgetOf } from "./graph.js";
import { addElement } from "./room.js";
import { clicked, has, usable } from "../preview/prompting.js";

export const WIDGET = "ssd_words";
const PROMPT = "prompt";
const LINE = 24; // px of the kinds, and of a second line of them on a narrow node
const NARROW = 390;
const OPEN = 96; // px of the words of one kind

/** A node's words: an element, and the widget that holds it. */
export class WordChips {
  #kinds = [];
  #open = null; // the name of the kind whose words are shown

  constructor(node, words) {
    addStyleSheet(new URL("word_chips.css", import.meta.url).href);
    Object.assign(this, { node, words });
    this.tabs = make("div", "ssd-kinds", { role: "group", "aria-label": words.wordKinds });
    this.chips = make("div", "ssd-chips", { role: "group" });
    this.element = make("div", "ssd-words", {}, [this.tabs, this.chips]);
    this.element.addEventListener("pointerenter", () => this.#render()); // show typed changes
    const height = () => this.height;
    this.widget = addElement(node, WIDGET, WIDGET, this.element,
      { margin: 0, getMinHeight: height, getMaxHeight: height });
    this.widget.label = words.wordKinds;
    this.#render();
  }

  get height() {
    if (this.element.hidden) return 0;
    const lines = this.node.size[0] < NARROW ? 2 : 1;
    return lines * LINE + (this.chips.hidden ? 0 : OPEN);
  }

  /** Offer these kinds; none if the model takes any words. */
  offer(kinds) {
    this.#kinds = kinds;
    this.#render();
    // Only what is missing: a node that was saved with its words has the height already.
    const { size } = this.node;
    this.node.setSize([size[0], Math.max(size[1], this.node.computeSize()[1])]);
  }

  get #prompt() {
    return String(widgetOf(this.node, PROMPT)?.value ?? "");
  }

  #render() {
    const kind = this.#kinds.find(({ name }) => name === this.#open);
    this.element.hidden = this.#kinds.length === 0 || sourceOf(this.node, PROMPT) !== null;
    this.tabs.replaceChildren(...this.#kinds.map(({ name }) => this.#tab(name)));
    this.chips.replaceChildren(...(kind?.chips ?? []).map((chip) => this.#chip(kind, chip)));
    this.chips.hidden = !kind;
  }

  #tab(name) {
    const isOpen = name === this.#open;
    return button(name, () => this.#resized(() => {
      this.#open = isOpen ? null : name;
      this.#render();
    }), { class: "ssd-kind", "aria-expanded": String(isOpen) });
  }

  #chip(kind, chip) {
    const isOn = has(this.#prompt, kind, chip, this.#kinds);
    const made = button(chip.phrases[0], () => {
      const widget = widgetOf(this.node, PROMPT);
      widget.value = clicked(this.#prompt, kind, chip, this.#kinds);
      widget.callback?.(widget.value);
      this.#render();
    }, { class: "ssd-chip", "aria-pressed": String(isOn) });
    made.disabled = !usable(this.#prompt, kind, this.#kinds);
    made.title = made.disabled ? this.words.nameAThing : "";
    return made;
  }

  /** Run a change and resize the node by as much as its content grew or shrank. */
  #resized(change) {
    const before = this.node.computeSize()[1];
    change();
    const grown = this.node.computeSize()[1] - before;
    if (grown !== 0) this.node.setSize([this.node.size[0], this.node.size[1] + grown]);
  }
}
