/** A saved picture with a line: rows above it are kept, those below it are drawn again. */

import { addStyleSheet, make, setText } from "./core/elements.js";
import { field, select } from "./form.js";
import { detailsOf } from "./picture_actions.js";
import { pixelMode } from "./pixels.js";
import { freshSeed, keepsSeed, savesRecipe } from "./seed.js";
import { Slider, clamp } from "./slider.js";

const LEAP = 4; // rows at Page Up and Page Down

/** What shows the picture of this id with its line: {element, dispose()}; null if it is gone. */
export async function redoLine(app, id) {
  const look = await app.api.get("look", { id });
  const entry = await detailsOf(app, id);
  if (!entry) return null;
  takeWords(app, look);
  return new RedoLine(app, entry, look);
}

/** A redo begins with the words of its picture; those that they replace can be brought back. */
function takeWords(app, { prompt, negative, fixed }) {
  if (prompt === null) return;
  const before = { prompt: app.settings.get("prompt"), negative: app.settings.get("negative"),
    fixed: app.settings.get("fixed") };
  app.settings.set({ prompt, negative, fixed });
  if (before.prompt === "" || before.prompt === prompt) return;
  app.toast(app.words.redo.prompt,
    { action: { label: app.words.common.undo, run: () => app.settings.set(before) } });
}

/** The rows that can be kept: all of them only if the picture is extended. */
export function rowsToKeep({ rows, finished }, taller) {
  const most = finished ?? (taller ? rows : rows - 1);
  return { min: 1, max: most, first: finished ?? (taller ? rows : Math.floor(rows / 2)) };
}

class RedoLine {
  #size = ""; // of the new picture; empty for the same

  constructor(app, entry, look) {
    addStyleSheet(new URL("redo.css", import.meta.url).href);
    Object.assign(this, { app, words: app.words.redo, entry, look });
    this.image = make("img", "redo-picture", { src: entry.picture, alt: entry.prompt ?? entry.name,
      draggable: "false" });
    this.tag = make("span", "redo-tag", { "aria-hidden": "true" });
    this.field = make("div", "redo-field", { id: "redo-field" },
      [this.image, make("div", "redo-veil")]);
    this.slider = new Slider(this.field, { name: this.words.line, vertical: true,
      range: () => this.#range(), move: (row) => this.#keep(row) });
    this.slider.handle.append(this.tag);
    this.element = make("section", "redo", { "aria-label": this.words.name },
      [make("div", "redo-box", {}, [this.field]), this.#controls()]);
    pixelMode.mark(this.element);
    this.#resize("");
  }

  #controls() {
    const { words } = this;
    this.rows = make("input", "", { type: "number", id: "redo-rows", min: "1" });
    this.rows.addEventListener("input", () => this.#typed());
    this.rows.addEventListener("change", () => this.#keep(this.slider.value));
    this.start = this.#button("redo-start", words.start, () => this.#redo(), "button first");
    const cancel = this.#button("redo-cancel", words.cancel,
      () => this.app.go("create", { show: this.entry.id }));
    const hint = make("p", "hint small", { title: this.look.how },
      [this.look.encoded ? words.encoded : words.hint]);
    return make("div", "redo-controls", {}, [
      make("div", "row", {}, [field(words.rows, this.rows), ...this.#sizes(), this.start, cancel]),
      hint]);
  }

  #sizes() {
    const { taller } = this.look;
    if (taller.length === 0) return [];
    const sizes = select([{ value: "", label: this.words.same },
      ...taller.map((size) => ({ value: size, label: size.replace("x", " × ") }))],
    (size) => this.#resize(size));
    sizes.element.id = "redo-size";
    return [field(this.words.extend, sizes.element)];
  }

  #button(id, label, run, className = "button") {
    const button = make("button", className, { type: "button", id }, [label]);
    button.addEventListener("click", run);
    return button;
  }

  /** Of a picture that is extended, the place of the new rows is seen below it. */
  #resize(size) {
    this.#size = size;
    const { width, height } = this.entry;
    this.tall = size ? Number(size.split("x")[1]) : height;
    this.field.style.setProperty("--width", String(width));
    this.field.style.setProperty("--height", String(this.tall));
    this.image.style.height = `${100 * height / this.tall}%`;
    setText(this.start, size ? this.words.startTaller : this.words.start);
    this.rows.max = String(rowsToKeep(this.look, size).max);
    this.#keep(rowsToKeep(this.look, size).first);
  }

  #range() {
    const { min, max } = rowsToKeep(this.look, this.#size);
    const whole = this.look.rows * this.tall / this.entry.height;
    return { min, max, whole, step: 1, leap: LEAP, down: 1 };
  }

  /** While a number is being typed it may be none, or too large: then the line waits. */
  #typed() {
    const row = Number(this.rows.value);
    if (this.rows.value && clamp(row, this.#range()) === row && Number.isInteger(row)) {
      this.#keep(row);
    }
  }

  #keep(row) {
    const { whole } = this.#range();
    const text = this.app.say(this.words.kept, { row, rows: whole });
    this.slider.set(row, text);
    this.rows.value = String(row);
    setText(this.tag, text);
    this.tag.classList.toggle("below", 6 * row < whole); // above the line there is no room
  }

  async #redo() {
    const { app } = this;
    this.start.disabled = true;
    const job = await app.attempt(app.jobs.submit("redo", { settings: app.settings.values,
      source: this.entry.id, rows: this.slider.value, size: this.#size,
      metadata: savesRecipe() }));
    this.start.disabled = false;
    if (!job) return;
    if (!keepsSeed()) app.settings.set({ seed: freshSeed() });
    app.go("create", { fresh: true });
    const ended = await app.jobs.ended(job.id);
    if (ended?.result?.unchanged) app.toast(this.words.unchanged);
  }

  dispose() {
    this.element.remove();
  }
}
