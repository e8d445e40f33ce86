/** What can be done with the finished pictures on the stage. */

import { button, make, setText } from "./core/elements.js";
import { icon, sign } from "./icons.js";
import { menuButton } from "./menu.js";
import { caption, compareTwo, detailsOf, favour, keepSeed, restore,
  showAmongAll } from "./picture_actions.js";
import { pixelMode } from "./pixels.js";
import { sendMenu } from "./send.js";

const LISTED = 16; // pictures to compare with
const STRENGTHS = ["subtle", "medium", "strong"]; // how far variations are from a picture

export class Tools {
  #saved = [];
  #chosen = 0;

  /**
   * does, with the picture of this id: overlay(id), replay(id) and details(id), which resolve to
   * whether they are on now, show(id), and vary(id, strength).
   */
  constructor(app, does) {
    Object.assign(this, { app, does, words: app.words.stage });
    const tool = (name, run) => this.#tool(name, run);
    this.numbers = make("span", "row numbers",
      { role: "group", "aria-label": this.words.pictures });
    const send = sendMenu(app, () => this.#picture);
    const vary = menuButton(sign("vary", this.words.vary), () => STRENGTHS.map((strength) => button(
      this.words[strength], () => does.vary(this.#picture.id, strength),
      { class: "button plain", id: `vary-${strength}` })), "button plain icon");
    vary.button.dataset.tool = "vary";
    vary.button.title = this.words.varyHint;
    [this.overlay, this.replay, this.info] = ["overlay", "replay", "details"].map((name) => {
      const made = tool(name, async () => press(made, await does[name](this.#picture.id)));
      return made;
    });
    this.favourite = this.#sign("favourite", () => this.#favour());
    const compare = compareMenu(app, () => this.#picture.id, () => this.#saved.map(({ id }) => id));
    this.sharp = tool("sharp", () => {
      pixelMode.set(!pixelMode.sharp);
      press(this.sharp, pixelMode.sharp);
    });
    press(this.sharp, pixelMode.sharp);
    this.line = this.#facts();
    this.element = make("div", "tools row", { role: "toolbar", "aria-label": this.words.tools,
      id: "tools", hidden: "" }, [this.numbers, vary.button, vary.menu, compare.button,
      compare.menu, this.#sign("full", () => this.full()), send.button, send.menu, this.favourite,
      ...this.#more()]);
  }

  /** What is known of the picture, and what the next one can have of it. */
  #facts() {
    this.seed = make("span", "", { id: "shown-seed" });
    this.use = this.#sign("use", () => restore(this.app, this.#picture.id));
    this.keep = this.#sign("keep", () => keepSeed(this.app, this.#picture.seed));
    return make("div", "row facts-line", { hidden: "" }, [this.seed, this.use, this.keep]);
  }

  /** What is seldom needed, in a menu. */
  #more() {
    this.seeds = this.#tool("seeds", () => this.app.go("seeds", { like: this.#picture.id }));
    const items = [this.seeds, this.replay, this.overlay, this.sharp, this.info];
    const more = menuButton(sign("more", this.words.more), () => items,
      "button plain icon");
    more.button.title = this.words.more;
    more.menu.append(...items);
    more.button.id = "more-tools";
    return [more.button, more.menu];
  }

  #tool(name, run) {
    return button(this.words[name], run,
      { class: "button plain", "data-tool": name, title: this.words[`${name}Hint`] ?? "" });
  }

  /** A tool as an icon. */
  #sign(name, run) {
    return button(icon(name), run, { class: "button plain icon", "data-tool": name,
      "aria-label": this.words[name], title: this.words[`${name}Hint`] ?? this.words[name] });
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
    return button(String(n + 1), () => this.choose(n),
      { class: "button plain icon", "aria-label": label, title: label });
  }

  /** Show one of these pictures alone. */
  choose(n) {
    this.#choose(n);
    this.does.show(this.#picture.id);
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
    press(this.favourite, !picture.favourite);
    await favour(this.app, [picture], !picture.favourite);
    if (picture === this.#picture) press(this.favourite, Boolean(picture.favourite));
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

/**
 * A menu of the last saved pictures: a click compares that one with the picture on the stage.
 * own(): its id. first(): ids that are offered before all others.
 */
function compareMenu(app, own, first) {
  const { words } = app;
  const items = () => {
    const list = make("div", "compare-list");
    fill(app, list, own(), [...app.strip.others(own()).map(({ id }) => id), ...first()]);
    return [make("p", "small hint", {}, [words.stage.compareWith]), list];
  };
  const made = menuButton(sign("compare", words.stage.compare), items,
    "button plain icon");
  made.button.dataset.tool = "compare";
  made.button.title = words.stage.compareHint;
  return made;
}

async function fill(app, list, own, first) {
  const answer = await app.attempt(app.api.get("history", { limit: LISTED + 1 }));
  const others = (answer?.entries ?? []).filter(({ id, kind }) => id !== own && kind !== "race");
  const rank = ({ id }) => (first.includes(id) ? 0 : 1);
  others.sort((a, b) => rank(a) - rank(b)); // stable: else the newest first
  list.replaceChildren(...others.slice(0, LISTED).map((entry) => tile(app, entry, own)));
  if (others.length === 0) list.append(make("p", "hint", {}, [app.words.stage.nothingToCompare]));
}

function tile(app, entry, own) {
  const name = caption(app, entry);
  const image = make("img", "", { src: entry.thumbnail, alt: "", height: "72", width: "72" });
  return button(image, async () => {
    const shown = await detailsOf(app, own);
    if (shown) compareTwo(app, [entry, shown]);
  }, { class: "", title: name, "aria-label": name });
}
