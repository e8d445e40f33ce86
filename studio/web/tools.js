/** What can be done with the finished pictures on the stage. */

import { compareMenu } from "./compare_menu.js";
import { make } from "./core/elements.js";
import { menuButton } from "./menu.js";
import { copyImage, favour } from "./picture_actions.js";
import { downloadLinks, pictureUrl } from "./picture_links.js";
import { pixelMode } from "./pixels.js";

export class Tools {
  #saved = [];
  #chosen = 0;

  /** does: overlay(), replay() and details(), which return whether they are on now; edit(id). */
  constructor(app, does) {
    Object.assign(this, { app, does, words: app.words.stage });
    const button = (name, run) => this.#button(name, run);
    this.numbers = make("span", "row numbers",
      { role: "group", "aria-label": this.words.pictures });
    const save = menuButton(this.words.save, () => downloadLinks(this.words, this.#picture.id),
      "button plain");
    save.button.id = "save";
    this.overlay = button("overlay", () => press(this.overlay, does.overlay()));
    this.replay = button("replay", () => press(this.replay, does.replay()));
    this.info = button("details", () => press(this.info, does.details()));
    this.favourite = button("favourite", () => this.#favour());
    const compare = compareMenu(app, () => this.#picture.id, () => this.#saved.map(({ id }) => id));
    this.sharp = button("sharp", () => {
      pixelMode.set(!pixelMode.sharp);
      press(this.sharp, pixelMode.sharp);
    });
    press(this.sharp, pixelMode.sharp);
    this.element = make("div", "tools row", { role: "toolbar", "aria-label": this.words.tools,
      id: "tools", hidden: "" }, [this.numbers, button("edit", () => does.edit(this.#picture.id)),
      button("vary", () => this.#vary()), compare.button, compare.menu,
      button("full", () => this.#full()), save.button, save.menu,
      button("copy", () => copyImage(this.app, this.#picture.id)), this.favourite,
      ...this.#more()]);
  }

  /** What is seldom needed, in a menu. */
  #more() {
    const items = [this.replay, this.overlay, this.sharp, this.info];
    const { button, menu } = menuButton(this.words.more, () => items, "button plain");
    menu.append(...items);
    button.id = "more-tools";
    return [button, menu];
  }

  #button(name, run) {
    const button = make("button", "button plain", { type: "button", "data-tool": name,
      title: this.words[`${name}Hint`] ?? "" }, [this.words[name]]);
    button.addEventListener("click", run);
    return button;
  }

  get #picture() {
    return this.#saved[this.#chosen];
  }

  /** Offer the tools for these saved pictures; without any there is nothing to do. */
  offer(saved, { replay = false } = {}) {
    if (saved.length && saved[0].id === this.#saved[0]?.id) return;
    this.#saved = saved;
    this.element.hidden = saved.length === 0;
    for (const button of [this.replay, this.overlay, this.info]) {
      button.hidden = !replay;
      press(button, false);
    }
    this.numbers.hidden = saved.length < 2;
    this.numbers.replaceChildren(...saved.map((_, n) => this.#number(n)));
    if (saved.length) this.#choose(0);
  }

  #number(n) {
    const label = this.app.say(this.words.pictureOf, { number: n + 1 });
    const button = make("button", "button plain icon", { type: "button", "aria-label": label,
      title: label }, [String(n + 1)]);
    button.addEventListener("click", () => this.#choose(n));
    return button;
  }

  #choose(n) {
    this.#chosen = n;
    [...this.numbers.children].forEach((button, i) => press(button, i === n));
    press(this.favourite, Boolean(this.#picture.favourite));
  }

  async #favour() {
    const picture = this.#picture;
    await favour(this.app, [picture], !picture.favourite);
    press(this.favourite, Boolean(picture.favourite));
  }

  async #full() {
    const { view } = await import("./viewer.js");
    view(this.app, this.#saved.map((picture) => this.#shown(picture)), this.#chosen);
  }

  #shown({ id, label, seed }) {
    return { src: pictureUrl(id),
      label: label ?? this.app.say(this.words.seed, { seed: seed ?? "?" }) };
  }

  #vary() {
    const { seed } = this.#picture;
    if (seed) this.app.settings.set({ seed });
    this.app.go("seeds", { like: this.#picture.id });
  }
}

function press(button, on) {
  button.setAttribute("aria-pressed", String(on));
}
