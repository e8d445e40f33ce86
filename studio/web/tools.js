/** What can be done with the finished pictures on the stage. */

import { compareMenu } from "./compare_menu.js";
import { button, make, setText } from "./core/elements.js";
import { menuButton } from "./menu.js";
import { copyImage, favour, keepSeed, restore, showAmongAll } from "./picture_actions.js";
import { downloadLinks } from "./picture_links.js";
import { pixelMode } from "./pixels.js";
import { varyMenu } from "./vary_menu.js";

export class Tools {
  #saved = [];
  #chosen = 0;

  /**
   * does, with the picture of this id: overlay(id), replay(id) and details(id), which resolve to
   * whether they are on now, and edit(id, options).
   */
  constructor(app, does) {
    Object.assign(this, { app, does, words: app.words.stage });
    const tool = (name, run) => this.#tool(name, run);
    this.numbers = make("span", "row numbers",
      { role: "group", "aria-label": this.words.pictures });
    const save = menuButton(this.words.save, () => downloadLinks(this.words, this.#picture),
      "button plain");
    save.button.id = "save";
    const vary = varyMenu(app, (strength) => does.edit(this.#picture.id, { vary: strength }));
    vary.button.dataset.tool = "vary";
    [this.overlay, this.replay, this.info] = ["overlay", "replay", "details"].map((name) => {
      const made = tool(name, async () => press(made, await does[name](this.#picture.id)));
      return made;
    });
    this.favourite = tool("favourite", () => this.#favour());
    const compare = compareMenu(app, () => this.#picture.id, () => this.#saved.map(({ id }) => id));
    this.sharp = tool("sharp", () => {
      pixelMode.set(!pixelMode.sharp);
      press(this.sharp, pixelMode.sharp);
    });
    press(this.sharp, pixelMode.sharp);
    this.line = this.#facts();
    this.element = make("div", "tools row", { role: "toolbar", "aria-label": this.words.tools,
      id: "tools", hidden: "" }, [this.numbers, tool("edit", () => does.edit(this.#picture.id)),
      vary.button, vary.menu, compare.button, compare.menu,
      tool("full", () => this.full()), save.button, save.menu,
      tool("copy", () => copyImage(this.app, this.#picture.id)), this.favourite,
      ...this.#more()]);
  }

  /** What is known of the picture, and what the next one can have of it. */
  #facts() {
    this.seed = make("span", "", { id: "shown-seed" });
    this.use = this.#tool("use", () => restore(this.app, this.#picture.id), "button small");
    this.keep = this.#tool("keep", () => keepSeed(this.app, this.#picture.seed), "button small");
    return make("div", "row facts-line", { hidden: "" }, [this.seed, this.use, this.keep]);
  }

  /** What is seldom needed, in a menu. */
  #more() {
    this.seeds = this.#tool("seeds", () => this.app.go("seeds", { like: this.#picture.id }));
    const items = [this.seeds, this.replay, this.overlay, this.sharp, this.info];
    const more = menuButton(this.words.more, () => items, "button plain");
    more.menu.append(...items);
    more.button.id = "more-tools";
    return [more.button, more.menu];
  }

  #tool(name, run, className = "button plain") {
    return button(this.words[name], run,
      { class: className, "data-tool": name, title: this.words[`${name}Hint`] ?? "" });
  }

  get #picture() {
    return this.#saved[this.#chosen];
  }

  /**
   * Offer the tools for these saved pictures; without any there is nothing to do. replay: whether
   * the server still has their run. chosen: id of the first one to choose.
   */
  offer(saved, { replay = false, chosen, overlay = false } = {}) {
    this.#saved = saved;
    this.element.hidden = this.line.hidden = saved.length === 0;
    for (const button of [this.replay, this.overlay, this.info]) {
      button.hidden = !replay;
      press(button, button === this.overlay && overlay);
    }
    this.numbers.hidden = saved.length < 2;
    this.numbers.replaceChildren(...saved.map((_, n) => this.#number(n)));
    if (saved.length) this.#choose(Math.max(0, saved.findIndex(({ id }) => id === chosen)));
  }

  #number(n) {
    const label = this.app.say(this.words.pictureOf, { number: n + 1 });
    return button(String(n + 1), () => this.#choose(n),
      { class: "button plain icon", "aria-label": label, title: label });
  }

  #choose(n) {
    this.#chosen = n;
    const { seed, prompt, favourite } = this.#picture;
    [...this.numbers.children].forEach((button, i) => press(button, i === n));
    press(this.favourite, Boolean(favourite));
    const known = seed !== null && seed !== undefined;
    setText(this.seed, known ? this.app.say(this.words.seed, { seed }) : this.words.noSettings);
    this.keep.hidden = this.seeds.hidden = !known;
    this.use.hidden = !known || typeof prompt !== "string"; // else it is in memory alone
  }

  async #favour() {
    const picture = this.#picture;
    await favour(this.app, [picture], !picture.favourite);
    press(this.favourite, Boolean(picture.favourite));
  }

  /** Show a picture of these over the whole page, among all others. */
  full(n = this.#chosen) {
    if (n !== this.#chosen) this.#choose(n);
    showAmongAll(this.app, this.#saved, n);
  }
}

function press(button, on) {
  button.setAttribute("aria-pressed", String(on));
}
