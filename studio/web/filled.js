/**
 * <ssd-filled filled="{..}">: what is filled into a prompt, as chips under it. A click on one
 * writes it into the prompt, its cross or the key Delete leaves it open.
 *
 * filled: {prompt, open, chips: [{name, text, instead, pinned}], text, pictures}, as
 * studio/tabs/filled.py writes it. `open` are names, `pinned` is the prompt with a chip in it.
 * `text`, without chips, are the words of another picture.
 */

import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { PersistentElement } from "./persistent.js";
import { pageWords, type } from "./host.js";

/** The setting by which these additions to a prompt stay open; "" if none do. Pure. */
export function openText(prompt, names) {
  return names.length ? JSON.stringify({ typed: [prompt], value: names }) : "";
}

const input = (id) => document.querySelector(`#${id} :is(textarea, input)`);

export class SsdFilled extends PersistentElement {
  static observedAttributes = ["filled"];

  connectedCallback() {
    this.#render();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#render();
  }

  #render() {
    this.words = pageWords();
    this.content = JSON.parse(this.getAttribute("filled") || "{}");
    const { chips = [], open = [], text = "", pictures = 1 } = this.content;
    this.box = make("div", "ssd-filled", { role: "group", "aria-label": this.words.filledIn });
    this.box.append(...chips.map((chip) => this.#chip(chip)));
    if (text) this.box.append(this.#fixed(text));
    if (open.length) this.box.append(this.#again());
    if (chips.length && pictures > 1) {
      this.box.append(make("span", "ssd-none", {}, [say(this.words.firstOf, { pictures })]));
    }
    this.show(this.box);
  }

  #chip(chip) {
    const hint = chip.instead ? this.words.pinInstead : this.words.pin;
    const pin = make("button", "ssd-pin", { type: "button",
      title: say(hint, { text: chip.text, instead: chip.instead }) }, [chip.text]);
    pin.addEventListener("click", () => this.#pin(chip));
    pin.setAttribute("aria-keyshortcuts", "Delete");
    pin.addEventListener("keydown", ({ key }) => {
      if (key === "Delete" || key === "Backspace") this.#leave(chip);
    });
    const element = this.#with(pin, say(this.words.leaveOpen, { text: chip.text }),
      () => this.#leave(chip));
    element.lastChild.tabIndex = -1; // one stop of the Tab key for each chip
    return element;
  }

  #fixed(text) {
    const words = make("span", "ssd-fixed", { title: this.words.fixedHint }, [text]);
    return this.#with(words, this.words.fillAnew, () => this.#set([], this.box));
  }

  #with(words, label, act) {
    const cross = make("button", "ssd-cross", { type: "button", title: label,
      "aria-label": label }, ["×"]);
    cross.addEventListener("click", act);
    return make("span", "ssd-addition", {}, [words, cross]);
  }

  #again() {
    const again = make("button", "ssd-again", { type: "button" }, [this.words.fillAgain]);
    again.addEventListener("click", () => this.#set([], again));
    return again;
  }

  /** Whether the prompt in the box is still the one that the additions belong to. */
  get #current() {
    return input("prompt")?.value.trim() === this.content.prompt;
  }

  #leave(chip) {
    const at = this.content.chips.indexOf(chip);
    this.#set([...this.content.open, chip.name], this.box.children[at]);
  }

  /** Leave only these open; the element `gone` is removed before the server answers. */
  #set(names, gone) {
    if (!this.#current) return;
    const next = gone.nextElementSibling ?? gone.previousElementSibling;
    gone.remove();
    next?.querySelector("button")?.focus();
    this.content.open = names;
    write("fixed-words", "");
    write("left-open", openText(this.content.prompt, names));
  }

  #pin(chip) {
    if (!this.#current) return;
    write("fixed-words", "");
    write("left-open", openText(chip.pinned, this.content.open));
    write("prompt", chip.pinned);
    input("prompt").focus();
  }
}

function write(id, text) {
  const box = input(id);
  if (box && box.value !== text) type(box, text);
}
