/** A run among several: its live picture, which a click opens in large once it is saved. */

import { make } from "./core/elements.js";
import { Preview } from "./core/preview.js";
import { pixelMode } from "./pixels.js";
import { runName } from "./uses.js";

export class Tile {
  /** options: of the preview. */
  constructor(app, options = {}) {
    this.app = app;
    this.preview = new Preview({ language: app.language, ...options });
    this.preview.element.classList.add("on-stage");
    pixelMode.mark(this.preview.element);
    this.opener = make("button", "tile-open", { type: "button", hidden: "" });
    this.window = make("div", "tile-window", {}, [this.preview.element, this.opener]);
  }

  /** The run's state by its messages; undefined before the first one. */
  get panel() {
    return this.preview.state.panels[0];
  }

  /** Handle messages, whichever panel of their job they are of. */
  feed(messages) {
    for (const message of messages) {
      const { label } = message;
      this.preview.feed({ ...message, panel: 0,
        ...(label && { label: runName(this.app.schema, label) }) });
    }
  }

  /** Let a click open the picture; name: for those who do not see it. */
  openBy(open, name) {
    this.opener.hidden = false;
    this.opener.setAttribute("aria-label", name);
    this.opener.onclick = open;
  }

  dispose() {
    this.preview.dispose();
  }
}

/** Show saved pictures in large; pictures: [{src, label}]. */
export async function openLarge(app, pictures, first = 0) {
  const { view } = await import("./viewer.js");
  view(app, pictures, first);
}
