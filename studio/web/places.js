/** The places of the page, one of which is shown: the hash of the address says which. */

import { make } from "./core/elements.js";

const MODULES = {
  create: () => import("./create.js"),
  race: () => import("./race.js"),
  seeds: () => import("./seeds.js"),
  history: () => import("./history.js"),
  models: () => import("./models.js"),
  doctor: () => import("./doctor.js"),
};
const FIRST = "create";

/**
 * A place's module exports mount(section, app), called at the first visit; what it returns may
 * have shown(value), called at every visit with what `go` brought along, and hidden().
 */
export class Places {
  #mounted = new Map();
  #brought = undefined;
  current = null;

  constructor(app) {
    this.app = app;
    window.addEventListener("hashchange", () => this.#show());
  }

  /** Links to the four places of the head. */
  links(names) {
    const { words } = this.app;
    return names.map((name) => make("a", "", { href: `#${name}` }, [words.places[name]]));
  }

  /** Show a place; value: for its shown(). Resolves once it is shown. */
  go(name, value = undefined) {
    this.#brought = value;
    if (location.hash === `#${name}`) return this.#show();
    location.hash = name; // the event shows it
    return this.#show();
  }

  start() {
    return this.#show();
  }

  async #show() {
    const asked = location.hash.slice(1);
    const name = Object.hasOwn(MODULES, asked) ? asked : FIRST;
    const value = this.#brought;
    this.#brought = undefined;
    if (this.current === name && value === undefined) return;
    if (this.current && this.current !== name) {
      this.#mounted.get(this.current)?.hidden?.();
      this.app.toasts?.settle();
    }
    this.current = name;
    for (const section of document.querySelectorAll("#main > .place")) {
      section.hidden = section.id !== name;
    }
    for (const link of document.querySelectorAll(".places a")) {
      const here = link.hash === `#${name}`;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!this.#mounted.has(name)) {
      const { mount } = await MODULES[name]();
      if (!this.#mounted.has(name)) {
        this.#mounted.set(name, mount(document.getElementById(name), this.app) ?? {});
      }
    }
    this.#mounted.get(name).shown?.(value);
  }
}
