/** `{red|blue}` in the prompt: a line that says what it does, and a button that draws all. */

import { button, make, setText } from "./core/elements.js";
import { rememberPrompt } from "./recent.js";
import { savesRecipe, withSeed } from "./seed.js";

export function alternatives(app) {
  const { words } = app.words;
  const line = make("p", "small hint grow", { role: "status" });
  const all = button("", () => app.drawAll(), { class: "button small", id: "draw-all" });
  const element = make("div", "row alternatives", { id: "alternatives" }, [line, all]);
  element.hidden = true;
  app.drawAll ??= () => drawAll(app);
  app.planner.watch(({ alternatives = null }) => {
    element.hidden = alternatives === null;
    if (alternatives === null) return;
    const { count, most, words: chosen } = alternatives;
    const drawn = chosen.join(", ") || words.nothing;
    setText(line, app.say(words.oneOf, { count: count > most ? `${most}+` : count, drawn }));
    setText(all, app.say(words.drawAll, { count }));
    all.hidden = count > most;
  });
  return element;
}

/** Queue a picture of each alternative, all with the same seed. */
async function drawAll(app) {
  const { settings, jobs } = app;
  const prompt = settings.get("prompt");
  const made = await withSeed(app, (asked) => jobs.submit("draw",
    { settings: asked, metadata: savesRecipe(), all: true }));
  if (made === null) return;
  rememberPrompt(prompt);
  app.toast(app.say(app.words.words.queued, { count: made.length }));
  app.go("create", { fresh: true });
}
