/** Native controls built from the schema: one for each kind of knob, bound to the settings. */

import { button, make } from "./core/elements.js";
import { say } from "./core/strings.js";
import { sign } from "./icons.js";

let count = 0; // of controls, for the ids of their labels

/** A label, a control and its help. */
export function field(label, control, help = "") {
  count += 1;
  control.id ||= `field-${count}`;
  const parts = [make("label", "", { for: control.id }, [label]), control];
  if (help) {
    const line = make("span", "help", { id: `${control.id}-help` }, [help]);
    control.setAttribute("aria-describedby", line.id);
    parts.push(line);
  }
  return make("div", "field", {}, parts);
}

/** Say below a field what is wrong with what was typed there; "": nothing is. */
export function complain(input, line) {
  const place = input.closest(".pair") ?? input.closest(".field");
  place.querySelector(":scope > .bad")?.remove();
  if (line) place.append(make("p", "small bad", { role: "alert" }, [line]));
}

/**
 * Let a field take numbers from its least to its most: of others the nearest, if one is, and it
 * says so. take(number), or take(empty) of a field that was emptied; show(): what holds now.
 */
export function takeNumbers(input, words, empty, take, show) {
  input.addEventListener("change", () => {
    const { min: low, max: high, step, value, validity: { valid, badInput } } = input;
    if (value !== "") input.value = String(Math.min(Math.max(value, low), high));
    if (value === "" && !badInput) take(empty);
    else if (value !== "" && input.validity.valid) take(Number(input.value));
    show();
    complain(input, valid ? "" : say(step === "1" ? words.whole : words.numbers, { low, high }));
  });
}

/** A tick with its label. */
export function check(label, on, change) {
  const box = make("input", "", { type: "checkbox" });
  box.checked = on;
  box.addEventListener("change", () => change(box.checked));
  return { box, element: make("label", "check", {}, [box, make("span", "", {}, [label])]) };
}

/** A button that stops runs; the second click of two would stop the next run. */
export function stopButton(app, id, stop) {
  return button(sign("stop", app.words.create.stop), ({ detail }) => detail < 2 && stop(),
    { class: "button danger", id, disabled: "" });
}

/** Let a button do something or nothing; the focus does not stay on one that does nothing. */
export function enable(button, on, otherwise) {
  if (!on && document.activeElement === button) otherwise.focus();
  button.disabled = !on;
}

/** A bar of radio buttons. options: [{value, label, title}]; label: a text, or elements. */
export function segments(name, label, options, change) {
  count += 1;
  const group = `${name}-${count}`;
  const inputs = options.map(({ value }) => {
    const input = make("input", "", { type: "radio", name: group, value: String(value) });
    input.addEventListener("change", () => input.checked && change(value));
    return input;
  });
  const labels = options.map(({ label: text, title = "" }, i) => make("label", "", { title },
    [inputs[i], ...[text].flat()]));
  const element = make("div", "segments", { role: "radiogroup", "aria-label": label }, labels);
  const set = (value) => inputs.forEach((input, i) => {
    input.checked = options[i].value === value;
  });
  return { element, set, inputs };
}

/** A select. options: [{value, label}]. */
export function select(options, change) {
  const element = make("select", "", {}, options.map(({ value, label }) => make("option", "",
    { value: String(value) }, [label])));
  element.addEventListener("change", () => change(options[element.selectedIndex].value));
  const set = (value) => {
    element.selectedIndex = options.findIndex((option) => option.value === value);
  };
  return { element, set };
}

/**
 * The control of a knob of the schema, bound to the settings. Returns its element.
 * words.own: what the choice of the model or the method is called.
 */
export function knobControl(knob, settings, words) {
  const build = { bool: boolKnob, choice: choiceKnob, text: textKnob }[knob.kind] ?? numberKnob;
  const element = build(knob, settings, words);
  element.dataset.knob = knob.name;
  return element;
}

function bind(settings, name, show) {
  settings.watch((values, names) => names.includes(name) && show(values[name]));
}

function boolKnob(knob, settings) {
  const { box, element } = check(knob.label, false, (on) => settings.set({ [knob.name]: on }));
  bind(settings, knob.name, (on) => { box.checked = on; });
  element.title = knob.help;
  return element;
}

function choiceKnob(knob, settings) {
  const options = knob.choices.map((value) => ({ value, label: String(value) }));
  const { element, set } = select(options, (value) => settings.set({ [knob.name]: value }));
  bind(settings, knob.name, set);
  return field(knob.label, element, knob.help);
}

function textKnob(knob, settings) {
  const input = make("input", "", { type: "text" });
  input.addEventListener("change", () => settings.set({ [knob.name]: input.value }));
  bind(settings, knob.name, (value) => { input.value = value; });
  return field(knob.label, input, knob.help);
}

/** A number; empty leaves it to the method or the model, where the knob allows that. */
function numberKnob(knob, settings, words) {
  const input = make("input", "", { type: "number", step: knob.kind === "int" ? "1" : "any" });
  input.min = String(knob.low);
  input.max = String(knob.high ?? Number.MAX_SAFE_INTEGER);
  if (knob.optional) input.placeholder = words.own;
  const help = [knob.help, knob.range].filter(Boolean).join(" ");
  const element = field(knob.label, input, help);
  const show = (value) => {
    input.value = value === null ? "" : String(value);
    complain(input, "");
  };
  bind(settings, knob.name, show);
  takeNumbers(input, words, knob.optional ? null : knob.default,
    (value) => settings.set({ [knob.name]: value }), () => show(settings.get(knob.name)));
  return element;
}
