/** Pictures that come from outside: dropped or pasted anywhere on the page, or chosen as a file. */

import { addStyleSheet, button, make } from "./core/elements.js";
import { adopt } from "./picture_actions.js";

const KINDS = ["image/png", "image/jpeg", "image/webp", "image/avif", "image/heic", "image/heif",
  "image/gif", "image/tiff", "image/bmp"];
const ENDING = /\.(heic|heif|avif|tiff?)$/i; // browsers do not know the type of some of these

/** Take what is dropped or pasted on the page from now on. */
export function takeIncoming(app) {
  addStyleSheet(new URL("incoming.css", import.meta.url).href);
  const veil = make("div", "incoming", { hidden: "", id: "incoming" }, [app.words.incoming.drop]);
  document.body.append(veil);
  let own = false; // a picture of this page is being dragged
  document.addEventListener("dragstart", () => (own = true));
  document.addEventListener("dragend", () => (own = false));
  document.addEventListener("dragover", (event) => {
    if (own || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    veil.hidden = false;
  });
  document.addEventListener("dragleave", ({ relatedTarget }) => {
    if (relatedTarget === null) veil.hidden = true;
  });
  document.addEventListener("drop", (event) => {
    veil.hidden = true;
    const [file] = event.dataTransfer?.files ?? [];
    if (own || !file) return;
    event.preventDefault();
    take(app, file);
  });
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData?.files ?? []];
    const file = files.find(({ type }) => type.startsWith("image/"));
    if (!file || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(app, file);
  });
}

/** A button that lets one choose a picture as a file, to use its settings or edit it. */
export const openButton = (app, label) => fileButton(label, "open-picture",
  (file) => take(app, file));

/** A button that lets one choose a picture as a file; chosen(file) takes it. */
export function fileButton(label, id, chosen) {
  const accept = [...KINDS, ".heic", ".heif"].join(",");
  const input = make("input", "", { type: "file", accept, hidden: "" });
  input.addEventListener("change", () => {
    if (input.files.length) chosen(input.files[0]);
    input.value = "";
  });
  return [button(label, () => input.click(), { id }), input];
}

/** Show a picture on the stage and use its settings, if it has some. */
export async function take(app, file) {
  const problem = problemOf(app, file);
  if (problem) {
    app.toast(problem, { bad: true });
    return;
  }
  const answer = await app.attempt(app.api.upload("restore", file));
  if (!answer) return;
  const edit = button(app.words.stage.edit, () => editFile(app, file), { id: "edit-file" });
  await app.go("create", { file, text: answer.text, actions: [edit] });
  if (answer.settings) adopt(app, answer);
}

/** Why a file cannot be taken; empty if it can. */
export function problemOf({ words, schema, say }, { name, type, size }) {
  const most = schema.limits.upload;
  const taken = KINDS.includes(type) || (!type && ENDING.test(name));
  if (!taken) return say(words.incoming.kind, { name });
  if (size <= most) return "";
  return say(words.incoming.large, { name, size: Math.ceil(size / 2 ** 20), most: most / 2 ** 20 });
}

async function editFile(app, file) {
  const entry = await app.attempt(app.api.upload("history/add", file));
  if (entry) app.go("create", { edit: entry.id, mask: entry.keep_mask });
}
