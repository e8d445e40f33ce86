/** Everything beside the prompt that decides how a picture is drawn. */

import { button, make, setText } from "./core/elements.js";
import { say } from "./core/strings.js";
import { check, complain, field, knobControl, segments, select, takeNumbers } from "./form.js";
import { keep, recall } from "./kept.js";
import { recipeSwitch, seedField } from "./seed.js";

const OPEN = "settings-open";

/** All controls, folded away below one line that tells what is set; more: further elements. */
export function controls(app, further) {
  const said = make("span", "hint", { id: "settings-said" });
  const fold = make("details", "controls", { id: "settings" }, [
    make("summary", "", {}, [app.words.create.settings, " ", said]), make("div", "stack", {},
      [quality(app), shape(app), seedField(app), ...further, more(app)])]);
  fold.open = recall(OPEN, false);
  fold.addEventListener("toggle", () => keep(OPEN, fold.open));
  const tell = () => setText(said, told(app));
  app.settings.watch(tell);
  app.planner.watch(tell);
  return fold;
}

/** "Faithful, 768 × 768, seed 4711". */
function told({ schema, settings: { values }, planner, words }) {
  const { quality } = planner.answer ?? {};
  const named = schema.qualities.find(({ name }) => name === quality)?.label;
  const label = named ?? (planner.answer && words.create.custom);
  const size = (values.size ?? schema.model.sizes[0] ?? "").replace("x", " × ");
  const count = values.pictures > 1 ? `× ${values.pictures}` : "";
  return [label, size, count, say(words.stage.seed, values)].filter(Boolean).join(", ");
}

/** Faithful, Balanced, Fast: each makes a few settings. The reference is there to compare with. */
function quality(app) {
  const { schema, settings, words } = app;
  const options = schema.qualities.filter(({ compares }) => !compares).map(
    ({ name, label, about }) => ({ value: name, label, title: about }));
  const bar = segments("quality", words.create.quality, options, (name) => settings.set(
    schema.qualities.find((choice) => choice.name === name).settings));
  bar.element.id = "quality";
  const about = make("p", "hint small", { id: "quality-about" });
  app.planner.watch((answer) => {
    if (answer.quality === undefined) return; // refused: it is as it was
    bar.set(answer.quality);
    setText(about, answer.about ?? "");
  });
  return make("div", "field", {},
    [make("span", "label", {}, [words.create.quality]), bar.element, about]);
}

/** What the run will take, or why it cannot be started. */
export function plan(app) {
  const line = make("p", "small plan", { id: "plan", role: "status" });
  app.planner.watch((answer) => {
    setText(line, answer ? answer.problem ?? answer.text : "");
    line.title = answer?.step_times ?? "";
    line.classList.toggle("bad", Boolean(answer?.problem));
  });
  return line;
}

function shape(app) {
  const { schema, settings, words } = app;
  const sizes = [{ value: schema.settings.size, label: words.create.ownSize },
    ...schema.model.sizes.map((size) => ({ value: size, label: size.replace("x", " × ") }))];
  const size = select(sizes, (value) => settings.set({ size: value }));
  size.element.id = "size";
  const count = make("input", "", { type: "number", id: "pictures", min: "1",
    max: String(schema.limits.pictures), step: "1" });
  takeNumbers(count, words.common, schema.settings.pictures,
    (pictures) => settings.set({ pictures }), () => { count.value = settings.get("pictures"); });
  const element = make("div", "pair", {}, [field(words.create.size, size.element),
    field(words.create.pictures, count)]);
  settings.watch((values, names) => {
    size.set(values.size);
    count.value = values.pictures;
    if (names.includes("pictures")) complain(count, "");
  });
  return element;
}

/** The switch that draws the reference, for a picture to compare with. */
function reference({ schema, settings, words, planner }) {
  const plain = schema.qualities.find(({ compares }) => compares);
  const { method } = schema.settings;
  const otherwise = schema.qualities.find((choice) => choice.settings.method === method);
  const { box, element } = check(words.create.reference, false,
    (on) => settings.set((on ? plain : otherwise).settings));
  box.id = "reference";
  element.title = plain.about;
  planner.watch(({ quality: name }) => {
    if (name !== undefined) box.checked = name === plain.name;
  });
  return element;
}

/** The method with its knobs, sampling, and what is saved. */
function more(app) {
  const { schema, settings, words } = app;
  const method = select(schema.methods.map(({ name, label }) => ({ value: name, label })),
    (value) => settings.set({ method: value }));
  method.element.id = "method";
  const own = schema.knobs.filter((knob) => knob.methods.length && knob.name !== "seed");
  const sampling = schema.knobs.filter((knob) => !knob.methods.length && knob.name !== "seed");
  const controlOf = (knob) => knobControl(knob, settings, words.common);
  const knobs = own.map((knob) => ({ knob, element: controlOf(knob) }));
  settings.watch((values) => {
    method.set(values.method);
    const used = schema.methods.find(({ name }) => name === values.method)?.knobs ?? [];
    for (const { knob, element } of knobs) element.hidden = !used.includes(knob.name);
  });
  const basic = sampling.filter((knob) => knob.basic).map(controlOf);
  const rest = sampling.filter((knob) => !knob.basic).map(controlOf);
  const expert = make("details", "expert", {}, [make("summary", "", {}, [words.create.expert]),
    make("div", "stack", {}, [field(words.create.method, method.element),
      ...knobs.map(({ element }) => element), ...rest])]);
  const reset = button(words.create.reset, () => {
    const { prompt, negative, seed } = settings.values;
    settings.set({ ...schema.settings, prompt, negative, seed });
  }, { class: "button plain small", id: "reset" });
  return make("details", "more", { id: "more" }, [make("summary", "", {}, [words.create.more]),
    make("div", "stack", {}, [...basic, reference(app), recipeSwitch(app), expert, reset])]);
}
