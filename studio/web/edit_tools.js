/** The tools of the surface: what one paints with, and the line below which all is redrawn. */

import { TOOLS } from "./core/mask_canvas.js";
import { below } from "./core/mask.js";
import { button, make, setText } from "./core/elements.js";
import { field, segments, select } from "./form.js";
import { icon, sign } from "./icons.js";
import { Slider } from "./slider.js";

/** The rows that can be kept: all of them only if the picture is extended. */
export function rowsToKeep({ rows, finished }, taller) {
  const most = finished ?? (taller ? rows : rows - 1);
  return { min: 1, max: most, first: finished ?? (taller ? rows : Math.floor(rows / 2)) };
}

/** Brush, rectangle, lasso, eraser and line, the size of the brush, and changes of the mask. */
export class PaintTools {
  /** does: undo() and redo(), of strokes or steps; can(): {undo, redo}. */
  constructor(app, canvas, does) {
    Object.assign(this, { app, words: app.words.edit, canvas, does });
    const { words } = this;
    const named = (value) => ({ value, label: sign(value, words[value]),
      title: words[`${value}Hint`] });
    this.tools = segments("edit-tool", words.tools, ["touch", ...TOOLS, "rows"].map(named),
      (tool) => canvas.choose(tool));
    this.size = make("input", "", { type: "range", min: "1", max: String(canvas.mostSize),
      id: "brush-size", "aria-label": words.size, title: words.sizeHint });
    this.size.addEventListener("input", () => canvas.resize(Number(this.size.value)));
    this.number = make("output", "brush-number", { for: "brush-size" });
    this.brush = make("span", "row brush-size", {}, [this.size, this.number]);
    this.invert = this.#button("invert", () => canvas.invert());
    this.clear = this.#button("clear", () => canvas.clear());
    this.undo = this.#button("undo", () => does.undo());
    this.redo = this.#button("redo", () => does.redo());
    this.element = make("div", "edit-tools", { role: "toolbar", "aria-label": words.tools },
      [this.tools.element, this.brush, this.undo, this.redo, this.invert, this.clear]);
  }

  #button(name, run) {
    return button(icon(name), run, { class: "button plain icon", id: `mask-${name}`,
      "aria-label": this.words[name], title: this.words[`${name}Hint`] });
  }

  /** touchable: whether the picture's things can be known. */
  update(touchable) {
    const { canvas } = this;
    this.tools.inputs[0].parentElement.hidden = !touchable;
    this.invert.hidden = this.clear.hidden = !TOOLS.includes(canvas.tool);
    const round = canvas.tool === "brush" || canvas.tool === "eraser";
    this.tools.set(canvas.tool);
    this.brush.hidden = !round;
    this.size.value = String(canvas.size);
    setText(this.number, String(canvas.size));
    const { undo, redo } = this.does.can();
    this.undo.disabled = !undo;
    this.redo.disabled = !redo;
    this.clear.disabled = canvas.mask.count === 0;
  }
}

/** A line over the picture: what is below it is redrawn. */
export class Line {
  /** look: rows, finished and taller of the picture. on: resized(size) to a taller one. */
  constructor(app, canvas, look, { size = "", resized }) {
    Object.assign(this, { app, words: app.words.edit, canvas, look, size });
    this.tag = make("span", "edit-tag stamp", { "aria-hidden": "true" });
    this.slider = new Slider(canvas.element, { name: this.words.line, vertical: true,
      move: (redrawn) => this.keep(canvas.grid.rows - redrawn) });
    this.slider.line.append(this.tag);
    const { min, max, first } = rowsToKeep(look, size);
    this.rows = make("input", "", { type: "number", id: "edit-rows", min, max, required: "" });
    this.rows.addEventListener("input",
      () => this.rows.validity.valid && this.keep(Number(this.rows.value)));
    this.rows.addEventListener("change", () => this.#show(this.row));
    this.element = make("div", "row edit-line", {}, [field(this.words.keepRows, this.rows),
      ...this.#sizes(resized)]);
    this.slider.element.hidden = this.element.hidden = true;
    this.#show(first);
  }

  /** Sizes to which the picture can be extended downward. */
  #sizes(resized) {
    const { taller } = this.look;
    if (taller.length === 0) return [];
    const sizes = select([{ value: "", label: this.words.same },
      ...taller.map((size) => ({ value: size, label: size.replace("x", " × ") }))], resized);
    sizes.element.id = "edit-size";
    sizes.set(this.size);
    return [field(this.words.extend, sizes.element)];
  }

  /** Show the line, or hide it; when it comes, what is below it is the mask. */
  update() {
    const on = this.canvas.tool === "rows";
    if (on === !this.element.hidden) return;
    this.slider.element.hidden = this.element.hidden = !on;
    if (on) this.canvas.set(this.#mask(this.row));
  }

  #mask(row) {
    return this.canvas.mask.cleared().with(below(this.canvas.grid, row));
  }

  keep(row) {
    this.#show(row);
    this.canvas.replace(this.#mask(row));
  }

  #show(row) {
    const { rows } = this.canvas.grid;
    const { min, max } = rowsToKeep(this.look, this.size);
    const text = this.app.say(this.words.kept, { row, rows });
    this.slider.set(rows - row, { min: rows - max, max: rows - min, whole: rows }, text);
    this.row = row;
    this.rows.value = String(row);
    setText(this.tag, text);
    this.tag.classList.toggle("below", 6 * row < rows); // above the line there is no room
  }
}
