/**
 * A picture on which one paints the cells that are to be redrawn: by brush, rectangle, lasso and
 * eraser, with pointer, pen, finger or keyboard. Knows no host; the host offers the tools.
 */

import { addStyleSheet, make, makeCanvas } from "./elements.js";
import { Mask, Undoable, below, cellAt, lasso, rectangle, stroke } from "./mask.js";
import { paintMask } from "./mask_look.js";

export const TOOLS = ["brush", "rectangle", "lasso", "eraser"];
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const ERASER_OF_PEN = 32; // in the buttons of a pointer

export class MaskCanvas {
  #history;
  #shape = null; // what is being painted: {tool, points, on}
  #free = null; // the row from which everything is redrawn, whatever is painted
  #observer = new ResizeObserver(() => this.#paint());

  /**
   * grid: {rows, columns}. words: `name` and `help`, which are read aloud. on: changed(), whenever
   * the mask, the tool or the brush has changed, and moved(x, y, redrawn) to another cell by keys.
   */
  constructor(grid, words, on) {
    addStyleSheet(new URL("mask.css", import.meta.url).href);
    Object.assign(this, { grid, on, tool: "brush", size: 3, cell: cellAt(grid,
      [grid.columns / 2, grid.rows / 2]) });
    this.#history = new Undoable(new Mask(grid.rows, grid.columns));
    this.layers = make("div", "mask-layers"); // for the host: the picture and what covers it
    this.map = makeCanvas("mask-map", grid.columns, grid.rows);
    this.canvas = makeCanvas("mask-cells", 1, 1);
    this.ring = make("div", "mask-ring", { "aria-hidden": "true", hidden: "" });
    this.help = make("span", "mask-help", {}, [words.help]);
    this.help.id = "mask-help";
    this.element = make("div", "mask-field", { tabindex: "0", role: "application",
      "aria-label": words.name, "aria-describedby": this.help.id, "data-tool": this.tool },
    [this.layers, this.map, this.canvas, this.ring]);
    this.element.append(this.help);
    this.#listen();
    this.#observer.observe(this.element);
  }

  get mask() {
    const { value } = this.#history;
    return this.#free === null ? value : value.with(below(this.grid, this.#free));
  }

  get canUndo() {
    return this.#history.canUndo;
  }

  get canRedo() {
    return this.#history.canRedo;
  }

  get mostSize() {
    return Math.max(2, Math.floor(Math.min(this.grid.rows, this.grid.columns) / 2));
  }

  /** Rows from this one on were never drawn, so they always are. */
  setFree(row) {
    this.#free = row;
    this.#changed();
  }

