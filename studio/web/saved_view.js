/** A saved picture on the stage, at most at twice its pixels. */

import { make } from "./core/elements.js";
import { pixelMode } from "./pixels.js";

export class SavedView {
  constructor(app, entry) {
    const image = make("img", "saved-picture", { src: entry.picture, alt: entry.prompt ?? "",
      width: String(entry.width), height: String(entry.height) });
    image.style.setProperty("--width", String(entry.width));
    image.style.setProperty("--height", String(entry.height));
    const caption = make("figcaption", "caption small hint", {}, [entry.caption ?? ""]);
    this.element = make("figure", "saved", {}, [make("div", "saved-box", {}, [image]), caption]);
    image.addEventListener("error", () => {
      image.replaceWith(make("p", "notice", {}, [app.words.stage.noPicture]));
    });
    pixelMode.mark(this.element);
  }

  dispose() {
    this.element.remove();
  }
}
