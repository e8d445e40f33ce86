/** The prompt of the next picture: its text, words to click, and what is filled in and left out. */

import { button, make } from "./core/elements.js";
import { fillIns } from "./fill_ins.js";
import { Marks, suggestions } from "./marks.js";
import { recentMenu, rememberPrompt } from "./recent.js";
import { drawable } from "./word_chips.js";

/** below: the element under the text. Returns {element, drawn(prompt)}. */
export function promptArea(app, below) {
  const area = textArea(app, "prompt", app.words.words.placeholder);
  area.setAttribute("aria-describedby", "unknown prompt-notes");
  document.addEventListener("keydown", (event) => drawByKey(app, event));
  const marks = new Marks(app, area);
  const box = make("div", "prompt-box", {}, [
    make("div", "prompt-text", {}, [marks.layer, area, marks.offer])]);
  const element = make("div", "stack prompt-area", {}, [
    make("div", "stack prompt-head", {}, [label(app), box]), below,
    make("div", "stack prompt-says", {}, [
      suggestions(app, marks), alternatives(app), notes(app)]), fillIns(app, area),
    drawable(app), negative(app)]);
  return { element, drawn };
}

/** The line about `{a|b}`, loaded with the first prompt that has such. */
function alternatives(app) {
  const place = make("div", "");
  place.hidden = true;
  app.planner.watch(async ({ alternatives = null }) => {
    if (alternatives === null || place.dataset.begun) return;
    place.dataset.begun = "true";
    const module = await import("./alternatives.js");
    place.replaceWith(module.alternatives(app));
  });
  return place;
}

/**
 * What is said of the prompt: moved to the negative one, misplaced, refused. Unknown words are told
 * where they stand.
 */
function notes(app) {
  const element = make("div", "stack notes", { id: "prompt-notes", role: "status" });
  let shown = "";
  app.planner.watch(({ notes: all = [], settings, problem }) => {
    const lines = settings?.prompt
      ? all.filter(({ kind, text, end }) => !(kind === "unknown" && end) && text !== problem) : [];
    if (JSON.stringify(lines) === shown) return;
    shown = JSON.stringify(lines);
    element.replaceChildren(...lines.map((line) => (line.kind === "cannot" ? question(app, line)
      : make("p", line.kind === "refused" ? "small bad" : "small hint",
        { "data-kind": line.kind }, [line.text]))));
  });
  return element;
}

/** A thing that cannot be drawn: the rest is drawn alone, if one wants. */
function question(app, { text, without }) {
  const draw = button(app.words.words.drawWithout, () => {
    app.settings.set({ prompt: without });
    app.draw();
  }, { class: "button small", id: "draw-without" });
  return make("div", "question", { "data-kind": "cannot" }, [make("p", "small", {}, [text]),
    draw]);
}

/** A prompt is drawn: it is kept, and what was asked of it is answered. */
function drawn(prompt) {
  rememberPrompt(prompt);
  document.querySelector("#prompt-notes .question")?.remove();
}

/** A text area bound to the setting of this name. */
function textArea(app, name, placeholder) {
  const area = make("textarea", "", { id: name, rows: "1", placeholder, spellcheck: "false",
    autocomplete: "off", maxlength: String(app.schema.limits.text) });
  area.addEventListener("input", () => app.settings.set({ [name]: area.value }));
  app.settings.watch((values) => {
    const text = values[name] ?? "";
    if (area.value !== text) area.value = text;
  });
  return area;
}

/** On Create, Control (or Command) and Enter draw from anywhere, Enter from a field of one line. */
function drawByKey(app, event) {
  const { target, key, ctrlKey, metaKey, isComposing, repeat, shiftKey, altKey } = event;
  if (key !== "Enter" || isComposing || repeat || shiftKey || altKey) return;
  if (app.places.current !== "create" || document.querySelector("dialog[open]")) return;
  const field = target.matches(".panel :is([type=text], [type=number])");
  if (!(ctrlKey || metaKey || field)) return;
  event.preventDefault();
  if (field) target.dispatchEvent(new Event("change")); // the browser's own comes later
  app.draw();
}

function label(app) {
  const { words } = app.words;
  const surprise = button(words.surprise, async () => {
    const answer = await app.attempt(app.api.get("surprise"));
    if (answer) app.settings.set({ prompt: answer.prompt });
  }, { class: "button plain small", id: "surprise", title: words.surpriseHint });
  const recent = recentMenu(app);
  return make("div", "row prompt-label", {}, [
    make("label", "label grow", { for: "prompt" }, [words.prompt]), surprise,
    recent.button, recent.menu]);
}

/** Folded away until it has words. */
function negative(app) {
  const { words } = app.words;
  const own = app.schema.model.negative;
  const area = textArea(app, "negative", own ? app.say(words.negativeOwn, { own })
    : words.negativeHint);
  area.setAttribute("aria-label", words.negative);
  const fold = make("details", "negative", {}, [
    make("summary", "small", {}, [words.negative]), area]);
  fold.open = Boolean(app.settings.get("negative"));
  app.settings.watch((values, names) => {
    if (names.includes("negative") && values.negative) fold.open = true;
  });
  return fold;
}