  /** Take another tool; those that are not of TOOLS are the host's. */
  choose(tool) {
    this.tool = tool;
    this.element.dataset.tool = tool;
    this.element.tabIndex = this.#paints ? 0 : -1;
    this.element.setAttribute("role", this.#paints ? "application" : "group");
    this.#shape = null;
    this.#changed();
  }

  resize(size) {
    this.size = Math.min(Math.max(1, size), this.mostSize);
    this.#changed();
  }

  set(mask) {
    if (!mask.equals(this.#history.value)) this.#history.set(mask);
    this.#changed();
  }

  /** Put a mask in place of the present one, which is not remembered. */
  replace(mask) {
    this.#history.value = mask;
    this.#changed();
  }

  /** Begin with a mask; what was before is forgotten. */
  begin(mask = this.mask.cleared()) {
    this.#history = new Undoable(mask);
    this.#changed();
  }

  invert() {
    this.set(this.#history.value.inverted());
  }

  clear() {
    this.set(this.#history.value.cleared());
  }

  undo() {
    this.#history.undo();
    this.#changed();
  }

  redo() {
    this.#history.redo();
    this.#changed();
  }

  /** Light up the cells of which a map [rows][columns] of shares says that they would change. */
  light(map = null) {
    const context = this.map.getContext("2d");
    context.clearRect(0, 0, this.map.width, this.map.height);
    if (!map) return;
    const pixels = new ImageData(this.grid.columns, this.grid.rows);
    map.flat().forEach((share, i) => pixels.data.set([255, 214, 72, 215 * share], 4 * i));
    context.putImageData(pixels, 0, 0);
  }

  /** A key of the tools: B, R, L, E, [, ], X; returns whether it was one. */
  key(key) {
    const does = {
      b: () => this.choose("brush"), r: () => this.choose("rectangle"),
      l: () => this.choose("lasso"), e: () => this.choose("eraser"),
      "[": () => this.resize(this.size - 1), "]": () => this.resize(this.size + 1),
      x: () => this.invert(),
    }[key.toLowerCase()];
    does?.();
    return Boolean(does);
  }

  // Pointers

  #listen() {
    const field = this.element;
    field.addEventListener("pointerdown", (event) => this.#down(event));
    field.addEventListener("pointermove", (event) => this.#move(event));
    field.addEventListener("pointerup", (event) => this.#end(event));
    field.addEventListener("pointercancel", () => this.#drop());
    field.addEventListener("pointerleave", () => (this.ring.hidden = true));
    field.addEventListener("keydown", (event) => this.#press(event));
    field.addEventListener("focus", () => field.matches(":focus-visible") && this.#showCell());
    field.addEventListener("blur", () => (this.ring.hidden = true));
  }

  get #paints() {
    return TOOLS.includes(this.tool);
  }

  #point({ clientX, clientY }) {
    const box = this.element.getBoundingClientRect();
    return [(this.grid.columns * (clientX - box.left)) / box.width,
      (this.grid.rows * (clientY - box.top)) / box.height];
  }

  #down(event) {
    if (!this.#paints || !event.isPrimary || (event.button !== 0 && event.button !== 5)) return;
    event.preventDefault();
    this.element.focus({ preventScroll: true });
    this.element.setPointerCapture(event.pointerId);
    const erases = this.tool === "eraser" || (event.buttons & ERASER_OF_PEN) !== 0 || event.altKey;
    this.#shape = { tool: this.tool, points: [this.#point(event)], on: !erases };
    this.#paint();
  }

  #move(event) {
    if (!this.#paints || !event.isPrimary) return;
    this.#showRing(event);
    if (!this.#shape) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    this.#shape.points.push(...(passed.length ? passed : [event]).map((each) => this.#point(each)));
    this.#paint();
  }

  #end() {
    if (!this.#shape) return;
    const painted = this.#painted();
    this.#shape = null;
    this.set(painted);
  }

  #drop() {
    this.#shape = null;
    this.#paint();
  }

  /** The mask with the shape that is being painted. */
  #painted() {
    const { value } = this.#history;
    if (!this.#shape) return value;
    const { tool, points, on } = this.#shape;
    if (tool === "rectangle") return value.with(rectangle(this.grid, points[0], points.at(-1)), on);
    if (tool === "lasso") return value.with(lasso(this.grid, points), on);
    const cells = points.flatMap((point, i) => stroke(this.grid, points[Math.max(0, i - 1)], point,
      this.size));
    return value.with(cells, on);
  }

  // Keys

  #press(event) {
    if (!this.#paints || event.target !== this.element) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = ARROWS[event.key];
    if (step) this.#step(step, event.shiftKey);
    else if (event.key === " ") this.#mark();
    else if (event.key === "Enter" && this.#shape) this.#end();
    else if (event.key === "Escape" && this.#shape) this.#drop();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  get #middle() {
    return [this.cell[0] + 0.5, this.cell[1] + 0.5];
  }

  #step([dx, dy], paints) {
    const from = this.#middle;
    this.cell = cellAt(this.grid, [this.cell[0] + dx, this.cell[1] + dy]);
    const draws = paints && (this.tool === "brush" || this.tool === "eraser");
    if (draws) {
      this.set(this.#history.value.with(stroke(this.grid, from, this.#middle, this.size),
        this.tool === "brush"));
    }
    if (this.#shape?.tool === "rectangle") this.#shape.points[1] = this.#middle;
    this.#showCell();
    this.#paint();
    this.on.moved(...this.cell, this.mask.has(...this.cell));
  }

  /** The space bar paints, or sets a corner. */
  #mark() {
    const point = this.#middle;
    if (this.tool === "lasso") {
      this.#shape ??= { tool: "lasso", points: [], on: true };
      this.#shape.points.push(point);
      this.#paint();
      return;
    }
    if (this.tool === "rectangle" && !this.#shape) {
      this.#shape = { tool: "rectangle", points: [point, point], on: true };
      this.#paint();
      return;
    }
    this.#shape ??= { tool: this.tool, points: [point], on: this.tool !== "eraser" };
    this.#end();
    this.on.moved(...this.cell, this.mask.has(...this.cell));
  }

  // Looks

  #showRing(event) {
    const round = this.tool === "brush" || this.tool === "eraser";
    this.ring.hidden = !round || event.pointerType === "touch";
    this.#place(this.#point(event), round ? this.size : 1, true);
  }

  #showCell() {
    this.ring.hidden = !this.#paints;
    const round = (this.tool === "brush" || this.tool === "eraser") && this.size > 1;
    this.#place(this.#middle, round ? this.size : 1, round);
  }

  #place([x, y], size, round) {
    const { rows, columns } = this.grid;
    this.ring.classList.toggle("round", round);
    Object.assign(this.ring.style, { left: `${(100 * (x - size / 2)) / columns}%`,
      top: `${(100 * (y - size / 2)) / rows}%`, width: `${(100 * size) / columns}%`,
      height: `${(100 * size) / rows}%` });
  }

  #changed() {
    this.#paint();
    this.on.changed();
  }

  #paint() {
    const painted = this.#painted();
    paintMask(this.canvas, this.element,
      this.#free === null ? painted : painted.with(below(this.grid, this.#free)));
  }

  dispose() {
    this.#observer.disconnect();
    this.element.remove();
  }
}
