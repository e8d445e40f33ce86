/** The addresses of saved pictures, and links that save them. */

import { make } from "./core/elements.js";

/** The address of a saved picture; options: `format` (png, jpeg, webp) and `scale` (1, 2). */
export function pictureUrl(id, options = {}) {
  const path = id.split("/").map(encodeURIComponent).join("/");
  const query = new URLSearchParams(options).toString();
  return `studio/picture/${path}${query && `?${query}`}`;
}

/** Links that save a picture in each format; `called`: what the file is called. */
export function downloadLinks(words, { id, called }) {
  const kinds = [["png", 1, "png"], ["png", 2, "png"], ["jpeg", 1, "jpg"], ["webp", 1, "webp"]];
  return kinds.map(([format, scale, ending]) => {
    const options = format === "png" && scale === 1 ? {} : { format, scale };
    return make("a", "button plain", { href: pictureUrl(id, options),
      download: `${called}${scale === 2 ? "@2x" : ""}.${ending}` },
    [words[`${format}${scale === 2 ? "2" : ""}`]]);
  });
}
