/** The sheet of keys, opened by "?" or from the gear. */

import { button, make } from "./core/elements.js";

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const CONTROL = MAC ? "⌘" : "Ctrl";
const WRITES = ":is(input:not([type=checkbox], [type=radio], [type=range]), textarea, select)";

// By section of the texts: what does what, and its keys.
const KEYS = {
  create: [["draw", `${CONTROL} + Enter`], ["leave", "Delete"]],
  edit: [["touch", "V"], ["thing", "Tab"], ["tools", "B  R  L  E"], ["size", "[  ]"],
    ["invert", "X"], ["undo", `${CONTROL} + Z`], ["redo", `${CONTROL} + Shift + Z`],
    ["cell", "← ↑ → ↓"], ["paint", "Space"], ["line", "Shift + ← ↑ → ↓"], ["close", "Enter"]],
  history: [["go", "← ↑ → ↓"], ["choose", "X"], ["mark", "F"], ["remove", "Delete"]],
  viewer: [["zoom", "+  −"], ["whole", "0"], ["pixels", "1"], ["go", "←  →"], ["leave", "Esc"]],
  everywhere: [["sheet", "?"]],
};

/** Open the sheet by its key, unless somebody writes. */
export function listenForSheet(app) {
  document.addEventListener("keydown", (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (key !== "?" || ctrlKey || metaKey || altKey || target.matches?.(WRITES)) return;
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    openSheet(app);
  });
}

export function openSheet(app) {
  const { keys: words, common, places, edit, viewer } = app.words;
  const names = { create: places.create, edit: edit.name, history: places.history,
    viewer: viewer.name, everywhere: words.everywhere };
  const close = button(common.close, () => dialog.close());
  const dialog = make("dialog", "keys", { "aria-label": words.title, id: "keys" }, [
    make("div", "row", {}, [make("h2", "grow", {}, [words.title]), close]),
    make("div", "keys-lists", {}, Object.entries(KEYS).map(([section, lines]) => make("section",
      "", {}, [make("h3", "", {}, [names[section]]), list(words, section, lines)])))]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function list(words, section, lines) {
  return make("dl", "", {}, lines.flatMap(([name, keys]) => [
    make("dt", "", {}, keys.split("  ").flatMap((key, n) => [n ? " " : "",
      make("kbd", "", {}, [key])])),
    make("dd", "", {}, [words[`${section}_${name}`]])]));
}
