/**
 * An error as an element: its sentence, a button that copies it, and one that shows all of it where
 * there is no room for it. Nothing runs on import.
 */

import { addStyleSheet, button, make, setText } from "./elements.js";

export class Message {
  #observer = new ResizeObserver(() => this.#fit());

  /** words: copy, copied and showAll. onResize() is called when the sentence takes other room. */
  constructor(words, sentence = "", onResize = () => {}) {
    addStyleSheet(new URL("message.css", import.meta.url).href);
    Object.assign(this, { words, onResize });
    this.text = make("div", "ssd-error");
    this.copy = button(words.copy, () => this.#copy(), { class: "ssd-button" });
    this.more = button(words.showAll, () => this.#showAll(), { class: "ssd-button" });
    this.element = make("div", "ssd-message", { role: "alert" },
      [this.text, make("div", "ssd-message-bar", {}, [this.copy, this.more])]);
    this.more.hidden = true;
    this.say(sentence);
    for (const part of [this.element, this.text]) this.#observer.observe(part);
  }

  get sentence() {
    return this.text.textContent;
  }

  /** Show a sentence; none hides the message. */
  say(sentence = "") {
    setText(this.text, sentence);
    setText(this.copy, this.words.copy);
    this.element.hidden = sentence === "";
  }

  #fit() {
    this.more.hidden = this.text.scrollHeight <= this.text.clientHeight + 1;
    this.onResize();
  }

  /** Over the page, at its own size: a node may be small, and its canvas zoomed out. */
  #showAll() {
    const whole = make("div", "ssd-message-whole", { popover: "auto" }, [this.sentence]);
    whole.addEventListener("toggle", ({ newState }) => newState === "closed" && whole.remove());
    document.body.append(whole);
    whole.showPopover();
  }

  /** Pages that come without https have no clipboard. */
  async #copy() {
    try {
      await navigator.clipboard.writeText(this.sentence);
    } catch {
      getSelection().selectAllChildren(this.text);
      document.execCommand("copy");
    }
    setText(this.copy, this.words.copied);
  }

  dispose() {
    this.#observer.disconnect();
    this.element.remove();
  }
}
