/** What is said of the prompt's words: moved to the negative prompt, misplaced, refused. */

import { make } from "./core/elements.js";

/** One quiet line each; unknown words are told where they stand (marks.js). */
export function notes(app) {
  const element = make("div", "stack notes", { id: "prompt-notes", role: "status" });
  let shown = "";
  app.planner.watch(({ notes: all = [], settings, problem }) => {
    const lines = settings?.prompt
      ? all.filter(({ kind, text, end }) => !(kind === "unknown" && end) && text !== problem) : [];
    if (JSON.stringify(lines) === shown) return;
    shown = JSON.stringify(lines);
    element.replaceChildren(...lines.map(({ kind, text }) => make("p",
      kind === "refused" ? "small bad" : "small hint", { "data-kind": kind }, [text])));
  });
  return element;
}
