/** The place of a picture that was asked for, at its size, before anything of it is there. */

import { make } from "./core/elements.js";

/** size: "WIDTHxHEIGHT", or null for that of the model. */
export function emptyPicture({ schema, words }, size) {
  const [width, height] = (size ?? schema.model.sizes[0] ?? "1x1").split("x");
  const frame = make("div", "edit-frame", {}, [make("span", "hint", {}, [words.stage.asked])]);
  frame.style.setProperty("--width", width);
  frame.style.setProperty("--height", height);
  return make("div", "edit-box empty-picture", {}, [frame]);
}
