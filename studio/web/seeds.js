/** The place where the tops of many seeds are drawn, and those that one likes are finished. */

import { barLine, columnsFor, isActive, isPaused, shownJobs, totals } from "./batch.js";
import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { keep, recall } from "./kept.js";
import { SeedForm } from "./seed_form.js";
import { SeedTile } from "./seed_tile.js";
import { savesRecipe } from "./seed.js";
import { openLarge } from "./run_tile.js";
import { pictureUrl } from "./picture_actions.js";
import { sizeOf } from "./uses.js";

const PADDING = 16; // px around the grid

export function mount(section, app) {
  for (const name of ["tiles.css", "seeds.css"]) {
    addStyleSheet(new URL(name, import.meta.url).href);
  }
  const seeds = new Seeds(section, app);
  return { shown: (value) => value?.like && seeds.form.like(value.like) };
}

class Seeds {
  #tiles = []; // SeedTiles in the order of their seeds
  #jobs = []; // the job that each shows
  #followed = new Set(); // ids of jobs
  #ticked = new Set(recall("ticked", [], { ofTab: true })); // ids of jobs to finish

  constructor(section, app) {
    Object.assign(this, { app, words: app.words.seeds });
    this.form = new SeedForm(app, {
      paused: () => this.#jobs.filter(isPaused).length,
      changed: () => this.#lineUp(),
    });
    this.grid = make("ul", "seed-grid", { id: "seeds-grid", "aria-label": this.words.grid });
    section.append(make("div", "sided seeds", {}, [
      make("aside", "side stack", { "aria-label": this.words.panel }, [
        make("h1", "unseen", {}, [app.words.places.seeds]), this.form.element]),
      make("section", "sided-stage", { "aria-label": this.words.grid }, [this.grid, this.#bar()]),
    ]));
    new ResizeObserver(() => this.#size()).observe(this.grid);
    app.jobs.watch((jobs) => this.#look(jobs));
    app.settings.watch((values, names) => {
      if (names.includes("seed") || names.includes("size")) this.#lineUp();
    });
  }

  #bar() {
    const { words } = this;
    this.line = make("p", "grow", { role: "status", id: "seeds-status" });
    this.all = button(words.all, () => this.#tickAll(), { id: "seeds-all" });
    this.finish = button("", () => this.#finish(), { class: "button main", id: "seeds-finish" });
    this.bar = make("div", "row seed-bar", { hidden: "" }, [this.line, this.all, this.finish]);
    return this.bar;
  }

  /** Before anything is drawn: the frames that will be filled. */
  #lineUp() {
    if (this.#jobs.length) return;
    this.#clear();
    this.bar.hidden = true;
    this.grid.classList.add("idle");
    for (const seed of this.form.seeds) {
      const tile = new SeedTile(this.app, seed, {});
      tile.crop(this.form.share);
      this.#tiles.push(tile);
      this.grid.append(tile.element);
    }
    this.#size();
  }

  /** As many columns as make the tiles largest. */
  #size() {
    const { clientWidth, clientHeight } = this.grid;
    if (clientWidth === 0) return;
    const [width, height] = sizeOf(this.app);
    const box = { width: clientWidth - 2 * PADDING, height: clientHeight - 2 * PADDING };
    const columns = columnsFor(this.#tiles.length, box, this.form.share * height / width);
    this.grid.style.setProperty("--columns", String(columns));
  }

  #clear() {
    this.#tiles.forEach((tile) => tile.dispose());
    this.#tiles = [];
  }

  /** The jobs have changed. */
  #look(jobs) {
    const shown = shownJobs(jobs);
    if (shown.length === 0) {
      if (this.#jobs.length && !this.form.starting) this.app.toast(this.words.lostAll);
      if (this.#jobs.length) this.#empty();
      return;
    }
    if (this.#jobs.length === 0) this.#clear();
    this.#jobs = shown;
    this.grid.classList.remove("idle");
    this.bar.hidden = false;
    this.#arrange();
    this.#size();
    for (const { id } of shown) this.#follow(id);
    this.#tell();
  }

  #empty() {
    this.#jobs = [];
    this.#lineUp();
    this.form.show([]);
  }

  /** A tile for each job: those there are go on. */
  #arrange() {
    const before = this.#tiles;
    this.#tiles = this.#jobs.map((job) => before.find((tile) => tile.seed === job.seed
      && tile.fits(job)) ?? new SeedTile(this.app, job.seed, this.#actions(job.seed)));
    before.filter((tile) => !this.#tiles.includes(tile)).forEach((tile) => tile.dispose());
    this.#tiles.forEach((tile, n) => {
      tile.show(this.#jobs[n], this.form.share, this.#ticked.has(this.#jobs[n].id));
      if (this.grid.children[n] !== tile.element) {
        this.grid.insertBefore(tile.element, this.grid.children[n] ?? null);
      }
    });
  }

  #actions(seed) {
    return { tick: (on) => this.#tick(this.#jobOf(seed).id, on), open: () => this.#open(seed) };
  }

  #jobOf(seed) {
    return this.#jobs.find((job) => job.seed === seed);
  }

  #follow(id) {
    if (this.#followed.has(id)) return;
    this.#followed.add(id);
    this.app.jobs.follow(id,
      (entry) => this.#tiles.find((tile) => tile.job?.id === id)?.take(entry));
  }

  // Ticks

  #tick(id, on) {
    if (on) this.#ticked.add(id);
    else this.#ticked.delete(id);
    this.#ticksChanged();
  }

  /** Tick all paused ones; if they are, none. */
  #tickAll() {
    const paused = this.#jobs.filter(isPaused).map(({ id }) => id);
    const all = paused.every((id) => this.#ticked.has(id));
    this.#ticked = new Set(all ? [] : paused);
    this.#ticksChanged();
  }

  #ticksChanged() {
    keep("ticked", [...this.#ticked], { ofTab: true });
    this.#arrange();
    this.#tell();
  }

  /** The line of the bar, and which of its buttons do something. */
  #tell() {
    const { app, words } = this;
    const sum = totals(this.#jobs, this.#ticked);
    setText(this.line, barLine(sum, words));
    setText(this.finish, sum.ticked ? app.say(words.finishCount, { count: sum.ticked })
      : words.finish);
    this.finish.disabled = sum.ticked === 0;
    this.bar.classList.toggle("next", sum.paused > 0 && sum.active === 0);
    this.all.hidden = sum.paused === 0;
    setText(this.all, sum.ticked && sum.ticked === sum.paused ? words.none : words.all);
    this.form.show(this.#jobs.filter(isActive));
  }

  async #finish() {
    const { app } = this;
    const jobs = this.#jobs.filter((job) => isPaused(job) && this.#ticked.has(job.id))
      .map(({ id }) => id);
    const done = await app.attempt(
      app.jobs.submit("seeds/finish", { jobs, metadata: savesRecipe() }));
    if (done === null) return app.jobs.refresh();
    this.#ticked = new Set([...this.#ticked].filter((id) => !jobs.includes(id)));
    this.#ticksChanged();
  }

  /** Show a finished picture in large; the others are beside it. */
  #open(seed) {
    const saved = this.#jobs.filter((job) => job.saved.length);
    const pictures = saved.map((job) => ({ src: pictureUrl(job.saved[0].id),
      label: this.app.say(this.words.seed, { seed: job.seed }) }));
    openLarge(this.app, pictures, saved.findIndex((job) => job.seed === seed));
  }
}
