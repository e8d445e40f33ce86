/**
 * <ssd-divider left="URL" right="URL" left-label right-label>: two pictures on top of each other;
 * left of a line that can be dragged stands the left one.
 *
 * Not gr.ImageSlider, which has one label for the pair and none for each picture.
 */

import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { Frame } from "./frame.js";
import { FramedElement } from "./framed.js";
import { Slider } from "./slider.js";

const RANGE = { min: 0, max: 100, whole: 100, step: 1, leap: 10, down: -1 }; // %

export class SsdDivider extends FramedElement {
  static observedAttributes = ["left", "right", "left-label", "right-label"];

  begin() {
    const sides = ["left", "right"];
    this.labels = sides.map((side) => this.getAttribute(`${side}-label`) ?? "");
    const pictures = sides.map((side, i) => [this.getAttribute(side) ?? "", this.labels[i]]);
    this.frame = new Frame(this.words, pictures);
    sides.forEach((side, i) => this.frame.field.append(this.#layer(side, i)));
    this.slider = new Slider(this.frame.field, {
      name: this.words.divider, vertical: false, range: () => RANGE,
      move: (share) => this.#show(share),
    });
    this.#show(50);
  }

  #layer(side, index) {
    const stamp = make("span", "ssd-stamp", { "aria-hidden": "true" }, [this.labels[index]]);
    stamp.hidden = this.labels[index] === "";
    return make("div", `ssd-layer ssd-${side}`, {}, [this.frame.images[index], stamp]);
  }

  #show(share) {
    const [left, right] = this.labels;
    this.slider.set(share, say(this.words.shown, { share, left, right }));
  }
}
