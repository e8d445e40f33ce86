/** A run on the stage: its rows as they are drawn, then its replay and its figures. */

import { button, make } from "./core/elements.js";
import { Preview } from "./core/preview.js";
import { emptyPicture } from "./empty_picture.js";
import { isOver } from "./jobs.js";
import { pixelMode } from "./pixels.js";
import { Replay } from "./replay.js";
import { statusText } from "./status.js";

const MACHINES = / (window|cells|budget)=\S+/g; // in a label: knobs that are chosen for the machine
const LARGEST = 2; // screen pixels for each pixel of the picture

export class RunView {
  #messages = [];
  #entry = null;
  #replay = null;
  #ended;

  over = new Promise((resolve) => { this.#ended = resolve; }); // all of the run is known

  /**
   * on: tell(line, bad), progress(share), saved(pictures) and stopped(kept), whenever there is
   * something new.
   */
  constructor(app, job, on) {
    Object.assign(this, { app, job, on });
    this.preview = this.#newPreview();
    this.stoppedRow = make("div", "row kept");
    this.empty = emptyPicture(app, app.jobs.job(job)?.settings?.size ?? null);
    this.element = make("div", "run", { "data-job": job },
      [this.empty, this.preview.element, this.preview.legend, this.stoppedRow]);
    this.unfollow = app.jobs.follow(job, (entry) => this.#take(entry));
    this.#tell();
  }

  #newPreview(options = {}) {
    const preview = new Preview({ language: this.app.language, fills: true, most: LARGEST,
      smooth: !pixelMode.sharp, prompt: this.app.jobs.job(this.job)?.settings?.prompt,
      ...options });
    preview.element.classList.add("on-stage");
    preview.bar.remove(); // the switch of the overlay is among the tools
    pixelMode.mark(preview.element);
    return preview;
  }

  #take(entry) {
    this.#entry = entry;
    const messages = entry.messages.map((message) => this.#named(message));
    this.#messages.push(...messages);
    for (const message of messages) this.preview.feed(message);
    this.on.progress(entry.state === "running" ? entry.progress ?? 0 : 0);
    if (entry.saved?.length) this.#save(entry.saved);
    else if (isOver(entry)) this.#ended();
    if (entry.state === "failed") this.preview.fail(entry.error ?? "");
    if (entry.state === "cancelled") this.#offerTop();
    this.#tell();
  }

  /** Offer the finished pictures: then all is known. */
  async #save(pictures) {
    await this.on.saved(pictures.map((picture) => this.#named(picture)));
    this.element.classList.toggle("opens", pictures.length > 1); // by a click
    this.#ended();
  }

  /** A message or a picture with the name of its quality as its label. */
  #named(item) {
    const name = this.app.schema.names[item.label?.replace(MACHINES, "")];
    return name === undefined ? item : { ...item, label: name };
  }

  #tell() {
    const begun = Object.keys(this.preview.state.panels).length > 0;
    this.empty.hidden = begun || (this.#entry !== null && isOver(this.#entry));
    this.element.dataset.state = this.#entry?.state ?? "";
    this.on.tell(statusText(this.#entry, this.app.words.stage, begun), // the preview tells the rest
      this.#entry?.state === "failed");
  }

  /** A run that was stopped offers its finished rows. */
  async #offerTop() {
    const { app } = this;
    const words = app.words.stage;
    const job = await app.api.get(`jobs/${this.job}`).catch(() => null);
    const rows = job?.result?.stopped_rows;
    if (!rows || this.stoppedRow.childElementCount) return;
    const keep = button(words.keepTop, async () => {
      const entry = await app.attempt(app.jobs.act(this.job, "keep"));
      if (!entry) return;
      this.stoppedRow.replaceChildren();
      this.on.stopped(true);
      app.go("create", { redo: entry.id });
    }, { id: "keep-top" });
    this.stoppedRow.append(make("span", "", {},
      [app.say(words.stoppedAt, { row: rows, rows: job.result.rows })]), keep);
  }

  /** Whether the run is seen as its picture alone. */
  get isPlain() {
    return !this.#replay && !this.preview.overlay && !this.element.matches(".with-details");
  }

  /** Switch the overlay, also of the replay; returns whether it is on. */
  overlay() {
    this.preview.setOverlay(!this.preview.overlay);
    this.#replay?.setOverlay(this.preview.overlay);
    return this.preview.overlay;
  }

  /** Show the figures behind the run, or hide them; returns whether they are shown. */
  details() {
    return this.element.classList.toggle("with-details");
  }

  /** Play the run again, or end that; returns whether it is on. */
  replay() {
    if (this.#replay) {
      this.#replay.dispose();
      this.#replay = null;
      this.element.prepend(this.preview.element);
      return false;
    }
    const { app } = this;
    this.#replay = new Replay(this.job, this.#messages, {
      words: app.words.stage, overlay: this.preview.overlay, mp4: app.schema.mp4,
      newPreview: (options) => this.#newPreview(options),
    });
    this.preview.element.replaceWith(this.#replay.element);
    return true;
  }

  dispose() {
    this.unfollow();
    this.#replay?.dispose();
    this.preview.dispose();
    this.element.remove();
  }
}
