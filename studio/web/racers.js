/** The form of a race: two to six racers, and rows by another setting. */

import { button, make, setText } from "./core/elements.js";
import { check, field, select } from "./form.js";
import { keep, recall } from "./kept.js";
import { areValues, firstValues, picturesOf, sentValues, valuesIn } from "./lineup.js";

const LEAST = 2;

export class Racers {
  /** changed(): called after every change of the line-up. */
  constructor(app, changed) {
    Object.assign(this, { app, words: app.words.race });
    this.changed = () => {
      this.#count();
      changed();
    };
    this.setting = "";
    this.racers = this.#known(recall("racers", []));
    this.list = make("ul", "stack racers");
    this.add = button(this.words.add, () => this.#set([...this.racers, this.#next()]));
    this.all = button(this.words.allQualities,
      () => this.#set(app.schema.qualities.map(({ name }) => name)));
    this.element = make("section", "stack racers-form", {}, [
      make("h2", "", {}, [this.words.racers]), this.list,
      make("div", "row", {}, [this.add, this.all]), this.#rows(), this.#offer()]);
    this.#show();
  }

  /** The line-up as it stands in the form. */
  get lineup() {
    const values = this.setting ? valuesIn(this.setting, this.values.value) : [];
    return { racers: this.racers, setting: values.length ? this.setting : "", values };
  }

  /** The same for the server; null if a value cannot be one, which is then said. */
  sent() {
    const { racers, setting, values } = this.lineup;
    const legal = areValues(setting, values);
    this.values.setCustomValidity(legal ? "" : this.words.notNumbers);
    if (!legal) this.values.reportValidity();
    return legal ? { racers, ...(setting && { setting, values: sentValues(setting, values) }) }
      : null;
  }

  /** With rows a single racer is enough. */
  get #least() {
    return this.setting ? 1 : LEAST;
  }

  /** Those racers that there are; with fewer than two the usual ones. */
  #known(names) {
    const { usual, methods } = racerOptions(this.app);
    const known = names.filter((name) => [...usual, ...methods].some(
      ({ value }) => value === name));
    const { schema } = this.app;
    return known.length >= LEAST ? known.slice(0, schema.limits.racers)
      : [schema.qualities[0].name, schema.as_chosen];
  }

  #set(racers) {
    this.racers = racers;
    keep("racers", racers);
    this.#show();
    this.changed();
  }

  /** What can race: with the switch, or once a method races, single methods, too. */
  get options() {
    const { usual, methods } = racerOptions(this.app);
    const named = this.racers.some((name) => methods.some(({ value }) => value === name));
    return this.methods || named ? [...usual, ...methods] : usual;
  }

  #offer() {
    const { box, element } = check(this.words.methods, this.methods, (on) => {
      this.methods = on;
      keep("race-methods", on);
      this.#show();
    });
    box.id = "race-methods";
    element.title = this.words.methodsHint;
    return element;
  }

  methods = recall("race-methods", false);

  /** How many pictures that makes. */
  #count() {
    const { racers, values } = this.lineup;
    setText(this.sum, values.length ? this.app.say(this.words.sum, { racers: racers.length,
      values: values.length, count: picturesOf(this.lineup) }) : "");
  }

  /** A racer that does not race yet, if there is one. */
  #next() {
    const free = this.options.find(({ value }) => !this.racers.includes(value));
    return (free ?? this.options[0]).value;
  }

  #show() {
    this.list.replaceChildren(...this.racers.map((name, n) => this.#racer(name, n)));
    this.add.hidden = this.racers.length >= this.app.schema.limits.racers;
  }

  #racer(name, n) {
    const { options } = this;
    const choice = select(options,
      (value) => this.#set(this.racers.with(n, value)));
    choice.set(name);
    choice.element.setAttribute("aria-label", this.app.say(this.words.racer, { number: n + 1 }));
    const out = button("×", () => {
      this.#set(this.racers.toSpliced(n, 1));
      this.list.querySelectorAll("select")[Math.min(n, this.racers.length - 1)].focus();
    });
    out.className = "button plain icon";
    out.setAttribute("aria-label", this.app.say(this.words.remove, { number: n + 1 }));
    out.disabled = this.racers.length <= this.#least;
    return make("li", "row racer", {}, [choice.element, out]);
  }

  /** The setting by which there are rows, and its values. */
  #rows() {
    const { words } = this;
    const choice = select([{ value: "", label: words.noRows },
      ...this.app.schema.rows.map((value) => ({ value, label: words[value] }))],
    (setting) => this.#by(setting));
    choice.element.id = "race-rows";
    this.values = make("textarea", "", { id: "race-values", rows: "1" });
    this.values.addEventListener("input", () => {
      this.values.setCustomValidity("");
      this.changed();
    });
    this.valuesField = field(words.values, this.values);
    this.help = make("span", "help", { id: "race-values-help" });
    this.sum = make("span", "help");
    this.values.setAttribute("aria-describedby", this.help.id);
    this.valuesField.append(this.help, this.sum);
    this.valuesField.hidden = true;
    return make("div", "stack", {}, [field(words.rows, choice.element, words.rowsHelp),
      this.valuesField]);
  }

  #by(setting) {
    this.setting = setting;
    this.valuesField.hidden = setting === "";
    this.values.value = setting && firstValues(setting, this.app.settings.values);
    this.values.rows = setting === "prompt" ? 4 : 1;
    this.help.textContent = this.words[setting === "prompt" ? "promptValues" : "numberValues"];
    while (this.racers.length < this.#least) this.racers = [...this.racers, this.#next()];
    this.#set(this.racers);
  }
}

/** [{value, label}] of all that can race: settings as they are and qualities; single methods. */
function racerOptions({ schema, words }) {
  const reference = schema.qualities[0].settings.method;
  const named = (list) => list.map(({ name, label }) => ({ value: name, label }));
  return { usual: [{ value: schema.as_chosen, label: words.race.asChosen },
    ...named(schema.qualities)],
  methods: named(schema.methods.filter(({ name }) => name !== reference)) };
}
