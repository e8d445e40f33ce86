/** A menu of how far four variations of a picture may be from it. */

import { button } from "./core/elements.js";
import { menuButton } from "./menu.js";

const STRENGTHS = ["subtle", "medium", "strong"];

/** {button, menu}; vary(strength): draw them. */
export function varyMenu(app, vary) {
  const { edit: words } = app.words;
  const made = menuButton(words.vary, () => STRENGTHS.map((strength) => button(
    words[strength], () => vary(strength), { class: "button plain", id: `vary-${strength}` })),
  "button plain");
  made.button.title = words.varyHint;
  return made;
}
