/** The seed of the next run, and two switches that this browser remembers. */

import { button, make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { check, complain } from "./form.js";
import { icon } from "./icons.js";
import { keep, recall } from "./kept.js";

const KEEP = "keep-seed";
const RECIPE = "no-recipe";

export const SEEDS = 2n ** 64n; // from 0

/** A new seed, as text: browsers' numbers end at 2^53. */
export const freshSeed = () => String(crypto.getRandomValues(new Uint32Array(1))[0]);

export const keepsSeed = () => recall(KEEP, false);
export const savesRecipe = () => !recall(RECIPE, false);

/**
 * Ask for a run by ask(settings) with the settings as they are, and these changes. The next run has
 * another seed from now on, unless the seed is kept: a second click draws another picture.
 * Resolves to the answer, or to null if there is none; the seed is then as it was.
 */
export async function withSeed(app, ask, changes = {}) {
  const { settings } = app;
  const asked = { ...settings.values, ...changes };
  const next = freshSeed();
  if (!keepsSeed()) settings.set({ seed: next });
  return app.attempt(ask(asked).catch((error) => {
    if (settings.get("seed") === next) settings.set({ seed: asked.seed });
    throw error;
  }));
}

/** The seed with its dice, and the switch that keeps it after a run. */
export function seedField(app) {
  const { words, settings } = app;
  const input = make("input", "", { type: "text", inputmode: "numeric", id: "seed",
    pattern: "[0-9]*", autocomplete: "off" });
  input.addEventListener("change", () => {
    const seed = input.value.trim();
    const legal = /^[0-9]+$/.test(seed) && BigInt(seed) < SEEDS;
    if (legal) settings.set({ seed });
    input.value = settings.get("seed");
    complain(input, legal || seed === "" ? ""
      : say(words.common.whole, { low: 0, high: SEEDS - 1n }));
  });
  settings.watch((values) => { input.value = values.seed; });
  const dice = button(icon("dice"), () => {
    settings.set({ seed: freshSeed() });
    complain(input, "");
  },
    { class: "button icon", id: "dice", title: words.create.dice,
      "aria-label": words.create.dice });
  const lock = check(words.create.keepSeed, keepsSeed(), (on) => keep(KEEP, on));
  lock.box.id = "keep-seed";
  app.keepSeed = (on) => {
    lock.box.checked = on;
    keep(KEEP, on);
  };
  return make("div", "field", {}, [
    make("label", "", { for: "seed" }, [words.create.nextSeed]),
    make("div", "row seed-row", {}, [input, dice]), lock.element]);
}

export function recipeSwitch(app) {
  return check(app.words.create.metadata, savesRecipe(), (on) => keep(RECIPE, !on)).element;
}
