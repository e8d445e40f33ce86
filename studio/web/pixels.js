/** Whether enlarged pictures are smooth or show their pixels: a choice of this browser. */

const KEY = "ssd-studio-sharp";

class PixelMode {
  #elements = new Set();

  get sharp() {
    try {
      return localStorage.getItem(KEY) === "yes";
    } catch {
      return this.#sharp ?? false;
    }
  }

  #sharp;

  set(sharp) {
    this.#sharp = sharp;
    try {
      localStorage.setItem(KEY, sharp ? "yes" : "no");
    } catch {
      // it holds until the page is closed
    }
    this.#elements.forEach((reference) => reference.deref()?.classList.toggle("sharp", sharp));
  }

  /** Let an element follow the choice by its class `sharp`. */
  mark(element) {
    this.#elements.add(new WeakRef(element));
    element.classList.toggle("sharp", this.sharp);
  }
}

export const pixelMode = new PixelMode();
