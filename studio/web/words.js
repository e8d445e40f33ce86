/**
 * <ssd-words kinds="[..]" target="#prompt">: words to click, by kind, which write the prompt in
 * `target`; and the prompts that this browser drew last.
 *
 * kinds: [{name, role, chips: [{phrases, attribute, plural}]}], as studio/tabs/chips.py writes
 * them. What a click does is in core/prompting.js.
 */

import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { PersistentElement } from "./persistent.js";
import { Target, pageWords, type } from "./host.js";
import { clicked, has, usable } from "./core/prompting.js";

const KEY = "ssd-studio-prompts";
const MOST = 12;

/** The prompts that this browser drew last, the latest first. */
export function recentPrompts() {
  try {
    const prompts = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(prompts) ? prompts.filter((text) => typeof text === "string") : [];
  } catch {
    return []; // no storage, or something else wrote there
  }
}

export function rememberPrompt(prompt) {
  const prompts = [prompt, ...recentPrompts().filter((text) => text !== prompt)].slice(0, MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(prompts));
  } catch {
    // private windows may refuse
  }
}

export class SsdWords extends PersistentElement {
  static observedAttributes = ["kinds"];
  #target = null;
  #open = null; // name of the kind whose chips are shown
  #seen = null;

  connectedCallback() {
    this.#begin();
  }

  attributeChangedCallback() {
    if (this.#target) this.#begin();
  }

  disconnectedCallback() {
    this.#target?.stop();
    this.#target = null;
  }

  #begin() {
    this.#target?.stop();
    this.words = pageWords();
    this.kinds = JSON.parse(this.getAttribute("kinds") || "[]");
    this.tabs = make("div", "ssd-kinds", { role: "group", "aria-label": this.words.wordKinds });
    this.chips = make("div", "ssd-chips", { role: "group" });
    this.show(this.tabs, this.chips);
    this.#target = new Target(this.getAttribute("target"), () => this.#follow());
    this.#seen = null;
    this.#follow();
  }

  get #input() {
    return this.#target?.root?.querySelector("textarea, input") ?? null;
  }

  #follow() {
    const prompt = this.#input?.value ?? "";
    if (prompt === this.#seen) return;
    this.#seen = prompt;
    this.#render(prompt);
  }

  #render(prompt) {
    const names = [...this.kinds.map((kind) => kind.name), this.words.recent];
    this.tabs.replaceChildren(...names.map((name) => this.#tab(name)));
    const kind = this.kinds.find(({ name }) => name === this.#open);
    const chips = kind ? kind.chips.map((chip) => this.#chip(prompt, kind, chip))
      : this.#open === this.words.recent ? this.#recent() : [];
    this.chips.replaceChildren(...chips);
    this.chips.hidden = chips.length === 0;
    this.chips.setAttribute("aria-label", this.#open ?? "");
  }

  #tab(name) {
    const open = name === this.#open;
    const tab = make("button", "ssd-kind", { type: "button", "aria-expanded": String(open) },
      [name]);
    tab.addEventListener("click", () => this.#show(open ? null : name));
    return tab;
  }

  #show(name) {
    this.#open = name;
    this.#render(this.#seen);
    [...this.tabs.children].find((tab) => tab.textContent === name)?.focus();
  }

  #chip(prompt, kind, chip) {
    const on = has(prompt, kind, chip, this.kinds);
    const button = make("button", "ssd-chip", { type: "button", "aria-pressed": String(on) },
      [chip.phrases[0]]);
    if (kind.role === "colour") button.dataset.colour = chip.colour;
    button.disabled = !usable(prompt, kind, this.kinds);
    button.title = button.disabled ? this.words.nameAThing : "";
    button.addEventListener("click", () => {
      const place = [...this.chips.children].indexOf(button);
      this.#write(clicked(this.#input?.value ?? "", kind, chip, this.kinds));
      this.chips.children[place]?.focus();
    });
    return button;
  }

  #recent() {
    const prompts = recentPrompts();
    if (!prompts.length) return [make("span", "ssd-none", {}, [this.words.noRecent])];
    return prompts.map((prompt) => {
      const button = make("button", "ssd-chip ssd-recent",
        { type: "button", title: say(this.words.usePrompt, { prompt }) }, [prompt]);
      button.addEventListener("click", () => this.#write(prompt));
      return button;
    });
  }

  #write(prompt) {
    if (this.#input) type(this.#input, prompt);
    this.#follow();
  }
}
