/**
 * A line over a picture: the browser's own slider, unseen, and the line at its value. Knows no
 * picture.
 */

import { addStyleSheet, make } from "./core/elements.js";

export class Slider {
  /**
   * field: the element that the line lies over. move(value) is called for every new value that the
   * user sets. A vertical one counts from the bottom.
   */
  constructor(field, { name, vertical = false, move }) {
    this.styled = addStyleSheet(new URL("slider.css", import.meta.url).href);
    this.input = make("input", "", { type: "range", "aria-label": name });
    this.input.addEventListener("input", () => move(Number(this.input.value)));
    this.line = make("div", "ssd-line", {}, [make("span", "ssd-knob")]);
    this.element = make("div", vertical ? "ssd-slider vertical" : "ssd-slider", {},
      [this.input, this.line]);
    field.append(this.element);
    this.field = field;
  }

  /** Show a value between min and max; the line is at value / whole; `text` is read aloud. */
  set(value, { min, max, whole }, text) {
    Object.assign(this.input, { min, max, value });
    this.input.setAttribute("aria-valuetext", text);
    for (const [name, share] of Object.entries({ at: value, min, max })) {
      this.field.style.setProperty(`--ssd-${name}`, `${(100 * share) / whole}%`);
    }
  }
}
