/**
 * The stage of Create: a gallery until the first picture, then the run that goes on, a finished
 * picture, or a picture that is edited. What a page needs only then is loaded then.
 */

import { make, setText } from "./core/elements.js";
import { gallery } from "./gallery.js";
import { isOver } from "./jobs.js";

const KINDS = new Set(["draw", "redo", "edit", "control"]);

export class Stage {
  #view = null; // what is shown: {element, dispose()}
  #job = null; // id of the shown job
  #turn = 0; // counts what was asked for; what is loaded too late is not shown
  #tools = null; // loaded with the first picture
  #following = true; // whether the next run that begins is shown

  editing = null; // the view of the Edit tool, while it is open

  /**
   * onSaved(): called whenever pictures were saved. onEdit(): when Edit is opened or closed.
   * onShown(ids): when other saved pictures are shown, or none.
   */
  constructor(app) {
    this.app = app;
    this.onSaved = this.onEdit = this.onShown = () => {};
    this.progress = make("span", "");
    this.bar = make("div", "bar", { "aria-hidden": "true" }, [this.progress]);
    this.status = make("p", "status small", { role: "status", id: "status" });
    this.body = make("div", "stage-body");
    this.element = make("section", "stage", { id: "create-stage",
      "aria-label": app.words.stage.name }, [this.bar, this.body, this.status]);
    app.jobs.watch((jobs) => this.#look(jobs));
    if (this.#view === null) this.#show(gallery(app));
  }

  /** Show the next run, or the one that goes on. */
  follow() {
    this.#following = true;
    this.#look(this.app.jobs.list);
  }

  /** Show a saved picture; the stage stays with it until the next run is asked for. */
  async showPicture(entry) {
    const turn = this.#leave();
    const { SavedView } = await import("./saved_view.js");
    if (turn !== this.#turn) return;
    this.#show(new SavedView(this.app, entry));
    await this.#offer([{ id: entry.id, seed: entry.seed, label: null, words: "",
      favourite: entry.favourite, prompt: entry.prompt }]);
  }

  async showById(id) {
    const entry = await this.app.attempt(this.app.api.get(`history/${encodeURI(id)}`));
    if (entry) this.showPicture(entry);
  }

  /** Edit a saved picture; options: as of `openEdit`. */
  async edit(id, options = {}) {
    const turn = this.#leave();
    if (options.job) this.#job = options.job.id;
    const { openEdit } = await import("./edit.js");
    const view = await this.app.attempt(openEdit(this.app, id, options, {
      tell: (line, bad) => this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: () => this.onSaved(),
      open: (other, more) => this.edit(other, more),
      close: (entry) => this.showPicture(entry),
    }));
    if (!view) return;
    if (turn !== this.#turn) {
      view.dispose();
      return;
    }
    this.#show(view, view);
    await this.#offer([]);
  }

  /** No longer follow the runs; returns the turn of what comes instead. */
  #leave() {
    this.#following = false;
    this.#job = null;
    this.#tell("");
    this.#turn += 1;
    return this.#turn;
  }

  /** Offer the tools for these saved pictures. */
  async #offer(saved, { replay = false } = {}) {
    this.onShown(saved.map(({ id }) => id));
    if (!this.#tools && saved.length === 0) return;
    const turn = this.#turn;
    const { Tools } = await import("./tools.js");
    if (!this.#tools) {
      this.#tools = new Tools(this.app, {
        overlay: () => this.#view?.overlay?.() ?? false,
        replay: () => this.#view?.replay?.() ?? false,
        details: () => this.#view?.details?.() ?? false,
        edit: (id) => this.edit(id),
      });
      this.element.append(this.#tools.element);
    }
    if (turn === this.#turn) this.#tools.offer(saved, { replay });
  }

  /** The jobs have changed: show the one that runs, or tell how the shown one stands. */
  #look(jobs) {
    const own = jobs.filter(({ kind }) => KINDS.has(kind));
    const begun = own.find(({ state }) => state === "running")
      ?? (this.#job === null ? own.findLast(({ state }) => state !== "waiting") : undefined)
      ?? own.find(({ state }) => state === "waiting" && this.#job === null);
    if (this.#following && begun && begun.id !== this.#job) this.#showRun(begun);
    this.#title(own.find(({ state }) => state === "running"));
  }

  async #showRun(job) {
    if (job.kind === "edit" && !isOver(job)) {
      this.edit(job.settings.parent, { job });
      return;
    }
    this.#job = job.id;
    this.#turn += 1;
    const turn = this.#turn;
    const { RunView } = await import("./run_view.js");
    if (turn !== this.#turn) return;
    this.#offer([]);
    this.#show(new RunView(this.app, job.id, {
      tell: (line, bad) => this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: (pictures) => {
        this.#offer(pictures, { replay: true });
        this.onSaved();
      },
      stopped: (kept) => kept && this.onSaved(),
    }));
  }

  #show(view, editing = null) {
    this.#view?.dispose();
    this.#view = view;
    this.body.replaceChildren(view.element);
    this.editing = editing;
    this.onEdit();
    this.#progress(0);
  }

  #tell(line, bad = false) {
    setText(this.status, line);
    this.status.classList.toggle("bad", bad);
  }

  #progress(share) {
    this.progress.style.width = `${100 * share}%`;
  }

  /** The share that is done stands in the title of the browser's tab. */
  #title(running) {
    const share = running?.progress;
    const name = "SSD Studio";
    document.title = running && share ? `${Math.floor(100 * share)} % · ${name}` : name;
  }
}
