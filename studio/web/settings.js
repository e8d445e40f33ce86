/** The settings of the next run: kept in this browser, watched by whatever shows them. */

import { keep, recall } from "./kept.js";
import { freshSeed } from "./seed.js";

const KEY = "settings";
const NAMED = { panel: "", control: "", subject: "", draft_hash: "" }; // of a run
const OF_DRAFTS = ["prompt", "negative", "seed", "method"]; // a picture, with drafts of its own
const OF_ONE_PICTURE = ["open", "prompt_expanded", "negative_expanded", "keep_mask", "old_prompt",
  "panel", "draft_hash"];

/** A value that others watch: `watch(look)` calls look(value, names) now and after each change. */
export class Settings {
  #watchers = new Set();

  /** schema: the server's; values that it does not know are dropped. */
  constructor(schema) {
    this.defaults = { ...NAMED, ...schema.settings };
    const kept = recall(KEY, null) ?? { seed: freshSeed() }; // no first visit is like another
    this.values = { ...this.defaults, ...this.#known(kept) };
  }

  get(name) {
    return this.values[name];
  }

  /**
   * Change some settings; unknown names are ignored. Words to draw, and additions that stay open,
   * hold for no other prompt than that which they were set for; earlier drafts for no other
   * picture.
   */
  set(changes) {
    const known = this.#known({ ...this.#stale(changes), ...changes });
    const names = Object.keys(known).filter((name) => !same(known[name], this.values[name]));
    if (names.length === 0) return;
    this.values = { ...this.values, ...known };
    keep(KEY, { ...this.values, ...this.#only(OF_ONE_PICTURE) });
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

  #stale(changes) {
    const other = (name) => changes[name] !== undefined
      && (changes[name] ?? "").trim() !== (this.values[name] ?? "").trim();
    return this.#only([
      ...(other("prompt") || other("negative") ? ["prompt_expanded", "negative_expanded"] : []),
      ...(other("prompt") ? ["open"] : []), ...(OF_DRAFTS.some(other) ? ["draft_hash"] : [])]);
  }

  /** The defaults of these settings. */
  #only(names) {
    return Object.fromEntries(names.map((name) => [name, this.defaults[name]]));
  }

  #known(values) {
    return Object.fromEntries(Object.entries(values ?? {})
      .filter(([name]) => Object.hasOwn(this.defaults, name)));
  }
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
