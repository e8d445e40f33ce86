/** The pictures of a race side by side, each with its clock; below them what came of it. */

import { make, setText } from "./core/elements.js";
import { cellsOf, extremes } from "./lineup.js";
import { Tile, openLarge } from "./run_tile.js";
import { pictureUrl } from "./picture_actions.js";
import { qualityName, sizeOf } from "./uses.js";

const LARGEST = 2; // screen pixels for each pixel of the picture
const TWO = 2; // pictures are compared

export class RaceView {
  #ticked = []; // numbers of the pictures to compare, the last one ticked at the end
  #pictures = new Map(); // those that are saved, {src, label}, by number

  /**
   * lineup: {racers, setting, values}. job: of the race, none before it begins.
   * on: entry(entry), for every answer about it; ticked(count) of pictures to compare.
   */
  constructor(app, lineup, job = null, on = {}) {
    Object.assign(this, { app, lineup, job, on, words: app.words.race });
    this.cells = cellsOf(lineup);
    this.racers = this.cells.map(([racer, value], n) => this.#racer(racer, value, n));
    this.element = make("div", "race-grid", { role: "group", "aria-label": this.words.pictures },
      this.#arranged());
    this.element.classList.toggle("with-rows", lineup.values.length > 0);
    this.element.classList.toggle("idle", job === null);
    const [width, height] = sizeOf(app);
    this.element.style.setProperty("--width", String(width));
    this.element.style.setProperty("--height", String(height));
    this.#size();
    if (job) this.unfollow = app.jobs.follow(job, (entry) => this.#take(entry));
  }

  /** The tiles, each row of them after its name. */
  #arranged() {
    const { racers: columns, setting, values } = this.lineup;
    const tiles = this.racers.map(({ element }) => element);
    if (values.length === 0) return tiles;
    return values.flatMap((value, row) => [
      make("h3", "race-row", { title: value }, [
        make("span", "small hint", {}, [setting === "prompt" ? "" : this.words[setting]]),
        make("span", "", {}, [value])]),
      ...tiles.slice(row * columns.length, (row + 1) * columns.length)]);
  }

  /** As many columns as racers, or fewer where they would be narrow. */
  #size() {
    const count = this.lineup.racers.length;
    const columns = this.lineup.values.length || count <= 3 ? count : Math.ceil(count / 2);
    this.element.style.setProperty("--columns", String(columns));
    this.element.style.setProperty("--lines",
      String(this.lineup.values.length || Math.ceil(count / columns)));
  }

  #racer(racer, value, n) {
    const tile = new Tile(this.app, { fills: true, most: LARGEST });
    const name = make("span", "race-name clip", {}, [this.#nameOf(racer)]);
    const clock = make("span", "race-clock hint", { "aria-hidden": "true" });
    const box = make("input", "", { type: "checkbox" });
    box.addEventListener("change", () => this.#tick(n, box.checked));
    const pick = make("label", "race-pick small", { hidden: "" }, [box,
      make("span", "", {}, [this.words.pick])]);
    const done = make("span", "");
    if (!this.job) {
      tile.window.append(make("p", "race-frame small", {}, [this.#aboutOf(racer)]));
    }
    const element = make("figure", "race-tile", {}, [
      make("figcaption", "race-caption", {}, [name, pick, clock]),
      make("div", "bar", { "aria-hidden": "true" }, [done]), tile.window]);
    return { tile, name, clock, box, pick, done, element, racer, value };
  }

  #nameOf(racer) {
    const { schema } = this.app;
    if (racer === schema.as_chosen) return this.words.asChosen;
    return [...schema.qualities, ...schema.methods].find(({ name }) => name === racer)?.label
      ?? racer;
  }

  /** What is known of a racer before it runs. */
  #aboutOf(racer) {
    const { schema } = this.app;
    if (racer === schema.as_chosen) return qualityName(this.app);
    return schema.qualities.find(({ name }) => name === racer)?.about ?? "";
  }

  /** What drew a picture: "Fast", or "Fast (current)". */
  nameAt(n) {
    return this.racers[n].name.textContent;
  }

  /** A picture's name among all: "Fast", or "Fast, seed 7". */
  titleOf(n) {
    const { value } = this.racers[n];
    return value === null ? this.nameAt(n) : this.nameAt(n) + this.app.say(this.words.inRow,
      { setting: this.words[this.lineup.setting], value });
  }

  #take(entry) {
    for (const [n, { tile }] of this.racers.entries()) {
      tile.feed(entry.messages.filter(({ panel }) => panel === n));
    }
    for (const racer of this.racers) this.#show(racer);
    if (entry.saved?.length) this.#offer(entry.saved);
    this.on.entry(entry);
  }

  /** What runs under "Current settings", and how far it is. */
  #show({ tile: { panel }, name, clock, done, racer, element }) {
    if (!panel?.start) return;
    const runs = panel.start.label;
    if (racer === this.app.schema.as_chosen) {
      setText(name, this.app.say(this.words.nowChosen, { name: runs }));
    }
    name.title = name.textContent;
    setText(clock, this.app.say(this.app.words.common.seconds,
      { seconds: panel.seconds.toFixed(1) }));
    done.style.width = `${(100 * panel.row) / panel.start.rows}%`;
    element.dataset.end = panel.end?.kind ?? "";
  }

  /** Saved pictures can be opened and compared; of a race that was stopped these are some. */
  #offer(saved) {
    if (this.#pictures.size) return;
    const pictures = saved.map(({ id, place }) => (
      { src: pictureUrl(id), label: this.titleOf(place) }));
    saved.forEach(({ place }, n) => {
      const { tile, pick, box } = this.racers[place];
      const { label } = pictures[n];
      this.#pictures.set(place, pictures[n]);
      tile.openBy(() => openLarge(this.app, pictures, n),
        this.app.say(this.words.open, { name: label }));
      pick.hidden = pictures.length <= TWO;
      box.setAttribute("aria-label", this.app.say(this.words.pickNamed, { name: label }));
    });
    for (const { place } of saved.slice(0, TWO)) this.#tick(place, true);
  }

  /** Of three ticked ones the one that was ticked first is let go. */
  #tick(n, on) {
    this.#ticked = this.#ticked.filter((other) => other !== n);
    if (on) this.#ticked = [...this.#ticked, n].slice(-TWO);
    this.racers.forEach(({ box }, i) => { box.checked = this.#ticked.includes(i); });
    this.on.ticked(this.#ticked.length);
  }

  /** What the colours of the overlay mean. */
  get legend() {
    return this.racers[0].tile.preview.legend;
  }

  get overlay() {
    return this.racers[0].tile.preview.overlay;
  }

  setOverlay(on) {
    for (const { tile } of this.racers) tile.preview.setOverlay(on);
  }

  /** The ticked two with a divider between them. */
  async compare() {
    const { compare } = await import("./viewer.js");
    const [left, right] = this.#ticked.toSorted((a, b) => a - b).map((n) => this.#pictures.get(n));
    compare(this.app, left, right);
  }

  dispose() {
    this.unfollow?.();
    for (const { tile } of this.racers) tile.dispose();
    this.element.remove();
  }
}

// What came of a race: who was quickest, the guarantee in words, and a table of measurements

/** The parts of the result; view: the race's; saved: its pictures. */
export function resultParts(app, view, { guarantee, rows: measured, problem }, saved) {
  const words = app.words.race;
  const rows = measured.map(([, ...rest], n) => [view.nameAt(saved[n].place), ...rest]);
  const { setting } = view.lineup;
  const lines = setting ? [] : [quickestLine(app, rows), rows.length === 2 ? guarantee : ""];
  const seeds = setting === "seed" ? [] : [app.say(app.words.uses.seed, saved[0])];
  return [make("h2", "", {}, [words.result]),
    ...seeds.map((seed) => make("p", "small hint", {}, [seed])),
    ...lines.filter(Boolean).map((line) => make("p", "", {}, [line])),
    ...(problem ? [make("p", "small bad", {}, [problem])] : []),
    make("details", "small", {}, [make("summary", "", {}, [words.figures]),
      table(words, view, rows, saved.map(({ place }) => view.cells[place][1]))])];
}

function quickestLine(app, rows) {
  const ends = extremes(rows);
  return ends && app.say(app.words.race.quickest, { name: ends.quickest.name,
    seconds: ends.quickest.seconds, times: ends.times.toFixed(1), other: ends.slowest.name });
}

const COLUMNS = ["method", "passes", "seconds", "picture"];

/** values: of the setting that the race has rows by, for each picture; null without one. */
function table(words, { lineup: { setting } }, rows, values) {
  const line = (tag, texts, attributes = {}) => make("tr", "", {}, texts.map((text, n) => make(tag,
    ["passes", "seconds"].includes(COLUMNS[n]) ? "number" : "", attributes, [text])));
  const group = (value) => make("tr", "race-group", {}, [make("th", "", { scope: "rowgroup",
    colspan: String(COLUMNS.length) }, [setting === "prompt" ? value
    : `${words[setting]} ${value}`])]);
  const groups = setting ? [...new Set(values)] : [null];
  return make("table", "small", { "aria-label": words.measured }, [
    make("thead", "", {}, [line("th", COLUMNS.map((key) => words[key]), { scope: "col" })]),
    ...groups.map((value) => make("tbody", "", {}, [...(setting ? [group(value)] : []),
      ...rows.filter((_, n) => values[n] === value).map((row) => line("td", row))]))]);
}
