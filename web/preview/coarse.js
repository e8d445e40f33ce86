/**
 * Rows of which only a colour for each cell is known, painted as soft colours instead of squares.
 * Decoded rows replace them.
 */

import { makeCanvas } from "./elements.js";

const REACH = 2; // cells over which colours blend

/** Places within REACH of a cell, the nearest first. */
const AROUND = Array.from({ length: (2 * REACH + 1) ** 2 }, (_, i) => [
  (i % (2 * REACH + 1)) - REACH, Math.floor(i / (2 * REACH + 1)) - REACH,
]).sort(([ax, ay], [bx, by]) => ax * ax + ay * ay - bx * bx - by * by);

export class Coarse {
  #sharp = 0; // px from the top that are decoded
  #standing = null; // the kept cells, if the rest of a picture is redrawn
  #noted = [Infinity, 0]; // px between which colours wait to be painted

  /** canvas: of the picture, whose grid has so many rows and columns. */
  constructor(canvas, rows, columns) {
    this.canvas = canvas;
    this.cells = makeCanvas("", columns, rows); // a pixel for each cell that is known
    this.grown = makeCanvas("", columns, rows);
    this.soft = makeCanvas("", canvas.width, canvas.height);
  }

  get #context() {
    return this.canvas.getContext("2d");
  }

  /** Lines of the canvas that a strip covers; strips may be narrower, and are enlarged. */
  #lines(bitmap) {
    return (bitmap.height * this.canvas.width) / bitmap.width;
  }

  /** Take a strip whose cells have one colour each; its first line lies at `top` px. */
  paint(bitmap, top) {
    this.#note(bitmap, top, false);
    const [from, end] = this.#noted;
    this.#noted = [Math.min(from, top), Math.max(end, top + this.#lines(bitmap))];
  }

  /** Paint the colours that were taken since the last time. */
  settle = () => {
    const { width, height } = this.canvas;
    const tall = height / this.cells.height;
    const [first, last] = this.#noted;
    this.#noted = [Infinity, 0];
    // The rows above and below blend with them.
    const from = Math.max(first - tall, this.#sharp);
    const end = Math.min(last + tall, height);
    if (end <= from) return;
    this.#blend();
    const place = [0, from, width, end - from];
    this.#context.clearRect(...place);
    for (const layer of [this.soft, this.#standing]) {
      if (layer) this.#context.drawImage(layer, ...place, ...place);
    }
  };

  /** Paint a strip that is decoded. */
  sharpen(bitmap, top) {
    this.#note(bitmap, top, true);
    const lines = this.#lines(bitmap);
    this.#sharp = Math.max(this.#sharp, top + lines);
    this.#context.drawImage(bitmap, 0, top, this.canvas.width, lines);
  }

  /** Paint the kept cells of a picture: soft colours never cover them. */
  stand(bitmap, top) {
    this.#note(bitmap, top, true);
    this.#standing ??= makeCanvas("", this.canvas.width, this.canvas.height);
    for (const canvas of [this.#standing, this.canvas]) {
      canvas.getContext("2d").drawImage(bitmap, 0, top);
    }
  }

  /** Keep a strip's colours, cell by cell; where it is clear, what was known stays. */
  #note(bitmap, top, smooth) {
    const context = this.cells.getContext("2d");
    const tall = this.canvas.height / this.cells.height;
    context.imageSmoothingEnabled = smooth;
    context.drawImage(bitmap, 0, top / tall, this.cells.width, this.#lines(bitmap) / tall);
  }

  /** The known cells blended with each other, and with nothing where a neighbour is unknown. */
  #blend() {
    const { width, height } = this.soft;
    const [grown, soft] = [this.grown, this.soft].map((canvas) => canvas.getContext("2d"));
    grown.clearRect(0, 0, this.grown.width, this.grown.height);
    grown.globalCompositeOperation = "destination-over"; // unknown cells look like the nearest one
    for (const [x, y] of AROUND) grown.drawImage(this.cells, x, y);
    soft.globalCompositeOperation = "copy";
    soft.imageSmoothingEnabled = true;
    soft.imageSmoothingQuality = "high";
    soft.drawImage(this.grown, 0, 0, width, height);
    soft.globalCompositeOperation = "destination-in"; // and are cut off again
    soft.imageSmoothingEnabled = false;
    soft.drawImage(this.cells, 0, 0, width, height);
  }
}
