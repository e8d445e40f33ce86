/**
 * The prompt as the words of the picture on the stage: while one changes them, the cells light up
 * that they would change, and an edit without a mask redraws those.
 */

import { make } from "./core/elements.js";
import { check } from "./form.js";
import { menuButton } from "./menu.js";
import { recentPrompts, rememberPrompt } from "./recent.js";

const PAUSE = 150; // ms without a key until the server is asked

export class PictureWords {
  #old = null; // the words that the picture was drawn from; null if they are not known
  #own = null; // those of them that stand in the prompt while nothing is changed
  #timer = null;
  #abort = null;
  #lit = false; // whether the canvas shows the map of these words
  #asked = ""; // what the server was asked last
  #considered = null; // words that are shown instead while one looks at them
  #whole = null; // words that need nothing filled in, if these are taken

  /**
   * settings(prompt): those of an edit by these words. isDrawn(): whether one is drawn already. on:
   * changed().
   */
  constructor(app, canvas, settings, isDrawn, on) {
    Object.assign(this, { app, words: app.words.edit, canvas, settings, isDrawn, on });
    this.reach = make("input", "", { type: "range", min: "0", max: "1", step: "0.05",
      id: "edit-reach", title: this.words.reachHint });
    this.reach.value = String(app.settings.get("reach"));
    this.reach.addEventListener("input", () => app.settings.set({
      reach: Number(this.reach.value) }));
    this.hold = check(this.words.hold, app.settings.get("hold"),
      (hold) => app.settings.set({ hold }));
    this.within = check(this.words.within, false, () => this.on.changed());
    this.range = menuButton(this.words.far, () => [make("label", "stack edit-reach", {},
      [this.words.reach, this.reach]), this.hold.element, this.within.element],
    "button plain small");
    Object.assign(this.range.button, { id: "edit-range", title: this.words.reachHint });
    this.element = make("div", "row", { hidden: "" }, [this.range.button, this.range.menu]);
    this.legend = make("p", "edit-legend stamp", { hidden: "" }, [make("span", "edit-glow"),
      this.words.lit]); // explains the map, on the picture
    this.end = app.settings.watch((_, names) => names.includes("prompt") && this.#typed());
  }

  get text() {
    return this.app.settings.get("prompt").trim();
  }

  /** Whether what the prompt leaves open is filled in as it was for the picture. */
  fills(text = this.text) {
    return text.trim() !== this.#whole;
  }

  /** Whether other words than the picture's are there. */
  get differ() {
    return this.#old !== null && this.text !== "" && this.text !== this.#own;
  }

  /** Whether the words decide what changes: without a mask, or within it if that is asked for. */
  get decide() {
    return this.differ && (this.canvas.mask.count === 0 || this.within.box.checked);
  }

  /** The words that the picture had, if it is edited by words. */
  get old() {
    return this.decide ? this.#old : null;
  }

  /**
   * Begin with a picture that was drawn from the words `old`, of which `own` stand in the prompt.
   * take: words to write there; null: those that are there stay.
   */
  begin(old, own, take = null) {
    this.#old = old;
    this.#own = own?.trim() ?? null;
    if (take !== null) this.#write(take);
    else this.#typed();
  }

  /** Take other words, which say all of the picture. */
  set(text) {
    this.#whole = text.trim();
    this.#write(text);
  }

  /** What was typed and never drawn is found among the recent prompts. */
  #write(prompt) {
    const { settings } = this.app;
    const typed = settings.get("prompt").trim();
    if (typed === prompt.trim()) return this.#typed();
    if (typed && !recentPrompts().includes(typed)) rememberPrompt(typed);
    return settings.set({ prompt });
  }

  /** Show what other words would change without taking them; null: no longer. */
  consider(text) {
    this.#considered = text;
    this.#light();
    this.#askLater(0);
  }

  update() {
    this.element.hidden = !this.differ;
    this.within.element.hidden = this.canvas.mask.count === 0;
    const shown = this.#lit && (this.decide || this.#considered !== null);
    this.legend.hidden = this.canvas.map.hidden = !shown;
  }

  /** The cells go dark with the words before. */
  #typed() {
    if (!this.on) return; // still being made
    this.#light();
    this.on.changed();
    this.#askLater(PAUSE);
  }

  #askLater(pause) {
    const prompt = this.#considered ?? (this.differ ? this.text : null);
    this.rest();
    this.#asked = prompt;
    if (prompt === null || this.isDrawn()) return;
    this.#timer = setTimeout(() => this.#ask(prompt), pause);
  }

  #light(map = null) {
    this.canvas.light(map);
    this.#lit = map !== null;
    this.update();
  }

  async #ask(prompt) {
    const abort = this.#abort = new AbortController();
    const settings = { ...this.settings(prompt), keep_mask: null, old_prompt: this.#old };
    try {
      const { map } = await this.app.api.post("change", { settings }, abort.signal);
      if (!abort.signal.aborted && prompt === this.#asked) this.#light(map);
    } catch {
      // the plan's line says what is wrong with them
    }
  }

  /** Ask nothing more until the words change. */
  rest() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  dispose() {
    this.rest();
    this.end();
  }
}
