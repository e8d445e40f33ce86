/**
 * <ssd-divider left="URL" right="URL" left-label right-label>: two pictures on top of each other;
 * left of a line that can be dragged stands the left one.
 *
 * Not gr.ImageSlider, which has one label for the pair and none for each picture.
 */

import { make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { Frame } from "./frame.js";
import { HeldElement } from "./held.js";
import { pageWords } from "./host.js";
import { Slider } from "./slider.js";

const RANGE = { min: 0, max: 100, whole: 100, step: 1, leap: 10, down: -1 }; // %

export class SsdDivider extends HeldElement {
  static observedAttributes = ["left", "right", "left-label", "right-label"];
  #frame = null;

  connectedCallback() {
    this.#begin();
  }

  /** Attributes of the first page come before the element is connected: that is no change. */
  attributeChangedCallback() {
    if (this.#frame) this.#begin();
  }

  disconnectedCallback() {
    this.#end();
  }

  #begin() {
    this.#end();
    this.words = pageWords();
    const sides = ["left", "right"];
    this.labels = sides.map((side) => this.getAttribute(`${side}-label`) ?? "");
    const pictures = sides.map((side, i) => [this.getAttribute(side) ?? "", this.labels[i]]);
    this.#frame = new Frame(this.words, pictures);
    sides.forEach((side, i) => this.#frame.field.append(this.#layer(side, i)));
    this.slider = new Slider(this.#frame.field, {
      name: this.words.divider, vertical: false, range: () => RANGE,
      move: (share) => this.#show(share),
    });
    this.#show(50);
    this.show(this.#frame.element);
  }

  #layer(side, index) {
    const stamp = make("span", "ssd-stamp", { "aria-hidden": "true" }, [this.labels[index]]);
    stamp.hidden = this.labels[index] === "";
    return make("div", `ssd-layer ssd-${side}`, {}, [this.#frame.images[index], stamp]);
  }

  #show(share) {
    const [left, right] = this.labels;
    this.slider.set(share, say(this.words.shown, { share, left, right }));
  }

  #end() {
    this.#frame?.dispose();
    this.#frame = null;
  }
}
