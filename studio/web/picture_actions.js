/** What can be done with saved pictures, wherever they are shown. */

import { make } from "./core/elements.js";
import { say } from "./core/strings.js";

const MOST_UNDONE = 64; // pictures that the server can bring back
const VIEWED = 200; // pictures that are seen one after the other over the whole page

const path = (id) => id.split("/").map(encodeURIComponent).join("/");

/** The address of a saved picture; options: `format` (png, jpeg, webp) and `scale` (1, 2). */
export function pictureUrl(id, options = {}) {
  const query = new URLSearchParams(options).toString();
  return `studio/picture/${path(id)}${query && `?${query}`}`;
}

/** A picture with its facts and what can be copied of it; null if that failed, which is said. */
export function detailsOf(app, id) {
  return app.attempt(app.api.get(`history/${path(id)}`));
}

/** Take over the settings of a picture, and go to Create; what was edited is edited again. */
export async function restore(app, id) {
  const answer = await app.attempt(app.api.get("restore", { id }));
  if (!answer) return;
  const { parent, keep_mask: mask, old_prompt, ...settings } = answer.settings;
  adopt(app, { ...answer, settings });
  const { size, seed, prompt, prompt_expanded: drawn } = settings;
  app.go("create", mask || old_prompt
    ? { edit: parent, mask: mask || null, size, seed, prompt: drawn ?? prompt } : { edit: id });
}

/** Take over settings; the old ones can be brought back. */
export function adopt(app, { settings, text }) {
  const before = { ...app.settings.values };
  app.settings.set(settings);
  app.toast(text, { action: { label: app.words.common.undo,
    run: () => app.settings.set(before) } });
}

/** Copy a picture, or say that the browser does not allow it. */
export async function copyImage(app, id) {
  const png = fetch(pictureUrl(id)).then((answer) => answer.blob());
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    app.toast(app.words.send.copied);
  } catch {
    app.toast(app.words.send.notCopied, { bad: true });
  }
}

export async function copyLine(app, text) {
  const copied = await copyText(text);
  app.toast(app.words.history[copied ? "copiedText" : "notCopied"], { bad: !copied });
}

/**
 * Copy a text; whether that worked. Browsers give `navigator.clipboard` only to pages served by
 * https or from this machine: elsewhere a selected text is copied instead.
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const field = make("textarea", "", { readonly: "" });
  const before = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  before?.focus();
  return copied;
}

/** Mark pictures as favourites at once, or take the marks away; resolves to whether it worked. */
export async function favour(app, entries, favourite) {
  const before = entries.map((entry) => entry.favourite);
  for (const entry of entries) entry.favourite = favourite;
  const ids = entries.map(({ id }) => id);
  const done = await app.attempt(app.api.post("history/favourite", { ids, favourite }));
  if (!done) entries.forEach((entry, n) => { entry.favourite = before[n]; });
  return done !== null;
}

/**
 * Delete pictures; a message offers to bring them back, and then calls restored(). Returns whether
 * they were deleted.
 */
export async function remove(app, ids, restored) {
  const { words } = app;
  if (ids.length > MOST_UNDONE) {
    app.toast(app.say(words.history.tooMany, { most: MOST_UNDONE }), { bad: true });
    return false;
  }
  if (!await app.attempt(app.api.post("history/delete", { ids }))) return false;
  const line = ids.length === 1 ? words.history.deletedOne
    : app.say(words.history.deleted, { count: ids.length });
  const undo = async () => {
    if (await app.attempt(app.api.post("history/undo", { ids }))) restored();
  };
  app.toast(line, { action: { label: words.common.undo, run: undo } });
  return true;
}

/** The address of a zip file with these pictures. */
export function zipUrl(ids) {
  return `api/history/zip?${new URLSearchParams(ids.map((id) => ["id", id]))}`;
}

/** Show a saved picture among others over the whole page. */
export async function showLarge(app, entries, at) {
  const { view } = await import("./viewer.js");
  const pictures = entries.map((entry) => ({ src: entry.picture, label: caption(app, entry) }));
  return view(app, pictures, at);
}

/** Show one of some pictures over the whole page; the arrow keys go on to all saved ones. */
export async function showAmongAll(app, own, n) {
  const answer = await app.api.get("history", { limit: VIEWED }).catch(() => ({ entries: [] }));
  const at = answer.entries.findIndex(({ id }) => id === own[n].id);
  if (at >= 0) return showLarge(app, answer.entries, at);
  return showLarge(app, own.map((picture) => ({ ...picture, picture: pictureUrl(picture.id),
    title: picture.prompt })), n); // older than those, or in memory alone
}

/** Draw the next pictures with a seed, until that is taken back. */
export function keepSeed(app, seed) {
  const before = app.settings.get("seed");
  app.settings.set({ seed });
  app.keepSeed(true);
  const run = () => {
    app.keepSeed(false);
    app.settings.set({ seed: before });
  };
  app.toast(app.say(app.words.stage.seedKept, { seed }),
    { action: { label: app.words.common.undo, run } });
}

/** Show two saved pictures on each other; their labels say in what they differ. */
export async function compareTwo(app, pair) {
  const { compare } = await import("./viewer.js");
  const labels = differences(pair, app.words.stage.seed);
  return compare(app, ...pair.map(({ picture }, n) => ({ src: picture, label: labels[n] })));
}

/** "a red house · Faithful · seed 7" */
export const caption = (app, { title, quality, seed }) => [title, quality,
  seed && app.say(app.words.stage.seed, { seed })].filter(Boolean).join(" · ");

/** What tells two pictures from each other: words, quality and seed, or else their files. */
export function differences(pair, seedText) {
  const keys = ["prompt", "quality", "seed"].filter((key) => pair[0][key] !== pair[1][key]);
  return pair.map((entry) => keys.filter((key) => entry[key])
    .map((key) => (key === "seed" ? say(seedText, entry) : entry[key])).join(" · ") || entry.name);
}
