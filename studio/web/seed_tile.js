/** One seed among several: its drawn rows, a box to tick, and what a finished one offers. */

import { isPaused, isRest, shareOf } from "./batch.js";
import { button, make, setText } from "./core/elements.js";
import { sendMenu } from "./send.js";
import { seedText } from "./status.js";
import { Tile } from "./run_tile.js";
import { sizeOf } from "./uses.js";

const SMALL = { class: "button plain small" };

export class SeedTile {
  #had = 0; // messages that the preview was fed
  #skip = 0; // messages of the next job that repeat those of the one before
  #entry = null;

  /** on: tick(on) and open(), which the user asked for. */
  constructor(app, seed, on) {
    Object.assign(this, { app, seed, on, job: null, words: app.words.seeds });
    this.tile = new Tile(app);
    this.box = make("input", "", { type: "checkbox", disabled: "" });
    this.box.addEventListener("change", () => on.tick(this.box.checked));
    this.label = make("label", "check seed-label", {}, [this.box,
      make("span", "", {}, [app.say(this.words.seed, { seed })])]);
    this.state = make("span", "seed-state small hint");
    this.tools = make("div", "row seed-tools", { hidden: "" });
    this.element = make("li", "seed", { "data-state": "" },
      [this.tile.window, this.label, this.state, this.tools]);
  }

  /** Whether this tile can show the job: its own, or the one that draws the rest of its picture. */
  fits(job) {
    return this.job === null || this.job.id === job.id || (isRest(job) && !isRest(this.job));
  }

  /** Show how a job stands; part: what of a top is drawn; ticked: whether it is to be finished. */
  show(job, part, ticked) {
    if (this.job && this.job.id !== job.id) this.#skip = this.#had;
    this.job = job;
    this.element.dataset.state = job.expired ? "expired" : job.state;
    this.box.disabled = !isPaused(job);
    this.box.checked = ticked && isPaused(job);
    this.crop(shareOf(job, part));
    this.#tell();
    if (job.saved.length) this.#offer(job.saved[0]);
    else if (job.state === "cancelled" && job.result?.stopped_rows) this.#offerTop(job);
  }

  /** Show this share of the picture, from the top. */
  crop(share) {
    const start = this.tile.panel?.start;
    const [width, height] = start ? [start.width, start.height] : sizeOf(this.app);
    this.tile.window.style.aspectRatio = `${width} / ${height * share}`;
    this.tile.window.style.setProperty("--picture", `${width} / ${height}`);
    this.tile.window.classList.toggle("cut", share < 1);
  }

  /** What its job has new to tell. */
  take(entry) {
    this.#entry = entry;
    const fresh = entry.messages.slice(this.#skip);
    this.#skip = Math.max(0, this.#skip - entry.messages.length);
    this.#had += fresh.length;
    this.tile.feed(fresh);
    this.#tell();
  }

  #tell() {
    const words = { ...this.app.words.stage, ...this.words };
    const quiet = this.job === null || isPaused(this.job) // the bar says it of all at once
      || this.job.state === "done"; // the whole picture is seen
    const said = this.job?.expired ? words.gone
      : quiet ? "" : seedText(this.job, this.tile.panel, words);
    setText(this.state, said);
    this.state.classList.toggle("bad", this.job?.state === "failed");
  }

  /** What can be done with the finished picture. */
  #offer(picture) {
    if (!this.tools.hidden) return;
    const { app } = this;
    const send = sendMenu(app, () => picture, SMALL.class);
    this.tools.append(send.button, send.menu,
      button(this.words.redo, () => app.go("create", { redo: picture.id }), SMALL));
    this.tools.hidden = false;
    this.tile.openBy(this.on.open, app.say(this.words.open, { seed: this.seed }));
  }

  /** The finished rows of a picture that was stopped can be kept. */
  #offerTop({ id }) {
    if (!this.tools.hidden) return;
    const { app } = this;
    this.tools.append(button(app.words.stage.keepTop, async () => {
      const entry = await app.attempt(app.jobs.act(id, "keep"));
      if (entry) app.go("create", { redo: entry.id });
    }, SMALL));
    this.tools.hidden = false;
  }

  dispose() {
    this.tile.dispose();
    this.element.remove();
  }
}
