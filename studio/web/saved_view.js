/** A saved picture on the stage, or one of a file, at most at twice its pixels. */

import { make } from "./core/elements.js";
import { pixelMode } from "./pixels.js";

export class SavedView {
  constructor(app, entry) {
    this.image = make("img", "saved-picture", { src: entry.picture, alt: entry.prompt ?? "" });
    this.#measure(entry.width, entry.height);
    this.caption = make("figcaption", "caption small hint", {}, [entry.caption ?? ""]);
    this.element = make("figure", "saved", {},
      [make("div", "saved-box", {}, [this.image]), this.caption]);
    this.image.addEventListener("load",
      () => this.#measure(this.image.naturalWidth, this.image.naturalHeight));
    this.image.addEventListener("error", () => {
      this.image.replaceWith(make("p", "notice", {}, [app.words.stage.noPicture]));
    });
    pixelMode.mark(this.element);
  }

  #measure(width = 1, height = 1) {
    this.image.style.setProperty("--width", String(width));
    this.image.style.setProperty("--height", String(height));
  }

  dispose() {
    this.element.remove();
  }
}

/** A picture that was dropped, pasted or chosen: it is not in the history. */
export class FileView extends SavedView {
  /** text: what was taken from it. actions: buttons below it. */
  constructor(app, file, text, actions) {
    const picture = URL.createObjectURL(file);
    super(app, { picture, caption: text });
    this.address = picture;
    this.element.classList.add("of-file");
    this.caption.append(make("div", "row", {}, actions));
  }

  dispose() {
    super.dispose();
    URL.revokeObjectURL(this.address);
  }
}
