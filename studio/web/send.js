/** The menu *Send*: a picture as a postcard, as a file, to the clipboard or to the share sheet. */

import { button, make } from "./core/elements.js";
import { sign } from "./icons.js";
import { menuButton } from "./menu.js";
import { copyImage, pictureUrl } from "./picture_actions.js";

const FILES = { png: {}, png2: { format: "png", scale: 2 }, jpeg: { format: "jpeg" },
  webp: { format: "webp" } };
const SHARED = [["png", "image/png"], ["html", "text/html"]]; // the first one that is allowed

/** A button and its menu for the picture {id, called} that pictureOf() returns. */
export function sendMenu(app, pictureOf, className = "button plain icon") {
  const words = app.words.send;
  const label = className.includes("icon") ? sign("send", words.send) : words.send;
  const made = menuButton(label, () => items(app, words, pictureOf()), className);
  made.button.dataset.tool = "send";
  made.button.title = words.sendHint;
  return made;
}

function items(app, words, { id, called }) {
  const link = (name, href, file) => make("a", "button plain",
    { href, download: file, title: words[`${name}Hint`] ?? "" }, [words[name]]);
  const shared = SHARED.find(([ending, type]) =>
    navigator.canShare?.({ files: [new File([" "], `picture.${ending}`, { type })] }));
  return [
    link("postcard", postcardUrl(id), `${called}.html`),
    ...Object.entries(FILES).map(([name, options]) => link(name, pictureUrl(id, options),
      `${called}${options.scale ? "@2x" : ""}.${fileEnding(options.format)}`)),
    make("hr", ""),
    button(words.copy, () => copyImage(app, id), { class: "button plain", "data-action": "copy" }),
    ...(shared ? [button(words.share, () => share(app, { id, called }, ...shared),
      { class: "button plain", "data-action": "share" })] : []),
  ];
}

const fileEnding = (format = "png") => (format === "jpeg" ? "jpg" : format);

const postcardUrl = (id) => `api/send?${new URLSearchParams({ id })}`;

/** Hand a picture to the share sheet of the browser, as a PNG or as its postcard. */
async function share(app, { id, called }, ending, type) {
  try {
    const answer = await fetch(ending === "html" ? postcardUrl(id) : pictureUrl(id));
    if (!answer.ok) throw new Error(answer.statusText);
    const file = new File([await answer.blob()], `${called}.${ending}`, { type });
    await navigator.share({ files: [file] });
  } catch (error) {
    if (error.name === "AbortError") return; // the sheet was closed
    app.toast(app.words.send.notShared, { bad: true });
  }
}
