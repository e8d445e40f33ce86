/** A box for pictures of one size, scaled to the room there is. */

import { fit } from "./core/drawing.js";
import { make } from "./core/elements.js";

export class Frame {
  #observer;

  /** pictures: [address, text for those who do not see it] each; `images` has their elements. */
  constructor(words, pictures) {
    this.note = make("p", "ssd-missing", { role: "status", hidden: "" }, [words.noPicture]);
    this.images = pictures.map(([src, alt]) => this.#image(src, alt));
    this.field = make("div", "ssd-field", { hidden: "" });
    this.element = make("div", "ssd-frame", {}, [this.note, this.field]);
    this.#observer = new ResizeObserver(() => this.#layOut());
    this.#observer.observe(this.element);
  }

  #image(src, alt) {
    const image = make("img", "ssd-image", { alt, draggable: "false" });
    image.addEventListener("load", () => this.#layOut());
    image.addEventListener("error", () => (this.note.hidden = false));
    image.src = src;
    return image;
  }

  #layOut() {
    if (!this.images.every((image) => image.naturalWidth > 0)) return;
    const { naturalWidth: width, naturalHeight: height } = this.images[0];
    const box = { width: this.element.clientWidth, height: null };
    const { scale } = fit(1, width, height, box, window.devicePixelRatio);
    this.field.hidden = false;
    this.field.style.width = `${width * scale}px`;
    this.field.style.height = `${height * scale}px`;
    this.field.classList.toggle("ssd-shrunk", scale < 1);
  }

  dispose() {
    this.#observer.disconnect();
    this.element.remove();
  }
}
