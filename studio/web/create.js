/** The place where one draws: prompt and settings at the left, the stage and the last pictures. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { controls } from "./controls.js";
import { enable, stopButton } from "./form.js";
import { recall } from "./kept.js";
import { promptArea } from "./prompt.js";
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
    this.prompt = promptArea(app, this.#buttons());
    section.append(make("div", "create", {}, [
      make("aside", "panel stack", { "aria-label": this.words.panel },
        [this.prompt.element, controls(app), ...controlPlace(app)]),
      make("h1", "unseen", {}, [app.words.places.create]),
      make("div", "stage-side", {}, [this.stage.element, this.strip.element]),
    ]));
    setTimeout(() => { // once the page can be used
      this.strip.refresh();
      this.#goOn();
      import("./sketch.js").then(({ Sketch }) => new Sketch(app, this.stage));
    });
  }

  /** After a reload the stage shows the same picture, with what was painted. */
  async #goOn() {
    const shown = recall("shown", null, { ofTab: true });
    if (!shown) return;
    await this.app.jobs.refresh();
    if (this.app.jobs.running) return; // it is shown
    this.stage.open(shown.edit, shown);
  }

  #buttons() {
    const { words, app } = this;
    const draw = button(words.draw, () => this.draw(),
      { class: "button main grow", id: "draw", title: MAC ? "⌘ + Enter" : "Ctrl + Enter" });
    const stop = stopButton(app, "stop", () => app.attempt(
      app.jobs.act(app.jobs.running.id, "stop")));
    app.jobs.watch(() => {
      const { running } = app.jobs;
      enable(stop, running !== null, draw);
      stop.title = app.words.stops[running?.kind] ?? words.stopHint;
      setText(draw, app.jobs.active.length ? words.drawNext : words.draw);
    });
    return make("div", "row buttons", {}, [draw, stop]);
  }

  /**
   * Ask for a picture, below another one if that was chosen; while another run goes on, it waits
   * its turn.
   */
  async draw(changes = {}) {
    const { app } = this;
    if (!await this.#isSaid(changes.prompt ?? app.settings.get("prompt"))) return null;
    const busy = app.jobs.active.length > 0;
    const { prompt } = { ...app.settings.values, ...changes };
    const job = await withSeed(app, (settings) => app.jobs.submit(
      settings.panel ? "control" : "draw", { settings, metadata: savesRecipe() }), changes);
    if (job === null) return null;
    this.prompt.drawn(prompt);
    if (busy) app.toast(app.words.queue.added);
    this.stage.follow(job);
    this.stage.element.scrollIntoView({ block: "nearest" });
    return job;
  }

  #reading = null; // the question what a prompt asks for that cannot be drawn

  /** Whether nothing is drawn that was not said before: a thing that cannot be drawn is asked. */
  async #isSaid(prompt) {
    const { planner } = this.app;
    const isRead = () => planner.answer?.settings?.prompt === prompt.trim();
    if (isRead()) return true;
    for (let tries = 0; tries < 3 && !isRead(); tries += 1) { // other settings may come between
      this.#reading ??= planner.ask().finally(() => { this.#reading = null; });
      await this.#reading;
    }
    const asks = isRead() && planner.answer.notes.some(({ kind }) => kind === "cannot");
    if (asks) document.getElementById("draw-without")?.focus();
    return !asks;
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
