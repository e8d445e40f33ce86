/** The place where one draws: prompt and settings at the left, the stage and the last pictures. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { controls, plan } from "./controls.js";
import { enable, stopButton } from "./form.js";
import { recall } from "./kept.js";
import { promptArea } from "./prompt.js";
import { rememberPrompt } from "./recent.js";
import { savesRecipe, withSeed } from "./seed.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

export function mount(section, app) {
  addStyleSheet(new URL("create.css", import.meta.url).href);
  return new Create(section, app);
}

/** The place of the form of Control, for a model that draws below another picture. */
function controlPlace(app) {
  if (app.schema.model.controls.length === 0) return [];
  const place = make("div", "");
  import("./control.js").then(({ controlForm }) => place.replaceWith(controlForm(app)));
  return [place];
}

class Create {
  constructor(section, app) {
    this.app = app;
    this.words = app.words.create;
    app.draw = (changes) => this.draw(changes);
    app.strip = this.strip = new Strip(app, (entry) => this.stage.showPicture(entry));
    this.stage = new Stage(app);
    this.stage.onSaved = () => this.strip.refresh();
    app.slots = { apply: make("span", "slot"), words: make("span", "slot"),
      line: this.stage.own }; // where the picture on the stage has its own controls
    const prompt = promptArea(app, make("div", "stack asking", {}, [this.#buttons(),
      make("div", "row planned", {}, [plan(app), app.slots.words])]));
    section.append(make("div", "create", {}, [
      make("aside", "panel stack", { "aria-label": this.words.panel },
        [prompt, controls(app, controlPlace(app))]),
      make("h1", "unseen", {}, [app.words.places.create]),
      make("div", "stage-side", {}, [this.stage.element, this.strip.element]),
    ]));
    setTimeout(() => { // once the page can be used
      this.strip.refresh();
      this.#goOn();
      import("./sketch.js").then(({ Sketch }) => new Sketch(app, this.stage));
      import("./run_view.js"); // so that the first run is shown at once
      addStyleSheet();
    });
  }

  /** After a reload the stage shows the same picture, with what was painted. */
  async #goOn() {
    const shown = recall("shown", null, { ofTab: true });
    if (!shown) return;
    await this.app.jobs.refresh();
    if (this.app.jobs.running) return; // it is shown
    this.stage.open(shown.edit, { ...shown, take: false });
  }

  #buttons() {
    const { words, app } = this;
    const draw = button(words.draw, () => this.draw(),
      { class: "button main grow", id: "draw", title: MAC ? "⌘ + Enter" : "Ctrl + Enter" });
    const stop = stopButton(app, "stop", () => app.attempt(
      app.jobs.stop(app.jobs.running)));
    const label = () => {
      const shows = app.slots.apply.hasChildNodes(); // a picture that can be changed
      setText(draw, words[this.#asked !== null ? "drawRest" : app.jobs.active.length ? "drawNext"
        : shows ? "drawNew" : "draw"]);
    };
    new MutationObserver(label).observe(app.slots.apply, { childList: true });
    app.jobs.watch(() => {
      const { running, asking } = app.jobs;
      enable(stop, running !== null || asking, draw);
      stop.title = app.words.stops[running?.kind] ?? words.stopHint;
      label();
    });
    app.settings.watch((_, names) => {
      if (names.includes("prompt")) this.#asked = null;
      label();
    });
    this.label = label;
    return make("div", "row buttons", {}, [app.slots.apply, draw, stop]);
  }

  /**
   * Ask for a picture, below another one if that was chosen; while another run goes on, it waits
   * its turn.
   */
  async draw(changes = {}) {
    const { app } = this;
    const busy = app.jobs.active.length > 0;
    const takeBack = busy ? () => {} : this.stage.asked({ ...app.settings.values, ...changes });
    const job = await app.jobs.ask(async (isDropped) => {
      if (!await this.#isSaid(changes.prompt ?? app.settings.get("prompt"))) return null;
      if (isDropped()) return null;
      return withSeed(app, (settings) => app.jobs.submit(settings.panel ? "control" : "draw",
        { settings, metadata: savesRecipe() }, isDropped), changes);
    });
    if (job === null) {
      takeBack();
      return null;
    }
    rememberPrompt(job.settings?.prompt ?? "");
    if (busy) app.toast(app.words.queue.added);
    this.stage.follow(job);
    this.stage.element.scrollIntoView({ block: "nearest" });
    return job;
  }

  #reading = null; // the question what a prompt asks for that cannot be drawn
  #asked = null; // the prompt of which one was asked whether to draw the rest alone

  /**
   * Whether to draw now. With a thing that cannot be drawn the first press of Draw asks, and the
   * next one answers: the rest is drawn alone.
   */
  async #isSaid(prompt) {
    const { planner, settings } = this.app;
    const answers = this.#asked === prompt;
    const isRead = () => planner.answer?.settings?.prompt === prompt.trim();
    for (let tries = 0; tries < 3 && !isRead(); tries += 1) { // other settings may come between
      this.#reading ??= planner.ask().finally(() => { this.#reading = null; });
      await this.#reading;
    }
    const rest = isRead() && planner.answer.notes.find(({ kind }) => kind === "cannot");
    if (!rest) return true;
    if (answers) settings.set({ prompt: rest.without });
    else if (settings.get("prompt") === prompt) this.#asked = prompt;
    this.label();
    return answers;
  }

  /**
   * value: {edit: id of a picture, ...options of its surface}, {redo: id of one}, or {file, text,
   * actions} as in `Stage.showFile`; {fresh}: follow the next run.
   */
  shown(value) {
    if (value?.edit) this.stage.open(value.edit, value);
    if (value?.redo) this.stage.open(value.redo, { tool: "rows" });
    if (value?.file) this.stage.showFile(value.file, value.text, value.actions);
    if (value?.fresh) this.stage.follow();
  }
}
