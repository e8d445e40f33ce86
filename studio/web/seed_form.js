/** How many seeds are begun and how much of each, with whose settings; Start and Stop. */

import { button, make, setText } from "./core/elements.js";
import { enable, segments, stopButton } from "./form.js";
import { keep, recall } from "./kept.js";
import { SEEDS, freshSeed, keepsSeed } from "./seed.js";
import { usesLine } from "./uses.js";

const SHARES = { third: 1 / 3, half: 1 / 2, most: 5 / 6 };
const [LEAST, USUAL, MOST] = [2, 8, 16];

export class SeedForm {
  #active = []; // jobs that wait or run
  #like = null; // {id, settings} of the picture whose settings are drawn with other seeds
  starting = false;

  /** on: paused(), how many seeds are paused now; changed(), the form has other values. */
  constructor(app, on) {
    Object.assign(this, { app, on, words: app.words.seeds });
    const stored = recall("seeds", {});
    this.count = Math.min(Math.max(LEAST, Number(stored.count) || USUAL), MOST);
    this.part = Object.hasOwn(SHARES, stored.part) ? stored.part : "most";
    this.uses = usesLine(app, ["seeds", "finish"]);
    this.likes = make("div", "likes row", { hidden: "" });
    this.warning = make("p", "small hint", { hidden: "" });
    this.element = make("div", "stack", {}, [this.uses, this.likes, this.#buttons(), this.warning,
      this.#countField(), this.#partField(),
      make("p", "small hint", {}, [this.words.hint])]);
    this.show([]);
    app.settings.watch(() => this.#enable());
  }

  get share() {
    return SHARES[this.part];
  }

  get #settings() {
    return this.#like?.settings ?? this.app.settings.values;
  }

  /** The seed of the first one: that of a picture stands in the middle. */
  get #first() {
    const seed = BigInt(this.#settings.seed);
    return this.#like ? (seed - BigInt(Math.floor(this.count / 2)) + SEEDS) % SEEDS : seed;
  }

  get seeds() {
    return Array.from({ length: this.count }, (_, n) => String((this.#first + BigInt(n)) % SEEDS));
  }

  #enable() {
    this.start.disabled = this.#settings.prompt.trim() === "";
  }

  #buttons() {
    const { app, words } = this;
    this.start = button("", () => this.#begin(), { class: "button main grow", id: "seeds-start" });
    this.stop = stopButton(app, "seeds-stop", () => app.attempt(this.#stopAll()));
    setText(this.start, app.say(words.start, { count: this.count }));
    return make("div", "row buttons", {}, [this.start, this.stop]);
  }

  #countField() {
    const range = make("input", "", { type: "range", min: String(LEAST), max: String(MOST),
      step: "1", value: String(this.count), id: "seeds-count" });
    const said = make("output", "", { for: range.id }, [String(this.count)]);
    range.addEventListener("input", () => {
      this.count = Number(range.value);
      setText(said, range.value);
      this.#changed();
    });
    return make("div", "field", {}, [make("label", "", { for: range.id }, [this.words.count]),
      make("div", "ranged", {}, [range, said])]);
  }

  #partField() {
    const options = Object.keys(SHARES).map((value) => ({ value, label: this.words[value] }));
    const { element, set } = segments("part", this.words.part, options, (part) => {
      this.part = part;
      this.#changed();
    });
    element.id = "seeds-part";
    set(this.part);
    return make("div", "field", {}, [make("span", "label", {}, [this.words.part]), element]);
  }

  #changed() {
    keep("seeds", { count: this.count, part: this.part });
    setText(this.start, this.app.say(this.words.start, { count: this.count }));
    this.on.changed();
  }

  /** active: the jobs that wait or run. */
  show(active) {
    this.#active = active;
    enable(this.stop, active.length > 0, this.start);
    const paused = this.on.paused();
    this.warning.hidden = paused === 0;
    setText(this.warning, this.app.say(this.words.replaces, { count: paused }));
  }

  async #begin() {
    const { app } = this;
    this.starting = true;
    const settings = { ...this.#settings, seed: String(this.#first) };
    const started = await app.attempt(app.jobs.submit("seeds/start", { settings,
      count: this.count, part: this.part, ...(this.#like && { like: this.#like.id }) }));
    this.starting = false;
    if (started && !this.#like && !keepsSeed()) app.settings.set({ seed: freshSeed() });
  }

  /** From the last to the first, so that none begins meanwhile. */
  async #stopAll() {
    for (const { id } of this.#active.toReversed()) await this.app.api.post(`jobs/${id}/stop`);
    await this.app.jobs.refresh();
  }

  /** Offer the seeds around that of a saved picture, with its settings. */
  async like(id) {
    const { app } = this;
    const path = id.split("/").map(encodeURIComponent).join("/");
    const entry = await app.attempt(app.api.get(`history/${path}`));
    if (entry === null) return;
    const restored = await app.api.get("restore", { id }).catch(() => null); // it has no recipe
    const settings = { ...app.settings.values, ...restored?.settings };
    if (entry.seed) settings.seed = entry.seed;
    this.#like = { id, settings };
    this.#showLike(entry);
    this.#enable();
    this.on.changed();
  }

  #showLike({ thumbnail, title }) {
    const { words } = this;
    const out = button("×", () => this.#unlike(),
      { class: "button plain icon", title: words.unlike, "aria-label": words.unlike });
    this.likes.replaceChildren(make("img", "", { src: thumbnail, alt: "", width: "48",
      height: "48" }), make("div", "grow", {}, [make("p", "small hint", {}, [words.like]),
      make("p", "clip", {}, [title])]), out);
    this.likes.hidden = false;
    this.uses.hidden = true;
  }

  #unlike() {
    this.#like = null;
    this.likes.hidden = true;
    this.uses.hidden = false;
    this.#enable();
    this.on.changed();
  }
}
