/** The place where methods draw the same picture side by side. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { enable, stopButton } from "./form.js";
import { isOver } from "./jobs.js";
import { Racers } from "./racers.js";
import { RaceView, resultParts } from "./race_view.js";
import { savesRecipe, withSeed } from "./seed.js";
import { statusText, timeLeft } from "./status.js";
import { pictureUrl } from "./picture_actions.js";
import { usesLine } from "./uses.js";

export function mount(section, app) {
  for (const name of ["tiles.css", "race.css"]) {
    addStyleSheet(new URL(name, import.meta.url).href);
  }
  return new Race(section, app);
}

class Race {
  #view = null;
  #job = null; // id of the shown race

  constructor(section, app) {
    Object.assign(this, { app, words: app.words.race });
    this.form = new Racers(app, () => {
      this.#lineUp();
      this.#enable();
    });
    this.status = make("p", "small hint grow", { role: "status", id: "race-status" });
    this.result = make("section", "stack race-result", { id: "race-result", hidden: "",
      "aria-label": this.words.result });
    this.body = make("div", "race-body");
    section.append(make("div", "sided race", {}, [
      make("aside", "side stack", { "aria-label": this.words.panel }, [
        make("h1", "unseen", {}, [app.words.places.race]), usesLine(app, ["race"]), this.#buttons(),
        this.result, this.form.element]),
      make("section", "sided-stage", { id: "race-stage", "aria-label": this.words.stage },
        [this.body, this.#foot()]),
    ]));
    app.jobs.watch((jobs) => this.#look(jobs));
    if (this.#view === null) this.#lineUp();
  }

  #buttons() {
    const { words, app } = this;
    this.start = button(words.start, () => this.#begin(),
      { class: "button main grow", id: "race-start" });
    const stop = stopButton(app, "race-stop",
      () => app.attempt(app.jobs.stop(this.#active)));
    app.jobs.watch(() => enable(stop, this.#active !== undefined || app.jobs.asking, this.start));
    app.settings.watch(() => this.#enable());
    return make("div", "row buttons", {}, [this.start, stop]);
  }

  /** A race needs a prompt, its own or those of its rows. */
  #enable() {
    this.start.disabled = this.form.lineup.setting !== "prompt"
      && this.app.settings.get("prompt").trim() === "";
  }

  get #active() {
    return this.app.jobs.active.find(({ id }) => id === this.#job)
      ?? this.app.jobs.active.find(({ kind }) => kind === "race");
  }

  #foot() {
    const { words } = this;
    this.compare = button(words.compare, () => this.#view.compare(),
      { class: "button plain", id: "race-compare" });
    this.sheet = make("a", "button plain", { id: "race-sheet" }, [words.sheet]);
    this.again = button(words.again, () => this.#lineUp(true),
      { class: "button plain", id: "race-again" });
    this.overlay = button(words.overlay, () => this.#overlay(!this.#view.overlay),
      { class: "button plain", id: "race-overlay" });
    this.legend = make("span", "");
    this.foot = make("div", "row race-foot", { hidden: "" }, [this.status, this.legend,
      this.overlay, this.compare, this.sheet, this.again]);
    return this.foot;
  }

  #overlay(on) {
    this.#view.setOverlay(on);
    this.overlay.setAttribute("aria-pressed", String(on));
    this.legend.replaceChildren(this.#view.legend);
    this.legend.hidden = !on;
  }

  /** Show who is going to race, unless a race is shown; anew: also in place of that. */
  #lineUp(anew = false) {
    if (this.#job !== null && !anew) return;
    this.#show(new RaceView(this.app, this.form.lineup));
    this.#job = null;
    this.#dismissed = anew;
    this.#clear();
  }

  #dismissed = false; // the last race was put away

  async #begin() {
    const { app } = this;
    const lineup = this.form.sent();
    if (lineup === null) return;
    const busy = app.jobs.active.length > 0;
    if (!busy) this.#ask();
    const job = await app.jobs.ask((isDropped) => withSeed(app, (settings) => app.jobs.submit(
      "race", { settings, metadata: savesRecipe(), ...lineup }, isDropped)));
    if (job === null) {
      if (!busy && this.#job === null) setText(this.status, "");
      return;
    }
    if (busy) app.toast(app.words.queue.added);
    this.#dismissed = false;
    this.#look(app.jobs.list, job.id);
    this.body.scrollIntoView({ block: "nearest" });
  }

  /** The places of a race that was just asked for. */
  #ask() {
    this.#lineUp(true);
    this.foot.hidden = false;
    setText(this.status, this.app.words.stage.asked);
  }

  /** Show the race that runs, else one that was asked for or is over. */
  #look(jobs, wanted = this.#job) {
    const races = jobs.filter(({ kind }) => kind === "race");
    const shown = races.find(({ state }) => state === "running")
      ?? races.find(({ id }) => id === wanted)
      ?? (this.#dismissed ? undefined : races.findLast(isOver) ?? races[0]);
    if (shown && shown.id !== this.#job) this.#follow(shown);
    if (shown?.id === this.#job && isOver(shown)) this.#tellResult(shown);
  }

  #follow(job) {
    this.#job = job.id;
    this.#clear();
    const lineup = { racers: job.racers, setting: job.setting ?? "",
      values: (job.values ?? []).map(String) };
    this.#show(new RaceView(this.app, lineup, job.id, {
      entry: (entry) => this.#tell(entry),
      ticked: (count) => { this.compare.disabled = count < 2; },
    }));
    this.foot.hidden = false;
    this.#overlay(this.#view.overlay);
  }

  #show(view) {
    this.#view?.dispose();
    this.#view = view;
    this.body.replaceChildren(view.element);
  }

  #clear() {
    this.#shownRace = null;
    this.result.hidden = this.foot.hidden = true;
    for (const tool of [this.compare, this.sheet, this.again]) tool.hidden = true;
    setText(this.status, "");
  }

  #tell(entry) {
    const { stage } = this.app.words;
    const begun = this.#view?.racers.some(({ tile }) => tile.panel?.start) ?? false;
    setText(this.status, entry.state === "cancelled" ? this.#stopped(entry)
      : statusText(entry, stage, begun) || timeLeft(entry, stage));
    this.status.classList.toggle("bad", entry.state === "failed");
  }

  #stopped({ saved }) {
    const { stopped, stoppedEarly } = this.words;
    return saved.length ? this.app.say(stopped, { count: saved.length }) : stoppedEarly;
  }

  #shownRace = null; // the race whose result is shown

  /** The guarantee, a table of what was measured, and what can be done with the pictures. */
  #tellResult({ id, result, saved }) {
    if (this.#shownRace === id) return;
    this.#shownRace = id;
    this.result.hidden = saved.length === 0 || result === null;
    this.again.hidden = false;
    this.compare.hidden = saved.length < 2;
    this.sheet.hidden = !result?.sheet;
    if (result?.sheet) {
      this.sheet.href = pictureUrl(result.sheet);
      this.sheet.download = result.sheet.split("/").at(-1);
    }
    if (!this.result.hidden) {
      this.result.replaceChildren(...resultParts(this.app, this.#view, result, saved));
    }
  }
}
