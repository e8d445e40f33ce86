/**
 * <ssd-seeds jobs="a,b,.." seeds="7,8,.." target="#boxes">: a small live picture a seed, each with
 * a checkbox that stands for the one of the same seed in `target`, a gr.CheckboxGroup.
 */

import { make, setText } from "./core/elements.js";
import { Preview } from "./core/preview.js";
import { say } from "./core/strings.js";
import { fullScreen } from "./dialogs.js";
import { Feed } from "./feed.js";
import { PersistentElement } from "./persistent.js";
import { Target, listOf, pageLanguage, pageWords } from "./host.js";
import { seedText } from "./status.js";
import { downloads, pictureUrl, toolButton, request } from "./tools.js";

/** One seed: its picture, its checkbox and how far it is. */
class Seed {
  #entry = null;

  /** toggle(): the user clicked the checkbox. */
  constructor(seed, words, language, toggle) {
    Object.assign(this, { seed, words });
    this.preview = new Preview({ language });
    this.box = make("input", "", { type: "checkbox", disabled: "" });
    this.box.addEventListener("change", toggle);
    this.state = make("span", "ssd-seed-state");
    const label = make("label", "ssd-seed-label", {},
      [this.box, make("span", "", {}, [say(words.seed, { seed })])]);
    this.element = make("li", "ssd-seed", {}, [this.preview.element, label, this.state]);
    this.tell(false);
  }

  take(entry) {
    this.#entry = entry;
    for (const message of entry.messages) this.preview.feed(message);
    this.tell(false);
    const [saved] = entry.saved ?? [];
    if (saved && !this.tools) this.#offer(saved.id);
  }

  /** What can be done with the finished picture. */
  #offer(id) {
    const full = toolButton(this.words, "full", () => fullScreen(this.words, pictureUrl(id)));
    const redo = toolButton(this.words, "redo", () => request("redo", id));
    const link = make("a", "ssd-tool", {}, [this.words.download]);
    downloads(link, id);
    this.tools = make("div", "ssd-seed-tools", {}, [full, link, redo]);
    this.element.append(this.tools);
  }

  /** `lost`: whether the server has stopped answering. */
  tell(lost) {
    const panel = this.preview.state.panels[0];
    setText(this.state, lost ? this.words.lost : seedText(this.#entry, panel, this.words));
    this.element.dataset.state = this.#entry?.state ?? "";
  }

  /** Look like the checkbox that this button replaces; without one there is nothing to tick. */
  follow(twin) {
    this.box.disabled = twin === null || twin.disabled;
    this.box.checked = twin?.checked ?? false;
  }

  dispose() {
    this.preview.dispose();
  }
}

export class SsdSeeds extends PersistentElement {
  static observedAttributes = ["jobs", "seeds", "target"];
  #seeds = [];
  #feed = null;
  #target = null;

  connectedCallback() {
    this.#begin();
  }

  /** Attributes of the first page come before the element is connected: that is no change. */
  attributeChangedCallback() {
    if (this.#feed) this.#begin();
  }

  disconnectedCallback() {
    this.#end();
  }

  #begin() {
    this.#end();
    const [words, language, jobs] = [pageWords(), pageLanguage(), listOf(this, "jobs")];
    this.#target = new Target(this.getAttribute("target"), () => this.#follow());
    this.#seeds = listOf(this, "seeds").map(
      (seed) => new Seed(seed, words, language, () => this.#twin(seed)?.click()));
    this.show(make("ul", "ssd-seed-grid", { "aria-label": words.seeds },
      this.#seeds.map((seed) => seed.element)));
    this.#feed = new Feed(jobs, {
      take: (id, entry) => this.#seeds[jobs.indexOf(id)]?.take(entry),
      lost: (lost) => this.#seeds.forEach((seed) => seed.tell(lost)),
    });
    this.#follow();
  }

  /** Gradio names a checkbox by the value of its choice. */
  #twin(seed) {
    const boxes = this.#target.root?.querySelectorAll("input[type=checkbox]") ?? [];
    return [...boxes].find((box) => box.name === seed) ?? null;
  }

  #follow() {
    for (const seed of this.#seeds) seed.follow(this.#twin(seed.seed));
  }

  #end() {
    this.#feed?.stop();
    this.#feed = null;
    this.#target?.stop();
    for (const seed of this.#seeds) seed.dispose();
    this.#seeds = [];
  }
}
