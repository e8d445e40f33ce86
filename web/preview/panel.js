/**
 * One panel: a heading, the pictures of one run, their pens and overlays, a line of figures, notes.
 *
 * A view of one panel of the protocol's state; it decides nothing.
 */

import { Coarse } from "./coarse.js";
import { CELL, GAP, StripQueue, clear, fit, paintOverlay } from "./drawing.js";
import { make, makeCanvas, setText } from "./elements.js";
import { details, figures, heading, shownIn } from "./figures.js";
import { say } from "./strings.js";

export class Panel {
  #queue = new StripQueue();
  #pictures = [];
  #observer;
  #painted = 0; // rows whose pixels are painted; the state may be ahead of them

  /**
   * `fills`: the host gives a height, into which the pictures must fit. `most` and `smooth`: as in
   * drawing.fit. `prompt`: as typed, if it is known. `finished`: by run, its pictures at the end as
   * bitmaps, if it is an old run.
   */
  constructor(words, { fills, most, smooth, prompt, finished = new Map() }, onPainted) {
    Object.assign(this, { words, fills, most, smooth, prompt, onPainted, finished });
    this.heading = make("div", "ssd-heading");
    this.area = make("div", "ssd-pictures");
    this.summary = make("div", "ssd-summary");
    this.details = make("div", "ssd-details");
    this.figures = make("div", "ssd-figures", {}, [this.summary, this.details]);
    this.notes = make("div", "ssd-notes", { role: "note" });
    this.element = make("section", "ssd-panel", {},
      [this.heading, this.area, this.figures, this.notes]);
    this.#observer = new ResizeObserver(() => this.#layOut());
    this.#observer.observe(this.area);
  }

  /** Handle a message that was folded into `state`; `render` does what does not depend on order. */
  take(state, message) {
    this.state = state;
    if (message.kind === "started") this.#begin(message);
    if (message.kind === "rows" && state.start) this.#addStrips(message);
    if (message.kind === "cells" && state.start) this.#paint(message);
  }

  #begin(start) {
    this.#pictures = Array.from({ length: start.pictures }, (_, i) => this.#picture(start, i));
    this.area.replaceChildren(...this.#pictures.map((picture) => picture.element));
    this.#layOut();
  }

  #picture({ label, width, height, rows, columns, pictures }, index) {
    const pixels = makeCanvas("ssd-pixels", width, height);
    const marks = makeCanvas("ssd-marks", columns * CELL, rows * CELL);
    const pen = make("div", "ssd-pen");
    const drawn = shownIn(this.state, index, this.prompt);
    const name = say(this.words[drawn ? "pictureOf" : "picture"],
      { drawn, label, number: index + 1, count: pictures });
    const element = make("div", "ssd-picture", { role: "img", "aria-label": name },
      [pixels, marks, pen]);
    return { element, pixels, marks, pen, coarse: new Coarse(pixels, rows, columns) };
  }

  #paint({ kind, strips, top, refined = false, known = false }) {
    const finished = this.finished.get(this.state.run) ?? [];
    const standing = known && kind === "cells";
    strips.forEach((strip, i) => {
      const { coarse, pixels } = this.#pictures[i];
      const paint = standing ? coarse.stand : refined ? coarse.sharpen : coarse.paint;
      this.#queue.add(strip, top, { paint: paint.bind(coarse), settle: coarse.settle,
        canvas: pixels, finished: finished[i] });
    });
  }

  #addStrips(message) {
    this.#paint(message);
    this.#queue.whenPainted(() => {
      this.#painted = Math.max(this.#painted, message.last);
      this.onPainted();
    });
  }

  /** Update everything except the strips to the state. */
  render(overlay) {
    setText(this.heading, heading(this.state, this.words));
    setText(this.summary, figures(this.state, this.words, this.#painted));
    setText(this.details, details(this.state, this.words));
    this.summary.title = this.details.textContent;
    setText(this.notes, (this.state.start?.notes ?? []).join("\n"));
    this.notes.hidden = this.notes.textContent === "";
    const { end } = this.state;
    this.element.dataset.end = end?.reason === "paused" ? "paused" : end?.kind ?? "";
    this.#pictures.forEach((picture, i) => this.#renderPicture(picture, i, overlay));
  }

  #renderPicture({ marks, pen }, index, overlay) {
    const { start, marks: cells } = this.state;
    pen.style.top = `${(100 * this.#painted) / start.rows}%`;
    pen.hidden = this.#painted === start.rows;
    if (overlay) paintOverlay(marks, cells[index], start.columns, this.#painted);
    else clear(marks);
  }

  #layOut() {
    const start = this.state?.start;
    if (!start) return;
    const density = window.devicePixelRatio;
    const { columns, scale } = fit(start.pictures, start.width, this.area.clientWidth, density,
      { most: this.most, smooth: this.smooth, height: start.height,
        tall: this.fills ? this.area.clientHeight : null });
    this.area.style.gap = `${GAP}px`;
    this.area.style.gridTemplateColumns = `repeat(${columns}, max-content)`;
    // Whole screen pixels keep edges sharp.
    const side = (length) => `${Math.floor(length * scale * density) / density}px`;
    for (const { element } of this.#pictures) {
      element.style.width = side(start.width);
      element.style.height = side(start.height);
      element.classList.toggle("ssd-shrunk", scale < 1);
    }
  }

  settled() {
    return this.#queue.settled();
  }

  dispose() {
    this.#queue.close();
    this.#observer.disconnect();
    this.element.remove();
  }
}
