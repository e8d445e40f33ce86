/**
 * What is filled into the prompt, as lighter chips below it. A click on one writes it into the
 * prompt; its cross, or the key Delete, leaves it open.
 */

import { button, make } from "./core/elements.js";
import { check } from "./form.js";
import { freshSeed } from "./seed.js";

const ANEW = { prompt_expanded: null, negative_expanded: null }; // no words are fixed

export function fillIns(app, area) {
  return new FillIns(app, area).element;
}

class FillIns {
  constructor(app, area) {
    Object.assign(this, { app, area, words: app.words.words, filled: null });
    this.chips = make("div", "chips filled", { role: "group", id: "filled",
      "aria-label": this.words.filledIn });
    this.chips.hidden = true;
    const { box, element } = check(this.words.expand, true, (on) => app.settings.set({
      expand: on }));
    box.id = "expand";
    element.classList.add("small");
    app.settings.watch((values) => { box.checked = values.expand; });
    this.element = make("div", "stack fill-ins", {}, [element, this.chips]);
    this.element.hidden = !app.schema.model.expands;
    app.planner.watch((answer) => this.#show(answer.filled ?? null));
  }

  #show(filled) {
    if (JSON.stringify(filled) === JSON.stringify(this.filled)) return;
    this.filled = filled;
    const focused = [...this.chips.children].indexOf(
      document.activeElement?.closest(".filled > *"));
    const { chips = [], open = [], text = "", pictures = 1 } = filled ?? {};
    const parts = chips.map((chip) => this.#chip(chip));
    if (text) parts.push(this.#fixed(text));
    const heading = text ? this.words.nextFrom : this.words.nextHas;
    if (chips.length || text) parts.unshift(make("span", "hint", {}, [heading]));
    if (chips.length) parts.push(this.#link("fill-other", "fillOther", () => this.#other()));
    if (open.length) parts.push(this.#link("fill-again", "fillAgain", () => this.#set([])));
    if (chips.length && pictures > 1) {
      parts.push(make("span", "hint", {}, [this.app.say(this.words.firstOf, { pictures })]));
    }
    this.chips.replaceChildren(...parts);
    this.chips.hidden = parts.length === 0;
    this.#keepRoom(filled?.prompt);
    if (focused >= 0) this.#focus(focused);
  }

  /** Other words of one prompt move nothing below them, unless they need more room than before. */
  #keepRoom(prompt) {
    const { chips } = this;
    if (prompt !== this.prompt) chips.style.minHeight = "";
    this.prompt = prompt;
    if (chips.offsetHeight) chips.style.minHeight = `${chips.offsetHeight}px`;
  }

  #chip(chip) {
    const hint = chip.instead ? this.words.pinInstead : this.words.pin;
    const pin = button(chip.text, () => this.#pin(chip),
      { class: "pin", "aria-keyshortcuts": "Delete",
        title: this.app.say(hint, { text: chip.text, instead: chip.instead }) });
    pin.addEventListener("keydown", ({ key }) => {
      if (key === "Delete" || key === "Backspace") this.#leave(chip, element);
    });
    const element = this.#withCross(pin, this.app.say(this.words.leaveOpen, { text: chip.text }),
      () => this.#leave(chip, element));
    element.lastChild.tabIndex = -1; // one stop of the Tab key for each chip
    return element;
  }

  /** The words of another picture. */
  #fixed(text) {
    return this.#withCross(make("span", "fixed", { title: this.words.fixedHint }, [text]),
      this.words.fillAnew, () => this.#set([]));
  }

  #withCross(inside, label, act) {
    const cross = button("×", act, { class: "cross", title: label, "aria-label": label });
    return make("span", "addition", {}, [inside, cross]);
  }

  #link(id, word, act) {
    return button(this.words[word], act, { class: "link", id, title: this.words[`${word}Hint`] });
  }

  /** Whether the prompt in the box is still the one that the additions belong to. */
  get #current() {
    return this.area.value.trim() === this.filled?.prompt;
  }

  #other() {
    this.app.settings.set({ seed: freshSeed(), open: [], ...ANEW });
  }

  /** The chip goes at once, before the server answers. */
  #leave(chip, element) {
    if (!this.#current) return;
    const place = [...this.chips.children].indexOf(element);
    element.remove();
    this.#focus(place);
    this.#set([...this.filled.open, chip.name]);
  }

  #set(names) {
    if (!this.#current) return;
    this.filled = { ...this.filled, open: names };
    this.app.settings.set({ open: names, ...ANEW });
  }

  #pin(chip) {
    if (!this.#current) return;
    this.app.settings.set({ prompt: chip.pinned, open: this.filled.open, ...ANEW });
    this.area.focus();
  }

  #focus(place) {
    const chips = this.chips.children;
    const next = chips[Math.min(place, chips.length - 1)];
    (next?.querySelector("button") ?? next)?.focus();
  }
}
