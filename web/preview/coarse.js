/**
 * Rows of which only a colour for each cell is known, painted as soft colours instead of squares.
 * Decoded rows replace them.
 */

import { makeCanvas } from "./elements.js";

export class Coarse {
  #sharp = 0; // px from the top that are decoded

  /** canvas: of the picture, whose grid has so many rows and columns. */
  constructor(canvas, rows, columns) {
    this.canvas = canvas;
    this.cells = makeCanvas("", columns, rows); // a pixel for each cell
  }

  get #context() {
    return this.canvas.getContext("2d");
  }

  /** Paint a strip whose cells have one colour each; its first line lies at `top` px. */
  paint(bitmap, top) {
    this.#note(bitmap, top, false);
    const { width, height } = this.canvas;
    const [from, end] = [Math.max(top, this.#sharp), top + bitmap.height];
    if (end <= from) return;
    const context = this.#context;
    context.save();
    context.beginPath();
    context.rect(0, from, width, end - from);
    context.clip();
    context.clearRect(0, from, width, end - from);
    context.imageSmoothingQuality = "high";
    context.drawImage(this.cells, 0, 0, width, height);
    context.restore();
  }

  /** Paint a strip that is decoded. */
  sharpen(bitmap, top) {
    this.#note(bitmap, top, true);
    this.#sharp = Math.max(this.#sharp, top + bitmap.height);
    this.#context.drawImage(bitmap, 0, top);
  }

  /** Keep a strip's colours, cell by cell. */
  #note(bitmap, top, smooth) {
    const context = this.cells.getContext("2d");
    const tall = this.canvas.height / this.cells.height;
    const place = [0, top / tall, this.cells.width, bitmap.height / tall];
    context.imageSmoothingEnabled = smooth;
    context.clearRect(...place);
    context.drawImage(bitmap, ...place);
  }
}
