/** The place of models: those on this machine, and those that can be downloaded. */

import { addStyleSheet, button, make } from "./core/elements.js";
import { sizeText } from "./core/strings.js";
import { DownloadLine, quoteDialog } from "./download.js";
import { check, field, select } from "./form.js";
import { keep, recall } from "./kept.js";
import { Learning } from "./learning.js";

const LINE = "loaded"; // said once the page has been built anew

export function mount(section, app) {
  addStyleSheet(new URL("models.css", import.meta.url).href);
  return new Models(section, app);
}

class Models {
  #asked = 0; // lists so far: what belongs to an earlier one is dropped

  constructor(section, app) {
    Object.assign(this, { app, words: app.words.models });
    const { words } = this;
    this.precision = "auto";
    this.lora = new Map(); // strengths of those that are chosen, by name
    this.loras = make("details", "loras", { id: "loras" });
    this.loras.hidden = true;
    this.here = make("div", "");
    this.folders = make("ul", "small folders");
    this.known = make("div", "stack");
    this.download = new DownloadLine(app, () => this.shown());
    this.learning = app.schema.local ? new Learning(app, () => this.shown()) : null;
    const local = app.schema.local ? [
      make("h2", "", { id: "models-get" }, [words.get]), make("p", "hint", {}, [words.getHint]),
      this.download.element, this.known] : [];
    const line = recall(LINE, null, { ofTab: true });
    keep(LINE, null, { ofTab: true });
    if (line) app.toast(line);
    section.append(make("div", "sheet models", {}, [
      make("h1", "title", {}, [words.title]), make("p", "notice", {}, [words.untested]),
      ...(app.schema.local ? [this.#precision(), this.loras]
        : [make("p", "hint", {}, [words.shared])]),
      this.here, ...(this.learning ? [this.learning.element] : []), make("details", "", {},
        [make("summary", "", {}, [words.folders]), this.folders]), ...local]));
  }

  #precision() {
    const { words, app } = this;
    const precision = select(app.schema.dtypes.map((dtype) => ({ value: dtype, label: dtype })),
      (dtype) => {
        this.precision = dtype;
        this.#askFits();
      });
    precision.element.id = "dtype";
    return make("div", "precision", {},
      [field(words.precision, precision.element, words.precisionHint)]);
  }

