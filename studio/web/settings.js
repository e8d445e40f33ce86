/** The settings of the next run: kept in this browser, watched by whatever shows them. */

import { keep, recall } from "./kept.js";

const KEY = "settings";

/** A value that others watch: `watch(look)` calls look(value, names) now and after each change. */
export class Settings {
  #watchers = new Set();

  /** schema: the server's; values that it does not know are dropped. */
  constructor(schema) {
    this.defaults = schema.settings;
    this.values = { ...this.defaults, ...this.#known(recall(KEY, {})) };
  }

  get(name) {
    return this.values[name];
  }

  /** Change some settings; unknown names are ignored. */
  set(changes) {
    const known = this.#known(changes);
    const names = Object.keys(known).filter((name) => !same(known[name], this.values[name]));
    if (names.length === 0) return;
    this.values = { ...this.values, ...known };
    const { open, fixed, parent, keep_mask, old_prompt, panel } = this.defaults; // of one picture
    keep(KEY, { ...this.values, open, fixed, parent, keep_mask, old_prompt, panel });
    for (const look of this.#watchers) look(this.values, names);
  }

  /**
   * Call look(values, names) now, with all names, and after every change; returns the end of it.
   */
  watch(look) {
    this.#watchers.add(look);
    look(this.values, Object.keys(this.values));
    return () => this.#watchers.delete(look);
  }

  #known(values) {
    return Object.fromEntries(Object.entries(values ?? {})
      .filter(([name]) => Object.hasOwn(this.defaults, name)));
  }
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
