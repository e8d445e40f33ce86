/** A menu of how far four variations of a picture may be from it. */

import { make } from "./core/elements.js";
import { menuButton } from "./menu.js";

const STRENGTHS = ["subtle", "medium", "strong"];

/** {button, menu}; vary(strength): draw them. */
export function varyMenu(app, vary) {
  const { edit: words } = app.words;
  const made = menuButton(words.vary, () => STRENGTHS.map((strength) => {
    const button = make("button", "button plain",
      { type: "button", id: `vary-${strength}` }, [words[strength]]);
    button.addEventListener("click", () => vary(strength));
    return button;
  }), "button plain");
  made.button.title = words.varyHint;
  return made;
}
