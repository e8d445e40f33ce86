/** Words to click, by kind. What a click does to the prompt is in core/prompting.js. */

import { button, make } from "./core/elements.js";
import { clicked, has, usable } from "./core/prompting.js";
import { keep, recall } from "./kept.js";

const OPEN = "words-open";

/** What the model can draw, folded away: its words by kind to click, or that it takes any text. */
export function drawable(app) {
  const { model } = app.schema;
  const fold = make("details", "drawable", { id: "drawable" }, [
    make("summary", "small", {}, [app.say(app.words.words.knows, { name: model.name })]),
    model.draws ? make("p", "hint small", {}, [model.draws]) : new WordChips(app).element]);
  fold.open = recall(OPEN, false);
  fold.addEventListener("toggle", () => keep(OPEN, fold.open));
  return fold;
}

class WordChips {
  #open = null; // name of the kind whose chips are shown
  #buttons = []; // [kind, chip, button] of those

  constructor(app) {
    this.app = app;
    this.words = app.words.words;
    this.kinds = app.schema.model.words;
    this.chips = make("div", "chips", { role: "group", id: "word-chips" });
    this.tabs = this.kinds.map(({ name }) => this.#tab(name));
    this.element = make("div", "stack word-chips", {}, [
      make("div", "chips kinds", { role: "group", "aria-label": this.words.kinds }, this.tabs),
      this.chips]);
    this.element.hidden = this.kinds.length === 0;
    this.#show(null);
    app.settings.watch((_, names) => names.includes("prompt") && this.#refresh());
  }

  #tab(name) {
    return button(name, () => this.#show(name === this.#open ? null : name),
      { class: "kind", "aria-controls": this.chips.id });
  }

  #show(name) {
    this.#open = name;
    this.tabs.forEach((tab, n) => tab.setAttribute("aria-expanded",
      String(this.kinds[n].name === name)));
    const kind = this.kinds.find((known) => known.name === name);
    this.#buttons = kind ? kind.chips.map((chip) => [kind, chip, this.#chip(kind, chip)]) : [];
    this.chips.replaceChildren(...this.#buttons.map(([, , button]) => button));
    this.chips.hidden = !kind;
    this.chips.setAttribute("aria-label", name ?? this.words.kinds);
    this.#refresh();
  }

  #chip(kind, chip) {
    const { settings } = this.app;
    return button(chip.phrases[0], () => settings.set(
      { prompt: clicked(settings.get("prompt"), kind, chip, this.kinds) }),
    { class: "chip", ...(kind.role === "colour" && { "data-colour": chip.colour }) });
  }

  /** Press the chips whose words the prompt has. */
  #refresh() {
    const prompt = this.app.settings.get("prompt");
    for (const [kind, chip, button] of this.#buttons) {
      button.setAttribute("aria-pressed", String(has(prompt, kind, chip, this.kinds)));
      button.disabled = !usable(prompt, kind, this.kinds);
      button.title = button.disabled ? this.words.nameAThing : "";
    }
  }
}