  async shown() {
    const list = await this.app.attempt(this.app.api.get("models"));
    if (!list) return;
    this.list = list;
    this.learning?.shown();
    this.here.replaceChildren(this.#tableHere());
    this.folders.replaceChildren(...list.places.map((place) => make("li", "", {}, [place])));
    this.#showLoras(list);
    if (this.app.schema.local) {
      this.known.replaceChildren(...this.#tablesKnown());
      this.download.follow();
    }
    await this.#askFits();
  }

  /** A line for each LoRA here: whether it is merged, and how much of it. */
  #showLoras({ loras, in_use: { lora } }) {
    const { words } = this;
    const names = lora.map(({ name, strength }) => `${name} ${strength}`).join(", ");
    this.loras.hidden = !loras.length;
    this.loras.replaceChildren(
      make("summary", "", {}, [names ? `${words.lora}: ${names}` : words.lora]),
      make("p", "hint", {}, [words.loraHint]), ...loras.map((name) => this.#loraLine(name)));
  }

  #loraLine(name) {
    const strength = make("input", "", { type: "number", min: "-10", max: "10", step: "0.05",
      value: String(this.lora.get(name) ?? 1),
      "aria-label": this.app.say(this.words.strengthOf, { name }) });
    const { box, element } = check(name, this.lora.has(name), take);
    const { lora } = this;
    function take() {
      if (box.checked) lora.set(name, strength.valueAsNumber);
      else lora.delete(name);
    }
    strength.addEventListener("change", take);
    return make("div", "row", { "data-lora": name }, [element, strength]);
  }

  hidden() {
    this.learning?.hidden();
  }

  #tableHere() {
    const { words, list } = this;
    this.fits = new Map();
    const names = ["name", "family", "licence", "heads", "size", "fits"];
    const rows = list.models.map((model) => this.#rowHere(model));
    return table(words.here, [...names.map((name) => words[name]), words.use], rows);
  }

  #rowHere(model) {
    const { words, list, app } = this;
    const used = model.name === list.in_use.name;
    const name = make("th", "", { scope: "row", title: model.path }, [model.name]);
    if (used) name.append(make("span", "small good in-use", {},
      [app.say(words.inUse, { dtype: list.in_use.dtype })]),
    ...this.#measured(list.in_use));
    if (model.problem) {
      return make("tr", "", { "data-model": model.name },
        [name, make("td", "bad", { colspan: "6" }, [model.problem])]);
    }
    const fit = cell(words.fits, [words.looking], "hint fit");
    this.fits.set(fit, model.name);
    return make("tr", used ? "used" : "", { "data-model": model.name }, [name,
      cell(words.family, [model.family]), cell(words.licence, [model.licence || "–"]),
      cell(words.heads, [words[model.heads ? "yes" : "no"]]),
      cell(words.size, [model.bytes ? sizeText(model.bytes) : "–"]), fit,
      make("td", "action", {}, app.schema.local ? [this.#useButton(model.name, used)] : [])]);
  }

  /** What pictures took here: by the qualities, and folded away by all other methods. */
  #measured({ measured, others }) {
    const line = (text) => make("span", "small parts", {}, [text]);
    const fold = make("details", "small known", { id: "other-methods" }, [make("summary", "", {},
      [this.app.say(this.words.otherMethods, { count: others.length })]), ...others.map(line)]);
    return [...measured.map(line), ...(others.length ? [fold] : [])];
  }

  /** used: whether the model is in use; it can be loaded again, in another precision. */
  #useButton(name, used) {
    const { words, app } = this;
    const use = button(used ? words.reload : words.use, () => this.#use(name, use),
      { "data-use": name,
        "aria-label": app.say(words[used ? "reloadNamed" : "useNamed"], { name }) });
    return use;
  }

  /** What each model in sight would take with the settings of Create, one after the other. */
  async #askFits() {
    this.#asked += 1;
    const asked = this.#asked;
    for (const [element, name] of this.fits) {
      if (!element.checkVisibility()) continue;
      const { advice, parts, time } = await this.app.api.post("models/fit", { name,
        dtype: this.precision, settings: this.app.settings.values })
        .catch(({ message }) => ({ advice: message, parts: "", time: "" }));
      if (asked !== this.#asked) return;
      const here = this.list.models.some((model) => model.name === name);
      element.replaceChildren(advice, make("span", "small parts", {}, [here ? parts : time]));
    }
  }

  /** Load a model; then the whole page is built anew, because its forms are the model's. */
  async #use(name, button) {
    const { app, words } = this;
    button.disabled = true;
    const lora = [...this.lora].map(([file, strength]) => `${file}:${strength}`);
    const job = await app.attempt(app.jobs.submit("models/use", { name, dtype: this.precision,
      lora }));
    if (!job) {
      button.disabled = false;
      return;
    }
    this.#asked += 1; // while a model is being loaded, nothing can be told about others
    app.toast(app.say(words.loading, { name }));
    const ended = await app.jobs.ended(job.id);
    button.disabled = false;
    if (ended?.state === "done") {
      this.#loaded(ended.result);
      return;
    }
    if (ended?.error) app.toast(ended.error, { bad: true });
    await this.#askFits();
  }

  #loaded({ name, heads, problem, sizes, settings }) {
    const { app, words } = this;
    const size = app.settings.get("size");
    const own = app.settings.defaults.size;
    app.settings.set({ ...settings, size: sizes.includes(size) ? size : own });
    const line = problem ?? app.say(words[heads ? "loaded" : "noHeads"], { name });
    if (app.places.current === "models") reload(line);
    else app.toast(line, { action: { label: words.reload, run: () => location.reload() } });
  }

  /** The recommended ones, and all others folded away until they are asked for. */
  #tablesKnown() {
    const { words, list, app } = this;
    const [best, others] = [true, false].map(
      (wanted) => list.known.filter(({ why }) => wanted === (why !== "")));
    const fold = make("details", "", { id: "models-others" }, [make("summary", "", {},
      [app.say(words.others, { count: others.length })]), this.#tableKnown(words.others, others)]);
    fold.open = this.unfolded ?? false;
    fold.addEventListener("toggle", () => {
      this.unfolded = fold.open;
      if (fold.open) this.#askFits();
    });
    return [make("h3", "", {}, [words.recommended]),
      this.#tableKnown(words.recommended, best), fold];
  }

  #tableKnown(name, models) {
    const { words } = this;
    return table(name, [words.name, words.licence, words.restricts, words.size, words.onThis,
      words.fetch], models.map((model) => this.#rowKnown(model)));
  }

  #rowKnown(model) {
    const { words, list, app } = this;
    const ask = button(words.ask, () => this.#ask(model, ask),
      { "data-ask": model.name, "aria-label": app.say(words.askNamed, { name: model.title }) });
    const fit = cell(words.onThis, [words.looking], "fit");
    this.fits.set(fit, model.name);
    return make("tr", "", { "data-known": model.name }, [
      make("th", "", { scope: "row" }, [model.title,
        make("span", "small parts", {}, [model.why || model.note]), this.#known(model)]),
      cell(words.licence, [link(model.licence)]),
      cell(words.restricts, [model.licence.restricts]),
      cell(words.size, [model.bytes ? app.say(words.about, { size: sizeText(model.bytes) })
        : words.unknown]), fit,
      make("td", "action", {}, [list.models.some(({ name }) => name === model.name)
        ? words.have : ask])]);
  }

  /** What its authors and users report, folded away. */
  #known({ name, sizes, prompts, weak, sources }) {
    const { words } = this;
    const lines = [[words.sizes, [sizes]], [words.prompts, [prompts]], [words.weak, [weak]],
      [words.sources, sources.flatMap((source, n) => [n ? ", " : "", link(source)])]];
    return make("details", "small known", { id: `known-${name}` }, [
      make("summary", "", {}, [words.known]), make("dl", "hint", {}, lines.flatMap(
        ([term, facts]) => [make("dt", "", {}, [term]), make("dd", "", {}, facts)]))]);
  }

  async #ask(model, button) {
    button.disabled = true;
    const quote = await this.app.attempt(this.app.api.post("models/quote", { name: model.name }));
    button.disabled = false;
    if (quote) quoteDialog(this.app, model, quote, () => this.download.start(quote));
  }
}

/** A table whose headings stay with their cells on a phone, too. */
function table(name, heads, rows) {
  return make("table", "wide", { "aria-label": name }, [
    make("thead", "", {}, [make("tr", "", {},
      heads.map((head) => make("th", "", { scope: "col" }, [head])))]),
    make("tbody", "", {}, rows)]);
}

const cell = (head, children, className = "") => make("td", className,
  { "data-head": head }, children);

const link = ({ name, link: href }) => make("a", "", { href, target: "_blank",
  rel: "noreferrer" }, [name]);

/** Build the page anew; it then says this line. */
function reload(line) {
  keep(LINE, line, { ofTab: true });
  location.reload();
}
