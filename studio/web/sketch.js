/**
 * A quick sketch of the next picture in a corner of the stage, drawn whenever the settings rest:
 * by the seed and the words that Draw will use. It gives way to every run, and is never saved.
 */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { check } from "./form.js";
import { isOver } from "./jobs.js";
import { keep, recall } from "./kept.js";
import { pixelMode } from "./pixels.js";

const REST = 400; // ms without a change until a sketch is asked for
const KEPT = "sketch";
const PAINTED = new Set(["rows", "cells"]); // kinds of messages that show something

export class Sketch {
  #timer = null; // until the settings have rested
  #rested = false; // they have, and no sketch of them was asked for yet
  #turn = 0; // counts changes; what was asked for before the last one is not shown
  #job = null; // id of the sketch that is drawn or shown
  #unfollow = () => {};
  #preview = null; // what is shown
  #latest; // id of the job that was asked for last

  constructor(app, stage) {
    Object.assign(this, { app, words: app.words.sketch });
    addStyleSheet(new URL("sketch.css", import.meta.url).href);
    this.element = this.#inset();
    stage.element.append(this.element);
    this.#switch();
    const { qualities, knobs } = app.schema;
    const alike = new Set(["method", "pictures", ...qualities.flatMap(
      ({ settings }) => Object.keys(settings)), ...knobs.filter(({ name, methods }) => (
      methods.length && name !== "seed")).map(({ name }) => name)]);
    let begun = false;
    app.settings.watch((_, names) => {
      if (begun && names.some((name) => !alike.has(name))) this.#changed();
    });
    begun = true;
    app.planner.watch((answer) => this.#planned(answer));
    app.jobs.watch((jobs) => this.#giveWay(jobs.at(-1)?.id));
    addEventListener("pagehide", () => this.#end());
  }

  /** End as soon as a run begins; one may be over before it is seen. */
  #giveWay(latest) {
    if (this.app.jobs.active.length || latest !== this.#latest) this.#end();
    this.#latest = latest;
  }

  #inset() {
    const { app, words } = this;
    const draw = button([], () => app.draw(), { class: "sketch-draw", title: words.hint,
      "aria-label": words.hint });
    this.place = draw;
    return make("aside", "sketch", { id: "sketch", "aria-label": words.name, hidden: "" }, [
      make("div", "row small", {}, [make("span", "label", {}, [words.name]),
        button("×", () => this.#end(), { class: "button plain cross", "aria-label": words.close,
          title: words.close })]), draw]);
  }

  /** The switch among the further settings, with the reason why there are no sketches here. */
  #switch() {
    const { box, element } = check(this.words.while, recall(KEPT, true), (on) => {
      keep(KEPT, on);
      if (on) this.#changed();
      else this.#end();
    });
    box.id = "sketch-on";
    this.box = box;
    this.why = make("p", "hint small", { id: "sketch-why", role: "status" });
    this.why.hidden = true;
    box.setAttribute("aria-describedby", this.why.id);
    document.querySelector("#more > .stack").prepend(make("div", "", {}, [element, this.why]));
  }

  #planned({ sketch }) {
    const problem = sketch?.problem ?? "";
    setText(this.why, problem);
    this.why.hidden = problem === "";
    this.box.disabled = problem !== "";
    this.box.checked = recall(KEPT, true) && problem === "";
    this.#begin();
  }

  #changed() {
    const { app } = this;
    this.#stop();
    clearTimeout(this.#timer);
    if (!recall(KEPT, true)) return;
    this.#timer = setTimeout(() => {
      this.#rested = app.jobs.active.length === 0;
      this.#begin();
    }, REST);
  }

  /** Whether the server has said of the settings as they are that they can be sketched. */
  get #promised() {
    const { planner: { answer }, settings } = this.app;
    const { prompt = "", seed } = answer?.settings ?? {};
    if (prompt === "" || prompt !== settings.get("prompt").trim()) return false;
    return seed === settings.get("seed") && answer.sketch?.problem === null
      && !answer.problem && !answer.notes.some(({ kind }) => ["cannot", "refused"].includes(kind));
  }

  async #begin() {
    const { app } = this;
    if (!this.#rested || !this.#promised || document.hidden
      || app.places.current !== "create") return;
    this.#rested = false;
    const turn = this.#turn;
    const [job, { Preview }] = await Promise.all([
      app.api.post("sketch", { settings: app.settings.values }).catch(() => null),
      import("./core/preview.js")]);
    if (job === null) return;
    if (turn !== this.#turn) this.#forget(job.id);
    else if (job.id !== this.#job) this.#follow(job.id, Preview);
  }

  /** The sketch before stays in sight until the new one has something to show. */
  #follow(id, Preview) {
    const preview = new Preview({ language: this.app.language, smooth: !pixelMode.sharp,
      prompt: this.app.settings.get("prompt") });
    preview.overlay = false;
    for (const part of [preview.bar, preview.aloud, preview.error.element]) part.remove();
    this.#job = id;
    const end = this.app.jobs.follow(id, (entry) => {
      if (!isOver(entry) || entry.state === "done") this.#show(preview, entry.messages);
      this.element.dataset.sketch = entry.state;
    });
    this.#unfollow = () => {
      end();
      if (this.#preview !== preview) preview.dispose();
    };
  }

  #show(preview, messages) {
    for (const message of messages) preview.feed(message);
    if (this.#preview === preview || !messages.some(({ kind }) => PAINTED.has(kind))) return;
    this.#preview?.dispose();
    this.#preview = preview;
    this.place.replaceChildren(preview.element);
    this.element.hidden = false;
  }

  /** What is drawn is of the settings before: it stops; what there is of it stays in sight. */
  #stop() {
    this.#turn += 1;
    this.#rested = false;
    this.#unfollow();
    if (this.#job && this.element.dataset.sketch !== "done") this.#forget(this.#job);
  }

  #forget(id) {
    if (id === this.#job) this.#job = null;
    this.app.api.remove(`jobs/${id}`).catch(() => {}); // it may have given way already
  }

  /** Show no sketch until the next change. */
  #end() {
    clearTimeout(this.#timer);
    this.#stop();
    if (this.#job) this.#forget(this.#job);
    this.#preview?.dispose();
    this.#preview = null;
    this.element.hidden = true;
    delete this.element.dataset.sketch;
  }
}
