/** Control: a map or a subject is chosen as a file, and the model draws its picture below it. */

import { button, make } from "./core/elements.js";
import { field, segments } from "./form.js";
import { fileButton, problemOf } from "./incoming.js";
import { pictureUrl } from "./picture_actions.js";

/** The form, folded away until a picture is chosen. */
export function controlForm(app) {
  const { settings, schema } = app;
  const words = app.words.control;
  const kinds = schema.model.controls;
  const choose = fileButton(words.choose, "control-choose", (file) => take(app, file));
  const remove = button(words.remove, () => settings.set({ panel: "" }),
    { class: "button plain", id: "control-remove" });
  const picture = make("img", "control-picture", { alt: words.picture });
  const kind = segments("control", words.kind, kinds.map(({ name, label, about }) => (
    { value: name, label, title: about })), (control) => settings.set({ control }));
  kind.element.id = "control-kind";
  const subject = make("input", "", { type: "text", id: "control-subject" });
  subject.addEventListener("input", () => settings.set({ subject: subject.value }));
  const shows = field(words.subject, subject, words.subjectHint);
  const element = make("details", "more", { id: "control" }, [
    make("summary", "", {}, [words.title]),
    make("div", "stack", {}, [make("p", "hint small", {}, [words.hint]), picture,
      make("div", "row", {}, [...choose, remove]), kind.element, shows])]);
  settings.watch((values, names) => {
    const { panel } = values;
    const control = values.control || kinds[0].name;
    if (names.includes("panel") && panel) {
      element.open = true;
      picture.src = pictureUrl(panel);
    }
    picture.hidden = remove.hidden = !panel;
    kind.set(control);
    shows.hidden = control !== "subject";
    if (subject.value !== values.subject) subject.value = values.subject;
  });
  return element;
}

/** Put the file into the history, and draw below it from now on. */
async function take(app, file) {
  const problem = problemOf(app, file);
  if (problem) {
    app.toast(problem, { bad: true });
    return;
  }
  const entry = await app.attempt(app.api.upload("history/add", file));
  if (!entry) return;
  const control = app.settings.get("control") || app.schema.model.controls[0].name;
  app.settings.set({ panel: entry.id, control });
}
