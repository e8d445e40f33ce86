/**
 * <ssd-keep-line src="URL" rows="24" row="12" target="#slider">: a picture and the line above which
 * it is kept. The row stands in the number input of `target`; line and input follow each other.
 */

import { make, setText } from "./core/elements.js";
import { say } from "./core/strings.js";
import { Frame } from "./frame.js";
import { FramedElement } from "./framed.js";
import { Target, type } from "./host.js";
import { Slider, clamp } from "./slider.js";

const LEAP = 4; // rows at Page Up and Page Down

export class SsdKeepLine extends FramedElement {
  static observedAttributes = ["src", "rows", "row", "target"];
  #target = null;

  begin() {
    this.rows = Number(this.getAttribute("rows"));
    this.frame = new Frame(this.words, [[this.getAttribute("src") ?? "", ""]]);
    this.#target = new Target(this.getAttribute("target"), () => this.#follow());
    this.tag = make("span", "ssd-tag", { "aria-hidden": "true" });
    this.frame.field.append(...this.frame.images, make("div", "ssd-dropped"));
    this.slider = new Slider(this.frame.field, {
      name: this.words.keepLine, vertical: true, range: () => this.#range(),
      move: (row) => this.#choose(row),
    });
    this.slider.handle.append(this.tag);
    this.#show(clamp(Number(this.getAttribute("row")), this.#range()));
  }

  get #input() {
    return this.#target.root?.querySelector("input[type=number]") ?? null;
  }

  /** The input's limits where it has some: of a stopped picture fewer rows can be kept. */
  #range() {
    const limit = (name, otherwise) => Number(this.#input?.[name] || otherwise);
    return {
      min: limit("min", 1), max: limit("max", this.rows - 1),
      whole: this.rows, step: 1, leap: LEAP, down: 1,
    };
  }

  #choose(row) {
    this.#show(row);
    if (this.#input) type(this.#input, row);
  }

  /** While a number is being typed it may be none, or too large: then the line waits. */
  #follow() {
    const row = this.#input?.value ? Number(this.#input.value) : NaN;
    const { min, max } = this.#range();
    if (row !== this.slider.value && Number.isInteger(row) && row >= min && row <= max) {
      this.#show(row);
    }
  }

  #show(row) {
    const text = say(this.words.kept, { row, rows: this.rows });
    setText(this.tag, text);
    this.tag.classList.toggle("ssd-below", 4 * row < this.rows); // above it there is no room
    this.slider.set(row, text);
  }

  end() {
    super.end();
    this.#target?.stop();
  }
}
