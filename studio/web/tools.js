/**
 * What can be done with a finished picture, beside it on the stage.
 * The tools know saved pictures, {id, seed, label, words} each;
 * `words` is what it was drawn from, if more than was typed.
 */

import { make, setText } from "./core/elements.js";
import { say } from "./core/strings.js";
import { copyText } from "./clipboard.js";
import { compareDialog, fullScreen } from "./dialogs.js";
import { type } from "./host.js";

export function pictureUrl(id) {
  const path = id.split("/").map(encodeURIComponent).join("/");
  return new URL(`../picture/${path}`, import.meta.url).href;
}

/** Let a link download a saved picture under its own name. */
export function downloads(link, id) {
  link.href = pictureUrl(id);
  link.download = id.split("/").at(-1);
}

/** The button of the tool with this name in `words`. */
export function toolButton(words, name, act) {
  const button = make("button", "ssd-tool", { type: "button" }, [words[name]]);
  button.dataset.tool = name;
  button.addEventListener("click", act);
  return button;
}

const LAST = "ssd-studio-last"; // ids of this tab's finished pictures, the latest last
let requests = 0; // so that a repeated request still counts as a change

export class Tools {
  #saved = [];
  #chosen = 0;

  /** replay(): starts or ends the replay, and returns whether it is on. */
  constructor(words, { replay }) {
    this.words = words;
    this.choice = make("div", "ssd-choice", { role: "group" });
    this.link = make("a", "ssd-tool", {}, [words.download]);
    const button = (name, act) => toolButton(words, name, act);
    this.seed = button("copySeed", () => this.#copySeed());
    this.redo = button("redo", () => request("redo", this.#picture.id));
    this.vary = button("vary", () => request("vary", this.#picture));
    this.vary.title = words.varyHint;
    this.full = button("full", () => fullScreen(words, pictureUrl(this.#picture.id)));
    this.compare = button("compare", () => this.#compare());
    this.replay = button("replay", () => {
      this.replay.setAttribute("aria-pressed", String(replay()));
    });
    this.said = make("p", "ssd-said", { role: "status" });
    this.drawn = make("p", "ssd-said", { title: words.fixedHint });
    this.element = make("div", "ssd-tools",
      { role: "group", "aria-label": words.tools, hidden: "" },
      [this.drawn, this.choice, this.full, this.link, this.replay, this.redo, this.vary,
        this.compare, this.seed, this.said]);
  }

  get #picture() {
    return this.#saved[this.#chosen];
  }

  /** Show the tools for these saved pictures; without any there is nothing to do. */
  offer(saved) {
    if (saved.length === this.#saved.length) return;
    this.#saved = saved;
    this.previous = remember(saved);
    this.element.hidden = saved.length === 0;
    this.choice.hidden = saved.length < 2;
    this.choice.replaceChildren(...saved.map((_, i) => this.#choose(i)));
    this.#show(0);
  }

  #choose(index) {
    const name = say(this.words.pictureOf, { number: index + 1 });
    const button = make("button", "ssd-tool ssd-number", { type: "button", title: name,
      "aria-label": name }, [String(index + 1)]);
    button.addEventListener("click", () => this.#show(index));
    return button;
  }

  #show(index) {
    this.#chosen = index;
    [...this.choice.children].forEach(
      (button, i) => button.setAttribute("aria-pressed", String(i === index)));
    downloads(this.link, this.#picture.id);
    this.compare.disabled = this.previous === null && this.#saved.length < 2;
    const { words } = this.#picture;
    setText(this.drawn, words ? say(this.words.drawnFrom, { words }) : "");
    this.drawn.hidden = !words;
    setText(this.said, "");
  }

  async #copySeed() {
    const text = this.#picture.seed;
    const { copied, notCopied } = this.words;
    setText(this.said, say(await copyText(text) ? copied : notCopied, { text }));
  }

  /** In a batch or a race, with the picture before it; else with that of the run before. */
  #compare() {
    const { last, current, seed } = this.words;
    const name = (picture) => picture.label ?? say(seed, { seed: picture.seed });
    const neighbour = this.#saved[this.#chosen > 0 ? this.#chosen - 1 : 1];
    const [id, other, own] = neighbour ? [neighbour.id, name(neighbour), name(this.#picture)]
      : [this.previous, last, current];
    compareDialog(this.words, [pictureUrl(id), other], [pictureUrl(this.#picture.id), own]);
  }
}

/** Take a picture to another tab, by an input of the page: #wish-redo or #wish-vary. */
export function request(name, value) {
  const input = document.querySelector(`#wish-${name} :is(textarea, input)`);
  requests += 1;
  if (input) type(input, JSON.stringify({ value, wish: requests }));
}

/** Note these pictures as this tab's latest; the id of the latest one before them, or null. */
function remember(saved) {
  const ids = saved.map(({ id }) => id);
  try {
    const stored = JSON.parse(sessionStorage.getItem(LAST) ?? "[]");
    const earlier = stored.filter((id) => !ids.includes(id));
    sessionStorage.setItem(LAST, JSON.stringify([...earlier, ...ids].slice(-2 - ids.length)));
    return earlier.at(-1) ?? null;
  } catch {
    return null; // no storage: nothing to compare with
  }
}
