/** Whether enlarged pictures are smooth or show their pixels: a choice of this browser. */

import { keep, recall } from "./kept.js";

const KEY = "sharp";

class PixelMode {
  #elements = new Set();
  sharp = recall(KEY, false);

  set(sharp) {
    this.sharp = sharp;
    keep(KEY, sharp);
    this.#elements.forEach((reference) => reference.deref()?.classList.toggle("sharp", sharp));
  }

  /** Let an element follow the choice by its class `sharp`. */
  mark(element) {
    this.#elements.add(new WeakRef(element));
    element.classList.toggle("sharp", this.sharp);
  }
}

export const pixelMode = new PixelMode();
