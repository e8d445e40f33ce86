/** The prompt of the next picture: its text, words to click, and what is filled in and left out. */

import { button, make } from "./core/elements.js";
import { fillIns } from "./fill_ins.js";
import { Marks, suggestions } from "./marks.js";
import { icon } from "./icons.js";
import { recentMenu } from "./recent.js";
import { drawable } from "./word_chips.js";

/** below: the element under the text. */
export function promptArea(app, below) {
  const area = textArea(app, "prompt", app.words.words.placeholder);
  area.setAttribute("aria-describedby", "unknown prompt-notes");
  document.addEventListener("keydown", (event) => drawByKey(app, event));
  const marks = new Marks(app, area);
  const box = make("div", "prompt-box", {}, [
    make("div", "prompt-text", {}, [marks.layer, area, marks.offer])]);
  return make("div", "stack prompt-area", {}, [
    make("div", "stack prompt-head", {}, [label(app), box]), below,
    make("div", "stack prompt-says", {}, [
      suggestions(app, marks), alternatives(app), notes(app)]), fillIns(app, area),
    drawable(app), negative(app)]);
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
    element.replaceChildren(...lines.map(({ kind, text }) => make("p",
      `small ${{ cannot: "question", refused: "bad" }[kind] ?? "hint"}`, { "data-kind": kind },
      [text])));
  });
  return element;
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
  const apply = document.querySelector("#edit-apply:enabled");
  if (apply && target.matches("#prompt")) apply.click();
  else app.draw();
}

function label(app) {
  const { words } = app.words;
  const surprise = button(icon("surprise"), async () => {
    const answer = await app.attempt(app.api.get("surprise"));
    if (answer) app.settings.set({ prompt: answer.prompt });
  }, { class: "button plain icon", id: "surprise", "aria-label": words.surprise,
    title: words.surpriseHint });
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
