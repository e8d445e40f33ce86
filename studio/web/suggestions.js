/** The pictures of one edit to choose from: by their numbers, and side by side once finished. */

import { button, make } from "./core/elements.js";
import { segments } from "./form.js";

const ALL = -1;

export class Suggestions {
  constructor(app) {
    Object.assign(this, { app, words: app.words.edit });
    this.choice = make("div", "row edit-choice", { hidden: "" });
    this.spread = make("div", "edit-spread", { hidden: "" });
  }

  /**
   * Offer so many pictures; the arrow keys go from one to the next, and show(n) shows it. steps: if
   * they are finished, the pictures, which are seen side by side at first.
   */
  offer(count, show, steps = null) {
    this.choice.hidden = count < 2;
    if (count < 2) return;
    const numbers = Array.from({ length: count }, (_, n) => ({ value: n, label: String(n + 1),
      title: this.#name(n) }));
    const all = steps ? [{ value: ALL, label: this.words.all, title: this.words.allHint }] : [];
    const bar = segments("suggestion", this.words.suggestions, [...all, ...numbers], (n) => {
      this.spread.hidden = n !== ALL;
      if (n !== ALL) show(n);
    });
    bar.set(steps ? ALL : 0);
    if (steps) this.#spreadOut(steps, (n) => bar.inputs[n + 1].click());
    this.choice.replaceChildren(make("span", "label", {}, [this.words.suggestions]), bar.element);
    bar.inputs.find(({ checked }) => checked)?.focus({ preventScroll: true });
  }

  #name(n) {
    return this.app.say(this.words.suggestion, { number: n + 1 });
  }

  /** Show them side by side; a click takes one. */
  #spreadOut(steps, take) {
    this.spread.replaceChildren(...steps.map((step, n) => button([
      make("img", "", { src: step.picture, alt: "" }),
      make("span", "step-number stamp", { "aria-hidden": "true" }, [String(n + 1)])],
    () => take(n), { class: "", "aria-label": this.#name(n), title: this.#name(n) })));
    this.spread.hidden = false;
  }

  hide() {
    this.choice.hidden = this.spread.hidden = true;
  }
}
