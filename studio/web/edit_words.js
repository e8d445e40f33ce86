/**
 * The words of an edit: while one types, the cells light up that new words would change, and an
 * edit without a mask redraws them. A slider says how far the words reach.
 */

import { make, setText } from "./core/elements.js";
import { check } from "./form.js";

const PAUSE = 150; // ms without a key until the server is asked

export class EditWords {
  #old = null; // the words that the picture was drawn from; null if they are not known
  #timer = null;
  #abort = null;
  #lit = false; // whether the canvas shows the map of these words
  #key = "";

  /** changed(): the words differ now, or no longer. */
  constructor(app, canvas, changed) {
    Object.assign(this, { app, words: app.words.edit, canvas, changed });
    this.reach = make("input", "", { type: "range", min: "0", max: "1", step: "0.05",
      id: "edit-reach", title: this.words.reachHint });
    this.reach.value = String(app.settings.get("reach"));
    this.reach.addEventListener("input", () => app.settings.set({
      reach: Number(this.reach.value) }));
    this.share = make("output", "brush-number", { for: "edit-reach" });
    this.hold = check(this.words.hold, app.settings.get("hold"),
      (hold) => app.settings.set({ hold }));
    this.within = check(this.words.within, false, () => this.changed());
    this.range = make("div", "row", {}, [make("label", "label", { for: "edit-reach" },
      [this.words.reach]), this.reach, this.share, this.hold.element]);
    this.element = make("div", "row edit-reach", { hidden: "" }, [this.within.element,
      this.range]);
    this.legend = make("p", "edit-legend stamp", { hidden: "" }, [make("span", "edit-glow"),
      this.words.lit]); // explains the map, on the picture
    this.end = app.settings.watch((values, names) => {
      setText(this.share, `${Math.round(100 * values.reach)} %`);
      if (names.includes("prompt")) this.#typed();
    });
  }

  /** Whether other words than the picture's are there. */
  get differ() {
    const prompt = this.app.settings.get("prompt").trim();
    return this.#old !== null && prompt !== "" && prompt !== this.#old.trim();
  }

  /** Whether the words decide what changes: without a mask, or within it if that is asked for. */
  get decide() {
    return this.differ && (this.canvas.mask.count === 0 || this.within.box.checked);
  }

  /** What of the settings makes it an edit by words. */
  settings() {
    return { old_prompt: this.decide ? this.#old : "" };
  }

  /** Begin with a picture that was drawn from these words. */
  begin(old, picture) {
    this.#old = old;
    this.picture = picture;
    this.#typed();
  }

  update() {
    this.element.hidden = !this.differ;
    this.within.element.hidden = this.canvas.mask.count === 0;
    this.range.hidden = !this.decide;
    this.legend.hidden = this.canvas.map.hidden = !this.decide || !this.#lit;
  }

  /** The question about the words before is dropped, and the cells go dark with them. */
  #typed() {
    const key = this.differ ? `${this.picture} ${this.app.settings.get("prompt")}` : "";
    if (key === this.#key) return;
    this.#key = key;
    this.#stop();
    this.#light();
    this.changed();
    if (key) this.#timer = setTimeout(() => this.#ask(), PAUSE);
  }

  #light(map = null) {
    this.canvas.light(map);
    this.#lit = map !== null;
    this.update();
  }

  async #ask() {
    const abort = this.#abort = new AbortController();
    const settings = { ...this.app.settings.values, parent: this.picture, keep_mask: "",
      old_prompt: this.#old };
    try {
      const { map } = await this.app.api.post("change", { settings }, abort.signal);
      if (!abort.signal.aborted) this.#light(map);
    } catch {
      // the prompt's own line says what is wrong with it
    }
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  dispose() {
    this.#stop();
    this.end();
  }
}
