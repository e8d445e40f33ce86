/**
 * The cells of a run over the picture that it began with, as they are drawn: messages of
 * protocol.js paint the cells that are redrawn, all others stand.
 */

import { Coarse } from "./coarse.js";
import { StripQueue } from "./drawing.js";
import { make, makeCanvas } from "./elements.js";
import { complaint } from "./protocol.js";

export class LiveCells {
  #queue = new StripQueue();
  #pictures = [];

  /** mask: of the cells that are redrawn. */
  constructor(mask) {
    this.element = make("div", "live-cells", { "aria-hidden": "true" });
    this.mask = mask;
    this.shown = 0; // of several pictures the one that is seen
  }

  /** Handle one message; those that are wrong, or about kept cells, are ignored. */
  feed(message) {
    if (complaint(message) || message.known) return;
    if (message.kind === "started") this.#begin(message);
    if (message.kind === "rows" || message.kind === "cells") this.#take(message);
  }

  /** See another picture of the run. */
  show(number) {
    this.shown = number;
    this.#pictures.forEach(({ canvas }, n) => {
      canvas.hidden = n !== number;
    });
  }

  #begin({ panel, rows, columns, width, height, pictures }) {
    const first = panel === 0 ? 0 : this.#pictures.length;
    if (panel === 0) this.element.replaceChildren();
    this.#pictures.length = first;
    for (let n = 0; n < pictures; n++) {
      const canvas = makeCanvas("live-picture", width, height);
      canvas.style.maskImage = `url(${this.#stencil()})`;
      this.#pictures.push({ canvas, panel, coarse: new Coarse(canvas, rows, columns) });
      this.element.append(canvas);
    }
    this.show(this.shown);
  }

  /** The cells that are redrawn as a picture whose other cells are clear. */
  #stencil() {
    const { rows, columns, cells } = this.mask;
    const canvas = makeCanvas("", 8 * columns, 8 * rows);
    const context = canvas.getContext("2d");
    cells.forEach((cell, i) => cell
      && context.fillRect(8 * (i % columns), 8 * Math.floor(i / columns), 8, 8));
    return canvas.toDataURL();
  }

  #take({ kind, panel, strips, top, refined = false }) {
    const own = this.#pictures.filter((picture) => picture.panel === panel);
    strips.slice(0, own.length).forEach((strip, n) => {
      const { canvas, coarse } = own[n];
      const paint = kind === "rows" && refined ? coarse.sharpen : coarse.paint;
      this.#queue.add(strip, top, { paint: paint.bind(coarse), canvas, settle: coarse.settle });
    });
  }

  dispose() {
    this.#queue.close();
    this.element.remove();
  }
}
