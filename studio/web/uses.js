/**
 * What a place draws with next: the prompt and settings of Create in one line, with a link back.
 */

import { make, setText } from "./core/elements.js";

/** kinds: of the place's jobs; while it shows some, the line says that it is about the next. */
export function usesLine(app, kinds) {
  const { settings, schema, planner } = app;
  const words = app.words.uses;
  const prompt = make("p", "uses-prompt");
  const facts = make("span", "small hint");
  const problem = make("p", "small bad", { role: "status" });
  const show = () => {
    const { prompt: text, seed, size } = settings.values;
    setText(prompt, text.trim() || words.noPrompt);
    prompt.classList.toggle("hint", text.trim() === "");
    setText(facts, [qualityName(app), app.say(words.seed, { seed }),
      (size || schema.model.sizes[0])?.replace("x", " × ")].filter(Boolean).join(" · "));
  };
  settings.watch(show);
  planner.watch((answer) => {
    show();
    setText(problem, answer?.problem ?? "");
    problem.hidden = problem.textContent === "";
  });
  const next = make("p", "small hint", {}, [words.next]);
  app.jobs.watch((jobs) => { next.hidden = !jobs.some(({ kind }) => kinds.includes(kind)); });
  return make("div", "uses", { role: "group", "aria-label": words.title }, [next, prompt,
    make("p", "uses-facts", {}, [facts, make("a", "small", { href: "#create" }, [words.change])]),
    problem]);
}

/** What a run of this label is called: the name of its quality, however far ahead it drafts. */
export function runName({ names }, label) {
  return names[label.replace(/ (window|cells|budget)=\d+/, "")] ?? label;
}

/** What the current settings are called: a quality, or their method. */
export function qualityName({ schema, settings, planner }) {
  const quality = schema.qualities.find(({ name }) => name === planner.answer?.quality);
  return quality?.label ?? settings.get("method");
}

/** [width, height] of the next picture. */
export function sizeOf({ schema, settings }) {
  return (settings.get("size") || schema.model.sizes[0]).split("x").map(Number);
}
